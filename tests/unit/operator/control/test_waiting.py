"""Messages that wait: for an application, for a driver, for those before them. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.control_message import MessagePhase
from tidegate.api.streaming_app import Phase
from tidegate.control.observation import ControlMemory
from tidegate.control.rules.dispatch import MOST_AT_ONCE, MOST_UNDER_WAY, ORDER_PAUSE
from tidegate.control.rules.plan import decide_control
from tidegate.control.rules.waiting import NOT_TAKEN_PAUSE
from tidegate_spark.contract.control_protocol import LARGEST_CONTROL_ORDERS, LARGEST_PAYLOAD, MessageState
from tidegate_spark.contract.protocol import DriverState
from tidegate_testing.control_observations import (
    ANOTHER,
    APP,
    SENT,
    SUSPENDED,
    TIME,
    after,
    agent,
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
from tidegate_testing.observations import NOW, app_with, deleted, launched, lost_unbuildable, running_driver


def remembered(*names: str, ago: float = 1.0, **fields: Any) -> ControlMemory:
    ids = frozenset(f"uid-{name}" for name in names)
    return ControlMemory(**{"ordered_at": NOW - ago, "ordered_to": "pod-1/0", "ordered": ids, **fields})


@pytest.mark.parametrize(
    ("around", "reason", "texts"),
    [
        ({}, "AppNotFound", "StreamingApp orders does not exist in namespace shop"),
        ({"app_unreadable": True}, "AppUnreadable", "cannot be read"),
        ({"app": deleted(APP)}, "AppDeleting", "is being deleted"),
        ({"app": app_with()}, "AppNotStarted", "has never run"),
        ({"app": lost_unbuildable(app_with())}, "AppNotStarted", "has never run"),
        ({"app": SUSPENDED}, "AppSuspended", "until it runs again"),
        ({"app": launched(app_with(), phase=Phase.COMPLETED)}, "AppNotRunning", "is Completed"),
        ({"app": launched(app_with(), phase=Phase.FAILED)}, "AppNotRunning", "is Failed"),
        ({"app": APP}, "AppNotRunning", "until it runs"),
        ({"app": APP, "driver": running_driver(APP)}, "AppNotRunning", "until it runs"),
        (
            {"app": APP, "driver": running_driver(APP), "agent": agent(state=DriverState.STARTING)},
            "AppNotRunning",
            "until it runs",
        ),
        (
            {"app": APP, "driver": running_driver(APP, delete_by=NOW + 9), "agent": agent()},
            "AppNotRunning",
            "until it runs",
        ),
    ],
)
def test_a_message_waits_for_an_application_that_takes_it(around: dict[str, Any], reason: str, texts: str) -> None:
    o = observe(message(), **around)
    phase, condition, why, text = said(o)
    assert (phase, condition, why) == (MessagePhase.PENDING, "Reconciling", reason)
    assert texts in text
    plan = decide_control(o, NOW)
    assert (given(plan), reported(plan)) == ([], [("faster", reason, False)])
    assert decide_control(after(o), NOW + 60).actions == ()


def test_a_message_is_given_to_the_driver_after_its_status_says_so() -> None:
    plan = decide_control(observe_running(message(payload={"threshold": 3})), NOW)
    assert [type(action).__name__ for action in plan.actions] == ["WriteMessageStatus", "GiveMessages"]
    status = statuses(plan)["faster"]
    assert (status.phase, status.offered_time, status.app_uid, status.order) == ("Pending", TIME, "u-1", "20")
    (give,) = [action for action in plan.actions if type(action).__name__ == "GiveMessages"]
    (order,) = give.orders.messages  # type: ignore[union-attr] # it is one
    assert (order.id, order.type, order.payload) == ("uid-faster", "reload-config", '{"threshold":3}')
    assert (order.created, order.expires, order.source) == (SENT, 0.0, "shop/faster")


def test_messages_go_in_the_order_in_which_they_were_sent_and_all_at_once() -> None:
    line = (message("b", sent=SENT - 2), message("c", sent=SENT - 1), message("a"))
    assert given(decide_control(observe_running(*line), NOW)) == ["b", "c", "a"]


def test_what_was_given_a_moment_ago_is_not_given_again_until_a_report_is_due() -> None:
    o = observe_running(message("a", offered()), memory=remembered("a"))
    plan = decide_control(after(o), NOW)
    assert (plan.actions, plan.wake_after) == ((), ORDER_PAUSE - 1.0)
    late = dataclasses.replace(o, memory=remembered("a", ago=ORDER_PAUSE))
    assert given(decide_control(late, NOW)) == ["a"]


def test_a_new_message_is_given_at_once_with_those_before_it() -> None:
    o = observe_running(message("a", offered()), message("b"), memory=remembered("a"))
    assert given(decide_control(o, NOW)) == ["a", "b"]


def test_another_driver_process_is_given_what_the_one_before_it_was_also_what_is_in_the_log() -> None:
    line = message("a", offered(phase=MessagePhase.PUBLISHED, sequence=3)), message("b", offered())
    memory = remembered("a", "b", ordered_to="pod-1/7")
    assert given(decide_control(observe_running(*line, memory=memory), NOW)) == ["a", "b"]


def test_what_the_driver_knows_is_not_given_again() -> None:
    first, second = message("a", offered()), message("b")
    reports = (report(first, MessageState.LOGGED),)
    assert given(decide_control(observe_running(first, second, reports=reports), NOW)) == ["b"]


def test_an_agent_that_does_not_take_messages_is_left_alone_for_a_while() -> None:
    refused = remembered("faster", not_taken="HTTP 404")
    o = observe_running(message(status=offered()), memory=refused)
    phase, condition, why, text = said(o)
    assert (phase, condition, why) == ("Pending", "Stalled", "OrderRefused")
    assert "HTTP 404" in text
    assert "spec.restartNonce" in text
    plan = decide_control(o, NOW)
    assert (given(plan), reported(plan), plan.wake_after) == (
        [],
        [("faster", "OrderRefused", True)],
        NOT_TAKEN_PAUSE - 1.0,
    )
    later = dataclasses.replace(o, memory=remembered("faster", ago=NOT_TAKEN_PAUSE, not_taken="HTTP 404"))
    assert given(decide_control(later, NOW)) == ["faster"]


def test_no_more_go_at_once_than_a_body_holds_and_the_others_say_that_they_are_queued() -> None:
    line = [message(f"m-{n:03}", sent=SENT + n / 1000, resource_version=str(100 + n)) for n in range(MOST_AT_ONCE + 1)]
    plan = decide_control(observe_running(*line), NOW)
    assert given(plan) == [m.metadata.name for m in line[:MOST_AT_ONCE]]
    last = statuses(plan)[line[-1].metadata.name]
    assert (last.offered_time, last.conditions[0].reason) == (None, "Queued")


def test_large_payloads_go_in_several_bodies() -> None:
    line = [message(f"m-{n:02}", payload='"' * (LARGEST_PAYLOAD // 2 - 10)) for n in range(10)]
    plan = decide_control(observe_running(*line), NOW)
    assert 0 < len(given(plan)) < 10
    assert given(plan) == [m.metadata.name for m in line[: len(given(plan))]]
    assert len(given(plan)) * LARGEST_PAYLOAD < LARGEST_CONTROL_ORDERS


def test_a_report_must_not_grow_for_ever_so_later_messages_wait_for_earlier_ones() -> None:
    line = [message(f"m-{n:03}", offered()) for n in range(MOST_UNDER_WAY)]
    reports = tuple(report(m, MessageState.LOGGED, n + 1) for n, m in enumerate(line))
    o = observe_running(*line, message("z"), reports=reports)
    plan = decide_control(o, NOW)
    assert given(plan) == []
    assert f"{MOST_UNDER_WAY} of them are in progress" in said(o, name="z")[3]


def test_a_message_stays_with_the_application_that_was_there_when_it_was_first_seen() -> None:
    seen = after(observe(message(), app=SUSPENDED))
    gone = dataclasses.replace(seen, app=None)
    assert said(gone)[:3] == ("Failed", "Stalled", "AppReplaced")
    assert "before the message was offered to it" in said(gone)[3]
    anew = dataclasses.replace(seen, app=ANOTHER, driver=running_driver(ANOTHER), agent=agent(uid="u-2"))
    assert given(decide_control(anew, NOW)) == []
    assert said(anew)[:3] == ("Failed", "Stalled", "AppReplaced")
    odd = dataclasses.replace(seen, app=None, app_unreadable=True)
    assert said(odd)[2] == "AppUnreadable"


def test_a_message_that_came_while_its_application_was_going_is_for_the_next_one() -> None:
    seen = after(observe(message(), app=deleted(APP)))
    assert seen.messages[0].status.app_uid == ""
    anew: dict[str, Any] = {"app": ANOTHER, "driver": running_driver(ANOTHER), "agent": agent(uid="u-2")}
    assert given(decide_control(dataclasses.replace(seen, **anew), NOW)) == ["faster"]


def test_a_message_that_came_before_its_application_is_given_to_the_first_of_that_name() -> None:
    seen = after(observe(message()))
    assert given(decide_control(dataclasses.replace(seen, **vars_of_running()), NOW)) == ["faster"]


def vars_of_running() -> dict[str, Any]:
    o = observe_running()
    return {"app": o.app, "driver": o.driver, "agent": o.agent}


def test_a_message_that_somebody_deletes_and_others_keep_is_not_given_any_more() -> None:
    going = message(deletion_timestamp=TIME, finalizers=("somebody/else",))
    plan = decide_control(observe_running(going, reports=(report(going, MessageState.LOGGED),)), NOW)
    assert (given(plan), statuses(plan), forgotten(plan)) == ([], {}, ["uid-faster"])


def test_a_message_whose_fate_only_the_log_knows_says_so_while_nobody_can_ask() -> None:
    text = said(observe(message(status=offered()), app=SUSPENDED))[3]
    assert "A driver received it before" in text
    known = offered(phase=MessagePhase.PUBLISHED, sequence=3)
    phase, _, _, text = said(observe(message(status=known), app=SUSPENDED))
    assert (phase, "received it before" in text) == ("Published", False)
