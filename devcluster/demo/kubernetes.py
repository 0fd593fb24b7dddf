"""Kubernetes as the demo uses it: kubectl and Helm, as a user would type them. Runs processes, does network I/O."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.kubeapi import RequestFailedError, kube_api


class CommandError(RuntimeError):
    """A command failed; the text is the command and what it printed."""


def run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = None,
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return what a command printed; raise CommandError if it fails or does not end in ``timeout`` seconds."""
    shown = " ".join(map(str, command))
    try:
        done = subprocess.run(
            list(map(str, command)),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, **(env or {})},
        )
    except subprocess.TimeoutExpired as late:
        raise CommandError(f"{shown}\ndid not end within {timeout:.0f} s") from late
    if done.returncode:
        raise CommandError(f"{shown}\n{done.stdout}{done.stderr}".strip())
    return done.stdout


@dataclass(frozen=True)
class Kubernetes:
    """One cluster, by the programs and the kubeconfig with which it is reached."""

    kubectl: Path
    helm: Path
    kubeconfig: Path

    def ctl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        """Return what kubectl printed."""
        return run([self.kubectl, "--kubeconfig", self.kubeconfig, *arguments], stdin=stdin, timeout=timeout)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Apply objects, as ``kubectl apply -f`` does."""
        self.ctl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """Return an object, or None if there is none; asked in this process, because it is asked all the time."""
        try:
            return kube_api(self.kubeconfig).get(kind, name, namespace)
        except RequestFailedError as failed:
            raise CommandError(f"kubectl get {kind} {name} -n {namespace}\n{failed}") from failed

    def install_chart(self, release: str, chart: Path, namespace: str, values: Mapping[str, Any], timeout: int) -> None:
        """Install or upgrade a release and wait until its pods are ready."""
        with tempfile.TemporaryDirectory() as home:
            folders = {f"HELM_{kind}_HOME": home for kind in ("CACHE", "CONFIG", "DATA")}
            arguments = ["upgrade", "--install", release, chart, "--namespace", namespace, "--create-namespace"]
            wait = ["--wait", f"--timeout={timeout}s", "--values", "-"]
            run(
                [self.helm, *map(str, arguments), *wait],
                stdin=json.dumps(values),
                timeout=timeout + 10,
                env={**folders, "KUBECONFIG": str(self.kubeconfig)},
            )

    def kill_process(self, pod: str, namespace: str, container: str, program: str) -> None:
        """Send SIGKILL to every process of a container that runs ``program``; the container needs python3."""
        script = (
            "import os, pathlib, signal, sys\n"
            "found = [int(p.name) for p in pathlib.Path('/proc').glob('[0-9]*')\n"
            "         if (p / 'cmdline').read_bytes().split(b'\\0')[0].endswith(sys.argv[1].encode())]\n"
            "[os.kill(pid, signal.SIGKILL) for pid in found]\n"
            "sys.exit(not found)\n"
        )
        self.ctl("exec", pod, "-n", namespace, "-c", container, "--", "python3", "-c", script, program)

    def describe_trouble(self, app: str, namespace: str) -> str:
        """Return what a person would look at first when an application does not run; never raises CommandError."""
        checks = (
            (
                "get",
                "sapp",
                app,
                "-n",
                namespace,
                "-o",
                'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\\n"}{end}',
            ),
            ("get", "pods", "-n", namespace),
            ("get", "events", "-n", namespace, "--sort-by=.lastTimestamp", "--field-selector=type=Warning"),
            ("logs", f"{app}-driver", "-n", namespace, "--tail=12"),
        )
        found = []
        for check in checks:
            try:
                found.append(self.ctl(*check, timeout=20))
            except CommandError as error:
                found.append(str(error))
        return "\n".join(found)
