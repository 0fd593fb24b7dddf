"""Control messages as the demo sends them, and what comes of them. Runs kubectl."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from devcluster.demo.application import Application
from devcluster.demo.kubernetes import Kubernetes

LABEL = "tidegate.dev/demo"
ENDS = frozenset({"Applied", "Failed", "Expired"})
LOGGED = ENDS | {"Published"}
SECONDS_BETWEEN_POLLS = 0.5


class Messages:
    """Those to one application.

    Raises:
        CommandError: from every method, if kubectl fails.
    """

    def __init__(self, kubernetes: Kubernetes, application: Application) -> None:
        self._kubernetes, self._application = kubernetes, application

    def send(self, name: str, kind: str, payload: Any = None) -> None:
        """Send one; ``name`` is the resource's."""
        self._kubernetes.apply(build_message(self._application, name, kind, payload))

    def status(self, name: str) -> Mapping[str, Any]:
        """Return how far a message is; empty before anybody saw it."""
        found = self._kubernetes.get("ctl", name, self._application.namespace) or {}
        status: Mapping[str, Any] = found.get("status", {})
        return status

    def await_end(self, name: str, seconds: float) -> Mapping[str, Any]:
        """Return the status of a message that is at its end; raise TimeoutError if it is not in time."""
        return self._await(name, ENDS, "at its end", seconds)

    def await_log(self, name: str, seconds: float) -> Mapping[str, Any]:
        """Return the status of a message that is in the log, or that will never be; raise TimeoutError likewise."""
        return self._await(name, LOGGED, "in the log", seconds)

    def _await(self, name: str, phases: Collection[str], where: str, seconds: float) -> Mapping[str, Any]:
        deadline = time.monotonic() + seconds
        while (status := self.status(name)).get("phase") not in phases:
            if time.monotonic() > deadline:
                raise TimeoutError(f"message {name} is not {where} after {seconds:.0f} s: {described(status)}")
            time.sleep(SECONDS_BETWEEN_POLLS)
        return status

    def forget(self) -> None:
        """Delete those that the demo sent, now or in an earlier run, and before them the snapshots that they are of."""
        of_it = ("-n", self._application.namespace, "-l", f"{LABEL}={self._application.name}")
        gone = ("--ignore-not-found", "--cascade=foreground", "--timeout=150s")
        self._kubernetes.ctl("delete", "ctl", *of_it, *gone, timeout=160)


def build_message(application: Application, name: str, kind: str, payload: Any) -> dict[str, Any]:
    """Return a message as a resource. Pure."""
    spec = {"appRef": {"name": application.name}, "type": kind}
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "ControlMessage",
        "metadata": {"name": name, "namespace": application.namespace, "labels": {LABEL: application.name}},
        "spec": spec if payload is None else {**spec, "payload": payload},
    }


def described(status: Mapping[str, Any]) -> str:
    """Return a message's status for a person, in one line. Pure."""
    ready: Mapping[str, Any] = next((c for c in status.get("conditions", ()) if c["type"] == "Ready"), {})
    parts = [str(status.get("phase", "not seen yet"))]
    parts += [f"batch {status['batch']}"] if "batch" in status else []
    parts += [f"{status['acks']} workers"] if "acks" in status else []
    errors = [error for query in status.get("queries", ()) for error in query.get("errors", ())]
    said = errors[0] if errors else ready.get("message", "") if status.get("phase") != "Applied" else ""
    return ", ".join(parts) + (f": {said}" if said else "")
