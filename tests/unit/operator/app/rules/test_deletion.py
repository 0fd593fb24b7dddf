"""What is removed, and in which order, when somebody deletes an application. Pure."""

import dataclasses

import msgspec
import pytest

from tidegate.api.streaming_app import Phase, StreamingApp
from tidegate.app.actions import (
    ConfirmDriverGone,
    CreatePurge,
    DeleteDriver,
    DeleteExecutor,
    DeleteLaunchSecrets,
    DeletePurge,
    Plan,
    RestoreLabels,
)
from tidegate.app.rules.deleted.deletion import release_unreadable
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.rules.actions import EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.pods.records.record import Exit, PodRecord, Waiting
from tidegate_spark.contract.protocol import Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    app_with,
    deleted,
    driver_of,
    ended_with,
    executor_of,
    launched,
    lost_unbuildable,
    never_launched,
    observe,
    running_driver,
)
from tidegate_testing.plans import acts, verdict_of

GOING = deleted(launched(app_with()))
EMPTIED = deleted(launched(app_with({"storage.deletionPolicy": "Delete"})))


ONE = executor_of(GOING, 1)


def destructive(plan: Plan) -> list[type]:
    kinds = (DeleteDriver, DeleteExecutor, CreatePurge, DeletePurge, DeleteLaunchSecrets, RemoveFinalizer)
    return [type(action) for action in plan.actions if isinstance(action, kinds)]


def purge_pod(**fields: object) -> PodRecord:
    return dataclasses.replace(driver_of(EMPTIED), **{"name": "orders-purge", "role": "purge", **fields})  # type: ignore[arg-type] # names checked at run time


def test_the_driver_is_asked_to_stop_and_nothing_else_is_touched() -> None:
    world = observe(GOING, driver=running_driver(GOING), executors=(executor_of(GOING, 1),))
    assert destructive(decide(world, NOW)) == [DeleteDriver]


def test_a_driver_that_stops_is_not_asked_twice() -> None:
    plan = decide(observe(GOING, driver=running_driver(GOING, delete_by=NOW + 30)), NOW)
    assert (destructive(plan), plan.wake_after) == ([], 90.0)


def test_executors_follow_the_driver() -> None:
    plan = decide(observe(GOING, executors=(executor_of(GOING, 1), executor_of(GOING, 2))), NOW)
    assert destructive(plan) == [DeleteExecutor, DeleteExecutor]


def test_executors_go_only_once_their_driver_was_looked_for() -> None:
    """It may have lost its labels while no operator ran: then it is there, and ends its batch with them."""
    for plan in (decide(observe(GOING, executors=(executor_of(GOING, 1),)), NOW), of_unreadable(executors=(ONE,))):
        kinds = [type(action) for action in plan.actions]
        assert kinds.index(ConfirmDriverGone) < kinds.index(DeleteExecutor)
    ending = executor_of(GOING, 1, delete_by=NOW + 30)
    assert not acts(decide(observe(GOING, executors=(ending,)), NOW), ConfirmDriverGone)


def test_executors_stay_with_a_pod_that_people_are_to_remove() -> None:
    refusal = Refusal("orders-driver", "", 1, Reason.POD_NAME_TAKEN, "Delete it.", NOW - 1, 1, holds_end=True)
    around = {"executors": (ONE,), "memory": ProcessState(refusal=refusal)}
    for plan in (decide(observe(GOING, **around), NOW), of_unreadable(**around)):
        assert (plan.reason, destructive(plan)) == ("PodNameTaken", [])
    assert destructive(decide(observe(GOING, **around), NOW + 3600)) == [DeleteExecutor]


def test_the_finalizer_goes_last() -> None:
    assert destructive(decide(observe(GOING), NOW)) == [DeleteLaunchSecrets, RemoveFinalizer]


def test_storage_is_emptied_if_asked_when_nothing_runs_any_more() -> None:
    assert destructive(decide(observe(EMPTIED), NOW)) == [CreatePurge]


def test_the_resource_stays_while_its_storage_is_emptied() -> None:
    assert destructive(decide(observe(EMPTIED, purge=purge_pod(phase="Running", running=True)), NOW)) == []


def test_the_resource_goes_when_its_storage_is_empty() -> None:
    plan = decide(observe(EMPTIED, purge=purge_pod(phase="Succeeded")), NOW)
    assert destructive(plan) == [DeleteLaunchSecrets, DeletePurge, RemoveFinalizer]


