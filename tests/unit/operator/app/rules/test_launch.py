"""Which launch follows from which world. Pure."""

import dataclasses

from tidegate.api.streaming_app import Phase
from tidegate.app.actions import (
    ConfirmDriverGone,
    CreateDriver,
    DeleteLaunchSecrets,
    EnsureLaunchSecrets,
    Plan,
    RecordLaunch,
)
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, driver_of, launched, observe
from tidegate_testing.plans import acts, status_of, verdict_of


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def refused(o: Observation, **fields: object) -> ProcessState:
    refusal = Refusal("orders-driver", o.spec_hash, o.app.status.epoch, Reason.LAUNCH_REFUSED, "quota", NOW - 1, 1)
    return ProcessState(refusal=dataclasses.replace(refusal, **fields))  # type: ignore[arg-type] # names checked at run time


def test_a_new_application_gets_everything_in_the_order_that_survives_a_crash() -> None:
    plan = decide(observe(app_with(finalizers=[]), access_ready=False), NOW)
    assert [type(action) for action in plan.actions] == [
        EnsureAccess,
        EnsureLaunchSecrets,
        AddFinalizer,
        RecordLaunch,
        CreateDriver,
        PublishEvent,
    ]


def test_the_epoch_in_status_is_that_of_the_pod() -> None:
    plan = decide(observe(app_with()), NOW)
    (create,) = [a for a in plan.actions if isinstance(a, CreateDriver)]
    assert (status_of(plan).epoch, status_of(plan).phase, create.epoch) == (1, Phase.STARTING, 1)
    assert create.manifest["metadata"]["labels"]["tidegate.dev/epoch"] == "1"


def test_a_lost_driver_gets_a_new_epoch_after_a_live_look_that_it_is_gone() -> None:
    plan = decide(observe(launched(app_with(), epoch=4)), NOW)
    assert kinds(plan) == [
        "EnsureLaunchSecrets",
        "ConfirmDriverGone",
        "DeleteLaunchSecrets",
        "RecordLaunch",
        "CreateDriver",
        "PublishEvent",
    ]
    assert (EnsureLaunchSecrets(5), DeleteLaunchSecrets(4)) == (plan.actions[0], plan.actions[2])
    assert status_of(plan).epoch == 5
    assert ConfirmDriverGone("orders-driver", needs_name=True) in plan.actions


def test_a_driver_lost_again_and_again_is_replaced_after_a_pause() -> None:
    memory = ProcessState(launched_at=NOW - 5, quick_relaunches=2)
    plan = decide(observe(launched(app_with()), memory=memory), NOW)
    assert (plan.rule, plan.reason, plan.wake_after) == ("wait_before_relaunch", "RelaunchDelayed", 15.0)


def test_a_pod_that_the_api_server_could_not_create_is_not_called_lost() -> None:
    message = "Internal error occurred: failed calling webhook"
    memory = ProcessState(launched_at=NOW - 5, quick_relaunches=2, not_created=message)
    plan = decide(observe(launched(app_with()), memory=memory), NOW)
    assert (verdict_of(plan), plan.wake_after) == ((Phase.PENDING, "Stalled", "LaunchRefused"), 15.0)
    assert message in plan.message


def test_a_launch_somebody_asked_for_does_not_pause() -> None:
    changed = launched(app_with(), applied_spec_hash="another")
    plan = decide(observe(changed, memory=ProcessState(launched_at=NOW - 5, quick_relaunches=6)), NOW)
    assert plan.rule == "launch"


def test_a_refused_pod_is_shown_and_tried_again_later() -> None:
    o = observe(launched(app_with()))
    plan = decide(dataclasses.replace(o, memory=refused(o)), NOW)
    assert (plan.reason, plan.wake_after) == ("LaunchRefused", 4.0)
    assert status_of(plan).phase == Phase.PENDING
    assert {c.type: c.status for c in status_of(plan).conditions} == {
        "Ready": "False",
        "Available": "False",
        "Reconciling": "False",
        "Stalled": "True",
    }


def test_nobody_waits_for_a_time_that_was_noted_before_the_clock_was_set_back() -> None:
    lost = observe(launched(app_with()), memory=ProcessState(launched_at=NOW + 3600, quick_relaunches=2))
    assert decide(lost, NOW).rule == "launch"
    o = observe(launched(app_with()))
    plan = decide(dataclasses.replace(o, memory=refused(o, at=NOW + 3600)), NOW)
    assert "CreateDriver" in kinds(plan)


def test_a_refused_pod_is_tried_again_with_the_epoch_that_it_never_used() -> None:
    o = observe(launched(app_with(), epoch=3))
    plan = decide(dataclasses.replace(o, memory=refused(o, at=NOW - 60)), NOW)
    (create,) = [a for a in plan.actions if isinstance(a, CreateDriver)]
    assert (create.epoch, "RecordLaunch" in kinds(plan)) == (3, False)
    # Nothing else wakes the application if the pod is taken now, and its status says that it was refused.
    assert plan.wake_after == 0.0


def test_an_epoch_that_may_have_been_used_is_never_used_again() -> None:
    o = observe(launched(app_with(), epoch=3))
    plan = decide(dataclasses.replace(o, memory=refused(o, at=NOW - 60, recorded=False)), NOW)
    assert status_of(plan).epoch == 4


def test_a_changed_spec_is_not_kept_waiting_by_an_earlier_refusal() -> None:
    o = observe(launched(app_with(), applied_spec_hash="another"))
    plan = decide(dataclasses.replace(o, memory=refused(o, spec_hash="another")), NOW)
    assert plan.rule == "launch"


def test_storage_that_an_older_application_has_is_refused() -> None:
    plan = decide(observe(app_with(), rival="older"), NOW)
    assert (plan.reason, "of application older," in plan.message, kinds(plan)) == (
        "StorageConflict",
        True,
        ["PublishEvent", "WriteStatus"],
    )


def test_a_spec_no_pod_can_be_made_of_is_named_and_not_launched() -> None:
    plan = decide(observe(app_with({"sparkConf": {"spark.driver.memory": "64g"}})), NOW)
    assert (plan.reason, "CreateDriver" in kinds(plan)) == ("InvalidSpec", False)


def test_a_finished_application_stays_finished_when_its_pod_is_cleared_away() -> None:
    finished = launched(app_with(), phase=Phase.COMPLETED)
    assert decide(observe(finished), NOW).rule == "leave_finished_alone"


def test_a_finished_application_runs_again_when_its_spec_changes() -> None:
    finished = launched(app_with(), phase=Phase.COMPLETED, applied_spec_hash="another")
    assert decide(observe(finished), NOW).rule == "launch"


def test_a_status_that_was_lost_does_not_bring_an_old_epoch_back() -> None:
    app = app_with()
    plan = decide(observe(app, driver=driver_of(app, epoch=9)), NOW)
    assert status_of(plan).epoch == 9


def test_an_application_with_an_account_of_its_own_needs_no_access_of_ours() -> None:
    own = observe(app_with({"serviceAccountName": "mine"}), access_ready=False)
    assert not acts(decide(own, NOW), EnsureAccess)
