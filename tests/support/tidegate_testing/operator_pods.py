"""The operator's replicas on a development cluster: who leads, what each of them wrote, and how to break one.

Does I/O; hits only processes and packets of the cluster's own namespaces.
"""

import contextlib
import json
import math
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devcluster import packets
from devcluster.cluster import Cluster
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.pod_processes import PodProcess, find, runs_module
from tidegate_testing.waiting import wait_for
from tidegate_testing.watching import Watch

SELECTOR = "app.kubernetes.io/name=tidegate"
CONTAINER, IS_OPERATOR = "operator", runs_module("tidegate.main")
SETTLED_SECONDS = 300.0
FRESH_SECONDS = 5.0
"""A Lease that was renewed so recently is held by a process that runs: renewals are two seconds apart."""


@dataclass(frozen=True)
class Tenure:
    """Who holds the Lease, and what it says of when; times in seconds since the epoch."""

    holder: str
    acquired: float
    renewed: float
    transitions: int

    def is_of(self, pod: dict[str, Any]) -> bool:
        """Say whether a process of this pod holds it."""
        return is_held_by(self.holder, pod)


@dataclass(frozen=True)
class Pair:
    """Two replicas, of which one leads."""

    leader: dict[str, Any]
    standby: dict[str, Any]
    tenure: Tenure


@dataclass(frozen=True)
class Write:
    """One request that changed something, or tried to; time in seconds since the epoch."""

    time: float
    what: str
    lease: bool
    accepted: bool
    """The API server did what was asked."""


class OperatorPods:
    """Looks at the replicas of one installation, and breaks them."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, namespace: str) -> None:
        """Look at the operator that runs in ``namespace``."""
        self._cluster, self._kubectl, self._namespace = cluster, kubectl, namespace

    # --- who is there -------------------------------------------------------------------------------------------------

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods that are there and not on their way out."""
        found = self._kubectl.list("pods", self._namespace, SELECTOR)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod; it must exist."""
        found = self._kubectl.get("pod", name, self._namespace)
        assert found is not None, f"operator pod {name} is gone"
        return found

    def tenure(self) -> Tenure:
        """Return what the Lease says now."""
        lease = self._kubectl.get("lease", self._lease_name(), self._namespace)
        assert lease is not None, "there is no Lease"
        spec = lease["spec"]
        times = [datetime.fromisoformat(spec[field]).timestamp() for field in ("acquireTime", "renewTime")]
        return Tenure(spec.get("holderIdentity", ""), times[0], times[1], spec.get("leaseTransitions", 0))

    def watch_lease(self) -> Watch:
        """Return a watch on the Lease."""
        return Watch(self._kubectl, "lease", self._namespace, name=self._lease_name())

    def settle(self) -> Pair:
        """Wait until two replicas are ready, one of them leads, and none of those before is left.

        One that was asked to go while it was started hears that at its end only, and leads meanwhile if it has to.
        """
        return wait_for("a leader and a standby", self._settled, SETTLED_SECONDS)

    def _settled(self) -> Pair:
        pods, tenure = self._kubectl.list("pods", self._namespace, SELECTOR), self.tenure()
        assert len(pods) == 2, [pod["metadata"]["name"] for pod in pods]
        assert [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]] == [], (
            "on its way out"
        )
        assert [pod["metadata"]["name"] for pod in pods if not _ready(pod)] == [], "not ready"
        age = datetime.now().timestamp() - tenure.renewed
        assert age < FRESH_SECONDS, f"the Lease of {tenure.holder!r} was renewed {age:.1f} s ago"
        leaders = [pod for pod in pods if tenure.is_of(pod)]
        assert len(leaders) == 1, tenure
        (standby,) = [pod for pod in pods if pod is not leaders[0]]
        return Pair(leaders[0], standby, tenure)

    def renew(self) -> None:
        """Replace the replicas that were restarted, so that the next ones find them as they were."""
        for pod in self.pods():
            if any(status["restartCount"] for status in pod["status"].get("containerStatuses", [])):
                self._kubectl.delete("pod", pod["metadata"]["name"], self._namespace)
        self.settle()

    def _lease_name(self) -> str:
        pods = self.pods()
        assert pods, f"no operator pod in {self._namespace}"
        (first, *_) = pods
        variables = {v["name"]: v.get("value") for v in first["spec"]["containers"][0]["env"]}
        return str(variables["TIDEGATE_LEASE_NAME"])

    # --- what they did ------------------------------------------------------------------------------------------------

    def writes(self, pod: dict[str, Any], since: float = 0.0) -> list[Write]:
        """Return what the pod wrote, in order, told by the API server's audit log and the pod's address."""
        address, found = pod["status"]["podIP"], []
        for line in self._cluster.audit_log.read_text().splitlines():
            if address not in line or not line.endswith("}"):  # the last line may not be whole yet
                continue
            entry = json.loads(line)
            time = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
            if address in entry["sourceIPs"] and time > since:
                lease = entry.get("objectRef", {}).get("resource") == "leases"
                accepted = entry.get("responseStatus", {}).get("code", 500) < 400
                found.append(Write(time, f"{entry['verb']} {entry['requestURI']}", lease, accepted))
        return sorted(found, key=lambda write: write.time)

    def writes_without_lease(self, pod: dict[str, Any], lost: float) -> list[str]:
        """Return what the pod changed after it had lost the Lease and before it got it again, if it did."""
        later = self.writes(pod, lost)
        taken = next((write.time for write in later if write.lease and write.accepted), math.inf)
        return [write.what for write in later if not write.lease and write.time < taken]

    # --- how they are broken ------------------------------------------------------------------------------------------

    def process(self, pod: dict[str, Any]) -> PodProcess:
        """Return the operator's process in a pod."""
        return find(self._cluster, pod, CONTAINER, IS_OPERATOR)

    @contextlib.contextmanager
    def killed(self, pod: dict[str, Any]) -> Iterator[None]:
        """Kill the pod's process."""
        self.process(pod).kill()
        yield

    @contextlib.contextmanager
    def paused(self, pod: dict[str, Any]) -> Iterator[None]:
        """Stop the pod's process while the context lasts."""
        process = self.process(pod).identity
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            if process.alive():
                os.kill(process.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def cut_off(self, pod: dict[str, Any]) -> Iterator[None]:
        """Lose every packet between the pod and the API server while the context lasts; neither side is told."""
        rules = packets.from_api_server(pod["status"]["podIP"])
        try:
            packets.lose(self._cluster, rules)
            yield
        finally:
            for rule in rules:
                packets.let_through(self._cluster, rule)


def is_held_by(holder: str, pod: dict[str, Any]) -> bool:
    """Say whether the holder that a Lease names is a process of this pod."""
    return holder.startswith(f"{pod['metadata']['name']}_")


def last_exit(pod: dict[str, Any]) -> int | None:
    """Return the exit code of the container's process before the present one; None if there was none."""
    (status,) = pod["status"]["containerStatuses"]
    ended = status["state"].get("terminated") or status.get("lastState", {}).get("terminated")
    return int(ended["exitCode"]) if ended else None


def _ready(pod: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