def test_a_purge_that_failed_is_begun_anew() -> None:
    assert destructive(decide(observe(EMPTIED, purge=purge_pod(phase="Failed")), NOW)) == [DeletePurge]


def test_a_purge_that_can_not_start_says_so_and_names_the_way_out() -> None:
    stuck = purge_pod(waiting=Waiting("purge", "shop/orders:1", "ErrImagePull", ""))
    plan = decide(observe(EMPTIED, purge=stuck), NOW)
    assert (plan.reason, "deletionPolicy to Retain" in plan.message, destructive(plan)) == ("ImagePullFailed", True, [])


def test_a_purge_waits_for_those_who_need_a_snapshot_and_names_them() -> None:
    reported = Termination(Reason.HELD, "Others need snapshots in s3://streams: snapshot a by import-u-9.", 1)
    waiting = purge_pod(phase="Running", ended=Exit(75, "Error", to_json(reported), NOW - 5))
    plan = decide(observe(EMPTIED, purge=waiting), NOW)
    assert plan.reason is Reason.HELD
    assert "snapshot a by import-u-9." in plan.message
    assert "set spec.storage.deletionPolicy to Retain" in plan.message
    assert destructive(plan) == []


def test_a_refused_purge_is_tried_again_later() -> None:
    refusal = Refusal("orders-purge", "", 1, Reason.LAUNCH_REFUSED, "quota", NOW - 1, 1)
    plan = decide(observe(EMPTIED, memory=ProcessState(refusal=refusal)), NOW)
    assert (plan.reason, destructive(plan), plan.wake_after) == ("LaunchRefused", [], 4.0)


def test_a_refused_purge_gets_back_the_service_account_that_it_may_miss() -> None:
    refusal = Refusal("orders-purge", "", 1, Reason.LAUNCH_REFUSED, "no service account", NOW - 60, 1)
    world = observe(EMPTIED, memory=ProcessState(refusal=refusal), access_ready=False)
    kinds = [type(action) for action in decide(world, NOW).actions]
    assert kinds.index(EnsureAccess) < kinds.index(CreatePurge)


def test_a_purge_that_began_before_the_spec_was_mended_is_begun_anew() -> None:
    older = purge_pod(phase="Running", running=True, spec_hash="another")
    assert destructive(decide(observe(EMPTIED, purge=older), NOW)) == [DeletePurge]


def test_a_purge_that_was_asked_to_stop_has_not_failed() -> None:
    asked = ended_with(Reason.STOPPED, 143)
    started_again = decide(
        observe(EMPTIED, purge=purge_pod(phase="Running", running=True, ready=False, ended=asked)), NOW
    )
    assert (verdict_of(started_again)[1:], destructive(started_again)) == (("Reconciling", "StoragePurging"), [])
    drained = decide(observe(EMPTIED, purge=purge_pod(phase="Failed", ended=asked)), NOW)
    assert (verdict_of(drained)[1:], destructive(drained)) == (("Reconciling", "StoragePurging"), [DeletePurge])


@pytest.mark.parametrize("reason", ["OOMKilled", "Error"])
def test_a_purge_that_was_killed_names_no_setting_of_the_driver(reason: str) -> None:
    killed = purge_pod(phase="Running", running=True, ended=Exit(137, reason, "", NOW - 5))
    plan = decide(observe(EMPTIED, purge=killed), NOW)
    assert (plan.reason, "It restarts and continues" in plan.message) == ("PurgeFailed", True)
    assert "spec.driver" not in plan.message
    assert ("raise spec.helpers.resources.limits.memory" in plan.message) == (reason == "OOMKilled")


def test_a_purge_that_no_node_takes_names_what_decides_where_it_may_run() -> None:
    plan = decide(observe(EMPTIED, purge=purge_pod(unschedulable="0/3 nodes are available.")), NOW)
    assert (plan.reason, "spec.driver.podTemplate" in plan.message) == ("Unschedulable", True)
    assert "resources" not in plan.message.replace("free resources", "")


def test_a_purge_whose_image_is_not_there_names_tidegates_image() -> None:
    stuck = purge_pod(waiting=Waiting("purge", "tidegate/operator:1", "ErrImagePull", ""))
    assert "values of Tidegate's chart" in decide(observe(EMPTIED, purge=stuck), NOW).message


