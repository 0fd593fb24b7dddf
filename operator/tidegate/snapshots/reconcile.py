"""observe -> decide -> act, for one StreamSnapshot. Does I/O through its collaborators."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from tidegate.agent.poller import AgentPoller
from tidegate.api.stream_snapshot import SNAPSHOT_KIND, StreamSnapshot
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.pods.start_events import StartEvents
from tidegate.engine.decision_log import log_decision
from tidegate.engine.resource_key import Key
from tidegate.engine.retry_limiter import RetryLimiter
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.platform import Platform
from tidegate.snapshots.act import SnapshotActionExecutor
from tidegate.snapshots.actions import GiveOrders, SnapshotPlan, WriteSnapshotStatus
from tidegate.snapshots.history import is_known_whole
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.metrics import SnapshotMetrics
from tidegate.snapshots.observation import SnapshotObservation, pods_of, start_timeout, with_pods
from tidegate.snapshots.observe import observe_snapshot
from tidegate.snapshots.pods_at_work import SnapshotPods
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate.snapshots.rules.status import is_news


@dataclass(slots=True)
class SnapshotReconciler:
    """Brings one snapshot a step nearer to what its resource says."""

    index: Index
    platform: Platform
    actor: SnapshotActionExecutor
    poller: AgentPoller
    pods: SnapshotPods
    metrics: SnapshotMetrics
    unreadable: InvalidResourceReporter
    wake_app: Callable[[Key], None]
    """Has an application looked at to which the snapshot matters."""
    wake_beside: Callable[[StreamSnapshot], None] = lambda snapshot: None
    """Has other snapshots looked at that may have to go because of one."""
    clock_skew: Callable[[], float] = lambda: 0.0
    """Seconds by which our clock is ahead of the API server's."""
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    starts: StartEvents | None = None
    """Asked why pods do not begin."""
    _retry_limiter: RetryLimiter = field(default_factory=RetryLimiter)

    async def reconcile(self, key: Key) -> float | None:
        """Observe, decide, act; returns seconds until the snapshot wants to be looked at again, or None.

        Raises:
            RetryLaterError: what is decided cannot be carried out now.
        """
        now = self.clock()
        observation = observe_snapshot(self.index, key, self.platform, self.steady(), self.clock_skew())
        if observation is None:
            self._retry_limiter.forget(key)
            self.metrics.forget(key)
            self.pods.follow(key, None)
            return await self._release(key, now)
        observation = await self._explained(observation)
        before, plan = observation.snapshot, decide_snapshot(observation, now)
        structlog.contextvars.bind_contextvars(app=before.app_key[1], reason=plan.reason)
        written = before.status
        log_decision(plan, lambda do: not isinstance(do, WriteSnapshotStatus) or is_news(written, do.status))
        refused = observation.memory.write_refused
        try:
            outcome = await self.actor.carry_out(before, plan, now)
        finally:
            self._show(key, before)
            if self.index.of(SnapshotIndex).memory(key).write_refused != refused:
                self.wake_app(before.app_key)  # one that is deleted says what it waits for
        self._hurry(before, plan)
        self.pods.follow(key, observation.taking or observation.verifying or observation.exporting)
        if outcome is None:
            self._retry_limiter.forget(key)
            return earliest(plan.wake_after, self._observe_again_in(key))
        return self._retry_limiter.again(key, outcome.reason)

    async def _explained(self, o: SnapshotObservation) -> SnapshotObservation:
        """Return an observation with what keeps its pods from beginning."""
        if self.starts is None:
            return o
        delays = await self.starts.check(pods_of(o), start_timeout(o))
        return with_pods(o, delays.of) if delays.by_uid else o

    def _observe_again_in(self, key: Key) -> float | None:
        """Return in how many seconds events are to be read of the pods that there are now; None: of none."""
        after = observe_snapshot(self.index, key, self.platform, self.steady(), self.clock_skew())
        if self.starts is None or after is None:
            return None
        return self.starts.due_in(pods_of(after), start_timeout(after))

    async def _release(self, key: Key, now: float) -> float | None:
        unreadable = self.index.of(SnapshotIndex).unreadable(key)
        if unreadable is not None and unreadable.metadata.deletion_timestamp is None:
            return await self.unreadable.report(unreadable, now, SNAPSHOT_KIND)
        if unreadable is not None:
            await self.actor.release(unreadable, now)
        return None

    def _show(self, key: Key, before: StreamSnapshot) -> None:
        after = self.index.of(SnapshotIndex).get(key)
        if after is None:
            return
        self.metrics.show(before, after)
        if after.metadata.resource_version != before.metadata.resource_version:
            # The watch brings no news of what we wrote ourselves.
            # It may have been the last of which it was not known whether it is whole.
            if after.is_final != before.is_final or is_known_whole(after) != is_known_whole(before):
                self.wake_beside(after)
            for app in (after.app_key, *self.index.of(SnapshotIndex).forks(key)):
                self.wake_app(app)

    def _hurry(self, snapshot: StreamSnapshot, plan: SnapshotPlan) -> None:
        if any(isinstance(action, GiveOrders) for action in plan.actions):
            self.poller.hurry(snapshot.app_key)
