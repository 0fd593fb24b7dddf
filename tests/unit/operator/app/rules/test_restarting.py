"""What follows when a driver ended and the kubelet does not simply start it again. Pure."""

import dataclasses
import datetime
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import DriverStatus, LastExit, Phase, RestartsStatus, StreamingApp
from tidegate.app.actions import CreateDriver, DeleteDriver, Plan, RecordLaunch, WriteStatus
from tidegate.app.metrics.lifecycle import Restart, restarts_between
from tidegate.app.observation import Observation
from tidegate.app.rules.live.restarting import cut_batch_event
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import acts, status_of, verdict_of, written

ENDED = {"phase": "Succeeded", "running": False}
FAILED = {"phase": "Failed", "running": False}


def ended(reason: Reason, exit_code: int = 0, **fields: Any) -> Exit:
    reported = Termination(reason, "because of this", 1, **fields)
    return Exit(exit_code, "Completed" if exit_code == 0 else "Error", to_json(reported), NOW - 5)


def config_of(plan: Plan) -> DriverConfig:
    (create,) = [a for a in plan.actions if isinstance(a, CreateDriver)]
    (container,) = create.manifest["spec"]["containers"]
    (text,) = [e["value"] for e in container["env"] if e["name"] == CONFIG_VARIABLE]
    return from_json(DriverConfig, text.replace("$$", "$"))


def exhausted(app: StreamingApp) -> Observation:
    return observe(app, driver=driver_of(app, **ENDED, ended=ended(Reason.RESTART_BUDGET_EXHAUSTED)))


def test_an_application_that_failed_too_often_stays_failed_and_says_what_to_do() -> None:
    app = launched(app_with())
    plan = decide(exhausted(app), NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "RestartBudgetExhausted")
    assert "because of this." in plan.message
    assert "restartNonce" in plan.message
    assert "spec.restart alone is not enough" in plan.message
    assert not acts(plan, DeleteDriver)


def test_it_stays_failed_when_its_pod_is_cleared_away() -> None:
    app = written(exhausted(launched(app_with())))
    plan = decide(observe(app), NOW)
    assert (plan.rule, plan.reason) == ("leave_failed_alone", "RestartBudgetExhausted")
    assert plan.actions == ()


ENDS_FOR_GOOD: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Phase, str]]] = {
    "exhausted": (
        {},
        {**ENDED, "ended": ended(Reason.RESTART_BUDGET_EXHAUSTED)},
        (Phase.FAILED, "RestartBudgetExhausted"),
    ),
    "fenced": ({}, {**ENDED, "ended": ended(Reason.FENCED)}, (Phase.FAILED, "Fenced")),
    "finished": ({}, {**ENDED, "ended": ended(Reason.COMPLETED)}, (Phase.COMPLETED, "Completed")),
    "finished, then suspended": (
        {"suspend": True},
        {**ENDED, "ended": ended(Reason.COMPLETED)},
        (Phase.COMPLETED, "Completed"),
    ),
    "failed under the policy Never": (
        {"restart.policy": "Never"},
        {**FAILED, "ended": ended_with(Reason.APPLICATION_FAILED, 1)},
        (Phase.FAILED, "RestartPolicyNever"),
    ),
}


@pytest.mark.parametrize("end", ENDS_FOR_GOOD)
def test_what_ended_for_good_stays_so_while_its_pod_goes_and_afterwards(end: str) -> None:
    spec, fields, (phase, reason) = ENDS_FOR_GOOD[end]
    app = launched(app_with(spec), phase=Phase.RUNNING)
    going = observe(app, driver=driver_of(app, **fields, delete_by=NOW + 30))
    plan = decide(going, NOW)
    assert (status_of(plan).phase, plan.reason, acts(plan, DeleteDriver)) == (phase, reason, False)
    gone = decide(observe(written(going)), NOW)
    assert (gone.reason, acts(gone, CreateDriver)) == (reason, False)


