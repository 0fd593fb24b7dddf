"""Pods in network namespaces of their own, and kube-router, which enforces policies between them. Runs as root.

``unshare --net --mount python -m tidegate_testing.policy_world`` reads a :class:`World` as JSON and prints which ports
of which pods are reached from which pod, before and after kube-router has begun. A real API server holds the policies.
No container runs: a pod is an object with an address, and a process that listens there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from devcluster import tools
from devcluster.apiclient import ApiClient
from devcluster.apiserver import ApiServer
from tidegate_testing.waiting import CannotComeError, wait_for

NODE, NODE_ADDRESS, GATEWAY = "node", "10.78.0.1", "169.254.1.1"
CLOSED = "closed"
"""A pod that a policy of its own closes: when it is closed, all rules of that round are in force."""
PATIENCE_SECONDS = 60.0
NAMESPACES = "/var/run/netns"
"""Where ip keeps those that it makes; of this process alone."""

_LISTEN = """
import json, socket, sys, time
kept = [socket.create_server(("0.0.0.0", port), reuse_port=True) for port in json.loads(sys.argv[1])]
print("listening", flush=True)
time.sleep(600)
"""
_KNOCK = """
import concurrent.futures, json, socket, sys

def reached(door):
    try:
        socket.create_connection((door[1], door[2]), 2).close()
    except OSError:
        return False
    return True

doors = json.loads(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(32) as at_once:
    print(json.dumps([[name, port] for (name, _, port), ok in zip(doors, at_once.map(reached, doors)) if ok]))
"""


@dataclass(frozen=True)
class Pod:
    """A pod, as far as policies see it."""

    name: str
    namespace: str
    labels: dict[str, str]


@dataclass(frozen=True)
class World:
    """What there is; every pod listens on every port."""

    pods: list[Pod]
    ports: list[int]
    policies: list[dict[str, Any]]


Reached = set[tuple[str, str, int]]
"""From which pod, which pod, on which port."""


def enforce(world: World, timeout: float = 300) -> tuple[Reached, Reached]:
    """Return who reaches whom without and with the policies, found in namespaces that end with the call."""
    for name in (tools.KUBE_ROUTER.name, "kube-apiserver"):
        tools.program(name)  # where it is missing, it is built, which nobody can in a namespace without a network
    command = ["unshare", "--net", "--mount", "--fork", "--kill-child", sys.executable, "-m", __name__]
    text = json.dumps(asdict(world))
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"the world of policies came to an end: {done.stderr[-4000:]}")
    before, after = json.loads(done.stdout.splitlines()[-1])
    return {tuple(each) for each in before}, {tuple(each) for each in after}


class _Net:
    """The pods' network: a point-to-point link for each, so that every packet between two is forwarded by the node."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.addresses = {pod.name: f"10.77.0.{number}" for number, pod in enumerate(_all(world), 2)}
        self._listeners: list[subprocess.Popen[str]] = []

    def up(self) -> None:
        Path(NAMESPACES).mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "tmpfs", NAMESPACES)
        _run("ip", "link", "set", "lo", "up")
        # What kube-router takes for the node's own address.
        _run("ip", "address", "add", f"{NODE_ADDRESS}/32", "dev", "lo")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        for number, (name, address) in enumerate(self.addresses.items()):
            self._connect(name, f"pod{number}", address)
        for name in self.addresses:
            self._listen(name)

    def down(self) -> None:
        for listener in self._listeners:
            listener.kill()
            listener.wait()

    def reached(self) -> list[tuple[str, str, int]]:
        doors = [(name, address, port) for name, address in self.addresses.items() for port in self._world.ports]
        knocks = {
            pod.name: self._start(pod.name, _KNOCK, [door for door in doors if door[0] != pod.name])
            for pod in self._world.pods
        }
        return [(name, *door) for name, knock in knocks.items() for door in json.loads(knock.communicate()[0])]

    def _connect(self, name: str, link: str, address: str) -> None:
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", link, "up")
        _run("ip", "address", "add", f"{GATEWAY}/32", "dev", link)
        _run("ip", "route", "add", f"{address}/32", "dev", link)
        inside = ("ip", "-n", name)
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "address", "add", f"{address}/32", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        _run(*inside, "route", "add", GATEWAY, "dev", "eth0")
        _run(*inside, "route", "add", "default", "via", GATEWAY, "dev", "eth0")

    def _listen(self, name: str) -> None:
        listener = self._start(name, _LISTEN, self._world.ports)
        self._listeners.append(listener)
        assert listener.stdout is not None
        assert listener.stdout.readline() == "listening\n"

    def _start(self, name: str, program: str, argument: object) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", name, sys.executable, "-c", program, json.dumps(argument)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _all(world: World) -> list[Pod]:
    return [*world.pods, Pod(CLOSED, CLOSED, {})]


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _create(client: ApiClient, world: World, addresses: dict[str, str]) -> None:
    closed = {
        "metadata": {"name": CLOSED, "namespace": CLOSED},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    policies = [*world.policies, {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", **closed}]
    places = {pod.namespace for pod in _all(world)} | {policy["metadata"]["namespace"] for policy in policies}
    for name in sorted(places):
        client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    client.create("/api/v1/nodes", {"metadata": {"name": NODE}, "spec": {"podCIDR": "10.77.0.0/24"}})
    node = {"addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}]}
    client.merge(f"/api/v1/nodes/{NODE}/status", {"status": node})
    for policy in policies:
        place = policy["metadata"]["namespace"]
        client.create(f"/apis/networking.k8s.io/v1/namespaces/{place}/networkpolicies", policy)
    for pod in _all(world):
        path = f"/api/v1/namespaces/{pod.namespace}/pods"
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}]}
        client.create(path, {"metadata": {"name": pod.name, "labels": pod.labels}, "spec": spec})
        address = addresses[pod.name]
        status = {"phase": "Running", "hostIP": NODE_ADDRESS, "podIP": address, "podIPs": [{"ip": address}]}
        client.merge(f"{path}/{pod.name}/status", {"status": status})


def _await_rules(net: _Net, router: subprocess.Popen[bytes]) -> list[tuple[str, str, int]]:
    def closed() -> list[tuple[str, str, int]]:
        if router.poll() is not None:
            raise CannotComeError(f"kube-router ended with exit status {router.returncode}")
        found = net.reached()
        assert not any(to == CLOSED for _, to, _ in found), "the pod that a policy closes is reached"
        return found

    return wait_for("kube-router to close what a policy closes", closed, PATIENCE_SECONDS, 0.2)


def main() -> None:
    """Make the world that standard input describes; print who reaches whom."""
    reported = json.load(sys.stdin)
    world = World([Pod(**pod) for pod in reported["pods"]], reported["ports"], reported["policies"])
    program = tools.program(tools.KUBE_ROUTER.name)
    net = _Net(world)
    net.up()
    try:
        before = net.reached()
        with ApiServer() as server:
            _create(ApiClient(server.kubeconfig), world, net.addresses)
            only = ("--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--health-port=0")
            command = [str(program), *only, f"--kubeconfig={server.kubeconfig}", f"--hostname-override={NODE}"]
            router = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr, env=os.environ)
            try:
                after = _await_rules(net, router)
            finally:
                router.kill()
                router.wait()
    finally:
        net.down()
    print(json.dumps([[each for each in found if CLOSED not in each] for found in (before, after)]))


if __name__ == "__main__":
    main()
