"""The command line: ``python -m devcluster --help``. Prints; everything else is done by the modules it calls."""

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable

from devcluster import paths, tools
from devcluster.apiserver import ApiServer
from devcluster.cluster import Cluster
from devcluster.control import ComponentError, Control

_API_PREFIX = "api-"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code. Errors that a person can fix are one line on stderr."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (ComponentError, OSError, ValueError, RuntimeError) as failed:
        print(f"devcluster: {failed}", file=sys.stderr)
        return 1


def _up(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    cluster = Cluster(options.name).up(seeded=True)
    print(f"cluster {options.name} is up ({time.monotonic() - begin:.1f} s)\nexport KUBECONFIG={cluster.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    # What is bound to a process is that process's to end.
    everyone = [n for n in paths.states() if paths.owner_of(n) is None]
    for name in everyone if options.all else [options.name]:
        known = paths.state(name).exists()
        _remove(name)
        print(f"cluster {name} is down" if known else f"there is no cluster {name}")
    return 0


def _remove(name: str) -> None:
    if name.startswith(_API_PREFIX):
        Control(paths.state(name)).wipe()
    else:
        Cluster(name).down()


def _status(options: argparse.Namespace) -> int:
    everyone = [n for n in paths.states() if paths.owner_of(n) is None and not n.startswith(_API_PREFIX)]
    names = [options.name] if options.name else everyone
    healthy = True
    for name in names:
        cluster = Cluster(name)
        problem = cluster.problem()
        healthy = healthy and problem is None
        print(f"cluster {name} {problem or 'is up'}")
        for component, seen in cluster.control.components().items() if cluster.control.answers() else ():
            state = "runs" if seen["code"] is None else f"ended with code {seen['code']}"
            print(f"  {component:26} {state}")
    return 0 if healthy else 1


def _kubeconfig(options: argparse.Namespace) -> int:
    cluster = Cluster(options.name)
    if not cluster.kubeconfig.exists():
        raise ComponentError(f"cluster {options.name!r} is down: make cluster-up NAME={options.name}")
    print(cluster.kubeconfig)
    return 0


def _kubectl(options: argparse.Namespace) -> int:
    kubectl = tools.program("kubectl")
    kubeconfig = paths.state(options.name) / "kubeconfig"
    if not kubeconfig.exists():
        raise ComponentError(f"cluster {options.name!r} is down: make cluster-up NAME={options.name}")
    os.execv(kubectl, [str(kubectl), "--kubeconfig", str(kubeconfig), *_command(options)])


def _enter(options: argparse.Namespace) -> int:
    return subprocess.run(Cluster(options.name).enter(*_command(options)), check=False).returncode


def _command(options: argparse.Namespace) -> list[str]:
    command: list[str] = options.command
    return command[1:] if command[:1] == ["--"] else command


def _tools(_: argparse.Namespace) -> int:
    print(tools.ensure())
    return 0


def _api_server(options: argparse.Namespace) -> int:
    server = ApiServer(
        _API_PREFIX + options.name,
        controllers=options.controllers,
        kwok_nodes=options.kwok_nodes,
        audit_log=options.audit_log,
    )
    if options.do == "down":
        server.stop()
    else:
        server.start()
        print(f"export KUBECONFIG={server.kubeconfig}")
        if server.audit_log:
            print(f"audit log: {server.audit_log}")
    return 0


def _service(options: argparse.Namespace) -> int:
    service = importlib.import_module(f"devcluster.{options.service}")
    print(getattr(service, options.do)(Cluster(options.name)))
    return 0


def _images(options: argparse.Namespace) -> int:
    images = importlib.import_module("devcluster.images")
    if options.do == "build":
        images.build(images.OF_TESTS if options.tests else images.IMAGES)
    elif Cluster(options.name).control.running():
        images.load(Cluster(options.name))
    else:
        print(f"cluster {options.name} is down: nothing to load the images into")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devcluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, named: bool = True
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        if named:
            added.add_argument("--name", default="dev", help="which cluster (default: dev)")
        return added

    command("tools", _tools, "build the Go programs, print their folder", named=False)
    command("up", _up, "start a cluster, or keep a healthy one")
    command("down", _down, "remove a cluster").add_argument("--all", action="store_true", help="every one")
    command("status", _status, "show the components", named=False).add_argument(
        "--name", help="which cluster (default: all)"
    )
    command("kubeconfig", _kubeconfig, "print the path of the kubeconfig")
    for name, run, text in (
        ("kubectl", _kubectl, "run kubectl"),
        ("enter", _enter, "run a command in the cluster's namespaces"),
    ):
        command(name, run, text).add_argument("command", nargs=argparse.REMAINDER, help="-- and the arguments")
    api = command("apiserver", _api_server, "an API server alone, or with simulated nodes")
    api.add_argument("do", choices=("up", "down"))
    api.add_argument("--kwok-nodes", type=int, default=0, help="number of simulated nodes")
    api.add_argument("--controllers", action="store_true", help="run kube-controller-manager as well")
    api.add_argument("--audit-log", action="store_true", help="write an audit log")
    for service, text in (
        ("s3", "the S3 server"),
        ("kafka", "the Kafka broker"),
        ("rabbitmq", "the RabbitMQ broker"),
    ):
        added = command(service, _service, f"{text}: stop and start keep its data, down removes them")
        added.add_argument("do", choices=("up", "down", "stop", "start"))
        added.set_defaults(service=service)
    images = command("images", _images, "build the images, or load them into a cluster")
    images.add_argument("do", choices=("build", "load"))
    images.add_argument("--tests", action="store_true", help="build, too, what one test builds when it needs it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