@pytest.mark.parametrize("end", sorted(set(ENDS_FOR_GOOD) - {"finished, then suspended"}))
def test_a_late_watch_does_not_bring_back_what_ended_for_good(end: str) -> None:
    spec, fields, (phase, reason) = ENDS_FOR_GOOD[end]
    app = launched(app_with(spec), phase=Phase.RUNNING)
    reported = written(observe(app, driver=driver_of(app, **fields)))
    plan = decide(observe(reported, driver=running_driver(reported, ready=True)), NOW)
    assert (reported.status.phase, plan.reason, plan.rule) == (phase, reason, "ignore_stale_pod")
    assert not acts(plan, WriteStatus)


@pytest.mark.parametrize("going", [{}, {"delete_by": NOW + 30}], ids=["there", "on its way out"])
@pytest.mark.parametrize("end", sorted(set(ENDS_FOR_GOOD) - {"finished, then suspended"}))
def test_a_pod_of_an_earlier_version_does_not_bring_back_what_ended_for_good(end: str, going: dict[str, Any]) -> None:
    spec, fields, (_, reason) = ENDS_FOR_GOOD[end]
    app = launched(app_with(spec), phase=Phase.RUNNING, epoch=3)
    reported = written(observe(app, driver=driver_of(app, **fields)))
    late = observe(reported, driver=running_driver(reported, epoch=2, spec_hash="an earlier one", **going))
    plan = decide(late, NOW)
    assert (plan.reason, plan.rule, acts(plan, DeleteDriver)) == (reason, "clear_earlier_driver", not going)
    gone = decide(observe(written(late)), NOW)
    assert (gone.reason, acts(gone, CreateDriver)) == (reason, False)


@pytest.mark.parametrize("end", sorted(set(ENDS_FOR_GOOD) - {"finished, then suspended"}))
def test_a_driver_that_ran_because_its_successor_was_never_made_stays_to_be_looked_at(end: str) -> None:
    spec, fields, (phase, reason) = ENDS_FOR_GOOD[end]
    app = launched(app_with(spec), phase=Phase.RUNNING, epoch=3)
    driver = driver_of(app, **fields, epoch=2)
    reported = written(observe(app, driver=driver))
    plan = decide(observe(reported, driver=driver), NOW)
    assert (reported.status.phase, plan.reason, acts(plan, DeleteDriver)) == (phase, reason, False)


@pytest.mark.parametrize(
    ("spec", "reason"), [({"restart.policy": "Always"}, Reason.COMPLETED), ({}, Reason.STORAGE_OWNED)]
)
def test_what_ended_to_be_started_again_is_while_its_pod_goes(spec: dict[str, Any], reason: Reason) -> None:
    app = launched(app_with(spec), phase=Phase.RUNNING)
    plan = decide(observe(app, driver=driver_of(app, **ENDED, ended=ended(reason), delete_by=NOW + 30)), NOW)
    assert plan.rule == "wait_for_driver_to_go"


@pytest.mark.parametrize("change", [{"restartNonce": 1}, {"application.args": ["--mended"]}])
def test_a_changed_spec_starts_a_failed_application_with_a_whole_budget(change: dict[str, Any]) -> None:
    failures = (datetime.datetime.fromtimestamp(NOW - 10, datetime.UTC),)
    old = written(exhausted(launched(app_with(), restarts=RestartsStatus(recent_failure_times=failures))))
    app = app_with(change, status=old.status)
    with_pod = decide(observe(app, driver=driver_of(old, **ENDED, ended=ended(Reason.RESTART_BUDGET_EXHAUSTED))), NOW)
    assert acts(with_pod, DeleteDriver)
    plan = decide(observe(app), NOW)
    assert verdict_of(plan) == (Phase.STARTING, "Reconciling", "DriverStarting")
    assert config_of(plan).restart.failures == ()


def test_a_driver_whose_pod_was_lost_keeps_the_failures_that_were_counted() -> None:
    when = datetime.datetime.fromtimestamp(int(NOW - 10), datetime.UTC)
    app = launched(app_with(), phase=Phase.RUNNING, restarts=RestartsStatus(recent_failure_times=(when,)))
    plan = decide(observe(app), NOW + 60)
    assert config_of(plan).restart.failures == (when.timestamp(),)


def test_the_driver_learns_what_the_spec_says_of_restarts() -> None:
    fields = {"maxFailures": 3, "windowSeconds": 120, "healthySeconds": 30, "stallTimeoutSeconds": 0}
    config = config_of(decide(observe(app_with({f"restart.{k}": v for k, v in fields.items()})), NOW))
    assert dataclasses.asdict(config.restart) == {
        "max_failures": 3,
        "window_seconds": 120,
        "healthy_seconds": 30,
        "stall_timeout_seconds": 0,
        "failures": (),
    }


