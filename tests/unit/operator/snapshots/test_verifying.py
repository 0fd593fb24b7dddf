"""A complete snapshot that is to be read back: when, by whom, and what is said of it. Pure."""

import dataclasses
import datetime
from typing import Any

import msgspec
import pytest

from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import (
    VERIFIED,
    SnapshotPhase,
    SnapshotVerification,
    StreamSnapshot,
    is_damaged,
    is_to_be_verified,
)
from tidegate.cache.process_state import PodProgress
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import process_of
from tidegate.snapshots.actions import CountVerification, CreateSnapshotPod, SnapshotPlan
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, launched, waiting
from tidegate_testing.snapshot_observations import (
    APP,
    ID,
    SUSPENDED,
    TIME,
    deleted,
    kinds,
    observe,
    observe_running,
    pod,
    pod_that_said,
    ready_snapshot,
    report,
    settled,
    snapshot,
    status_of,
)

NAME = f"{ID}-verify-1"
WHOLE = report(SnapshotState.VERIFIED, message="34 files were read back.", files=34, bytes=2048)


def asked(nonce: int = 1, of: StreamSnapshot | None = None) -> StreamSnapshot:
    found = of or ready_snapshot()
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, verify_nonce=nonce))


def at_work(**fields: Any) -> Any:
    return dataclasses.replace(pod(APP), name=NAME, **fields)


def ended(*reports: SnapshotReport, **fields: Any) -> Any:
    return dataclasses.replace(pod_that_said(*reports, **fields), name=NAME, spec_hash=pod(APP).spec_hash)


def verified(plan: SnapshotPlan) -> Condition:
    found = status_of(plan).condition(VERIFIED)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "around", [{}, {"app": SUSPENDED}, {"app": APP}], ids=["the application is gone", "it is suspended", "it runs"]
)
def test_a_pod_reads_it_back_whatever_the_application_does_and_it_stays_ready(around: dict[str, Any]) -> None:
    plan = decide_snapshot(observe(asked(), **around), NOW)
    access = ["EnsureAccess"] if around else []  # of an application that is gone there is none to have
    assert kinds(plan) == [*access, "WriteSnapshotStatus", "CreateSnapshotPod"]
    (create,) = [action for action in plan.actions if isinstance(action, CreateSnapshotPod)]
    assert create.manifest["metadata"]["name"] == NAME
    env = create.manifest["spec"]["containers"][0]["env"]
    (orders,) = [item["value"] for item in env if item["name"] == ORDERS_VARIABLE]
    assert f'"verify":[{{"id":"{ID}","snapshot":"{ID}"}}]' in orders
    status, condition = status_of(plan), verified(plan)
    assert (status.phase, condition.status, condition.reason) == (SnapshotPhase.READY, "Unknown", "PodStarting")
    ready = status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Completed")


@pytest.mark.parametrize("of", [asked(0), asked(1, snapshot()), deleted(asked())])
def test_what_nobody_asks_for_or_is_not_complete_is_not_read(of: StreamSnapshot) -> None:
    plan = decide_snapshot(observe_running(of), NOW)
    assert not any("-verify" in str(a.manifest) for a in plan.actions if isinstance(a, CreateSnapshotPod))


def test_how_far_it_is_is_told() -> None:
    reading = at_work()
    reported = SnapshotMemory(
        progress=PodProgress(process_of(reading), report(SnapshotState.COPYING, files=3, of_files=8))
    )
    plan = decide_snapshot(observe(asked(), app=APP, verifying=reading, memory=reported), NOW)
    assert "verifies the snapshot: 3 of 8 files" in verified(plan).message
    assert status_of(plan).progress is None


def test_a_pod_that_can_not_start_says_why_and_the_snapshot_stays_ready() -> None:
    stuck = at_work(running=False, phase="Pending", waiting=waiting("ImagePullBackOff", "snapshot"))
    plan = decide_snapshot(observe(asked(), app=APP, verifying=stuck), NOW)
    assert (status_of(plan).phase, verified(plan).reason) == (SnapshotPhase.READY, "ImagePullFailed")