def test_a_namespace_that_is_being_deleted_keeps_the_storage_and_lets_the_resource_go() -> None:
    refusal = Refusal("orders-purge", "", 1, Reason.NAMESPACE_TERMINATING, "takes no pod", NOW - 1, 1)
    plan = decide(observe(EMPTIED, memory=ProcessState(refusal=refusal)), NOW)
    assert destructive(plan) == [DeleteLaunchSecrets, RemoveFinalizer]
    (events,) = [action for action in plan.actions if isinstance(action, PublishEvent)]
    assert (events.reason, events.warning, "s3://streams/apps/shop/orders" in events.message) == (
        "StorageRetained",
        True,
        True,
    )


def test_an_application_that_never_ran_has_no_storage_to_empty() -> None:
    never = deleted(never_launched(app_with({"storage.deletionPolicy": "Delete"})))
    assert destructive(decide(observe(never), NOW)) == [RemoveFinalizer]


LOST = [
    pytest.param(deleted(build(app_with({"storage.deletionPolicy": "Delete"}))), id=name)
    for name, build in (("no status", lambda app: app), ("an epoch", lost_unbuildable))
]


@pytest.mark.parametrize("lost", LOST)
def test_storage_is_emptied_if_asked_also_if_the_status_was_lost(lost: StreamingApp) -> None:
    plan = decide(observe(lost), NOW)
    assert (destructive(plan), acts(plan, ConfirmDriverGone)) == ([CreatePurge], True)


def test_a_purge_of_which_no_pod_could_be_made_does_not_show_that_the_application_never_ran() -> None:
    unbuildable = never_launched(app_with({"storage.deletionPolicy": "Delete"}))
    status = msgspec.structs.replace(unbuildable.status, phase=Phase.DELETING)
    plan = decide(observe(deleted(msgspec.structs.replace(unbuildable, status=status))), NOW)
    assert (destructive(plan), acts(plan, ConfirmDriverGone)) == ([CreatePurge], True)


@pytest.mark.parametrize("lost", LOST)
def test_a_purge_that_never_gets_on_keeps_an_application_whose_status_was_lost_for_a_while_only(
    lost: StreamingApp,
) -> None:
    stuck = purge_pod(waiting=Waiting("purge", "shop/orders:1", "ErrImagePull", ""))
    waiting = decide(observe(lost, purge=stuck), NOW + 100)
    assert (destructive(waiting), waiting.wake_after) == ([], 200.0)
    plan = decide(observe(lost, purge=stuck), NOW + 301)
    assert destructive(plan)[-2:] == [DeletePurge, RemoveFinalizer]
    (event,) = [action for action in plan.actions if isinstance(action, PublishEvent)]
    assert (event.reason, "s3://streams/apps/shop/orders" in event.message) == ("StorageRetained", True)
    at_work = purge_pod(phase="Running", running=True)
    assert destructive(decide(observe(lost, purge=at_work), NOW + 301)) == []
    assert destructive(decide(observe(EMPTIED, purge=stuck), NOW + 301)) == []


def test_without_our_finalizer_nothing_is_done() -> None:
    assert decide(observe(deleted(app_with(finalizers=["another/one"]))), NOW).actions == ()


def of_unreadable(**around: object) -> Plan:
    """Return the plan for a deleted application of which only the metadata can be read."""
    return release_unreadable(observe(deleted(app_with()), **around), "spec.application.runtime: invalid", NOW)


def test_what_runs_of_an_unreadable_application_is_stopped_in_the_usual_order() -> None:
    going = deleted(app_with())
    executors = (executor_of(going, 1), executor_of(going, 2))
    assert destructive(of_unreadable(driver=running_driver(going), executors=executors)) == [DeleteDriver]
    assert destructive(of_unreadable(driver=running_driver(going, delete_by=NOW + 30), executors=executors)) == []
    assert destructive(of_unreadable(executors=executors)) == [DeleteExecutor, DeleteExecutor]
    # A purge that is cut off would leave snapshots without all of their files.
    assert destructive(of_unreadable(purge=purge_pod(phase="Running", running=True))) == []
    never_runs = purge_pod(waiting=Waiting("purge", "shop/orders:1", "ErrImagePull", ""))
    assert destructive(of_unreadable(purge=never_runs)) == [DeletePurge, RemoveFinalizer]