# --- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "pods"), [("Always", "OnFailure"), ("OnFailure", "OnFailure"), ("Never", "Never")])
def test_the_kubelet_is_told_the_policy(policy: str, pods: str) -> None:
    plan = decide(observe(app_with({"restart.policy": policy})), NOW)
    (create,) = [a for a in plan.actions if isinstance(a, CreateDriver)]
    assert create.manifest["spec"]["restartPolicy"] == pods


def test_under_policy_never_a_failed_application_stays_failed() -> None:
    app = launched(app_with({"restart.policy": "Never"}), phase=Phase.RUNNING)
    seen = observe(app, driver=driver_of(app, **FAILED, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")))
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "RestartPolicyNever")
    assert plan.message.startswith("ValueError: because. spec.restart.policy is Never.")
    assert not acts(plan, DeleteDriver)
    assert decide(observe(written(seen)), NOW).rule == "leave_failed_alone"


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "Evicted", "disruption": "TerminationByKubelet"},
        {"ended": Exit(255, "Unknown", "", NOW - 5)},
        {"ended": Exit(137, "ContainerStatusUnknown", "The container could not be located", NOW - 5)},
        {"init_ended": Exit(1, "Error", "", NOW - 5), "init_name": "tidegate-runtime"},
        {"ended": ended(Reason.BROKER_UNAVAILABLE, 75)},
        {"ended": ended(Reason.STOPPED, 143)},
    ],
)
def test_under_policy_never_what_is_not_the_applications_fault_is_mended(fields: dict[str, Any]) -> None:
    app = launched(app_with({"restart.policy": "Never"}), phase=Phase.RUNNING)
    assert acts(decide(observe(app, driver=driver_of(app, **FAILED, **fields)), NOW), DeleteDriver)


