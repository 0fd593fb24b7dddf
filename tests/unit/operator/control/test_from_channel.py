"""A broker's message that asks the cluster for something has one resource, and its driver hears its end. Pure."""

import dataclasses
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.control_message import ControlMessage, ControlMessageStatus, MessagePhase
from tidegate.api.status.status import Condition
from tidegate.control.actions import ControlPlan, DeleteMessage, GiveMessages, MakeMessage, MakeSnapshot
from tidegate.control.builders.channel_message import build_channel_message
from tidegate.control.observation import ControlMemory, ControlObservation
from tidegate.control.rules.plan import decide_control
from tidegate.pods.records.record import process_of
from tidegate_spark.contract.control_protocol import (
    LONGEST_ASKED,
    MOST_ASKED,
    AskedMessage,
    ControlReport,
    MessageEnd,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_testing.control_observations import (
    ANOTHER,
    APP,
    SUSPENDED,
    TIME,
    ended,
    given,
    message,
    observe,
    observe_running,
    said,
    statuses,
)
from tidegate_testing.observations import NOW, UID


def asked(
    number: int = 0, state: MessageState = MessageState.LOGGED, kind: str = "snapshot", **reported: Any
) -> AskedMessage:
    report = MessageReport(f"{number:032x}", state, number + 1, **reported)
    return AskedMessage(report, kind, "null", "kafka:control/0", "/pricing", str(number))


def stored(of: AskedMessage, status: ControlMessageStatus | None = None) -> ControlMessage:
    built = build_channel_message(of, APP)
    metadata = {**built["metadata"], "uid": "uid-1", "resourceVersion": "20", "generation": 1}
    found = msgspec.convert({**built, "metadata": metadata}, ControlMessage)
    time = msgspec.structs.replace(found.metadata, creation_timestamp=TIME)
    return msgspec.structs.replace(found, metadata=time, status=status or ControlMessageStatus())


def reports(*of: AskedMessage, state: DriverState = DriverState.RUNNING) -> dict[str, Any]:
    return {"agent": AgentReport("orders", UID, 1, state, ready=True, control=ControlReport(asked=of))}


def made(plan: ControlPlan) -> list[str]:
    return [
        action.manifest["metadata"]["annotations"]["tidegate.dev/event-id"]
        for action in plan.actions
        if isinstance(action, MakeMessage)
    ]


def ends(o: ControlObservation) -> tuple[MessageEnd, ...]:
    plan = decide_control(o, NOW)
    return tuple(end for action in plan.actions if isinstance(action, GiveMessages) for end in action.orders.ended)


def test_what_a_driver_tells_of_gets_a_resource_and_is_looked_at_again() -> None:
    plan = decide_control(observe_running(**reports(asked(1), asked(2))), NOW)
    assert (made(plan), plan.wake_after) == (["1", "2"], 0.0)


def test_one_that_has_a_resource_gets_no_other() -> None:
    of = asked(1)
    assert made(decide_control(observe_running(stored(of), **reports(of)), NOW)) == []


@pytest.mark.parametrize(
    "odd",
    [
        replace(asked(1), type="ping"),
        replace(asked(1), report=MessageReport("uid-1", MessageState.DONE, 1)),
        replace(asked(1), payload="x" * (LONGEST_ASKED + 1)),
    ],
)
def test_a_process_that_tells_of_anything_else_is_not_believed(odd: AskedMessage) -> None:
    assert made(decide_control(observe_running(**reports(odd)), NOW)) == []


def test_no_process_has_more_resources_made_than_it_may() -> None:
    o = observe_running(**reports(*(asked(number) for number in range(2 * MOST_ASKED))))
    assert len(made(decide_control(o, NOW))) == MOST_ASKED


def test_nothing_is_made_for_an_application_that_is_being_deleted() -> None:
    metadata = msgspec.structs.replace(APP.metadata, deletion_timestamp=TIME)
    gone = msgspec.structs.replace(APP, metadata=metadata)
    assert made(decide_control(observe_running(app=gone, **reports(asked(1))), NOW)) == []


def test_it_is_never_given_to_a_driver_whatever_that_says() -> None:
    of = asked(1)
    for fields in (reports(of), reports(), {"agent": AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True)}):
        assert given(decide_control(observe_running(stored(of), message("other"), **fields), NOW)) == ["other"]


def test_it_is_as_far_as_its_driver_says_and_says_where_it_came_from() -> None:
    of = asked(1)
    status = statuses(decide_control(observe_running(stored(of), **reports(of)), NOW))[stored(of).metadata.name]
    assert (status.phase, status.sequence, status.app_uid, status.offered_time) == ("Published", 2, UID, None)
    assert status.origin is not None
    assert (status.origin.channel, status.origin.source, status.origin.id) == ("Kafka", "/pricing", "1")