def test_a_driver_of_an_unreadable_application_that_no_watch_shows_is_read_live_again_and_again() -> None:
    going = deleted(app_with())
    lost = running_driver(going, labelled=False, delete_by=NOW - 60)
    plan = of_unreadable(driver=lost)
    assert [action.pods for action in plan.actions if isinstance(action, RestoreLabels)] == [(lost,)]
    assert plan.wake_after is not None
    # One that is there and was asked to end is waited for, as before.
    assert not acts(of_unreadable(driver=running_driver(going, delete_by=NOW + 30)), RestoreLabels)


def test_what_the_end_of_an_unreadable_application_waits_for_is_said_again_each_hour_while_it_lasts() -> None:
    going = deleted(app_with())
    world = observe(going, driver=running_driver(going, delete_by=NOW - 3600, node="node7"))
    said, at = [], NOW
    for _ in range(3):
        plan = release_unreadable(world, "spec.application.runtime: invalid", at)
        said += [action for action in plan.actions if isinstance(action, PublishEvent)]
        assert plan.wake_after is not None
        at += plan.wake_after
    assert ({event.reason for event in said}, len({event.occasion for event in said})) == ({"DriverNotGone"}, 3)
    assert 3600 < at - NOW <= 3 * 3600
    at_once = release_unreadable(world, "spec.application.runtime: invalid", NOW + 1)
    assert said[0] in at_once.actions


def test_an_unreadable_application_keeps_its_storage_and_says_so() -> None:
    (events,) = [action for action in of_unreadable().actions if isinstance(action, PublishEvent)]
    assert (events.reason, events.warning, "spec.application.runtime" in events.message) == (
        "StorageRetained",
        True,
        True,
    )


def test_storage_that_was_removed_before_the_application_became_unreadable_is_not_said_to_be_kept() -> None:
    done = purge_pod(phase="Succeeded", ended=ended_with(Reason.COMPLETED, 0))
    events = [a.reason for a in of_unreadable(purge=done).actions if isinstance(a, PublishEvent)]
    assert events == ["StoragePurged"]


def test_an_unreadable_application_without_our_finalizer_is_left_alone() -> None:
    others = deleted(app_with(finalizers=["another/one"]))
    assert release_unreadable(observe(others), "spec", NOW).actions == ()


def reported_at_the_end(ended: Exit | None) -> list[tuple[str, bool]]:
    plan = decide(observe(EMPTIED, purge=purge_pod(phase="Succeeded", ended=ended)), NOW)
    return [(action.reason, action.warning) for action in plan.actions if isinstance(action, PublishEvent)]


def test_only_a_purge_that_says_it_is_done_has_removed_the_storage() -> None:
    assert reported_at_the_end(ended_with(Reason.COMPLETED, 0)) == [("StoragePurged", False)]
    assert reported_at_the_end(ended_with(Reason.STORAGE_OWNED, 0)) == [("StorageRetained", True)]
    assert reported_at_the_end(None) == [("StorageRetained", True)]


def test_a_purge_has_its_service_account_made_again_that_somebody_removed() -> None:
    plan = decide(observe(EMPTIED, access_ready=False), NOW)
    made = [type(action) for action in plan.actions if isinstance(action, EnsureAccess | CreatePurge)]
    assert made == [EnsureAccess, CreatePurge]


def test_neither_storage_nor_the_rest_is_removed_before_the_driver_was_looked_for_live() -> None:
    for app, removal in ((EMPTIED, CreatePurge), (GOING, RemoveFinalizer)):
        kinds = [type(action) for action in decide(observe(app), NOW).actions]
        assert kinds.index(ConfirmDriverGone) < kinds.index(removal)


def test_of_an_application_that_was_never_launched_no_driver_is_looked_for() -> None:
    assert ConfirmDriverGone("orders-driver") not in decide(observe(deleted(never_launched(app_with()))), NOW).actions


def test_an_executor_whose_node_does_not_confirm_its_end_is_named_with_what_to_do() -> None:
    late = executor_of(GOING, 1, delete_by=NOW - 3600, node="node7")
    waiting = decide(observe(GOING, executors=(executor_of(GOING, 1, delete_by=NOW - 10),)), NOW)
    assert (waiting.reason, waiting.wake_after) == ("ExecutorsStopping", 50.0)
    stuck = decide(observe(GOING, executors=(late,)), NOW)
    assert stuck.reason == "PodNotGone"
    assert "node7" in stuck.message
    assert "out-of-service" in stuck.message
