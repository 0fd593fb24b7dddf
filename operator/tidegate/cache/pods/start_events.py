"""Reads the events about pods whose containers do not start. Does I/O.

It lists the events of single pods by uid, late and rarely: a watch of all events would be the busiest in the cluster.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

import structlog

from tidegate.api.values.times import growing_pause
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, Forbidden
from tidegate.kube.paths import collection
from tidegate.pods.records.record import PodRecord
from tidegate.pods.records.start_delay import Obstacle, PodEvents, StartDelay, delay_of

FIRST_PAUSE, LONGEST_PAUSE = 15.0, 300.0
"""Seconds between two reads of one pod's events: each is twice the one before, up to the longest."""
_SOONEST = 1.0
"""Seconds until a pod is looked at again at the least."""
MOST_PODS = 4
"""Whose events are read of one application: what keeps one executor keeps the others, too."""
_MOST_EVENTS = 100
_LONGEST = 2 * 2**20
"""Bytes of an answer: whoever may create events could have the operator read any number of them."""
_FEW = 64
"""Waits that are kept without a look at whose they are."""
_PATIENCE = 5.0
"""Seconds to wait for an answer: decisions wait for it, and can do without."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Delays:
    """What is known of pods that do not begin."""

    by_uid: Mapping[str, StartDelay] = field(default_factory=dict)

    def of(self, pod: PodRecord) -> PodRecord:
        """Return a pod with what delays it."""
        delay = self.by_uid.get(pod.uid)
        return pod if delay is None else dataclasses.replace(pod, delay=delay)


@dataclass(slots=True)
class _Wait:
    """One pod's wait; times by our steady clock."""

    since: float
    """What the pod says, in seconds since the epoch: a later one is another wait."""
    seen_at: float
    delay: StartDelay | None = None
    read_at: float = 0.0
    reads: int = 0
    due_at: float = 0.0
    """When its events were to be read next, when it was looked at last."""


@dataclass(slots=True)
class StartEvents:
    """Has the API server asked for the events of pods that wait for longer than they may."""

    client: KubeClient
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, as the API server counts them or nearly so."""
    steady: Callable[[], float] = time.monotonic
    _waits: dict[str, _Wait] = field(default_factory=dict)
    _many: int = _FEW
    """Waits after which those of pods that are gone are looked for: nearly every pod waits for a moment."""

    async def check(self, pods: Iterable[PodRecord], patience: float) -> Delays:
        """Return what keeps the containers of pods from beginning, of those that wait for longer than ``patience``.

        Args:
            pods: of one application or snapshot, the most important ones first.
            patience: seconds after which a pod's events are read.
        """
        known: dict[str, StartDelay] = {}
        for pod in _waiting(pods):
            wait = self._wait_of(pod)
            if self._left(wait, patience) <= 0:
                await self._read(pod, wait)
            if wait.delay is not None:
                known[pod.uid] = wait.delay
        return Delays(known)

    def due_in(self, pods: Iterable[PodRecord], patience: float) -> float | None:
        """Return in how many seconds :meth:`check` has something to read of these pods; None: nobody waits.

        Nothing else may happen to a pod that does not begin: whoever waits for news of it waits for ever.
        """
        left = [max(_SOONEST, self._left(self._wait_of(pod), patience)) for pod in _waiting(pods)]
        return min(left, default=None)

    def _wait_of(self, pod: PodRecord) -> _Wait:
        wait = self._waits.get(pod.uid)
        if wait is None or wait.since != pod.silent_since:
            if len(self._waits) >= self._many:
                self._forget_the_gone()
                self._many = max(_FEW, 2 * len(self._waits))
            wait = self._waits[pod.uid] = _Wait(pod.silent_since, self.steady())
        return wait

    def _left(self, wait: _Wait, patience: float) -> float:
        """Return in how many seconds a pod's events are to be read."""
        now = self.steady()
        if wait.reads:
            left = wait.read_at + growing_pause(wait.reads, FIRST_PAUSE, LONGEST_PAUSE) - now
        else:
            # By both clocks: one that was set back, or a node's that is ahead, must not make it wait for hours.
            left = patience - max(self.clock() - wait.since, now - wait.seen_at)
        wait.due_at = now + max(0.0, left)
        return left

    async def _read(self, pod: PodRecord, wait: _Wait) -> None:
        query = {"fieldSelector": f"involvedObject.uid={pod.uid}", "limit": str(_MOST_EVENTS)}
        path = f"{collection('Event', pod.namespace)}?{urlencode(query)}"
        answer = await self.client.read_once(path, PodEvents, patience=_PATIENCE, longest=_LONGEST)
        wait.reads, wait.read_at = wait.reads + 1, self.steady()
        self._forget_the_gone()
        if not isinstance(answer, FAILURES):
            wait.delay = delay_of(event for event in answer.items if event.involvedObject.uid == pod.uid)
            return
        log.warning("events of a pod not read", pod=pod.name, answer=str(answer))
        # What was known is still the best there is, unless nobody may know.
        if wait.delay is None or isinstance(answer, Forbidden):
            wait.delay = StartDelay(Obstacle.UNREAD, answer.message)

    def _forget_the_gone(self) -> None:
        """Forget pods that nobody asked for since long after their next read was due."""
        limit = self.steady() - 4 * LONGEST_PAUSE
        self._waits = {uid: wait for uid, wait in self._waits.items() if max(wait.due_at, wait.read_at) > limit}


def _waiting(pods: Iterable[PodRecord]) -> list[PodRecord]:
    return [pod for pod in pods if pod.silent_since and not pod.terminating][:MOST_PODS]
