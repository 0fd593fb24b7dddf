"""observe -> decide -> act, for one application. Does I/O through its collaborators."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from tidegate.agent.poller import AgentPoller
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.act import ActionExecutor
from tidegate.app.actions import OrderSnapshots, Plan, SetExecutors, WriteStatus
from tidegate.app.dry_runs.executor_dry_run import ExecutorDryRun
from tidegate.app.dry_runs.pod_dry_run import MISSING_LASTS, PodDryRun
from tidegate.app.dry_runs.reference_checks import ReferenceChecks
from tidegate.app.metrics.apps import AppMetrics
from tidegate.app.metrics.lifecycle import restarts_between
from tidegate.app.observation import Observation, pods_of, with_pods
from tidegate.app.observe import observe
from tidegate.app.observe_unreadable import observe_unreadable
from tidegate.app.rules.deleted.deletion import release_unreadable
from tidegate.app.rules.launch.launch import pods_to_try
from tidegate.app.rules.plan import decide
from tidegate.app.rules.pods.executors import lacks_pods, wanted_executors
from tidegate.app.rules.status import is_news
from tidegate.autoscaling.quotas import Quotas
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.pods.start_events import StartEvents
from tidegate.engine.decision_log import log_decision
from tidegate.engine.outcome import Outcome
from tidegate.engine.resource_key import Key
from tidegate.engine.retry_limiter import RetryLimiter
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.table import earliest
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.reasons import Reason


@dataclass(slots=True)
class Reconciler:
    """Brings one application a step nearer to what its resource says."""

    index: Index
    platform: Platform
    actor: ActionExecutor
    poller: AgentPoller
    metrics: AppMetrics
    unreadable: InvalidResourceReporter
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    """Ages of what was learned go by it; nobody sets it."""
    wake_beside: Callable[[Key], None] = lambda key: None
    """Has the snapshots and messages looked at for which it matters what the application does."""
    follow_repartition: Callable[[Key, PodRecord | None], None] = lambda key, pod: None
    """Has a pod asked how far it is, or none."""
    quotas: Quotas | None = None
    """Asked where pods of executors are missing."""
    executor_dry_run: ExecutorDryRun | None = None
    """Asked there, too: why the API server refuses them."""
    pod_dry_run: PodDryRun | None = None
    """Has the API server look at the pods of a version that was not launched yet."""
    references: ReferenceChecks | None = None
    """Asked whether what such a version refers to exists."""
    starts: StartEvents | None = None
    """Asked why pods do not begin."""
    _retry_limiter: RetryLimiter = field(default_factory=RetryLimiter)

    async def reconcile(self, key: Key) -> float | None:
        """Observe, decide, act; returns seconds until the application wants to be looked at again, or None.

        Raises:
            RetryLaterError: what is decided cannot be carried out now.
        """
        try:
            return await self._reconcile(key)
        finally:
            # After each look, however it ended: whatever wakes an application may matter to its snapshots and messages.
            self.wake_beside(key)

    async def _reconcile(self, key: Key) -> float | None:
        now = self.clock()
        observation = observe(self.index, key, self.platform, self.steady())
        if observation is None:
            return await self._release(key, now)
        if self.quotas is not None and lacks_pods(observation, now):
            wanted = wanted_executors(observation)
            quota = await self.quotas.room(observation.app, observation.executors, observation.driver, wanted)
            refused = await self.executor_dry_run.check(observation) if self.executor_dry_run is not None else ""
            observation = dataclasses.replace(observation, quota=quota, executor_refused=refused)
        # The same for both: what they ask about hangs on nothing that an answer adds to the observation.
        pods = pods_to_try(observation) if self.pod_dry_run is not None or self.references is not None else ()
        rejection = await self.pod_dry_run.check(observation, pods) if self.pod_dry_run is not None else None
        if rejection is not None:
            observation = dataclasses.replace(observation, rejection=rejection)
        if self.references is not None:
            references = await self.references.check(observation, pods)
            observation = dataclasses.replace(observation, references=references)
        observation = await self._explained(observation)
        plan = decide(observation, now)
        try:
            outcome = await self._carry_out(observation.app, plan, now)
        finally:
            # Of a plan that ended half way, too: what it has written is what the next look starts with.
            self._show(key, observation.app)
        after = observe(self.index, key, self.platform, self.steady())
        self.poller.follow(key, after.driver if after else None)
        divide = after.repartitions if after else ()
        self.follow_repartition(key, next((pod for pod in divide if pod.running), None))
        if any(isinstance(action, SetExecutors | OrderSnapshots) for action in plan.actions):
            self.poller.hurry(key)
        if outcome is None:
            self._retry_limiter.forget(key)
            gone = observation.driver is not None and (after is None or after.driver is None)
            return 0.0 if gone else earliest(plan.wake_after, self._observe_again_in(after, observation))
        return self._retry_limiter.again(key, outcome.reason)

    async def _explained(self, o: Observation) -> Observation:
        """Return an observation with what keeps its pods from beginning."""
        if self.starts is None:
            return o
        delays = await self.starts.check(pods_of(o), o.app.spec.pod_start_timeout_seconds)
        return with_pods(o, delays.of) if delays.by_uid else o

    def _observe_again_in(self, after: Observation | None, asked: Observation) -> float | None:
        """Return in how many seconds to ask for what no watch reports, None if there is nothing to ask."""
        by_admission = asked.rejection is not None and asked.rejection.missing
        waits = by_admission or asked.references.missing or asked.references.unanswered
        missing = MISSING_LASTS if waits else None
        if self.starts is None or after is None:
            return missing
        return earliest(missing, self.starts.due_in(pods_of(after), after.app.spec.pod_start_timeout_seconds))

    def _show(self, key: Key, before: StreamingApp) -> None:
        known = self.index.app(key)
        if not isinstance(known, KnownApp):
            return
        status = known.app.status
        if known.app.metadata.uid == before.metadata.uid:
            self.metrics.count_restarts(key, restarts_between(before.status, status))
            self.metrics.upgrades.show(key, before.status, status)
            self.metrics.rehearsals.show(key, before.status, status)
            self.metrics.repartitions.show(key, before.status, status)
        if status.phase is None:
            return
        true = next((c for c in status.conditions if c.status == "True"), None)
        self.metrics.show_app(
            key,
            phase=status.phase.value,
            health=true.type if true else "",
            reason=true.reason if true else "",
            epoch=status.epoch,
        )

    async def _carry_out(self, app: StreamingApp, plan: Plan, now: float) -> Outcome:
        structlog.contextvars.bind_contextvars(epoch=app.status.epoch, reason=plan.reason)
        log_decision(plan, lambda action: not isinstance(action, WriteStatus) or is_news(app.status, action.status))
        return await self.actor.carry_out(app, plan, now)

    async def _release(self, key: Key, now: float) -> float | None:
        known = self.index.app(key)
        if isinstance(known, UnreadableApp):
            return await self._treat_unreadable(known, now)
        self._retry_limiter.forget(key)
        self.poller.forget(key)
        self.follow_repartition(key, None)
        self.metrics.forget_app(*key)
        return None

    async def _treat_unreadable(self, known: UnreadableApp, now: float) -> float | None:
        if known.again:
            version = await self.unreadable.read_again(known.key, self.index.large.admits_version)
            woken = self.index.put_version(version) if version is not None else set()
            self.actor.wake_all(woken - {known.key})
            return 0.0 if woken else None
        if known.metadata.deletion_timestamp is None:
            self.metrics.show_health(known.key, health=Health.STALLED.value, reason=Reason.INVALID_SPEC)
            return await self.unreadable.report(known, now)
        observation = observe_unreadable(self.index, known, self.platform)
        plan = release_unreadable(observation, known.problem, now)
        outcome = await self._carry_out(observation.app, plan, now)
        if outcome is not None:
            return self._retry_limiter.again(known.key, outcome.reason)
        self._retry_limiter.forget(known.key)
        return plan.wake_after
