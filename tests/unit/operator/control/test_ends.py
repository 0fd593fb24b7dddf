"""What becomes of messages: what the driver tells of them, when they are too late, and when they go. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.control_message import FINAL, ControlMessage, MessagePhase
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.control.observation import ControlMemory, ControlObservation
from tidegate.control.rules.dispatch import FORGET_PAUSE
from tidegate.control.rules.ending import MOST_WAITING
from tidegate.control.rules.messages import LONGEST_REPORTED
from tidegate.control.rules.plan import MOST_REMOVED, PROGRESS_INTERVAL, decide_control
from tidegate.control.rules.reporting import _MEANINGS
from tidegate_spark.contract.control_protocol import (
    LARGEST_PAYLOAD,
    LONGEST_ERROR,
    MOST_ERRORS,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_testing.control_observations import (
    ANOTHER,
    APP,
    SENT,
    SUSPENDED,
    TIME,
    after,
    agent,
    ended,
    forgotten,
    given,
    message,
    observe,
    observe_running,
    offered,
    report,
    reported,
    said,
    statuses,
)
from tidegate_testing.observations import NOW, app_with, launched, running_driver

DAY = 86400.0


def waiting(number: int, size: int = 1) -> list[ControlMessage]:
    """Return so many messages that wait, in their order."""
    payload = msgspec.Raw(msgspec.json.encode("x" * size))
    made = [message(f"wait-{count:05}") for count in range(number)]
    spec = [msgspec.structs.replace(it.spec, payload=payload) for it in made]
    return [msgspec.structs.replace(it, spec=each) for it, each in zip(made, spec, strict=True)]


@pytest.mark.parametrize(
    ("number", "size", "kept"),
    [(MOST_WAITING, 1, MOST_WAITING), (MOST_WAITING + 9, 1, MOST_WAITING), (200, 65_000, 129)],
)
def test_messages_that_wait_behind_too_many_are_refused_with_what_to_do(number: int, size: int, kept: int) -> None:
    plan = decide_control(observe_running(*waiting(number, size)), NOW)
    refused = {name: status for name, status in statuses(plan).items() if status.phase is MessagePhase.FAILED}
    assert sorted(refused) == [f"wait-{count:05}" for count in range(kept, number)]
    assert {status.conditions[0].reason for status in refused.values()} <= {"TooManyMessages"}


def test_messages_that_were_accepted_before_go_on_waiting_however_many_there_are() -> None:
    made = waiting(MOST_WAITING + 9)
    accepted = statuses(decide_control(observe_running(made[0]), NOW))[made[0].metadata.name]
    before = [msgspec.structs.replace(it, status=accepted) for it in made]
    plan = decide_control(observe_running(*before, message("x-new")), NOW)
    assert [name for name, it in statuses(plan).items() if it.phase is MessagePhase.FAILED] == ["x-new"]


def test_messages_to_applications_that_are_not_there_have_one_bound_whatever_they_name() -> None:
    full = OpenCount(MOST_WAITING - 1, 40)
    plan = decide_control(observe(*waiting(2), without_app=full), NOW)
    assert [(name, it.phase) for name, it in statuses(plan).items()] == [
        ("wait-00000", MessagePhase.PENDING),
        ("wait-00001", MessagePhase.FAILED),
    ]
    refused = statuses(plan)["wait-00001"].conditions[0]
    assert refused.reason == "TooManyMessages"
    assert refused.message.startswith("StreamingApp orders does not exist, and 1000 messages, or 8 MiB of payloads,")
    large = OpenCount(3, 8 * 1024**2)
    assert said(observe(message(), without_app=large))[2] == "TooManyMessages"


def test_messages_that_have_ended_hold_back_no_other() -> None:
    before = [message(f"ended-{count:05}", status=ended()) for count in range(MOST_WAITING)]
    assert given(decide_control(observe_running(*before, message("last")), NOW)) == ["last"]


def reported_of(state: MessageState, of: ControlMessage | None = None, **fields: Any) -> ControlObservation:
    asked = of or message(status=offered())
    found: ControlObservation = observe_running(asked, reports=(report(asked, state, 12, **fields),))
    return found


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (MessageState.LOGGED, ("Published", "Reconciling", "Logged")),
        (MessageState.IN_FORCE, ("Published", "Reconciling", "InForce")),
        (MessageState.DONE, ("Applied", "Ready", "Applied")),
        (MessageState.FAILED, ("Failed", "Stalled", "HandlerFailed")),
        (MessageState.REJECTED, ("Failed", "Stalled", "Rejected")),
        (MessageState.EXPIRED, ("Expired", "Stalled", "Expired")),
        (MessageState.ROLLED_BACK, ("Failed", "Stalled", "RolledBack")),
        (MessageState.UNKNOWN, ("Published", "Stalled", "Unknown")),
    ],
)
def test_each_state_in_the_log_has_its_phase_condition_and_reason(
    state: MessageState, expected: tuple[str, str, str]
) -> None:
    assert said(reported_of(state))[:3] == expected
    status = statuses(decide_control(reported_of(state), NOW))["faster"]
    assert (status.sequence, status.published_time) == (12, TIME)
    assert (status.completion_time == TIME) is (status.phase in FINAL)
    applied = status.condition("Applied")
    assert applied is not None
    assert (applied.status == "True") is (state is MessageState.DONE)


def test_every_state_has_a_meaning() -> None:
    assert set(_MEANINGS) == set(MessageState)


def test_acknowledgements_are_written_by_query_and_summed_up() -> None:
    queries = {"b": QueryAcknowledgement(9, 1, 2, ("E: x",), 3), "a": QueryAcknowledgement(7, 4, 4)}
    status = statuses(decide_control(reported_of(MessageState.IN_FORCE, queries=queries), NOW))["faster"]
    assert [(q.name, q.batch_id, q.applied, q.ran, q.errors, q.more_errors) for q in status.queries] == [
        ("a", 7, 4, 4, (), 0),
        ("b", 9, 1, 2, ("E: x",), 3),
    ]
    assert (status.batch, status.acks) == (9, "5/6")


def test_what_it_made_is_written() -> None:
    uri = {"uri": "s3://streams/apps/shop/orders/exports/1/manifest.json"}
    assert statuses(decide_control(reported_of(MessageState.DONE, results=uri), NOW))["faster"].results == uri


def test_the_words_of_a_handler_that_failed_are_told() -> None:
    queries = {"main": QueryAcknowledgement(7, 3, 4, ("ValueError: no threshold",))}
    assert "query main: ValueError: no threshold" in said(reported_of(MessageState.FAILED, queries=queries))[3]


def test_a_driver_may_give_its_own_reason_and_words_for_a_failure() -> None:
    o = reported_of(MessageState.REJECTED, reason="UnknownType", message="There is no handler for faster.")
    assert said(o)[2:] == ("UnknownType", "There is no handler for faster.")


@pytest.mark.parametrize(
    ("payload", "reason", "names_the_runtime"),
    [
        ({"format": "CSV"}, "InvalidPayload", True),
        ({"format": "JSONLines"}, "InvalidPayload", True),
        ({"format": "Csv"}, "InvalidPayload", False),
        ({"format": ["CSV"]}, "InvalidPayload", False),
        ({}, "InvalidPayload", False),
        (["CSV"], "InvalidPayload", False),
        ({"format": "CSV"}, "PayloadTooLarge", False),
    ],
)
def test_a_format_that_only_the_operator_knows_is_rejected_by_an_older_runtime_which_is_to_be_upgraded(
    payload: Any, reason: str, names_the_runtime: bool
) -> None:
    text = "'format' of the payload must be one of JsonLines, Csv, Parquet."
    dump = message("faster", offered(), kind="dump-state", payload=payload)
    found = said(reported_of(MessageState.REJECTED, dump, reason=reason, message=text))
    assert found[2] == reason
    assert found[3].startswith(text)
    assert ("upgrade the runtime" in found[3]) is names_the_runtime


def test_what_no_condition_takes_is_cut_or_left_out() -> None:
    queries = {"q" * 300: QueryAcknowledgement(-1, -5, 2**63, ("x" * 900,) * 20, -1)}
    fields: dict[str, Any] = {"reason": "no reason!", "message": "x" * 5000, "queries": queries}
    fields |= {"results": {f"r{n}": "y" * 5000 for n in range(99)}}
    status = statuses(decide_control(reported_of(MessageState.FAILED, **fields), NOW))["faster"]
    (query,) = status.queries
    assert status.conditions[0].reason == "HandlerFailed"
    assert len(status.conditions[0].message) == LONGEST_REPORTED
    assert (len(query.name), query.batch_id, query.applied) == (253, None, 0)
    assert (len(query.errors), {len(error) for error in query.errors}) == (MOST_ERRORS, {LONGEST_ERROR})
    assert (len(status.results), {len(text) for text in status.results.values()}) == (16, {1024})


def test_a_paused_application_is_why_a_message_waits_in_the_log() -> None:
    asked = message(status=offered())
    o = observe_running(asked, agent=agent(report(asked, MessageState.LOGGED), paused=True))
    assert "The application is paused." in said(o)[3]


def test_events_tell_what_became_of_a_message_and_each_thing_once() -> None:
    assert reported(decide_control(reported_of(MessageState.LOGGED), NOW)) == [("faster", "Logged", False)]
    assert reported(decide_control(reported_of(MessageState.DONE), NOW)) == [("faster", "Applied", False)]
    assert reported(decide_control(reported_of(MessageState.FAILED), NOW)) == [("faster", "HandlerFailed", True)]
    assert reported(decide_control(reported_of(MessageState.IN_FORCE), NOW)) == []
    assert decide_control(after(reported_of(MessageState.LOGGED)), NOW).actions == ()


def test_progress_alone_is_written_now_and_then() -> None:
    some, more = (reported_of(MessageState.IN_FORCE, acks=acks) for acks in ((1, 4), (2, 4)))
    further = dataclasses.replace(after(some), agent=more.agent, memory=ControlMemory(progress_written_at=NOW - 4))
    plan = decide_control(further, NOW)
    assert (plan.actions, plan.wake_after) == ((), PROGRESS_INTERVAL - 4)
    assert statuses(decide_control(further, NOW + PROGRESS_INTERVAL))["faster"].acks == "2/4"
    done = dataclasses.replace(further, agent=reported_of(MessageState.DONE, acks=(4, 4)).agent)
    assert statuses(decide_control(done, NOW))["faster"].acks == "4/4"


# --- too late, too large ---


def test_what_nobody_could_be_given_in_time_expires() -> None:
    waiting = after(observe(message(ttl=30), app=SUSPENDED))
    assert decide_control(waiting, NOW).wake_after == 25.0
    assert statuses(decide_control(observe(message(ttl=30)), NOW))["faster"].expiration_time is not None
    phase, condition, why, text = said(waiting, NOW + 25.0)
    assert (phase, condition, why) == ("Expired", "Stalled", "Expired")
    assert "is suspended" in text


def test_what_a_driver_was_given_expires_by_the_log_alone() -> None:
    late = observe(message(status=offered(), ttl=30), app=SUSPENDED)
    assert said(late, NOW + DAY)[0] == "Pending"
    back = observe_running(message(status=offered(), ttl=30))
    assert given(decide_control(back, NOW + DAY)) == ["faster"]


def test_ages_go_by_the_clock_of_the_api_server() -> None:
    behind = observe(message(ttl=30), app=SUSPENDED, clock_skew=-100.0)
    assert said(behind)[0] == "Expired"
    ahead = observe(message(ttl=30), app=SUSPENDED, clock_skew=100.0)
    assert said(ahead, NOW + 60)[0] == "Pending"


def test_a_payload_that_no_log_takes_is_refused_and_those_behind_it_go_on() -> None:
    large, small = message("a", payload="x" * LARGEST_PAYLOAD), message("b")
    o = observe_running(large, small)
    assert said(o, name="a")[:3] == ("Failed", "Stalled", "PayloadTooLarge")
    assert given(decide_control(o, NOW)) == ["b"]


def test_a_message_fails_with_the_application_that_had_it() -> None:
    gone = observe(message(status=offered()))
    assert said(gone)[:3] == ("Failed", "Stalled", "AppReplaced")
    assert "before it reported the outcome of the message" in said(gone)[3]
    anew = observe_running(message(status=offered()), app=ANOTHER, driver=running_driver(ANOTHER))
    assert (said(anew)[2], given(decide_control(anew, NOW))) == ("AppReplaced", [])


# --- what has ended ---


@pytest.mark.parametrize("phase", sorted(FINAL))
def test_what_has_ended_stays_what_it_is_whatever_is_told_of_it(phase: MessagePhase) -> None:
    done = message(status=ended(phase))
    for state in MessageState:
        plan = decide_control(observe_running(done, reports=(report(done, state),)), NOW)
        assert (statuses(plan), given(plan), reported(plan)) == ({}, [], [])


def test_the_driver_may_forget_what_is_written_down_and_what_nobody_asks_for() -> None:
    done, open_ = message("done", ended()), message("open", offered())
    reported_too = (report(done, MessageState.DONE), report(open_, MessageState.LOGGED))
    deleted = MessageReport("uid-deleted", MessageState.LOGGED, 3)
    plan = decide_control(observe_running(done, open_, reports=(*reported_too, deleted)), NOW)
    assert forgotten(plan) == ["uid-done", "uid-deleted"]


def test_an_end_is_written_before_the_driver_may_forget_it() -> None:
    o = reported_of(MessageState.DONE)
    kinds = [type(action).__name__ for action in decide_control(o, NOW).actions]
    assert kinds == ["WriteMessageStatus", "PublishMessageEvent", "GiveMessages"]
    assert forgotten(decide_control(o, NOW)) == ["uid-faster"]


def test_a_driver_that_does_not_forget_is_not_asked_all_the_time() -> None:
    done = message(status=ended())
    memory = ControlMemory(ordered_at=NOW - 6, ordered_to="pod-1/0", forgotten=frozenset({"uid-faster"}))
    o = observe_running(done, reports=(report(done, MessageState.DONE),), memory=memory)
    plan = decide_control(o, NOW)
    assert (plan.actions, plan.wake_after) == ((), FORGET_PAUSE - 6)


def test_what_has_ended_is_removed_after_a_while() -> None:
    o = observe(message(status=ended(at=NOW - DAY + 10)), app=APP)
    assert (decide_control(o, NOW).actions, decide_control(o, NOW).wake_after) == ((), 10.0)
    (action,) = decide_control(o, NOW + 10).actions
    assert type(action).__name__ == "DeleteMessage"


def test_a_message_that_ends_now_is_looked_at_when_it_is_to_go() -> None:
    gone = observe(message(status=offered()))
    assert (said(gone)[2], decide_control(gone, NOW).wake_after) == ("AppReplaced", DAY)


def test_how_long_it_stays_is_for_the_application_to_say() -> None:
    quick = launched(app_with({"control.retentionSeconds": 3600}))
    (action,) = decide_control(observe(message(status=ended(at=NOW - 3600)), app=quick), NOW).actions
    assert type(action).__name__ == "DeleteMessage"
    assert decide_control(observe(message(status=ended(at=NOW - 3600))), NOW).actions == ()


def test_of_many_that_are_to_go_some_go_at_a_time() -> None:
    old = [message(f"m-{n:03}", ended(at=SENT - DAY)) for n in range(MOST_REMOVED + 5)]
    plan = decide_control(observe(*old), NOW)
    assert (len(plan.actions), plan.wake_after) == (MOST_REMOVED, 0.0)