def test_its_snapshot_is_made_as_of_every_other() -> None:
    of = asked(1, MessageState.DONE, results={"snapshot": f"control-{1:032x}"})
    plan = decide_control(observe_running(stored(of), **reports(of)), NOW)
    (made,) = [action.manifest for action in plan.actions if isinstance(action, MakeSnapshot)]
    assert made["metadata"]["name"] == stored(of).metadata.name


def test_its_driver_hears_what_came_of_it_once_that_is_written_down() -> None:
    of = asked(1, MessageState.FAILED, reason="BatchLost", message="Gone.")
    o = observe_running(stored(of), **reports(of))
    (end,) = ends(o)
    assert end == MessageEnd(f"{1:032x}", MessageState.FAILED, "BatchLost", "Gone.")
    kinds = [type(action).__name__ for action in decide_control(o, NOW).actions]
    assert kinds.index("WriteMessageStatus") < kinds.index("GiveMessages")


@pytest.mark.parametrize(
    ("phase", "reason", "state"),
    [
        (MessagePhase.APPLIED, "Applied", MessageState.DONE),
        (MessagePhase.FAILED, "ExportFailed", MessageState.FAILED),
        (MessagePhase.FAILED, "RolledBack", MessageState.ROLLED_BACK),
        (MessagePhase.EXPIRED, "Expired", MessageState.EXPIRED),
    ],
)
def test_an_end_of_long_ago_is_told_until_the_driver_does_not_ask_any_more(
    phase: MessagePhase, reason: str, state: MessageState
) -> None:
    applied = Condition(type="Applied", status="True", reason=reason, message="So.", last_transition_time=TIME)
    status = msgspec.structs.replace(ended(phase), conditions=(applied,), results={"uri": "s3://b/m"})
    of = asked(1, MessageState.DONE)
    (end,) = ends(observe_running(stored(of, status), **reports(of)))
    assert (end.state, end.message, end.results) == (state, "So.", {"uri": "s3://b/m"})
    assert ends(observe_running(stored(of, status), **reports())) == ()


def test_it_is_told_again_after_a_while_and_not_at_once() -> None:
    of = asked(1, MessageState.DONE)
    o = observe_running(stored(of, ended()), **reports(of))
    known = ControlMemory(ordered_at=NOW - 1, ordered_to=process_of(o.driver), reported=frozenset({of.report.id}))
    assert ends(dataclasses.replace(o, memory=known)) == ()
    assert len(ends(dataclasses.replace(o, memory=dataclasses.replace(known, ordered_at=NOW - 6)))) == 1


def removed(o: ControlObservation, now: float) -> bool:
    return any(isinstance(action, DeleteMessage) for action in decide_control(o, now).actions)


def test_its_resource_stays_until_the_driver_knows_its_end_however_long_it_is_away() -> None:
    of, later = asked(1, MessageState.DONE), NOW + 86_400
    there = stored(of, ended())
    assert not removed(observe(there, app=SUSPENDED), later)
    assert not removed(observe_running(there, **reports(of)), later)
    not_known = AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True)
    assert not removed(observe_running(there, agent=not_known), later)
    assert removed(observe_running(there, **reports()), later)
    assert removed(observe(there, app=ANOTHER), later)
    assert removed(observe(there), later)


def test_it_waits_for_a_driver_that_is_away_and_fails_if_that_knows_of_none() -> None:
    of = asked(1)
    name = stored(of).metadata.name
    assert said(observe(stored(of), app=SUSPENDED), name=name)[:3] == ("Pending", "Reconciling", "AppNotRunning")
    assert said(observe_running(stored(of), **reports()), name=name)[:3] == ("Failed", "Stalled", "MessageLost")


def test_another_application_of_the_name_has_nothing_to_do_with_it() -> None:
    of = asked(1)
    found = said(observe(stored(of), app=ANOTHER), name=stored(of).metadata.name)
    assert found[:3] == ("Failed", "Stalled", "AppReplaced")


def test_its_driver_hears_that_no_resource_can_be_made() -> None:
    of = asked(1)
    o = observe_running(**reports(of), memory=ControlMemory(refused={of.report.id: "spec.payload: no"}))
    (end,) = ends(o)
    assert (end.state, end.reason) == (MessageState.FAILED, "MessageRefused")
    assert "spec.payload: no" in end.message
    assert made(decide_control(o, NOW)) == []
