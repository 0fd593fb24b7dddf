"""Renews the Lease and releases it; :mod:`tidegate.kube.leadership` decides. Does I/O."""

from __future__ import annotations

import asyncio
import datetime
import socket
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from tidegate.kube import messages
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Conflict, Failure, NotFound, Unavailable
from tidegate.kube.leadership import Answer, Candidate, Lease, NoLease, Read, Request, Timing, Write
from tidegate.kube.paths import collection, item

RELEASE_SECONDS = 3.0
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_EXPECTED = (Conflict, AlreadyExists, NotFound)
log = structlog.get_logger()


def boot_clock() -> float:
    """Return seconds of a clock that goes on while the process is stopped and while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def find_namespace() -> str:
    """Return the namespace of the pod this runs in; empty outside of pods."""
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def make_candidate(timing: Timing | None = None) -> Candidate:
    """Return a candidate for this process; its name starts with the pod's, for people who read the Lease."""
    return Candidate(f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}", timing or Timing())


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the API's name


class _Spec(msgspec.Struct):
    holderIdentity: str | None = None  # noqa: N815
    leaseDurationSeconds: int | None = None  # noqa: N815
    leaseTransitions: int | None = None  # noqa: N815


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Leadership:
    """Gains the leadership, renews it and gives it back."""

    def __init__(
        self,
        client: KubeClient,
        candidate: Candidate,
        place: tuple[str, str],
        changed: Callable[[bool], None],
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """Prepare.

        Args:
            client: sends the requests.
            candidate: what the client asks before each write, too.
            place: namespace and name of the Lease.
            changed: called with whether this process leads, when that changes.
            clock: the candidate's.
        """
        self._client = client
        self._candidate = candidate
        self._namespace, self._name = place
        self._changed = changed
        self._clock = clock
        self._reported = (False, "")
        self.problem = messages.LEASE_NOT_READ
        """Why the last answer said nothing about the Lease; empty if it did."""

    def holds(self) -> bool:
        """Return whether this process may act now."""
        return self._candidate.holds(self._clock())

    @property
    def missing(self) -> str:
        """Why the Lease cannot be used, if it never could be; otherwise empty."""
        return "" if self._candidate.leader else self.problem

    async def run(self) -> str:
        """Stand by, then lead; returns why it is over, once this process will never lead again."""
        while not self._candidate.ended:
            now = self._clock()
            request = self._candidate.next_request(now)
            if request is not None:
                answer = await self._send(request, self._candidate.patience(now))
                self._candidate.take_in(request, answer, now, self._clock())
            self._report_changes()
            await asyncio.sleep(self._candidate.pause(self._clock()))
        return self._candidate.ended

    async def resign(self) -> None:
        """Hold no longer from now on, and free the Lease for the next one; :meth:`run` must not run any more."""
        self._candidate.resign(self._clock())
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self.run()
        except TimeoutError:
            log.warning("lease not released; it expires", lease=self._lease_name())

    def _report_changes(self) -> None:
        leads, leader = self.holds(), self._candidate.leader
        led, known = self._reported
        if leader != known:
            log.info("lease observed", lease=self._lease_name(), holder=leader, identity=self._candidate.identity)
        if leads != led:
            self._changed(leads)
        if leads and not led:
            log.info("leading", lease=self._lease_name(), identity=self._candidate.identity)
        if self._candidate.ended:
            log.info("leading no more" if led else "candidature ended", reason=self._candidate.ended)
        self._reported = (leads, leader)

    async def _send(self, request: Request, patience: float) -> Answer:
        path, once = item("Lease", self._namespace, self._name), self._client.send_beside
        if isinstance(request, Read):
            return self._understand(await once("GET", path, _Object, patience=patience))
        if not request.version:
            path = collection("Lease", self._namespace)
            manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **self._change(request)}
            made = await once("POST", path, _Object, manifest, patience=patience)
            # What is missing when something is created is its namespace.
            return self._understand(Unavailable(made.message) if isinstance(made, NotFound) else made)
        change = self._change(request)
        return self._understand(await once("PATCH", path, _Object, change, patience=patience))

    def _change(self, write: Write) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": write.holder,
            "leaseDurationSeconds": write.seconds,
            "leaseTransitions": write.transitions,
            "renewTime": now,
        }
        named = {"resourceVersion": write.version} if write.version else {"name": self._name}
        return {"metadata": named, "spec": spec | ({"acquireTime": now} if write.taken else {})}

    def _understand(self, answer: _Object | Failure) -> Answer:
        problem = str(answer) if isinstance(answer, FAILURES) and not isinstance(answer, _EXPECTED) else ""
        if problem and problem != self.problem:
            log.warning("no answer about the lease", lease=self._lease_name(), answer=problem)
        self.problem = problem
        if isinstance(answer, FAILURES):
            if isinstance(answer, NotFound):
                return NoLease.MISSING
            return NoLease.CHANGED if isinstance(answer, _EXPECTED) else NoLease.SILENT
        spec = answer.spec
        return Lease(
            version=answer.metadata.resourceVersion,
            holder=spec.holderIdentity or "",
            seconds=spec.leaseDurationSeconds or 0,
            transitions=spec.leaseTransitions or 0,
        )

    def _lease_name(self) -> str:
        return f"{self._namespace}/{self._name}"
