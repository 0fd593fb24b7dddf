"""What becomes of the files when a StreamSnapshot is deleted, and who keeps them."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.api.streaming_app import DeletionPolicy
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import clocks_time_left
from tidegate.pods.records.record import process_of
from tidegate.snapshots.actions import CreateSnapshotPod, GiveOrders
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ReleaseOrder, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, launched, running_driver
from tidegate_testing.snapshot_observations import (
    APP,
    ID,
    SUSPENDED,
    agent,
    begun,
    deleted,
    kinds,
    observe,
    observe_running,
    pod,
    pod_that_said,
    ready_snapshot,
    report,
    said,
    settled,
    snapshot,
    status_of,
)

DELETING = SnapshotPhase.DELETING
GONE = ["RemoveFinalizer"]
TOLD = SnapshotMemory(ordered_at=NOW - 1, ordered_to=process_of(running_driver(APP)))


def doomed(of: StreamSnapshot | None = None) -> StreamSnapshot:
    return deleted(of or ready_snapshot(), DeletionPolicy.DELETE)


def test_what_is_retained_is_released_and_nobody_is_notified() -> None:
    for o in (observe(deleted(ready_snapshot())), observe_running(deleted(ready_snapshot()))):
        assert kinds(decide_snapshot(o, NOW)) == GONE


@pytest.mark.parametrize("around", [{}, {"app": SUSPENDED}, {"app": APP}])
def test_what_was_never_ordered_is_released(around: dict[str, Any]) -> None:
    waiting = snapshot(finalizers=("tidegate.dev/streamsnapshot",))
    assert kinds(decide_snapshot(observe(doomed(waiting), **around), NOW)) == GONE


def scheduled(noted: str) -> StreamSnapshot:
    found = ready_snapshot()
    labels = {"tidegate.dev/scheduled": "true"}
    annotations = {"tidegate.dev/retention": noted}
    metadata = msgspec.structs.replace(found.metadata, labels=labels, annotations=annotations)
    return msgspec.structs.replace(found, metadata=metadata)


def test_what_went_with_its_applications_storage_or_was_retained_with_it_is_left_to_that() -> None:
    """A purge that is refused retains the storage, whatever the policy says."""
    going = doomed(scheduled('{"withApp":true}'))
    assert kinds(decide_snapshot(observe(going), NOW)) == GONE
    assert kinds(decide_snapshot(observe(going, app=launched(app_with(uid="u-2"))), NOW)) == GONE


def test_the_files_of_every_other_scheduled_snapshot_are_deleted() -> None:
    """One whose application is there, one that does not go with it, and a copy that was not complete."""
    alone = doomed(scheduled("{}"))
    going = doomed(scheduled('{"withApp":true}'))
    copied = msgspec.structs.replace(going, status=msgspec.structs.replace(going.status, ready_time=None))
    for o in (observe(alone), observe(going, app=SUSPENDED), observe(copied)):
        assert "CreateSnapshotPod" in kinds(decide_snapshot(o, NOW))


def test_others_finalizers_are_none_of_our_business() -> None:
    assert decide_snapshot(observe_running(doomed(snapshot(finalizers=("others/own",)))), NOW).actions == ()


def test_a_running_driver_disposes_of_it_and_then_it_goes() -> None:
    o = observe_running(doomed())
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "GiveOrders"]
    assert GiveOrders(running_driver(APP), SnapshotOrders(dispose=(ID,))) in plan.actions
    assert said(plan) == (DELETING, "Reconciling", "Disposing")
    # The report is still that of the order to take it.
    on_its_way = dataclasses.replace(settled(o), memory=TOLD, agent=agent(report(SnapshotState.READY)))
    assert kinds(decide_snapshot(on_its_way, NOW)) == []
    assert kinds(decide_snapshot(on_its_way, NOW + 5)) == ["GiveOrders"]
    done = decide_snapshot(dataclasses.replace(on_its_way, agent=agent(report(SnapshotState.DISPOSED))), NOW)
    assert kinds(done) == GONE
    assert [a.reason for a in done.actions if isinstance(a, PublishEvent)] == ["SnapshotDisposed"]


def test_what_somebody_holds_waits_and_says_who() -> None:
    held = report(SnapshotState.HELD, Reason.HELD, message="fork-u-9 needs it.")
    plan = decide_snapshot(observe_running(doomed(), held), NOW)
    assert said(plan) == (DELETING, "Stalled", "Held")
    assert "fork-u-9 needs it." in status_of(plan).conditions[0].message
    assert "spec.deletionPolicy to Retain" in status_of(plan).conditions[0].message


def test_who_will_not_come_back_is_released_when_somebody_says_so() -> None:
    held = report(SnapshotState.HELD, Reason.HELD, message="fork-u-9 needs it.")
    said_so = doomed(ready_snapshot())
    metadata = msgspec.structs.replace(said_so.metadata, annotations={"tidegate.dev/release-holders": "fork-u-9, x"})
    said_so = msgspec.structs.replace(said_so, metadata=metadata)
    orders = SnapshotOrders(dispose=(ID,), release=(ReleaseOrder(ID, "fork-u-9"), ReleaseOrder(ID, "x")))
    o = observe_running(said_so, held, memory=dataclasses.replace(TOLD, ordered_at=NOW - 31))
    assert GiveOrders(running_driver(APP), orders) in decide_snapshot(o, NOW).actions
    reported = dataclasses.replace(settled(o), memory=dataclasses.replace(TOLD, status_written_at=NOW))
    assert [type(a).__name__ for a in decide_snapshot(reported, NOW).actions if isinstance(a, GiveOrders)] == []
    pods_orders = next(a for a in decide_snapshot(observe(said_so), NOW).actions if isinstance(a, CreateSnapshotPod))
    assert "fork-u-9" in str(pods_orders.manifest)


def test_a_disposal_that_gets_nowhere_says_why() -> None:
    waits = report(SnapshotState.WAITING, Reason.STORAGE_UNAVAILABLE, message="No answer.")
    plan = decide_snapshot(observe_running(doomed(), waits, memory=TOLD), NOW)
    assert said(plan) == (DELETING, "Stalled", "Disposing")
    assert "No answer." in plan.message


@pytest.mark.parametrize(
    ("around", "access"),
    [({}, []), ({"app": SUSPENDED}, ["EnsureAccess"]), ({"app": launched(app_with(uid="u-2"))}, [])],
    ids=["the application is gone", "it is suspended", "another one has its name"],
)
def test_a_pod_disposes_of_it_if_no_driver_of_its_application_runs(around: dict[str, Any], access: list[str]) -> None:
    plan = decide_snapshot(observe(doomed(), **around), NOW)
    assert kinds(plan) == [*access, "WriteSnapshotStatus", "CreateSnapshotPod"]
    assert said(plan) == (DELETING, "Reconciling", "PodStarting")


def test_it_waits_for_an_application_that_starts() -> None:
    starting = launched(app_with())
    plan = decide_snapshot(observe(doomed(), app=starting, driver=running_driver(starting)), NOW)
    assert said(plan) == (DELETING, "Reconciling", "AppNotRunning")


def test_it_goes_when_its_pod_has_disposed_of_it() -> None:
    at_work = observe(doomed(), disposing=pod(disposing=True))
    assert said(decide_snapshot(at_work, NOW)) == (DELETING, "Reconciling", "PodRunning")
    done = dataclasses.replace(at_work, disposing=pod_that_said(report(SnapshotState.DISPOSED), disposing=True))
    assert kinds(decide_snapshot(done, NOW)) == ["DeleteSnapshotPod", "RemoveFinalizer"]


def test_a_pod_asks_again_after_a_while_whether_it_is_still_held() -> None:
    held = report(SnapshotState.HELD, Reason.HELD, message="fork-u-9 needs it.")
    o = observe(doomed(), disposing=pod_that_said(held, disposing=True))
    plan = decide_snapshot(o, NOW)
    assert (said(plan), plan.wake_after) == ((DELETING, "Stalled", "Held"), 55.0)
    assert kinds(decide_snapshot(settled(o), NOW + 60)) == ["DeleteSnapshotPod"]


@pytest.mark.parametrize(
    "reports", [(report(SnapshotState.HELD, Reason.HELD, message="x"),), ()], ids=["held", "silent"]
)
def test_a_pod_on_a_node_whose_clock_is_ahead_is_not_replaced_again_and_again(
    reports: tuple[SnapshotReport, ...],
) -> None:
    o = observe(doomed(), disposing=pod_that_said(*reports, disposing=True, completion_time=NOW + 3))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus"]
    assert plan.wake_after in (30.0, 60.0)
    assert kinds(decide_snapshot(settled(o), NOW + 63)) == ["DeleteSnapshotPod"]


@pytest.mark.parametrize(
    "reports", [(report(SnapshotState.HELD, Reason.HELD, message="x"),), ()], ids=["held", "silent"]
)
def test_a_clock_of_a_node_that_is_days_ahead_is_not_believed(reports: tuple[SnapshotReport, ...]) -> None:
    ended = pod_that_said(*reports, disposing=True, completion_time=NOW + 200_000)
    soon = observe(doomed(), disposing=dataclasses.replace(ended, created_at=NOW - 10))
    plan = decide_snapshot(soon, NOW)
    assert (kinds(plan), plan.wake_after in (20.0, 50.0)) == (["WriteSnapshotStatus"], True)
    assert kinds(decide_snapshot(settled(soon), NOW + 50)) == ["DeleteSnapshotPod"]


@pytest.mark.parametrize(("ahead", "left"), [(-70, 0), (-20, 40), (20, 60), (60, 60), (61, 0), (200_000, 0)])
def test_another_clocks_pause_is_over_if_it_begins_later_than_it_would_last(ahead: float, left: float) -> None:
    assert clocks_time_left(NOW + ahead, 60.0, NOW) == left


def test_a_namespace_that_goes_takes_no_pod_and_the_files_stay() -> None:
    refusal = PodRefusal(f"{ID}-dispose", Reason.NAMESPACE_TERMINATING, "", NOW, 1)
    plan = decide_snapshot(observe(doomed(), memory=SnapshotMemory(refusal=refusal)), NOW)
    assert kinds(plan) == ["ForgetRefusal", "RemoveFinalizer"]
    assert [a.reason for a in plan.actions if isinstance(a, PublishEvent)] == ["SnapshotRetained"]


def test_the_pod_that_takes_it_goes_first() -> None:
    plan = decide_snapshot(observe(doomed(snapshot(begun(SUSPENDED))), app=SUSPENDED, taking=pod()), NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "DeleteSnapshotPod"]


def test_what_is_not_complete_is_cancelled_by_a_driver_that_runs_whatever_is_retained() -> None:
    half = deleted(snapshot(begun(phase=SnapshotPhase.COPYING)))
    o = observe_running(half, report(SnapshotState.COPYING, files=1, of_files=9))
    assert GiveOrders(running_driver(APP), SnapshotOrders(dispose=(ID,))) in decide_snapshot(o, NOW).actions
    assert kinds(decide_snapshot(observe_running(half, report(SnapshotState.DISPOSED)), NOW)) == GONE


HALF = deleted(snapshot(begun(SUSPENDED, phase=SnapshotPhase.COPYING)))


@pytest.mark.parametrize(
    ("around", "access"),
    [({}, []), ({"app": SUSPENDED}, ["EnsureAccess"]), ({"app": launched(app_with(uid="u-2"))}, [])],
    ids=["the application is gone", "it is suspended", "another one has its name"],
)
def test_what_is_not_complete_is_cancelled_by_a_pod_if_no_driver_runs(
    around: dict[str, Any], access: list[str]
) -> None:
    o = observe(HALF, **around)
    assert kinds(decide_snapshot(o, NOW)) == [*access, "WriteSnapshotStatus", "CreateSnapshotPod"]
    at_work = dataclasses.replace(settled(o), disposing=pod(disposing=True))
    assert "RemoveFinalizer" not in kinds(decide_snapshot(at_work, NOW))
    done = dataclasses.replace(settled(o), disposing=pod_that_said(report(SnapshotState.DISPOSED), disposing=True))
    assert kinds(decide_snapshot(done, NOW)) == ["DeleteSnapshotPod", "RemoveFinalizer"]


def test_a_cancelled_one_waits_for_an_application_that_starts_but_not_for_ever() -> None:
    starting = launched(app_with())
    o = observe(HALF, app=starting, driver=running_driver(starting))
    plan = decide_snapshot(o, NOW)
    assert (said(plan), plan.wake_after) == ((DELETING, "Reconciling", "AppNotRunning"), 300.0)
    assert kinds(decide_snapshot(settled(o), NOW + 300)) == GONE


def kept_files(plan: Any) -> list[str]:
    return [a.message for a in plan.actions if isinstance(a, PublishEvent) and a.reason == "SnapshotRetained"]


def test_a_storage_that_is_gone_does_not_keep_a_cancelled_one_for_ever() -> None:
    no_answer = report(SnapshotState.WAITING, Reason.STORAGE_UNAVAILABLE, message="No answer.")
    failing = pod_that_said(no_answer, disposing=True, exit_code=75)
    o = observe(HALF, app=SUSPENDED, disposing=failing)
    assert "300 seconds" in status_of(decide_snapshot(o, NOW)).conditions[0].message
    assert "deletionPolicy" not in str(status_of(decide_snapshot(o, NOW)).conditions)
    given_up = decide_snapshot(settled(o), NOW + 300)
    assert kinds(given_up) == ["DeleteSnapshotPod", "RemoveFinalizer"]
    assert "s3://streams/apps/shop/orders" in kept_files(given_up)[0]
    assert "No answer." in kept_files(given_up)[0]


def test_a_driver_that_can_not_cancel_it_is_not_waited_for_for_ever() -> None:
    half = deleted(snapshot(begun(phase=SnapshotPhase.COPYING)))
    waits = report(SnapshotState.WAITING, Reason.STORAGE_UNAVAILABLE, message="No answer.")
    late = observe_running(half, waits, memory=dataclasses.replace(TOLD, ordered_at=NOW + 299))
    assert kinds(decide_snapshot(late, NOW + 300)) == GONE
    assert kept_files(decide_snapshot(late, NOW + 300))


def test_it_is_tried_also_after_a_long_time_without_an_operator() -> None:
    o = observe(HALF, app=SUSPENDED)
    assert "CreateSnapshotPod" in kinds(decide_snapshot(o, NOW + 9000))
    begun_late = dataclasses.replace(settled(o), disposing=pod(disposing=True, created_at=NOW + 9000))
    assert "RemoveFinalizer" not in kinds(decide_snapshot(begun_late, NOW + 9010))
    stuck = pod(disposing=True, created_at=NOW + 9000, phase="Pending", running=False)
    o = dataclasses.replace(begun_late, disposing=stuck)
    assert decide_snapshot(o, NOW + 9010).wake_after == 290.0
    assert "RemoveFinalizer" in kinds(decide_snapshot(o, NOW + 9300))


def test_no_pod_for_a_cancelled_one_in_a_namespace_that_goes() -> None:
    refusal = PodRefusal(f"{ID}-dispose", Reason.NAMESPACE_TERMINATING, "", NOW, 1)
    plan = decide_snapshot(observe(HALF, memory=SnapshotMemory(refusal=refusal)), NOW)
    assert kinds(plan) == ["ForgetRefusal", "RemoveFinalizer"]
    assert kept_files(plan)


def test_a_quota_that_takes_no_pod_does_not_keep_a_cancelled_one_for_ever() -> None:
    refusal = PodRefusal(f"{ID}-dispose", Reason.LAUNCH_REFUSED, "quota", NOW + 290, 7)
    plan = decide_snapshot(observe(HALF, memory=SnapshotMemory(refusal=refusal)), NOW + 300)
    assert kinds(plan) == ["ForgetRefusal", "RemoveFinalizer"]
    assert "quota" in kept_files(plan)[0]


def test_one_that_was_completed_meanwhile_is_kept_for_who_holds_it() -> None:
    held = report(SnapshotState.HELD, Reason.HELD)
    for o in (observe_running(HALF, held, memory=TOLD), observe(HALF, disposing=pod_that_said(held, disposing=True))):
        assert kinds(decide_snapshot(o, NOW))[-1] == "RemoveFinalizer"


def test_of_one_that_failed_nothing_is_left_to_cancel() -> None:
    assert kinds(decide_snapshot(observe(deleted(snapshot(begun(phase=SnapshotPhase.FAILED)))), NOW)) == GONE


# --- forks ---


def test_it_is_kept_until_the_applications_that_start_from_it_have_begun() -> None:
    o = observe_running(doomed(), forks=("variant",))
    plan = decide_snapshot(o, NOW)
    assert said(plan) == (DELETING, "Reconciling", "NeededByFork")
    assert "variant" in plan.message
    assert decide_snapshot(settled(o), NOW).actions == ()
    assert "GiveOrders" in kinds(decide_snapshot(dataclasses.replace(settled(o), forks=()), NOW))


def test_a_fork_that_comes_when_the_disposal_has_begun_does_not_stop_it() -> None:
    begun_disposal = settled(observe_running(doomed()))
    late = dataclasses.replace(begun_disposal, forks=("variant",), memory=SnapshotMemory())
    assert kinds(decide_snapshot(late, NOW)) == ["GiveOrders"]


@pytest.mark.parametrize("reason", [Reason.SNAPSHOT_DAMAGED, Reason.SNAPSHOT_GONE])
def test_what_is_damaged_or_gone_is_kept_for_nobody(reason: Reason) -> None:
    """A fork starts from what is kept for it; and it asks for this one to be deleted, so that another can come."""
    whole = ready_snapshot()
    asked = msgspec.structs.replace(whole, spec=msgspec.structs.replace(whole.spec, verify_nonce=1))
    said_so = pod_that_said(report(SnapshotState.FAILED, reason), name=f"{ID}-verify-1", spec_hash=pod(APP).spec_hash)
    found = settled(observe(asked, app=APP, verifying=said_so)).snapshot
    assert found.status.phase is SnapshotPhase.FAILED
    o = observe_running(doomed(found), forks=("variant",))
    assert "GiveOrders" in kinds(decide_snapshot(o, NOW))
    assert decide_snapshot(settled(o), NOW).reason == "Disposing"


DAMAGED = report(SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED)


def test_what_its_driver_found_damaged_is_kept_for_nobody_also_if_its_own_pod_ends_first() -> None:
    found = settled(observe_running(ready_snapshot(), DAMAGED)).snapshot
    asked = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, verify_nonce=1))
    reading = pod(APP, name=f"{ID}-verify-1")
    begun = settled(observe_running(asked, DAMAGED, verifying=reading)).snapshot
    ending = observe(doomed(begun), app=SUSPENDED, forks=("variant",), verifying=reading)
    assert "DeleteSnapshotPod" in kinds(decide_snapshot(ending, NOW))
    gone = dataclasses.replace(settled(ending), verifying=None)
    assert "CreateSnapshotPod" in kinds(decide_snapshot(gone, NOW))
    assert decide_snapshot(dataclasses.replace(settled(gone), memory=SnapshotMemory()), NOW).reason == "PodStarting"


def test_what_its_driver_finds_damaged_while_it_is_kept_for_forks_is_kept_no_longer() -> None:
    kept = settled(observe_running(doomed(), forks=("variant",)))
    plan = decide_snapshot(dataclasses.replace(kept, agent=agent(DAMAGED)), NOW)
    assert (plan.reason, kinds(plan)[-1]) == ("Disposing", "GiveOrders")


def test_what_never_was_complete_is_kept_for_nobody() -> None:
    plan = decide_snapshot(observe_running(doomed(snapshot(begun())), forks=("variant",)), NOW)
    assert "GiveOrders" in kinds(plan)
