"""decide_control(observation, now) -> plan: one table of rules for each message, and one dispatch for all.

Pure: no I/O, no clock, no randomness; the same observation and time give the same plan.

All messages to an application are decided about together, because they take effect in one order. What is to be sent,
and the end of a message that the driver may forget, is written to the status first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tidegate.api.control_message import FINAL, ControlMessage, ControlMessageStatus
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.control.actions import (
    ControlAction,
    ControlPlan,
    DeleteMessage,
    MakeMessage,
    MakeSnapshot,
    PublishMessageEvent,
    WriteMessageStatus,
)
from tidegate.control.observation import ControlObservation
from tidegate.control.rules import ending, from_channel, messages, reporting, snapshot_result, waiting
from tidegate.control.rules.creations import created_now
from tidegate.control.rules.dispatch import Dispatch, choose
from tidegate.control.rules.status import build_message_status, is_core
from tidegate.control.rules.verdict import MessageVerdict, Seen
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import NOT_CREATED_PAUSE, time_left
from tidegate.engine.rules.table import earliest, first_verdict
from tidegate_spark.contract.control_protocol import MessageEnd
from tidegate_spark.contract.reasons import Reason

MessageRule: TypeAlias = Callable[[Seen, float], MessageVerdict | None]

MESSAGE_RULES: tuple[MessageRule, ...] = (
    ending.leave_deleted_alone,
    ending.keep_final,
    snapshot_result.follow_snapshot,
    reporting.judge_report,
    ending.give_up_with_app,
    ending.refuse_too_large,
    ending.refuse_too_deep,
    ending.refuse_too_many,
    ending.let_expire,
    waiting.wait_for_app,
    from_channel.await_report,
    waiting.wait_after_refusal,
    waiting.send,
    waiting.wait_for_driver,
)
"""The first rule that applies decides; the last one always does."""

PROGRESS_INTERVAL = 10.0
"""Seconds between two writes of nothing but progress."""
MOST_REMOVED = 64
"""Resources that one plan removes; there may be thousands, and others wait for a worker."""
_QUIET = frozenset({Reason.OFFERED, Reason.QUEUED, Reason.IN_FORCE})
"""Reasons that are no events of their own: what follows is published."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A message with what is said of it."""

    seen: Seen
    verdict: MessageVerdict

    @property
    def uid(self) -> str:
        return self.seen.message.metadata.uid


def decide_control(o: ControlObservation, now: float) -> ControlPlan:
    """Return what to do about the messages to one application.

    Args:
        o: everything that is known.
        now: seconds since the epoch, by our own clock.
    """
    judged = _judge(o, now)
    ended = frozenset(it.uid for it in judged if it.verdict.phase in FINAL)
    dispatch = choose(o, [it.seen for it in judged if it.verdict.sends], ended, _ends(o, judged), now)
    writes, due = _writes(o, [_in_turn(it, dispatch) for it in judged], dispatch, now)
    retired, later = _retired(o, judged, now)
    actions: tuple[ControlAction, ...] = writes
    if dispatch.give is not None:
        actions = (*actions, dispatch.give)
    # Created after the status writes, because a quota may refuse it.
    made, again = _snapshots(o, judged, now)
    new, once_more = from_channel.to_be_made(o, now)
    actions = (*actions, *map(DeleteMessage, retired), *made, *map(MakeMessage, new))
    more = 0.0 if new else later
    # The watch does not wake for our own writes.
    ending_now = (ending.retention_of(it.seen) for it in judged if it.uid in ended and not it.verdict.silent)
    wakes = (due, dispatch.wake_after, more, again, once_more)
    wake_after = earliest(*wakes, *ending_now, *(it.verdict.wake_after for it in judged))
    return ControlPlan(_words(o, writes, dispatch, len(retired)), actions, wake_after)


def _judge(o: ControlObservation, now: float) -> list[_Judged]:
    reports = {report.id: report for report in o.agent.control.messages} if o.agent is not None else {}
    asked = {it.report.id: it.report for it in from_channel.asked_of(o)}
    judged, before, added = list[_Judged](), OpenCount(), OpenCount()
    for message in o.messages:
        uid = message.metadata.uid
        report = asked.get(message.log_id) if message.is_from_channel else reports.get(uid)
        seen = Seen(message, o, now - o.clock_skew, report, o.snapshots.get(uid), before, added)
        judged.append(_Judged(seen, first_verdict(MESSAGE_RULES, seen, now)[1]))
        if judged[-1].verdict.phase not in FINAL:
            one = OpenCount(1, len(message.spec.payload))
            before, added = before + one, added if message.status.conditions else added + one
    return judged


