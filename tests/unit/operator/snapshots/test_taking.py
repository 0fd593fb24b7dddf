"""Whom a snapshot is ordered from, what is said of it on the way, and how it ends."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.stream_snapshot import SnapshotApp, SnapshotManifest, SnapshotPhase, SnapshotQuery, SnapshotVersion
from tidegate.api.streaming_app import DeletionPolicy, Phase
from tidegate.app.rules.verdict import Verdict
from tidegate.cache.process_state import PodProgress
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent
from tidegate.engine.rules.conditions import build_conditions
from tidegate.engine.rules.health import Health
from tidegate.pods.records.record import Exit, process_of
from tidegate.snapshots.actions import (
    CountTakenByPod,
    CreateSnapshotPod,
    DeleteSnapshotPod,
    GiveOrders,
    WriteSnapshotStatus,
)
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory, SnapshotObservation
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import remedy_of
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.observations import NOW, app_with, launched, lost_unbuildable, running_driver, waiting
from tidegate_testing.observations import deleted as deleted_app
from tidegate_testing.snapshot_observations import (
    APP,
    ID,
    SUSPENDED,
    TIME,
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

PENDING, COPYING, READY, FAILED = (
    SnapshotPhase.PENDING,
    SnapshotPhase.COPYING,
    SnapshotPhase.READY,
    SnapshotPhase.FAILED,
)
TOLD = SnapshotMemory(ordered_at=NOW - 1, ordered_to=process_of(running_driver(APP)))
UNREADY = launched(app_with(), phase=Phase.STARTING)


def at_rest(**fields: Any) -> SnapshotObservation:
    return observe(snapshot(begun(SUSPENDED)), app=SUSPENDED, **fields)


# --- of whom ---


def test_a_snapshot_of_a_running_application_is_recorded_and_then_ordered_from_its_driver() -> None:
    o = observe_running(snapshot())
    plan = decide_snapshot(o, NOW)
    assert [type(action) for action in plan.actions] == [AddFinalizer, WriteSnapshotStatus, GiveOrders, PublishEvent]
    version = SnapshotVersion(spec_hash=spec_hash(APP), spec=version_of(APP.spec))
    order = SnapshotOrder(ID, manual=True, image="shop/orders:1", spec_hash=version.spec_hash, spec=version.spec)
    assert plan.actions[2] == GiveOrders(o.driver, SnapshotOrders(take=(order,)))  # type: ignore[arg-type] # there is one
    status = status_of(plan)
    assert (status.snapshot_id, status.app, status.start_time) == (ID, SnapshotApp(uid="u-1", lineage=1), TIME)
    assert status.version == version
    assert status.storage is not None
    assert status.storage.uri == "s3://streams/apps/shop/orders"


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        ({}, "AppNotFound"),
        ({"app_unreadable": True}, "AppUnreadable"),
        ({"app": app_with()}, "AppNotStarted"),
        ({"app": lost_unbuildable(app_with())}, "AppNotStarted"),
        ({"app": deleted_app(APP), "driver": running_driver(APP), "agent": agent()}, "AppDeleting"),
        ({"app": UNREADY}, "AppNotRunning"),
        ({"app": UNREADY, "driver": running_driver(APP)}, "AppNotRunning"),
        ({"app": UNREADY, "driver": running_driver(APP), "agent": agent(state=DriverState.STARTING)}, "AppNotRunning"),
        ({"app": APP, "driver": running_driver(APP, delete_by=NOW + 9), "agent": agent()}, "AppNotRunning"),
    ],
)
def test_a_snapshot_waits_for_an_application_that_takes_orders(around: dict[str, Any], reason: str) -> None:
    plan = decide_snapshot(observe(snapshot(), **around), NOW)
    assert (said(plan), kinds(plan)) == ((PENDING, "Reconciling", reason), ["WriteSnapshotStatus"])
    assert status_of(plan).snapshot_id == ""


def test_an_order_that_is_on_its_way_is_not_given_again() -> None:
    o = observe_running(snapshot(begun()), memory=TOLD)
    plan = decide_snapshot(o, NOW)
    assert (kinds(plan), plan.wake_after) == (["WriteSnapshotStatus"], 4.0)


@pytest.mark.parametrize(
    "memory",
    [
        SnapshotMemory(),
        dataclasses.replace(TOLD, ordered_at=NOW - 6),
        dataclasses.replace(TOLD, ordered_to="another process"),
        dataclasses.replace(TOLD, ordered_at=NOW + 3600),
    ],
    ids=["the operator is new", "the report does not know it", "the driver is new", "the clock was set back"],
)
def test_an_order_that_nobody_may_know_is_given_again(memory: SnapshotMemory) -> None:
    o = settled(observe_running(snapshot(begun()), memory=TOLD))
    assert kinds(decide_snapshot(dataclasses.replace(o, memory=memory), NOW)) == ["GiveOrders"]


def test_an_agent_that_refuses_the_order_is_named_and_told_again_later() -> None:
    memory = dataclasses.replace(TOLD, not_taken="HTTP 404")
    plan = decide_snapshot(observe_running(snapshot(begun()), memory=memory), NOW)
    assert said(plan) == (PENDING, "Stalled", "OrderRefused")
    assert "HTTP 404" in plan.message
    later = decide_snapshot(observe_running(snapshot(begun()), memory=memory), NOW + 20)
    assert "GiveOrders" in kinds(later)


# --- on the way ---


def test_progress_is_shown_and_written_every_ten_seconds() -> None:
    first = observe_running(snapshot(begun()), report(SnapshotState.COPYING, files=3, of_files=8, bytes=5, of_bytes=9))
    plan = decide_snapshot(first, NOW)
    assert said(plan) == (COPYING, "Reconciling", "Copying")
    shown = status_of(plan).progress
    assert shown is not None
    assert (shown.files, shown.of_files, shown.bytes, shown.of_bytes) == (3, 8, 5, 9)
    later = dataclasses.replace(settled(first), agent=agent(report(SnapshotState.COPYING, files=5, of_files=8)))
    assert (kinds(decide_snapshot(later, NOW + 4)), decide_snapshot(later, NOW + 4).wake_after) == ([], 6.0)
    assert kinds(decide_snapshot(later, NOW + 10)) == ["WriteSnapshotStatus"]


def test_what_a_pod_has_copied_is_shown_as_a_drivers_is() -> None:
    taking, copying = pod(), report(SnapshotState.COPYING, files=3, of_files=8)
    reported = SnapshotMemory(progress=PodProgress(process_of(taking), copying))
    plan = decide_snapshot(at_rest(taking=taking, memory=reported), NOW)
    assert said(plan) == (COPYING, "Reconciling", "PodRunning")
    assert "3 of 8 files" in plan.message
    shown = status_of(plan).progress
    assert shown is not None
    assert (shown.files, shown.of_files) == (3, 8)
    again = decide_snapshot(at_rest(taking=pod(restarts=1), memory=reported), NOW)
    assert status_of(again).progress is None


@pytest.mark.parametrize(
    ("reason", "condition"),
    [
        (Reason.NOTHING_COMMITTED, "Reconciling"),
        (Reason.CLEANED_TOO_FAST, "Reconciling"),
        (Reason.STORAGE_UNAVAILABLE, "Stalled"),
        (Reason.CATALOG_LOST, "Stalled"),
    ],
)
def test_what_waits_says_why_and_whether_somebody_has_to_do_something(reason: Reason, condition: str) -> None:
    plan = decide_snapshot(observe_running(snapshot(begun()), report(SnapshotState.WAITING, reason)), NOW)
    assert said(plan) == (PENDING, condition, reason.value)


def test_a_driver_that_restarts_in_the_middle_makes_no_beginning_of_it() -> None:
    copying = settled(observe_running(snapshot(begun()), report(SnapshotState.COPYING, files=3, of_files=8)))
    plan = decide_snapshot(dataclasses.replace(copying, agent=None, app=UNREADY), NOW)
    assert said(plan) == (COPYING, "Reconciling", "AppNotRunning")


def test_what_an_agent_tells_of_a_snapshot_that_was_never_ordered_does_not_count() -> None:
    plan = decide_snapshot(observe_running(snapshot(), report(SnapshotState.READY)), NOW)
    assert said(plan) == (PENDING, "Reconciling", "Ordered")


# --- how it ends ---


def test_a_complete_snapshot_shows_what_is_in_it() -> None:
    plan = decide_snapshot(observe_running(snapshot(begun()), report(SnapshotState.READY)), NOW)
    status = status_of(plan)
    assert said(plan) == (READY, "Ready", "Completed")
    assert status.queries == (SnapshotQuery(name="main", batch_id=7, offsets='{"topic":{"0":5}}'),)
    assert (status.batch, status.files, status.bytes, status.new_bytes) == (7, 34, 2048, 512)
    assert (status.size, status.new_size, status.parent) == ("2.0Ki", "512", "earlier-11112222")
    assert status.manifest == SnapshotManifest(
        uri=f"s3://streams/apps/shop/orders/snapshots/{ID}/manifest.json", digest="sha256:1"
    )
    assert (status.ready_time, status.progress, status.spark_version) == (TIME, None, "4.2.1")


@pytest.mark.parametrize("state", [SnapshotState.FAILED, SnapshotState.DISPOSED])
def test_what_the_runtime_gave_up_has_failed_with_its_words_and_what_to_do(state: SnapshotState) -> None:
    plan = decide_snapshot(observe_running(snapshot(begun()), report(state, Reason.BATCH_LOST)), NOW)
    assert said(plan) == (FAILED, "Stalled", "BatchLost")
    assert plan.message == f"because. {remedy_of(Reason.BATCH_LOST)}"


@pytest.mark.parametrize(
    "around",
    [
        {},
        {"app": APP, "driver": running_driver(APP), "agent": agent()},
        {"app": SUSPENDED},
        {"app": launched(app_with(uid="u-2"))},
    ],
    ids=["the application is gone", "it runs", "it is suspended", "it is another one"],
)
def test_nothing_around_it_changes_what_is_complete(around: dict[str, Any]) -> None:
    assert decide_snapshot(observe(ready_snapshot(), **around), NOW).actions == ()


def test_an_edit_of_what_is_complete_is_seen() -> None:
    done = ready_snapshot()
    edited = msgspec.structs.replace(done, metadata=msgspec.structs.replace(done.metadata, generation=2))
    assert status_of(decide_snapshot(observe_running(edited), NOW)).observed_generation == 2


@pytest.mark.parametrize("app", [None, launched(app_with(uid="u-2"), phase=Phase.RUNNING)])
def test_a_snapshot_fails_whose_application_went_before_it_was_complete_and_nothing_is_left(app: Any) -> None:
    half = observe(snapshot(begun(phase=COPYING)), app=app, taking=pod())
    plan = decide_snapshot(half, NOW)
    assert (kinds(plan)[-1], said(plan)) == ("DeleteSnapshotPod", (COPYING, "Reconciling", "AppReplaced"))
    going = dataclasses.replace(settled(half), taking=pod(delete_by=NOW + 30))
    assert kinds(decide_snapshot(going, NOW)) == []
    o = dataclasses.replace(settled(half), taking=None)
    plan = decide_snapshot(o, NOW)
    (create,) = [a for a in plan.actions if isinstance(a, CreateSnapshotPod)]
    assert create.manifest["metadata"]["name"] == f"{ID}-dispose"
    failing = pod_that_said(report(SnapshotState.WAITING, message="No answer."), disposing=True, exit_code=75)
    plan = decide_snapshot(dataclasses.replace(o, disposing=failing), NOW)
    assert said(plan) == (COPYING, "Stalled", "AppReplaced")
    assert "No answer." in plan.message
    done = dataclasses.replace(o, disposing=pod_that_said(report(SnapshotState.DISPOSED), disposing=True))
    plan = decide_snapshot(done, NOW)
    assert said(plan) == (FAILED, "Stalled", "AppReplaced")
    assert kinds(plan) == ["WriteSnapshotStatus", "DeleteSnapshotPod"]
    cut_off = decide_snapshot(settled(done), NOW)
    assert kinds(cut_off) == ["DeleteSnapshotPod"]


def test_a_snapshot_fails_at_once_of_which_nothing_was_begun_or_nothing_can_be_removed() -> None:
    waits = snapshot(annotations={"tidegate.dev/app-uid": "u-1"})
    assert said(decide_snapshot(observe(waits), NOW)) == (FAILED, "Stalled", "AppReplaced")
    refusal = PodRefusal(f"{ID}-dispose", Reason.NAMESPACE_TERMINATING, "", NOW, 1)
    plan = decide_snapshot(observe(snapshot(begun()), memory=SnapshotMemory(refusal=refusal)), NOW)
    assert said(plan) == (FAILED, "Stalled", "AppReplaced")
    assert "s3://streams/apps/shop/orders" in plan.message


# --- by a pod ---


def test_a_pod_takes_the_snapshot_of_an_application_that_does_not_run() -> None:
    plan = decide_snapshot(observe(snapshot(), app=SUSPENDED), NOW)
    assert [type(action) for action in plan.actions] == [
        AddFinalizer,
        EnsureAccess,
        WriteSnapshotStatus,
        CreateSnapshotPod,
        PublishEvent,
    ]
    assert status_of(plan).snapshot_id == ID


@pytest.mark.parametrize("phase", [Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED])
def test_an_application_at_rest_is_one_that_was_stopped_or_ended(phase: Phase) -> None:
    app = launched(app_with(), phase=phase)
    assert "CreateSnapshotPod" in kinds(decide_snapshot(observe(snapshot(), app=app), NOW))


@pytest.mark.parametrize(("phase", "made"), [(Phase.RUNNING, False), (Phase.STARTING, True)])
def test_an_application_that_is_stalled_is_at_rest_unless_it_runs_on_as_after_a_rollback(
    phase: Phase, made: bool
) -> None:
    said_of_it = Verdict(phase, Health.STALLED, Reason.UPGRADE_ROLLED_BACK, "The new version was rolled back.")
    app = launched(app_with(), phase=phase, conditions=build_conditions((), said_of_it, 1, NOW))
    plan = decide_snapshot(observe(snapshot(), app=app, driver=running_driver(app, ready=True)), NOW)
    assert ("CreateSnapshotPod" in kinds(plan)) == made


def test_the_pod_is_followed_also_when_the_application_runs_again() -> None:
    o = observe_running(snapshot(begun()), taking=pod(APP))
    assert said(decide_snapshot(o, NOW)) == (COPYING, "Reconciling", "PodRunning")


def test_what_the_pod_took_is_complete_and_the_pod_goes() -> None:
    o = at_rest(taking=pod_that_said(report(SnapshotState.READY)))
    plan = decide_snapshot(o, NOW)
    assert said(plan) == (READY, "Ready", "Completed")
    assert kinds(plan) == ["WriteSnapshotStatus", "CountTakenByPod", "DeleteSnapshotPod"]
    gone = dataclasses.replace(settled(o), taking=None)
    assert decide_snapshot(gone, NOW).actions == ()


def test_a_state_that_is_not_known_here_is_named_with_what_to_do_and_nothing_is_begun_anew() -> None:
    unheard = report(SnapshotState.UNKNOWN, message="Half of it is frozen.")
    for o in (observe_running(snapshot(begun()), unheard), at_rest(taking=pod_that_said(unheard))):
        plan = decide_snapshot(o, NOW + 3600)
        assert said(plan)[1:] == ("Stalled", "Unknown")
        assert "Half of it is frozen. Upgrade the operator." in plan.message
        assert not {"DeleteSnapshotPod", "CreateSnapshotPod", "GiveOrders"} & set(kinds(plan))


def test_a_pod_that_is_started_again_says_why() -> None:
    reported = report(SnapshotState.WAITING, Reason.STORAGE_UNAVAILABLE)
    plan = decide_snapshot(at_rest(taking=pod_that_said(reported, exit_code=75)), NOW)
    assert said(plan) == (COPYING, "Stalled", "StorageUnavailable")


def test_a_pod_that_was_asked_to_stop_has_not_failed() -> None:
    asked = report(SnapshotState.COPYING, Reason.STOPPED, files=3, of_files=8)
    plan = decide_snapshot(at_rest(taking=pod_that_said(asked, exit_code=143)), NOW)
    assert said(plan) == (COPYING, "Reconciling", "PodRunning")
    drained = pod_that_said(asked, exit_code=143)
    assert kinds(decide_snapshot(at_rest(taking=dataclasses.replace(drained, phase="Failed")), NOW)) == [
        "WriteSnapshotStatus",
        "DeleteSnapshotPod",
    ]


def test_a_pod_that_was_killed_for_its_memory_says_who_can_give_it_more() -> None:
    killed = pod(running=False, ended=Exit(137, "OOMKilled", "", NOW - 5))
    plan = decide_snapshot(at_rest(taking=killed), NOW)
    assert said(plan) == (COPYING, "Stalled", "SnapshotPodFailed")
    assert "raise spec.helpers.resources.limits.memory" in plan.message
    assert f'"kubectl delete pod {ID}-take -n shop"' in plan.message
    doomed = deleted(ready_snapshot(), DeletionPolicy.DELETE)
    alone = observe(doomed, disposing=pod(disposing=True, running=False, ended=killed.ended))
    assert said(decide_snapshot(alone, NOW))[2] == "SnapshotPodFailed"
    message = decide_snapshot(alone, NOW).message
    assert ("more than its memory" in message, "min.memory" in message, "spec.helpers" in message) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize("exit_code", [0, 75])
def test_of_a_pod_whose_report_has_a_newer_form_it_is_said_that_the_operator_is_to_be_upgraded(exit_code: int) -> None:
    reported = pod_that_said(report(SnapshotState.READY), exit_code=exit_code)
    assert reported.ended is not None
    newer = dataclasses.replace(reported.ended, message=reported.ended.message.replace("{", '{"version":2,', 1))
    plan = decide_snapshot(at_rest(taking=dataclasses.replace(reported, ended=newer)), NOW + 3600)
    assert said(plan) == (COPYING, "Stalled", "UnknownTermination")
    assert "its runtime is newer than the operator. Upgrade the operator" in plan.message
    # What it says is there for the operator that follows.
    assert not {"DeleteSnapshotPod", "CreateSnapshotPod"} & set(kinds(plan))


def test_a_pod_that_can_not_start_says_why() -> None:
    stuck = pod(phase="Pending", running=False, waiting=waiting("ErrImagePull", "snapshot"))
    assert said(decide_snapshot(at_rest(taking=stuck), NOW)) == (COPYING, "Stalled", "ImagePullFailed")


@pytest.mark.parametrize(
    "useless",
    [
        pod(phase="Failed", running=False, reason="Evicted"),
        pod(spec_hash="of an older spec"),
        pod_that_said(completion_time=NOW - 60),
        pod_that_said(report(SnapshotState.WAITING), completion_time=NOW - 60),
    ],
    ids=["evicted", "of another spec", "silent", "not at its end"],
)
def test_a_pod_that_gets_nowhere_makes_room_for_another(useless: Any) -> None:
    plan = decide_snapshot(at_rest(taking=useless), NOW)
    assert [a for a in plan.actions if isinstance(a, DeleteSnapshotPod)] == [DeleteSnapshotPod(useless)]


@pytest.mark.parametrize("limit", ["50m", "2"])
def test_a_pod_at_work_goes_on_when_the_drivers_limit_becomes_another_one(limit: str) -> None:
    edited = launched(app_with({"suspend": True, "driver.resources.limits.cpu": limit}), phase=Phase.SUSPENDED)
    o = dataclasses.replace(at_rest(taking=pod()), app=edited)
    assert not [a for a in decide_snapshot(o, NOW).actions if isinstance(a, DeleteSnapshotPod)]


def test_a_pod_that_the_api_server_refuses_is_tried_again_with_pauses() -> None:
    refusal = PodRefusal(f"{ID}-take", Reason.LAUNCH_REFUSED, "quota", NOW - 1, 1)
    o = at_rest(memory=SnapshotMemory(refusal=refusal))
    plan = decide_snapshot(o, NOW)
    assert (said(plan), plan.wake_after) == ((PENDING, "Stalled", "LaunchRefused"), 4.0)
    assert "CreateSnapshotPod" in kinds(decide_snapshot(o, NOW + 5))


# --- figures ---


def counted(plan: Any) -> list[CountTakenByPod]:
    return [action for action in plan.actions if isinstance(action, CountTakenByPod)]


def test_what_a_pod_took_is_counted_once_with_its_time_and_what_it_copied() -> None:
    o = at_rest(taking=pod_that_said(report(SnapshotState.READY)))
    plan = decide_snapshot(o, NOW + 40)
    assert counted(plan) == [CountTakenByPod(seconds=40.0, copied=512, shared=1536)]
    assert kinds(plan)[:2] == ["WriteSnapshotStatus", "CountTakenByPod"]
    assert counted(decide_snapshot(settled(o), NOW + 40)) == []


def test_what_a_driver_took_is_counted_by_its_agent() -> None:
    assert counted(decide_snapshot(observe_running(snapshot(begun()), report(SnapshotState.READY)), NOW)) == []


def test_what_failed_is_not_counted_as_taken() -> None:
    failed = report(SnapshotState.FAILED, Reason.UNREADABLE_CHECKPOINT)
    assert counted(decide_snapshot(at_rest(taking=pod_that_said(failed)), NOW)) == []