def test_an_application_that_failed_under_policy_never_is_started_again_under_another_policy() -> None:
    never = launched(app_with({"restart.policy": "Never"}), phase=Phase.RUNNING)
    driver = driver_of(never, **FAILED, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    failed = written(observe(never, driver=driver))
    fixed = app_with({"restart.policy": "OnFailure"}, status=failed.status)
    assert acts(decide(observe(fixed, driver=driver), NOW), DeleteDriver)
    assert acts(decide(observe(fixed), NOW), CreateDriver)


def test_under_policy_always_a_finished_application_is_started_again() -> None:
    app = launched(app_with({"restart.policy": "Always"}), phase=Phase.RUNNING)
    seen = observe(app, driver=driver_of(app, **ENDED, ended=ended(Reason.COMPLETED)))
    plan = decide(seen, NOW)
    assert verdict_of(plan) == (Phase.STARTING, "Reconciling", "Restarted")
    assert acts(plan, DeleteDriver)
    assert acts(decide(observe(written(seen)), NOW), CreateDriver)


# --- the fence -------------------------------------------------------------------------------------------------------


def test_a_driver_that_lost_the_fence_is_not_started_again() -> None:
    app = launched(app_with(), epoch=3)
    plan = decide(observe(app, driver=driver_of(app, **ENDED, ended=ended(Reason.FENCED))), NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "Fenced")
    assert not acts(plan, DeleteDriver)


def test_a_lost_status_is_taken_from_what_the_storage_knows_before_the_next_launch() -> None:
    app = launched(app_with(), epoch=1)
    reported = ended(Reason.FENCED, adopt_epoch=7, adopt_lineage=2)
    seen = observe(app, driver=driver_of(app, **ENDED, ended=reported))
    plan = decide(seen, NOW)
    assert [type(a) for a in plan.actions] == [PublishEvent, WriteStatus, DeleteDriver]
    assert (status_of(plan).epoch, status_of(plan).lineage) == (7, 2)
    after = written(seen)
    # The pod is still there, as after a crash between the two: it is only removed.
    again = decide(observe(after, driver=driver_of(app, **ENDED, ended=reported)), NOW)
    assert acts(again, DeleteDriver)
    assert not acts(again, RecordLaunch)
    config = config_of(decide(observe(after), NOW + 3600))
    assert (config.epoch, config.lineage) == (8, 2)


# --- the account -----------------------------------------------------------------------------------------------------


def test_each_end_that_nobody_asked_for_is_counted_once() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    end = ended(Reason.APPLICATION_FAILED, 1, exception="ValueError", failures=(NOW - 5,))
    seen = observe(app, driver=running_driver(app, running=False, restarts=0, ended=end))
    once = status_of(decide(seen, NOW)).restarts
    assert once is not None
    assert (once.total, once.last_reason) == (1, "ApplicationFailed")
    assert [t.timestamp() for t in once.recent_failure_times] == [NOW - 5]
    back = observe(written(seen), driver=running_driver(app, restarts=1, ended=end))
    again = written(back).status.restarts
    assert again is not None
    assert again.total == 1


def test_a_stop_that_an_edit_asked_for_is_not_counted() -> None:
    old = launched(app_with(), phase=Phase.RUNNING)
    app = app_with({"restartNonce": 1}, status=old.status)
    driver = driver_of(old, running=False, phase="Running", delete_by=NOW + 9, ended=ended(Reason.STOPPED, 143))
    assert status_of(decide(observe(app, driver=driver), NOW)).restarts is None


@pytest.mark.parametrize("wish", [{"suspend": True}, {"application.args": ["--new"]}])
@pytest.mark.parametrize("seen_ending", [True, False])
def test_a_stop_whose_wish_was_withdrawn_is_not_counted_nor_is_the_launch_after_it(
    wish: dict[str, Any], seen_ending: bool
) -> None:
    started = DriverStatus(pod_name="orders-driver", start_time=time_from_seconds(NOW - 50))
    old = launched(app_with(), phase=Phase.RUNNING, driver=started)
    driver = running_driver(old)
    wished = app_with(wish, status=written(observe(app_with(wish, status=old.status), driver=driver)).status)
    back = app_with(status=wished.status)
    assert back.status.phase is Phase.STOPPING
    if seen_ending:
        stops = replace(driver, delete_by=NOW + 9)
        back = written(observe(back, driver=stops))
        gone = replace(stops, running=False, ended=ended(Reason.STOPPED, 143))
        back = written(observe(back, driver=gone))
        assert (back.status.conditions[0].reason, back.status.last_exit is None) == ("Resuming", False)
    plan = decide(observe(back, memory=ProcessState(launched_at=NOW - 60, quick_relaunches=3)), NOW)
    (record,) = [a for a in plan.actions if isinstance(a, RecordLaunch)]
    assert (record.unplanned, record.status.restarts) == (False, None)
    assert restarts_between(back.status, record.status) == (Restart("Resumed", 1),)


def test_a_loss_after_a_wish_that_came_to_nothing_is_counted() -> None:
    old = launched(app_with(), phase=Phase.RUNNING)
    wish = app_with({"suspend": True}, status=old.status)
    back = app_with(status=written(observe(wish, driver=running_driver(old))).status)
    lost = driver_of(
        back, **FAILED, reason="Evicted", disruption="TerminationByKubelet", ended=ended(Reason.STOPPED, 143)
    )
    restarts = status_of(decide(observe(back, driver=lost), NOW)).restarts
    assert restarts is not None
    assert restarts.total == 1


def test_a_driver_that_vanished_is_counted_when_it_is_replaced() -> None:
    started = datetime.datetime.fromtimestamp(int(NOW - 50), datetime.UTC)
    app = launched(app_with(), phase=Phase.RUNNING, driver=DriverStatus(pod_name="orders-driver", start_time=started))
    restarts = status_of(decide(observe(app), NOW)).restarts
    assert restarts is not None
    assert (restarts.total, restarts.last_reason) == (1, "DriverLost")
    last = LastExit(reason="Stopped", completion_time=datetime.datetime.fromtimestamp(int(NOW - 5), datetime.UTC))
    seen_ending = msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, last_exit=last))
    assert status_of(decide(observe(seen_ending), NOW)).restarts is None