def _ends(o: ControlObservation, judged: list[_Judged]) -> tuple[MessageEnd, ...]:
    """Return the results of channel messages for the driver: each is recorded before it is sent."""
    ended = (it for it in judged if it.seen.message.is_from_channel and it.verdict.phase in FINAL)
    return from_channel.ends_of(
        o,
        (
            (it.seen.message.log_id, it.seen.message.status)
            if it.verdict.silent
            else (it.seen.message.log_id, build_message_status(it.seen, it.verdict, False))
            for it in ended
        ),
    )


def _snapshots(o: ControlObservation, judged: list[_Judged], now: float) -> tuple[list[MakeSnapshot], float | None]:
    wanted = {it.uid: it for it in judged if it.verdict.makes is not None}
    chosen, left = created_now(o.memory.not_created, wanted, now)
    made = (it for uid, it in wanted.items() if uid in chosen)
    return [MakeSnapshot(it.seen.message, it.verdict.makes) for it in made if it.verdict.makes is not None], left


def _retired(o: ControlObservation, judged: list[_Judged], now: float) -> tuple[list[ControlMessage], float | None]:
    """Return what is deleted now, and in how many seconds there is more.

    In a pause after a refusal it is nothing. Then those are first that were not refused yet, or longest ago: a policy
    may refuse one, and a webhook that fails refuses all of them.
    """
    refused = o.memory.not_deleted
    retired = [it.seen.message for it in judged if it.verdict.retires]
    left = max((time_left(at, NOT_CREATED_PAUSE, now) for at in refused.values()), default=0.0)
    if left and retired:
        return [], left
    retired.sort(key=lambda message: refused.get(message.metadata.uid, 0.0))
    return retired[:MOST_REMOVED], 0.0 if len(retired) > MOST_REMOVED else None


def _in_turn(it: _Judged, dispatch: Dispatch) -> _Judged:
    waits = it.verdict.sends and it.uid not in dispatch.chosen
    return _Judged(it.seen, waiting.queued(it.seen, dispatch.under_way)) if waits else it


def _writes(
    o: ControlObservation, judged: list[_Judged], dispatch: Dispatch, now: float
) -> tuple[tuple[ControlAction, ...], float | None]:
    """Return what is to be written and sent now, and in how many seconds there is more."""
    actions: list[ControlAction] = []
    left = time_left(o.memory.progress_written_at, PROGRESS_INTERVAL, now)
    due = None
    for it in judged:
        if it.verdict.silent:
            continue
        message = it.seen.message
        status = build_message_status(it.seen, it.verdict, it.uid in dispatch.chosen)
        if status == message.status:
            continue
        core = is_core(message.status, status)
        if not core and left:
            due = left
            continue
        actions.append(WriteMessageStatus(message, status, is_progress=not core))
        actions += _announce(it, status)
    return tuple(actions), due


def _announce(it: _Judged, status: ControlMessageStatus) -> list[ControlAction]:
    kind, message, verdict = Health.READY.value, it.seen.message, it.verdict
    old, new = message.status.condition(kind), status.condition(kind)
    assert new is not None
    same = old is not None and old.reason == new.reason and message.status.phase == status.phase
    if same or verdict.reason in _QUIET:
        return []
    occasion = f"{new.last_transition_time.timestamp():.0f}"
    event = PublishEvent(verdict.reason, verdict.message, verdict.health is Health.STALLED, occasion)
    return [PublishMessageEvent(message, event)]


def _words(o: ControlObservation, writes: tuple[ControlAction, ...], dispatch: Dispatch, retired: int) -> str:
    given = len(dispatch.give.orders.messages) if dispatch.give is not None else 0
    written = sum(1 for action in writes if isinstance(action, WriteMessageStatus))
    return messages.summary(len(o.messages), given=given, written=written, retired=retired)