def test_another_version_of_the_application_does_not_end_it_but_other_storage_does() -> None:
    o = settled(observe(asked(), app=APP, verifying=at_work()))
    edited = launched(app_with({"application.image": "shop/orders:9", "sparkConf": {"spark.ui.enabled": "false"}}))
    assert decide_snapshot(dataclasses.replace(o, app=edited), NOW).actions == ()
    moved = launched(app_with({"storage.endpoint": "http://store:9000"}))
    assert kinds(decide_snapshot(dataclasses.replace(o, app=moved), NOW))[-1] == "DeleteSnapshotPod"


def test_one_that_is_whole_is_verified_once_for_each_number() -> None:
    o = observe(asked(), app=APP, verifying=ended(WHOLE))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "CountVerification", "DeleteSnapshotPod"]
    assert (verified(plan).status, verified(plan).reason) == ("True", "Whole")
    assert status_of(plan).verification == SnapshotVerification(nonce=1, completion_time=TIME, files=34, bytes=2048)
    assert [a.reason for a in plan.actions if isinstance(a, PublishEvent)] == ["SnapshotVerified"]
    done = dataclasses.replace(settled(o), verifying=None)
    assert decide_snapshot(done, NOW).actions == ()
    again = dataclasses.replace(done, snapshot=asked(2, done.snapshot))
    assert "CreateSnapshotPod" in kinds(decide_snapshot(again, NOW))


def test_one_that_is_not_whole_is_told_and_is_not_ready_any_more() -> None:
    damaged = report(SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED, message="objects/1.sst is gone.")
    plan = decide_snapshot(observe(asked(), app=APP, verifying=ended(damaged)), NOW)
    assert (verified(plan).status, verified(plan).reason) == ("False", "SnapshotDamaged")
    assert CountVerification("damaged") in plan.actions
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert (status_of(plan).phase, ready.status, ready.reason) == (SnapshotPhase.FAILED, "False", "SnapshotDamaged")
    events = [(a.reason, a.warning, a.message) for a in plan.actions if isinstance(a, PublishEvent)]
    assert events == [(reason, True, "objects/1.sst is gone.") for reason in ("SnapshotNotVerified", "SnapshotDamaged")]


def test_one_that_is_not_in_the_storage_any_more_is_not_ready_and_is_not_looked_for_again() -> None:
    gone = report(SnapshotState.FAILED, Reason.SNAPSHOT_GONE, message="Snapshot a is not in here any more.")
    o = observe(asked(), app=APP, verifying=ended(gone))
    plan = decide_snapshot(o, NOW)
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert (verified(plan).status, verified(plan).reason) == ("False", "SnapshotGone")
    assert (status_of(plan).phase, ready.reason, ready.message) == (SnapshotPhase.FAILED, "SnapshotGone", gone.message)
    assert decide_snapshot(dataclasses.replace(settled(o), verifying=None), NOW).actions == ()


MISSING = report(SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED, message="objects/1.sst is gone.")


def lost() -> StreamSnapshot:
    return settled(observe_running(ready_snapshot(), MISSING)).snapshot


def test_one_that_the_driver_finds_to_lack_files_is_not_ready_any_more_and_stays_so() -> None:
    status = lost().status
    ready = status.condition("Ready")
    assert ready is not None
    assert (status.phase, ready.status, ready.reason) == (SnapshotPhase.FAILED, "False", "SnapshotDamaged")
    assert "objects/1.sst is gone." in ready.message
    assert status.ready_time is not None
    assert kinds(decide_snapshot(observe_running(lost()), NOW)) == []
    assert is_damaged(lost())


def test_one_whose_files_were_restored_is_ready_again_when_it_was_read_back() -> None:
    plan = decide_snapshot(observe(asked(of=lost()), app=APP, verifying=ended(WHOLE)), NOW)
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert (status_of(plan).phase, ready.status, ready.reason) == (SnapshotPhase.READY, "True", "Completed")
    assert ready.message == "Complete: main after batch 7; 34 files, 2.0Ki."


