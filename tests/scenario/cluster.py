"""Nodes with kubelets, scheduler, garbage collector and node controller, on the simulated API server and clock.

A node may be cut off from the API server: its containers go on, nothing of them is reported, and no wish to end them
arrives. It may lose its power: they end without a word. What happens takes random times, all from the schedule's seed.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.scenario.api_server import APPS, PODS, ApiServer, Body, Change, RefusedError, time_at
from tests.scenario.volumes import RETRIES, WITHOUT_VOLUMES, report_of_volume, unfilled_volume

FIRST_BACK_OFF, LONGEST_BACK_OFF, HEALTHY = 10.0, 300.0, 600.0
NOT_READY_AFTER, EVICTED_AFTER = 40.0, 300.0
PROBED_FOR = 60.0
"""Seconds for which the liveness probe has to fail."""
KILLED = 137

Ended = Callable[[int, str, str], None]
"""Called once with exit code, the kubelet's word and the termination message."""


class Process(Protocol):
    """The main process of a container."""

    ready: bool

    def start(self, ended: Ended) -> None:
        """Begin."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL: it never does anything again, and calls nobody."""


@dataclass
class Node:
    """A machine."""

    name: str
    reachable: bool = True
    """Its kubelet reaches the API server, and agents on it are reached by the operator."""
    up: bool = True
    storeless: bool = False
    """Its pods do not reach the object store."""
    taint: bool = False
    """A person has declared it out of service."""
    lost_at: float = -1.0


@dataclass
class Container:
    """A pod's container, as its kubelet knows it."""

    path: str
    uid: str
    node: Node
    policy: str
    name: str
    image: str
    process: Process | None = None
    phase: str = "Pending"
    restarts: int = 0
    failures: int = 0
    start_time: float = 0.0
    state: Body = field(default_factory=dict)
    last: Body = field(default_factory=dict)
    reason: str = ""
    ending: bool = False
    disk: dict[str, str] = field(default_factory=dict)
    """An emptyDir: it stays when the process goes, and goes with the pod."""
    mounted: dict[str, Body] | None = None
    """Secrets by name, once all were there; they stay as they were when the pod started."""