def test_a_driver_that_vanished_is_counted_once_although_its_replacement_has_to_wait() -> None:
    started = datetime.datetime.fromtimestamp(int(NOW - 50), datetime.UTC)
    app = launched(app_with(), phase=Phase.RUNNING, driver=DriverStatus(pod_name="orders-driver", start_time=started))
    waits = observe(app, memory=ProcessState(launched_at=NOW - 5, quick_relaunches=2))
    assert decide(waits, NOW).reason == "RelaunchDelayed"
    later = replace(waits, app=written(waits))
    plan = decide(later, NOW + 60)
    assert acts(plan, CreateDriver)
    totals = [status.restarts.total for status in (later.app.status, status_of(plan)) if status.restarts]
    assert totals == [1, 1]


def test_failures_older_than_the_window_are_forgotten() -> None:
    app = launched(app_with({"restart.windowSeconds": 60}), phase=Phase.RUNNING)
    driver = running_driver(app, ready=True)
    report = report_of(driver, failures=(NOW - 100, NOW - 10))
    restarts = status_of(decide(observe(app, driver=driver, agent=report), NOW)).restarts
    assert restarts is not None
    assert [t.timestamp() for t in restarts.recent_failure_times] == [NOW - 10]


def test_a_batch_that_was_cut_off_is_told_once() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    driver = driver_of(app, running=False, phase="Running", delete_by=NOW, ended=ended(Reason.STOPPED, 143))
    whole = observe(app, driver=driver)
    cut = observe(app, driver=replace(driver, ended=ended(Reason.STOPPED, 143, boundary=False)))
    events = [
        [a.reason for a in decide(o, NOW).actions if isinstance(a, PublishEvent) and a.reason == "GracePeriodExceeded"]
        for o in (whole, cut, replace(cut, app=written(cut)))
    ]
    assert events == [[], ["GracePeriodExceeded"], []]


def test_a_batch_for_which_no_executor_was_left_is_not_put_down_to_the_grace_period() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    end = ended(Reason.STOPPED, 143, boundary=False, given_up=True)
    driver = driver_of(app, running=False, phase="Running", delete_by=NOW, ended=end)
    (events,) = cut_batch_event(observe(app, driver=driver), NOW)
    assert (events.reason, events.warning, "no executor was left" in events.message) == ("BatchGivenUp", True, True)


def test_a_batch_that_failed_as_the_driver_stopped_is_not_put_down_to_the_grace_period() -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    end = ended(Reason.STOPPED, 143, boundary=False, batch_failed=True)
    driver = driver_of(app, running=False, phase="Running", delete_by=NOW, ended=end)
    assert cut_batch_event(observe(app, driver=driver), NOW) == ()


@pytest.mark.parametrize("boundary", [True, False])
def test_what_only_this_look_can_tell_is_told_before_the_status_says_that_it_was(boundary: bool) -> None:
    app = launched(app_with(), phase=Phase.RUNNING)
    end = ended(Reason.STOPPED, 143, boundary=boundary)
    plan = decide(
        observe(app, driver=driver_of(app, **FAILED, reason="Evicted", disruption="TerminationByKubelet", ended=end)),
        NOW,
    )
    events = ["PublishEvent"] if boundary else ["PublishEvent", "PublishEvent"]
    assert [type(action).__name__ for action in plan.actions] == [*events, "WriteStatus", "DeleteDriver"]


def test_what_is_decided_again_because_it_was_not_written_has_the_same_event_and_what_recurs_another() -> None:
    app = launched(app_with(), phase=Phase.STARTING)
    up = running_driver(app, ready=True)
    down = driver_of(
        app, **FAILED, reason="Evicted", disruption="TerminationByKubelet", ended=ended(Reason.STOPPED, 143)
    )
    runs, lost = observe(app, driver=up, agent=report_of(up)), observe(app, driver=down)

    def occasion(ran: StreamingApp, now: float) -> str:
        (event,) = [a for a in decide(replace(lost, app=ran), now).actions if isinstance(a, PublishEvent)]
        return event.occasion

    ran = written(runs, NOW)
    ran_again = written(replace(runs, app=written(replace(lost, app=ran), NOW + 20)), NOW + 60)
    assert occasion(ran, NOW + 20) == occasion(ran, NOW + 27)
    assert occasion(ran_again, NOW + 80) != occasion(ran, NOW + 20)
