"""observe -> decide -> act, for the ControlMessages to one application. Does I/O through its collaborators."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from tidegate.agent.poller import AgentPoller
from tidegate.api.control_message import CONTROL_KIND
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.control.act import ControlActionExecutor
from tidegate.control.actions import ControlPlan, GiveMessages
from tidegate.control.index import ControlIndex
from tidegate.control.metrics import ControlMetrics
from tidegate.control.observation import ControlMemory, ControlObservation
from tidegate.control.observe import FindSnapshot, observe_control
from tidegate.control.rules.from_channel import asked_of
from tidegate.control.rules.plan import decide_control
from tidegate.engine.resource_key import Key
from tidegate.engine.retry_limiter import RetryLimiter

NO_APP = ""
"""Name in the key of messages that cannot be read: to whom they are sent is not known."""
log = structlog.get_logger()


@dataclass(slots=True)
class ControlReconciler:
    """Brings the messages to one application a step further; they take effect in one order, so they have one key."""

    index: Index
    actor: ControlActionExecutor
    poller: AgentPoller
    metrics: ControlMetrics
    unreadable: InvalidResourceReporter
    clock_skew: Callable[[], float] = lambda: 0.0
    """Seconds by which our clock is ahead of the API server's."""
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    find_snapshot: FindSnapshot = lambda key: None
    """Returns the StreamSnapshot of a key, None if there is none."""
    _retry_limiter: RetryLimiter = field(default_factory=RetryLimiter)

    async def reconcile(self, app: Key) -> float | None:
        """Observe, decide, act; returns seconds until the messages want to be looked at again, or None.

        Raises:
            RetryLaterError: what is decided cannot be carried out now.
        """
        now = self.clock()
        if app[1] == NO_APP:
            found = self.index.of(ControlIndex).unreadable_in(app[0])
            return await self.unreadable.report_all(found, now, CONTROL_KIND)
        observation = observe_control(self.index, app, self.steady(), self.clock_skew(), self.find_snapshot)
        plan = decide_control(observation, now)
        if plan.actions:
            log.info(plan.message, actions=[type(action).__name__ for action in plan.actions])
        try:
            outcome = await self.actor.carry_out(app, plan, now)
        finally:
            # Of a plan that ended half way, too: what it has written is what the next look starts with.
            self.metrics.show(app, self.index.of(ControlIndex).phases(app))
        learned = _refusals(self.index.of(ControlIndex).memory(app)) != _refusals(observation.memory)
        self._hurry(app, plan)
        self._forget_refusals(app, observation)
        if not observation.messages and not asked_of(observation) and not plan.actions:
            self.index.of(ControlIndex).memories.pop(app, None)
        if outcome is None:
            self._retry_limiter.forget(app)
            # The plan knew of no failure: the next one says it, and when it is tried again.
            return 0.0 if learned else plan.wake_after
        return self._retry_limiter.again(app, outcome.reason)

    def _hurry(self, app: Key, plan: ControlPlan) -> None:
        if any(isinstance(action, GiveMessages) and action.orders.messages for action in plan.actions):
            self.poller.hurry(app)

    def _forget_refusals(self, app: Key, o: ControlObservation) -> None:
        """Remember what is said of messages that have not ended, and no more: senders can cause any number of them."""
        index = self.index.of(ControlIndex)
        memory = index.memory(app)
        unfinished = {message.metadata.uid for message in o.messages if not message.is_final}
        unfinished |= {asked.report.id for asked in asked_of(o)}
        ended = {message.metadata.uid for message in o.messages if message.is_final}
        if memory.refused.keys() | memory.not_created.keys() <= unfinished and memory.not_deleted.keys() <= ended:
            return
        index.memories[app] = dataclasses.replace(
            memory,
            refused={name: why for name, why in memory.refused.items() if name in unfinished},
            not_created={name: it for name, it in memory.not_created.items() if name in unfinished},
            not_deleted={uid: at for uid, at in memory.not_deleted.items() if uid in ended},
        )


def _refusals(memory: ControlMemory) -> tuple[object, object]:
    return memory.not_created, memory.not_deleted
