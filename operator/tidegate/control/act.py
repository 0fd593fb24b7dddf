"""Carries out plans about ControlMessages, as :mod:`tidegate.app.act` does for applications. Does I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

import structlog

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.api.control_message import ANNOTATION_LOGGED_AS, CONTROL_KIND, ControlMessage, encode_message_status
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.cache import refusal_messages
from tidegate.cache.index import Index
from tidegate.cache.process_state import NotCreated
from tidegate.control import actions as do
from tidegate.control.index import ControlIndex
from tidegate.control.metrics import ControlMetrics
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import ActionCounter, ObserveAgain, Outcome, carry_out_in_order
from tidegate.engine.refused_writes import report_refused_write
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import hour_of
from tidegate.engine.rules.status_patch import merge_difference
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Conflict, Failure, Forbidden, Invalid, NotFound
from tidegate.kube.paths import collection_of, item
from tidegate.pods.records.record import process_of
from tidegate_spark.contract.reasons import Reason

log = structlog.get_logger()
_BOOKKEEPING = (do.WriteMessageStatus, do.PublishMessageEvent)


class ControlActorMetrics(ActionCounter, Protocol):
    """Where actions are counted, and what became of messages."""

    @property
    def control(self) -> ControlMetrics:
        """Those of control messages."""


@dataclass(slots=True)
class ControlActionExecutor:
    """Carries out plans on a cluster."""

    _client: KubeClient
    _agents: AgentClient
    _index: Index
    _events: EventPublisher
    _metrics: ControlActorMetrics

    async def carry_out(self, app: Key, plan: do.ControlPlan, now: float) -> Outcome:
        """Carry out the plan's actions in order.

        Args:
            app: the application that the messages are sent to.
            plan: what to do.
            now: seconds since the epoch; the time of the decision.

        Returns:
            ObserveAgain if the plan was given up half way, else None.

        Raises:
            RetryLaterError: the API server cannot or does not want to; the reason is in the text.
        """

        def carry_out_one(action: do.ControlAction) -> Awaitable[Outcome]:
            return self._carry_out_one(app, action, now)

        return await carry_out_in_order(plan.actions, carry_out_one, self._metrics, _BOOKKEEPING)

    async def _carry_out_one(self, app: Key, action: do.ControlAction, now: float) -> Outcome:
        match action:
            case do.WriteMessageStatus():
                return await self._write_status(app, action, now)
            case do.GiveMessages():
                return await self._give(app, action, now)
            case do.MakeSnapshot(message=message, manifest=manifest):
                return await self._make_snapshot(app, message, dict(manifest), now)
            case do.MakeMessage(manifest=manifest):
                return await self._make_message(app, dict(manifest), now)
            case do.DeleteMessage(message=message):
                return await self._delete(app, message, now)
            case do.PublishMessageEvent(message=message, event=event):
                await self._events.publish(message.metadata, event, now, CONTROL_KIND)
                return None
            case _:
                assert_never(action)

    async def _write_status(self, app: Key, action: do.WriteMessageStatus, now: float) -> Outcome:
        message = action.message
        difference = merge_difference(encode_message_status(message.status), encode_message_status(action.status))
        if not difference:
            return None
        metadata = message.metadata
        change = {"metadata": {"resourceVersion": metadata.resource_version}, "status": difference}
        answer = await self._client.merge_patch(item(CONTROL_KIND, *message.key) + "/status", change, ControlMessage)
        if isinstance(answer, Conflict):
            return await self._read_again(message)
        if isinstance(answer, NotFound):
            self._index.of(ControlIndex).remove(message.key, metadata.uid)
            return ObserveAgain(f"message {metadata.name} is gone")
        if isinstance(answer, FAILURES):
            await report_refused_write(self._events, answer, metadata, now, CONTROL_KIND)
            raise RetryLaterError(f"write to message {metadata.name}: {answer}")
        self._index.of(ControlIndex).put(answer)
        self._metrics.control.count(message, answer)
        if action.is_progress:
            self._remember(app, progress_written_at=now)
        return None

    async def _give(self, app: Key, action: do.GiveMessages, now: float) -> Outcome:
        orders = action.orders
        answer = await self._agents.order_control(app, action.pod, orders)
        not_taken = answer.reason if isinstance(answer, Unanswered) else ""
        self._remember(
            app,
            ordered_at=now,
            ordered_to=process_of(action.pod),
            ordered=frozenset(order.id for order in orders.messages),
            forgotten=frozenset(orders.forget),
            reported=frozenset(end.id for end in orders.ended),
            not_taken=not_taken,
        )
        return ObserveAgain(f"the messages were not taken: {not_taken}") if not_taken else None

    async def _make_snapshot(self, app: Key, message: ControlMessage, manifest: dict[str, Any], now: float) -> Outcome:
        answer = await self._client.create(collection_of(manifest), manifest, StreamSnapshot)
        name, uid = manifest["metadata"]["name"], message.metadata.uid
        if isinstance(answer, Invalid):
            return self._refuse(app, uid, answer.message, f"StreamSnapshot {name}")
        # The watch reports it, and wakes whom it concerns; until then it is created again, which creates nothing.
        if isinstance(answer, FAILURES) and not isinstance(answer, AlreadyExists):
            self._remember_not_created(app, uid, f"StreamSnapshot {name}", answer, now)
            return None
        self._forget_not_created(app, uid)
        return None

    async def _make_message(self, app: Key, manifest: dict[str, Any], now: float) -> Outcome:
        metadata = manifest["metadata"]
        key, name = (metadata["namespace"], metadata["name"]), metadata["annotations"][ANNOTATION_LOGGED_AS]
        answer = await self._client.create(collection_of(manifest), manifest, ControlMessage)
        if isinstance(answer, AlreadyExists):
            # The watch is late, or it is somebody else's.
            answer = await self._client.get(item(CONTROL_KIND, *key), ControlMessage)
        if isinstance(answer, Invalid):
            return self._refuse(app, name, answer.message)
        if isinstance(answer, FAILURES):
            what = refusal_messages.message_of_channel(key[1])
            await self._report_not_created(app, self._remember_not_created(app, name, what, answer, now), answer, now)
            return None
        if answer.log_id != name:
            return self._refuse(app, name, refusal_messages.message_name_taken(key[1]))
        self._forget_not_created(app, name)
        self._index.of(ControlIndex).put(answer)
        return None

    def _refuse(self, app: Key, name: str, message: str, what: str = "a ControlMessage") -> Outcome:
        self._remember(app, refused={**self._index.of(ControlIndex).memory(app).refused, name: message})
        self._forget_not_created(app, name)
        return ObserveAgain(f"{what} is refused: {message}")

    def _remember_not_created(self, app: Key, name: str, what: str, answer: Failure, now: float) -> NotCreated:
        """Go on with the plan: a quota or a webhook that fails for hours must not hold up what else the plan does."""
        log.warning("a resource was not created", what=what, why=str(answer))
        known = self._index.of(ControlIndex).memory(app).not_created
        attempts = known[name].attempts + 1 if name in known else 1
        failure = NotCreated(name, refusal_messages.waits(what, answer), now, isinstance(answer, Forbidden), attempts)
        self._remember(app, not_created={**known, name: failure})
        return failure

    def _forget_not_created(self, app: Key, name: str) -> None:
        known = self._index.of(ControlIndex).memory(app).not_created
        if name in known:
            self._remember(app, not_created={each: it for each, it in known.items() if each != name})

    async def _report_not_created(self, app: Key, failure: NotCreated, answer: Failure, now: float) -> None:
        """Publish it on the application: the message has no resource that could say it."""
        known = self._index.app(app)
        ends = isinstance(answer, Forbidden) and answer.namespace_terminating
        if known is None or ends or not failure.lasts:
            return
        occasion = f"control-message/{hour_of(now)}"
        event = PublishEvent(Reason.MESSAGE_REFUSED, failure.message, True, occasion, any_message=True)
        await self._events.publish(known.metadata, event, now)

    async def _delete(self, app: Key, message: ControlMessage, now: float) -> Outcome:
        metadata, refused = message.metadata, self._index.of(ControlIndex).memory(app).not_deleted
        if now in refused.values():
            return None  # in this very plan: a webhook that hangs would take seconds for each of the others, too
        path = item(CONTROL_KIND, *message.key)
        answer = await self._client.delete(path, metadata.uid, metadata.resource_version)
        if isinstance(answer, Conflict):
            return await self._read_again(message)
        if isinstance(answer, FAILURES) and not isinstance(answer, NotFound):
            if not await report_refused_write(self._events, answer, metadata, now, CONTROL_KIND):
                raise RetryLaterError(f"deletion of message {metadata.name}: {answer}")
            log.warning("a message was not deleted", message=metadata.name, why=str(answer))
            self._remember(app, not_deleted={**refused, metadata.uid: now})
            return None
        # At once: until the watch reports it, each reconcile would delete it again.
        self._index.of(ControlIndex).remove(message.key, metadata.uid)
        return None

    async def _read_again(self, message: ControlMessage) -> Outcome:
        answer = await self._client.get(item(CONTROL_KIND, *message.key), ControlMessage)
        if isinstance(answer, NotFound):
            self._index.of(ControlIndex).remove(message.key, message.metadata.uid)
        elif isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of message {message.metadata.name}: {answer}")
        else:
            self._index.of(ControlIndex).put(answer)
        return ObserveAgain(f"message {message.metadata.name} has changed")

    def _remember(self, app: Key, **changes: Any) -> None:
        self._index.of(ControlIndex).memories[app] = dataclasses.replace(
            self._index.of(ControlIndex).memory(app), **changes
        )