def test_what_the_driver_saw_before_it_was_read_back_says_nothing() -> None:
    whole = settled(observe(asked(of=lost()), app=APP, verifying=ended(WHOLE))).snapshot
    seen = dataclasses.replace(MISSING, seconds=30.0)
    assert decide_snapshot(observe_running(whole, seen), NOW + 60).rule == "keep_final"
    assert decide_snapshot(observe_running(whole, seen), NOW + 600).rule == "find_damage"


def test_a_fault_of_ours_says_nothing_of_the_snapshot() -> None:
    fault = report(SnapshotState.FAILED, Reason.INTERNAL_ERROR)
    plan = decide_snapshot(observe(asked(), app=APP, verifying=ended(fault)), NOW)
    assert verified(plan).status == "Unknown"
    assert CountVerification("unknown") in plan.actions


def test_a_pod_that_was_left_over_goes() -> None:
    o = observe(asked(), app=APP, verifying=ended(WHOLE))
    cut_off = settled(o)
    assert kinds(decide_snapshot(cut_off, NOW)) == ["DeleteSnapshotPod"]
    doomed = dataclasses.replace(cut_off, snapshot=deleted(cut_off.snapshot))
    assert "DeleteSnapshotPod" in kinds(decide_snapshot(doomed, NOW))


def test_a_pod_that_the_api_server_refuses_is_tried_again_with_pauses_and_age_is_watched_on() -> None:
    refusal = PodRefusal(NAME, Reason.LAUNCH_REFUSED, "quota", NOW, 3)
    o = observe(asked(), app=APP, memory=SnapshotMemory(refusal=refusal))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus"]
    assert (verified(plan).reason, verified(plan).message) == ("LaunchRefused", "quota")
    assert plan.wake_after is not None
    assert plan.wake_after < 300
    assert "CreateSnapshotPod" in kinds(decide_snapshot(o, NOW + 300))


def test_one_that_is_asked_for_again_while_it_is_read_is_read_once_more_and_each_result_has_its_number() -> None:
    reading = settled(observe(asked(), app=APP, verifying=at_work()))
    edited = settled(dataclasses.replace(reading, snapshot=asked(2, reading.snapshot)))
    assert decide_snapshot(edited, NOW).actions == ()  # what runs is not in vain
    o = dataclasses.replace(edited, verifying=ended(WHOLE))
    plan = decide_snapshot(o, NOW)
    first = status_of(plan).verification
    assert first is not None
    assert (first.nonce, kinds(plan)[-1]) == (1, "DeleteSnapshotPod")
    left = settled(o)
    assert kinds(decide_snapshot(left, NOW)) == ["DeleteSnapshotPod"]  # the operator ended before; told only once
    following = decide_snapshot(dataclasses.replace(left, verifying=None), NOW)
    (create,) = [action for action in following.actions if isinstance(action, CreateSnapshotPod)]
    assert create.manifest["metadata"]["name"] == f"{ID}-verify-2"
    read = dataclasses.replace(ended(WHOLE), name=f"{ID}-verify-2")
    second = status_of(decide_snapshot(dataclasses.replace(left, verifying=read), NOW)).verification
    assert second is not None
    assert second.nonce == 2


def test_a_pod_that_an_earlier_operator_left_at_work_counts_for_the_number_that_is_asked_for() -> None:
    read = dataclasses.replace(ended(WHOLE), name=f"{ID}-verify")
    done = status_of(decide_snapshot(observe(asked(3), app=APP, verifying=read), NOW)).verification
    assert done is not None
    assert done.nonce == 3


def test_a_nonce_that_is_set_back_to_zero_asks_for_nothing() -> None:
    verified = ready_snapshot()
    status = msgspec.structs.replace(
        verified.status, verification=SnapshotVerification(nonce=3, completion_time=datetime.datetime.now(datetime.UTC))
    )
    assert not is_to_be_verified(msgspec.structs.replace(verified, status=status))


def test_a_result_that_is_not_known_here_says_nothing_of_the_snapshot_and_what_to_do() -> None:
    plan = decide_snapshot(observe(asked(), verifying=ended(report(SnapshotState.UNKNOWN))), NOW)
    assert (verified(plan).status, verified(plan).reason) == ("Unknown", "Unknown")
    assert "Upgrade the operator." in verified(plan).message