class Surroundings(Protocol):
    """What the cluster needs of the world around it."""

    api: ApiServer

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""

    def later(self, seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        """Have something done later."""

    def some(self, low: float, high: float) -> float:
        """Return a random number."""

    def trace(self, who: str, text: str) -> None:
        """Note what happened."""

    def find_secret(self, name: str) -> Body | None:
        """Return a Secret of the applications' namespace."""

    def make_process(self, container: Container, pod: Body) -> Process:
        """Return the process of a pod's main container."""


class Cluster:
    """Everything in the cluster but the API server and the operator."""

    def __init__(self, world: Surroundings, nodes: int) -> None:
        self._world = world
        self.nodes = {f"node{number}": Node(f"node{number}") for number in range(nodes)}
        self.containers: dict[str, Container] = {}
        self.image_missing = False
        world.api.listeners.append(self._notice)

    def container_of(self, path: str) -> Container | None:
        """Return the container of the pod that the API server has under this path."""
        pod = self._world.api.find(path)
        return self.containers.get(pod["metadata"]["uid"]) if pod else None

    def _notice(self, change: Change) -> None:
        world, place, uid = self._world, change.place, change.body["metadata"]["uid"]
        if place.plural == PODS:
            if change.type == "ADDED":
                world.later(world.some(0.05, 1.0), self._schedule, place.path, uid)
            elif change.body["spec"].get("nodeName"):
                world.later(world.some(0.02, 0.5), self._sync, place.path, uid)
        if change.type == "DELETED" and place.plural in (PODS, APPS):
            world.later(world.some(0.2, 15.0), self._collect, uid)
        if change.type == "ADDED" and change.body["metadata"].get("ownerReferences"):
            world.later(world.some(1.0, 20.0), self._check_owner, place.path, uid)

    # --- garbage collector ---

    def _collect(self, owner: str) -> None:
        for path, body in sorted(self._world.api.objects.items()):
            if any(each["uid"] == owner for each in body["metadata"].get("ownerReferences", ())):
                self._world.trace("garbage collector", f"deletes {path}")
                self._world.api.delete(path, uid=body["metadata"]["uid"])

    def _check_owner(self, path: str, uid: str) -> None:
        body = self._world.api.find(path)
        if body is None or body["metadata"]["uid"] != uid:
            return
        alive = {each["metadata"]["uid"] for each in self._world.api.objects.values()}
        for owner in body["metadata"]["ownerReferences"]:
            if owner["uid"] not in alive:
                self._collect(owner["uid"])

    # --- scheduler and node controller ---

    def _schedule(self, path: str, uid: str) -> None:
        pod = self._world.api.find(path)
        if pod is None or pod["metadata"]["uid"] != uid or pod["spec"].get("nodeName"):
            return
        fit = [node for node in self.nodes.values() if node.up and node.reachable and not node.taint]
        if fit:
            self._world.api.bind(path, fit[int(self._world.some(0, len(fit)))].name)
            return
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node is ready."}
        self._world.api.set_status(path, {"phase": "Pending", "conditions": [refused]})
        self._world.later(10.0, self._schedule, path, uid)

    def cut_off(self, name: str) -> None:
        """The node's kubelet does not reach the API server any more."""
        node = self.nodes[name]
        if node.reachable:
            node.reachable, node.lost_at = False, self._world.now()
            self._world.later(NOT_READY_AFTER, self._call_not_ready, node, node.lost_at)
            self._world.later(EVICTED_AFTER, self._evict, node, node.lost_at)

    def power_off(self, name: str) -> None:
        """The node loses its power."""
        node = self.nodes[name]
        self.cut_off(name)
        node.up = False
        for container in self._on(node):
            if container.process is not None:
                container.process.kill()
                container.process, container.state = None, {}

    def declare_out_of_service(self, name: str) -> None:
        """A person taints the node: its pods are deleted, and those that do not end are removed by force."""
        node = self.nodes[name]
        node.taint = True
        self._delete_pods(node, None)
        self._world.later(self._world.some(5, 40), self._force, node)

    def heal(self, name: str) -> None:
        """The node is back and everybody knows it."""
        node = self.nodes[name]
        was_down = not node.up
        node.reachable = node.up = True
        node.taint = node.storeless = False
        for container in self._on(node):
            if was_down and container.phase == "Running" and not container.ending:
                container.last = {"exitCode": 255, "reason": "Unknown", "finishedAt": self._time()}
                self._restart(container, container.restarts)
            self._report(container)
            self._sync(container.path, container.uid)
        for pod in self._pods_on(node):
            self._sync(path_of(pod), pod["metadata"]["uid"])

    def _on(self, node: Node) -> list[Container]:
        return [container for container in self.containers.values() if container.node is node]

    def _pods_on(self, node: Node) -> list[Body]:
        return [pod for pod in self._world.api.all(PODS) if pod["spec"].get("nodeName") == node.name]

    def _call_not_ready(self, node: Node, since: float) -> None:
        if node.reachable or node.lost_at != since:
            return
        for pod in self._pods_on(node):
            others = [each for each in pod["status"].get("conditions", ()) if each["type"] != "Ready"]
            conditions = [*others, {"type": "Ready", "status": "False"}]
            self._world.api.set_status(path_of(pod), {**pod["status"], "conditions": conditions})

    def _evict(self, node: Node, since: float) -> None:
        if not node.reachable and node.lost_at == since:
            self._delete_pods(node, None)

    def _force(self, node: Node) -> None:
        if node.taint:
            self._delete_pods(node, 0)

    def _delete_pods(self, node: Node, grace: int | None) -> None:
        for pod in self._pods_on(node):
            self._world.trace("node controller", f"deletes {path_of(pod)}" + (" by force" if grace == 0 else ""))
            self._world.api.delete(path_of(pod), grace=grace)

    # --- kubelet ---

    def find_again(self, path: str, uid: str) -> None:
        """The kubelet finds a pod of its own that it had not, and starts it, whatever was said of it before."""
        self._sync(path, uid)

    def _sync(self, path: str, uid: str) -> None:
        pod = self._world.api.find(path)
        if pod is not None and pod["metadata"]["uid"] != uid:
            pod = None
        container = self.containers.get(uid)
        if container is None:
            if pod is None:
                return
            container = self._admit(path, uid, pod)
        if not (container.node.reachable and container.node.up):
            return
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            self._end(container, pod)
        elif container.process is None and container.phase == "Pending":
            self._start(container, pod)

    def _admit(self, path: str, uid: str, pod: Body) -> Container:
        main = pod["spec"]["containers"][0]
        policy = pod["spec"].get("restartPolicy", "Always")
        container = Container(path, uid, self.nodes[pod["spec"]["nodeName"]], policy, main["name"], main["image"])
        self.containers[uid] = container
        return container

    def _start(self, container: Container, pod: Body) -> None:
        if self.image_missing:
            container.state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
            self._report(container)
            self._world.later(20.0, self._sync, container.path, container.uid)
            return
        unfilled = unfilled_volume(self._world.api, pod)
        if unfilled is not None:
            container.state = WITHOUT_VOLUMES
            self._report(container)
            times = report_of_volume(self._world.api, pod, unfilled, self._world.now())
            again = RETRIES[min(times, len(RETRIES)) - 1]
            self._world.later(again, self._sync, container.path, container.uid)
            return
        container.mounted = self._mounted(pod)
        container.phase, container.start_time = "Running", self._world.now()
        container.state = {"running": {"startedAt": self._time()}}
        container.process = self._world.make_process(container, pod)
        container.process.start(self._ended_of(container))
        self._report(container)

    def _mounted(self, pod: Body) -> dict[str, Body]:
        """Return the Secrets that a pod's volumes are filled with, by name."""
        wanted = [volume["secret"]["secretName"] for volume in pod["spec"].get("volumes", ()) if "secret" in volume]
        found = {name: self._world.find_secret(name) for name in wanted}
        return {name: secret for name, secret in found.items() if secret is not None}

    def _end(self, container: Container, pod: Body | None) -> None:
        if container.process is None:
            self._finish(container)
            return
        if not container.ending:
            container.ending = True
            grace = pod["metadata"]["deletionGracePeriodSeconds"] if pod else 2
            container.process.terminate()
            self._world.later(grace, self._kill, container)

    def _kill(self, container: Container) -> None:
        if container.process is not None and container.node.up:
            container.process.kill()
            self._note_end(container, KILLED, "Error", "")

    def _finish(self, container: Container) -> None:
        self.containers.pop(container.uid, None)
        with contextlib.suppress(RefusedError):  # somebody removed it by force
            self._world.api.delete(container.path, uid=container.uid, grace=0)

    def _ended_of(self, container: Container) -> Ended:
        process = container.process

        def ended(code: int, reason: str, message: str) -> None:
            if container.process is process:
                self._note_end(container, code, reason, message)

        return ended

    def _note_end(self, container: Container, code: int, reason: str, message: str) -> None:
        world = self._world
        world.trace("kubelet", f"{container.path} ended with {code} {reason} {message[:160]}")
        container.process = None
        container.last = {"exitCode": code, "reason": reason, "message": message, "finishedAt": self._time()}
        if container.ending or container.reason:
            container.state = {"terminated": container.last}
            # Since Kubernetes 1.27 also what is to go gets its last phase, before it goes.
            container.phase = "Failed" if container.reason or code else "Succeeded"
        elif code == 0 or container.policy == "Never":
            container.phase = "Succeeded" if code == 0 else "Failed"
            container.state = {"terminated": container.last}
        else:
            container.state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
            world.later(self._back_off(container), self._restart, container, container.restarts)
        self._report(container)
        if container.ending and container.node.reachable:
            self._finish(container)

    def _back_off(self, container: Container) -> float:
        if self._world.now() - container.start_time > HEALTHY:
            container.failures = 0
        container.failures += 1
        if container.failures == 1:
            return 0.2
        return min(FIRST_BACK_OFF * 2.0 ** (container.failures - 2), LONGEST_BACK_OFF)

    def _restart(self, container: Container, restarts: int) -> None:
        gone = container.uid not in self.containers or container.ending or not container.node.up
        if gone or container.process is not None or container.restarts != restarts:
            return
        pod = self._world.api.find(container.path)
        manifest = self._manifest(container, pod)
        container.restarts += 1
        container.start_time = self._world.now()
        container.state = {"running": {"startedAt": self._time()}}
        container.process = self._world.make_process(container, manifest)
        container.process.start(self._ended_of(container))
        self._report(container)

    def _manifest(self, container: Container, pod: Body | None) -> Body:
        # A kubelet that is cut off goes by what it was told last.
        if pod is not None and pod["metadata"]["uid"] == container.uid:
            return pod
        known = (c.body for c in reversed(self._world.api.logs[PODS]) if c.body["metadata"]["uid"] == container.uid)
        return next(known)

    def evict(self, path: str) -> None:
        """The kubelet gives a pod up for want of memory or disk."""
        container = self.container_of(path)
        if container is not None and container.process is not None and container.node.reachable:
            container.reason = "Evicted"
            container.process.kill()
            self._note_end(container, KILLED, "Error", "")

    def unhealthy(self, container: Container) -> None:
        """The liveness probe fails from now on: the kubelet ends the process, which has its grace period."""
        self._world.later(PROBED_FOR, self._end_unhealthy, container, container.process)

    def _end_unhealthy(self, container: Container, process: Process | None) -> None:
        if process is None or container.process is not process or container.ending:
            return
        self._world.trace("kubelet", f"{container.path} is not healthy")
        process.terminate()
        pod = self._manifest(container, self._world.api.find(container.path))
        grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
        self._world.later(grace, self._kill_unhealthy, container, process)

    def _kill_unhealthy(self, container: Container, process: Process) -> None:
        if container.process is process and not container.ending:
            self._kill(container)

    def report(self, container: Container) -> None:
        """Have the kubelet write the pod's status, because its readiness has changed."""
        self._report(container)

    def _report(self, container: Container) -> None:
        pod = self._world.api.find(container.path)
        if pod is None or pod["metadata"]["uid"] != container.uid or not container.node.reachable:
            return
        ready = container.process is not None and container.process.ready
        entry: Body = {"name": container.name, "image": container.image, "restartCount": container.restarts}
        entry |= {"state": container.state, "lastState": {}}
        if container.last and "terminated" not in container.state:
            entry["lastState"] = {"terminated": container.last}
        # An address comes with the sandbox, and that after the volumes.
        address = {} if container.state == WITHOUT_VOLUMES else {"podIP": "10.0.0.1"}
        status: Body = {
            "phase": container.phase,
            **address,
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True" if ready else "False"},
            ],
            "containerStatuses": [entry],
        }
        if container.reason and container.phase == "Failed":
            status |= {"reason": container.reason, "message": "The node was low on memory."}
            status["conditions"].append(
                {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
            )
        self._world.api.set_status(container.path, status)

    def _time(self) -> str:
        return time_at(int(self._world.now()))


def path_of(pod: Body) -> str:
    """Return a pod's path."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
