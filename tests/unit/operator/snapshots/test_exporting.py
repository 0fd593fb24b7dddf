"""A complete snapshot whose state is to be written as plain files: when, by whom, and what is said of it. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec import Resources
from tidegate.api.spec_hash import spec_hash
from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import (
    EXPORTED,
    ExportedState,
    ExportFormat,
    ExportPhase,
    ExportSpec,
    SnapshotExport,
    SnapshotPhase,
    StreamSnapshot,
)
from tidegate.cache.process_state import PodProgress
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import Exit, process_of
from tidegate.snapshots.actions import CountExport, CreateSnapshotPod, SnapshotPlan
from tidegate.snapshots.builders.export_pod import hash_of_export
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.protocol import from_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    ORDERS_VARIABLE,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
    StateChoice,
)
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

URI = f"s3://streams/apps/shop/orders/exports/{ID}-1/manifest.json"
WRITTEN = report(SnapshotState.EXPORTED, message="5 rows.", files=2, bytes=99, rows=5, manifest=URI, digest="sha256:5")


def asked(nonce: int = 1, of: StreamSnapshot | None = None, **fields: Any) -> StreamSnapshot:
    found = of or ready_snapshot()
    spec = msgspec.structs.replace(found.spec, export=ExportSpec(nonce=nonce, **fields))
    return msgspec.structs.replace(found, spec=spec)


def without(of: StreamSnapshot) -> StreamSnapshot:
    return msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, export=None))


def at_work(nonce: int = 1, **fields: Any) -> Any:
    known = {"name": f"{ID}-export-{nonce}", "role": "export", "spec_hash": hash_of_export(asked(), APP)}
    return pod(APP, **{**known, **fields})


def ended(*reports: SnapshotReport, nonce: int = 1, **fields: Any) -> Any:
    return pod_that_said(*reports, name=f"{ID}-export-{nonce}", role="export", **fields)


def exported(plan: SnapshotPlan) -> tuple[Condition, SnapshotExport]:
    status = status_of(plan)
    found = status.condition(EXPORTED)
    assert found is not None
    assert status.export is not None
    return found, status.export


def created(plan: SnapshotPlan) -> dict[str, Any]:
    (create,) = [action for action in plan.actions if isinstance(action, CreateSnapshotPod)]
    return create.manifest


@pytest.mark.parametrize(
    "around", [{}, {"app": SUSPENDED}, {"app": APP}], ids=["the application is gone", "it is suspended", "it runs"]
)
def test_a_pod_writes_it_whatever_the_application_does_and_it_stays_ready(around: dict[str, Any]) -> None:
    states = (ExportedState(query="main", operator=0, name="total"),)
    plan = decide_snapshot(observe(asked(format=ExportFormat.PARQUET, states=states), **around), NOW)
    access = ["EnsureAccess"] if around else []  # of an application that is gone there is none to have
    assert kinds(plan) == [*access, "WriteSnapshotStatus", "CreateSnapshotPod"]
    manifest = created(plan)
    assert manifest["metadata"]["name"] == f"{ID}-export-1"
    (text,) = [e["value"] for e in manifest["spec"]["containers"][0]["env"] if e["name"] == ORDERS_VARIABLE]
    (order,) = from_json(SnapshotOrders, text).export
    assert (order.id, order.snapshot, order.export, order.format) == (ID, ID, f"{ID}-1", "Parquet")
    assert order.states == (StateChoice("main", 0, "total"),)
    condition, record = exported(plan)
    assert (condition.status, condition.reason) == ("Unknown", "PodStarting")
    assert record == SnapshotExport(nonce=1, phase=ExportPhase.RUNNING, format="Parquet", start_time=TIME)
    ready = status_of(plan).condition("Ready")
    assert ready is not None
    assert (status_of(plan).phase, ready.status) == (SnapshotPhase.READY, "True")


@pytest.mark.parametrize("of", [ready_snapshot(), asked(1, snapshot()), deleted(asked())])
def test_what_nobody_asks_for_or_is_not_complete_is_not_exported(of: StreamSnapshot) -> None:
    plan = decide_snapshot(observe_running(of), NOW)
    assert not any("-export-" in str(a.manifest) for a in plan.actions if isinstance(a, CreateSnapshotPod))


def test_how_far_it_is_is_told() -> None:
    writing = at_work()
    reported = SnapshotMemory(
        progress=PodProgress(process_of(writing), report(SnapshotState.COPYING, files=1, of_files=3))
    )
    plan = decide_snapshot(observe(asked(), app=APP, exporting=writing, memory=reported), NOW)
    assert "exports: 1 of 3 files" in exported(plan)[0].message
    silent = decide_snapshot(observe(asked(), app=APP, exporting=writing), NOW)
    assert exported(silent)[0].message == f"Pod {writing.name} exports."


def test_a_pod_that_can_not_start_says_why_and_the_snapshot_stays_ready() -> None:
    refused = waiting("CreateContainerConfigError", "export")
    stuck = at_work(running=False, phase="Pending", waiting=refused)
    plan = decide_snapshot(observe(asked(), app=APP, exporting=stuck), NOW)
    assert (status_of(plan).phase, exported(plan)[0].reason) == (SnapshotPhase.READY, "ContainerRefused")


def test_an_image_that_is_refused_fails_it_after_a_while_and_names_its_field() -> None:
    refused = waiting("ImagePullBackOff", "export")
    stuck = at_work(running=False, phase="Pending", waiting=refused, created_at=NOW - 100)
    o = observe(asked(), app=APP, exporting=stuck)
    plan = decide_snapshot(o, NOW)
    condition, record = exported(plan)
    assert (condition.reason, record.phase, plan.wake_after) == ("ImagePullFailed", ExportPhase.RUNNING, 20.0)
    assert "spec.export.image" in condition.message
    assert "chart" not in condition.message
    plan = decide_snapshot(settled(o), NOW + 20)
    condition, record = exported(plan)
    assert (condition.status, condition.reason, record.phase) == ("False", "ImagePullFailed", ExportPhase.FAILED)
    assert "the kubelet's words" in record.message
    assert "spec.export.image" in record.message
    assert "spec.export.nonce" in record.message
    assert kinds(plan)[-1] == "DeleteSnapshotPod"
    wrong = dataclasses.replace(stuck, waiting=waiting("InvalidImageName", "export"), created_at=NOW)
    plan = decide_snapshot(dataclasses.replace(o, exporting=wrong), NOW)
    assert exported(plan)[1].phase is ExportPhase.FAILED
    ours = dataclasses.replace(stuck, waiting=waiting("ImagePullBackOff", "tidegate-runtime"))
    plan = decide_snapshot(dataclasses.replace(o, exporting=ours), NOW + 600)
    assert (exported(plan)[1].phase, "chart" in plan.message) == (ExportPhase.RUNNING, False)
    assert "chart" in exported(plan)[0].message


@pytest.mark.parametrize("running", [True, False], ids=["started again", "not yet"])
def test_one_that_needs_more_memory_fails_and_names_the_field(running: bool) -> None:
    killed = at_work(running=running, ended=Exit(137, "OOMKilled", "", NOW - 5))
    plan = decide_snapshot(observe(asked(), app=APP, exporting=killed), NOW)
    condition, record = exported(plan)
    assert (condition.status, condition.reason, record.phase) == ("False", "OutOfMemory", ExportPhase.FAILED)
    assert "spec.export.resources.requests.memory" in record.message
    assert kinds(plan)[-1] == "DeleteSnapshotPod"


def test_a_pod_that_no_node_takes_names_what_it_asks_for_and_its_time_ends_too() -> None:
    waits = at_work(running=False, phase="Pending", unschedulable="0/3 nodes are available.")
    o = observe(asked(timeout_seconds=90), app=APP, exporting=waits)
    plan = decide_snapshot(o, NOW)
    assert (exported(plan)[0].reason, plan.wake_after) == ("Unschedulable", 90.0)
    assert "spec.export.resources" in exported(plan)[0].message
    assert "podTemplate" not in exported(plan)[0].message
    plan = decide_snapshot(settled(o), NOW + 90)
    condition, record = exported(plan)
    assert (condition.status, condition.reason, record.phase) == ("False", "DeadlineExceeded", ExportPhase.FAILED)
    assert "0/3 nodes are available." in record.message
    assert kinds(plan)[-1] == "DeleteSnapshotPod"
    refusal = PodRefusal(f"{ID}-export-1", Reason.LAUNCH_REFUSED, "quota", NOW + 80, 3)
    no_pod = dataclasses.replace(settled(o), exporting=None, memory=SnapshotMemory(refusal=refusal))
    assert exported(decide_snapshot(no_pod, NOW + 90))[1].phase is ExportPhase.FAILED


ANOTHER_VERSION = {
    "application.args": ["--faster"],
    "application.env": [{"name": "MODE", "value": "fast"}],
    "application.image": "shop/orders:9",
    "executor.resources.requests.memory": "9Gi",
    "restartNonce": 3,
    "sparkConf": {"spark.sql.shuffle.partitions": "9"},
}


def test_another_version_of_the_application_does_not_end_it() -> None:
    edited = launched(app_with(ANOTHER_VERSION))
    assert spec_hash(edited) != spec_hash(APP)
    o = settled(observe(asked(), app=APP, exporting=at_work()))
    assert decide_snapshot(dataclasses.replace(o, app=edited), NOW).actions == ()


def test_another_limit_of_the_driver_does_not_end_it_and_is_remembered() -> None:
    edited = launched(app_with({"driver.resources.limits.cpu": "2"}))
    o = settled(observe(asked(), app=APP, exporting=at_work()))
    plan = decide_snapshot(dataclasses.replace(o, app=edited), NOW)
    storage = status_of(plan).storage
    assert (kinds(plan), storage is not None and storage.cpu_limit) == (["WriteSnapshotStatus"], "2")


@pytest.mark.parametrize(
    "change",
    [
        {"storage.endpoint": "http://store:9000"},
        {"storage.credentialsSecretRef": {"name": "others"}},
        {"serviceAccountName": "others"},
        {"driver.podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}}},
        {"application.imagePullSecrets": [{"name": "registry"}]},
        {"application.env": [{"name": "AWS_PROFILE", "value": "streams"}]},
        {"sparkConf": {"spark.sql.streaming.stateStore.compression.codec": "zstd"}},
    ],
    ids=str,
)
def test_who_mends_what_the_pod_has_of_the_application_gets_another_pod(change: dict[str, Any]) -> None:
    o = settled(observe(asked(), app=APP, exporting=at_work()))
    plan = decide_snapshot(dataclasses.replace(o, app=launched(app_with(change))), NOW)
    assert kinds(plan)[-1] == "DeleteSnapshotPod"


def test_one_that_is_complete_is_made_once_for_each_number() -> None:
    o = observe(asked(), app=APP, exporting=ended(WRITTEN))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "CountExport", "DeleteSnapshotPod"]
    condition, record = exported(plan)
    assert (condition.status, condition.reason, condition.message) == ("True", "Completed", "5 rows.")
    assert (record.phase, record.uri, record.digest) == (ExportPhase.COMPLETED, URI, "sha256:5")
    assert (record.tables, record.rows, record.bytes, record.completion_time) == (2, 5, 99, TIME)
    assert CountExport(True) in plan.actions
    assert [a.reason for a in plan.actions if isinstance(a, PublishEvent)] == ["SnapshotExported"]
    done = dataclasses.replace(settled(o), exporting=None)
    assert decide_snapshot(done, NOW).actions == ()
    again = decide_snapshot(dataclasses.replace(done, snapshot=asked(2, done.snapshot)), NOW)
    assert created(again)["metadata"]["name"] == f"{ID}-export-2"
    assert exported(again)[1] == SnapshotExport(nonce=2, phase=ExportPhase.RUNNING, format="JSONLines", start_time=TIME)


def test_when_it_began_is_kept() -> None:
    o = settled(observe(asked(), app=APP))
    later = decide_snapshot(dataclasses.replace(o, exporting=ended(WRITTEN)), NOW + 60)
    record = exported(later)[1]
    assert record.start_time == TIME
    assert record.completion_time is not None
    assert record.completion_time > TIME


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Reason.STATE_NOT_FOUND, "spec.export.states"),
        (Reason.STATE_UNREADABLE, "spec.export.image"),
        (Reason.FORMAT_UNSUITABLE, "spec.export.format"),
        (Reason.EXPORT_EXISTS, "spec.export.nonce"),
        (Reason.EXPORT_FAILED, "spec.export.nonce"),
    ],
)
def test_one_that_failed_says_what_to_change_and_is_not_tried_again(reason: Reason, message: str) -> None:
    o = observe(asked(), app=APP, exporting=ended(report(SnapshotState.FAILED, reason, message="It is so.")))
    plan = decide_snapshot(o, NOW)
    condition, record = exported(plan)
    assert (condition.status, condition.reason, record.phase) == ("False", reason.value, ExportPhase.FAILED)
    assert condition.message.startswith("It is so. ")
    assert message in condition.message == record.message
    (events,) = [a for a in plan.actions if isinstance(a, PublishEvent)]
    assert (events.reason, events.warning) == ("SnapshotNotExported", True)
    assert CountExport(False) in plan.actions
    assert decide_snapshot(dataclasses.replace(settled(o), exporting=None), NOW).actions == ()


def test_its_time_is_limited() -> None:
    late = at_work(phase="Failed", running=False, reason="DeadlineExceeded")
    o = observe(asked(timeout_seconds=90), app=APP, exporting=late)
    plan = decide_snapshot(o, NOW)
    condition, record = exported(plan)
    assert (condition.status, condition.reason, record.phase) == ("False", "DeadlineExceeded", ExportPhase.FAILED)
    assert "after 90 s" in record.message
    assert "spec.export.timeoutSeconds" in record.message
    assert "DeleteSnapshotPod" in kinds(plan)


def test_one_that_an_operator_with_a_clock_ahead_began_has_its_time_from_now_on() -> None:
    begun = decide_snapshot(observe(asked(), app=APP), NOW + 3)
    left = msgspec.structs.replace(asked(), status=status_of(begun))
    plan = decide_snapshot(observe(left, app=APP, exporting=at_work()), NOW)
    condition, record = exported(plan)
    assert (condition.status, record.phase, record.start_time) == ("Unknown", ExportPhase.RUNNING, TIME)
    assert plan.wake_after == 3600.0


def test_what_was_evicted_is_not_begun_for_ever() -> None:
    evicted = at_work(phase="Failed", running=False, reason="Evicted", message="The node was low on disk.")
    condition, record = exported(decide_snapshot(observe(asked(), app=APP, exporting=evicted), NOW))
    assert (condition.reason, record.phase) == ("Evicted", ExportPhase.FAILED)
    assert "low on disk" in record.message


def test_a_node_that_was_lost_is_another_matter() -> None:
    lost = at_work(phase="Failed", running=False, reason="NodeLost")
    plan = decide_snapshot(observe(asked(), app=APP, exporting=lost), NOW)
    assert (kinds(plan)[-1], exported(plan)[1].phase) == ("DeleteSnapshotPod", ExportPhase.RUNNING)


def test_the_pod_of_an_earlier_number_goes_first() -> None:
    o = observe(asked(2), app=APP, exporting=at_work(1))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "DeleteSnapshotPod"]
    going = dataclasses.replace(settled(o), exporting=at_work(1, delete_by=NOW + 30))
    assert "DeleteSnapshotPod" not in kinds(decide_snapshot(going, NOW))
    assert not any(isinstance(a, CreateSnapshotPod) for a in decide_snapshot(going, NOW).actions)


def test_who_does_not_want_it_any_more_stops_it() -> None:
    begun = settled(observe(asked(), app=APP))
    o = dataclasses.replace(begun, snapshot=without(begun.snapshot), exporting=at_work())
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus", "DeleteSnapshotPod"]
    status = status_of(plan)
    condition = status.condition(EXPORTED)
    assert condition is not None
    assert (condition.status, condition.reason, status.export) == ("Unknown", "Cancelled", None)
    assert decide_snapshot(dataclasses.replace(settled(o), exporting=None), NOW).actions == ()


def found_damaged(*, exporting: Any) -> Any:
    both = msgspec.structs.replace(asked(), spec=msgspec.structs.replace(asked().spec, verify_nonce=1))
    damaged = report(SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED)
    name = f"{ID}-verify-1"
    begun = settled(observe(both, app=APP, verifying=dataclasses.replace(pod(APP), name=name)))
    read = dataclasses.replace(pod_that_said(damaged), name=name, spec_hash=pod(APP).spec_hash)
    return dataclasses.replace(begun, verifying=read, exporting=exporting)


def test_one_whose_snapshot_is_found_damaged_meanwhile_has_failed_and_names_that() -> None:
    o = found_damaged(exporting=at_work())
    plan = decide_snapshot(o, NOW)
    condition, record = exported(plan)
    assert (condition.status, condition.reason) == ("False", "SnapshotDamaged")
    assert (record.phase, record.nonce, "spec.export.nonce" in record.message) == (ExportPhase.FAILED, 1, True)
    assert kinds(plan).count("DeleteSnapshotPod") == 2
    assert decide_snapshot(dataclasses.replace(settled(o), verifying=None, exporting=None), NOW).actions == ()


def test_one_that_was_complete_when_its_snapshot_is_found_damaged_is_complete() -> None:
    plan = decide_snapshot(found_damaged(exporting=ended(WRITTEN)), NOW)
    condition, record = exported(plan)
    assert (status_of(plan).phase, condition.status, record.uri) == (SnapshotPhase.FAILED, "True", URI)


def test_the_record_of_one_that_an_earlier_operator_left_of_a_damaged_snapshot_does_not_say_removed() -> None:
    begun = settled(observe(asked(), app=APP))
    o = dataclasses.replace(
        found_damaged(exporting=None), snapshot=settled(found_damaged(exporting=None)).snapshot, verifying=None
    )
    left = msgspec.structs.replace(o.snapshot.status, export=begun.snapshot.status.export)
    o = dataclasses.replace(o, snapshot=msgspec.structs.replace(o.snapshot, status=left))
    condition, record = exported(decide_snapshot(o, NOW))
    assert (condition.reason, record.phase) == ("SnapshotDamaged", ExportPhase.FAILED)
    again = msgspec.structs.replace(o.snapshot, spec=msgspec.structs.replace(o.snapshot.spec, verify_nonce=2))
    whole = dataclasses.replace(pod_that_said(report(SnapshotState.VERIFIED)), name=f"{ID}-verify-2")
    found = dataclasses.replace(o, snapshot=again, verifying=dataclasses.replace(whole, spec_hash=pod(APP).spec_hash))
    assert (status_of(decide_snapshot(found, NOW)).phase, exported(decide_snapshot(found, NOW))[1].phase) == (
        SnapshotPhase.READY,
        ExportPhase.RUNNING,
    )


def test_deletion_stops_it() -> None:
    doomed = deleted(settled(observe(asked(), app=APP)).snapshot)
    assert "DeleteSnapshotPod" in kinds(decide_snapshot(observe(doomed, app=APP, exporting=at_work()), NOW))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resources": Resources(requests={"memory": "512Mi"})}, "spec.export.resources.requests.memory"),
        ({"image": ""}, "spec.export.image"),
    ],
)
def test_what_no_pod_can_be_made_of_has_failed(fields: dict[str, Any], message: str) -> None:
    found = asked(**fields)
    if "image" in fields:
        found = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, image=""))
    plan = decide_snapshot(observe(found), NOW)
    condition, record = exported(plan)
    assert (condition.reason, record.phase) == ("InvalidSpec", ExportPhase.FAILED)
    assert message in record.message
    assert "CreateSnapshotPod" not in kinds(plan)


def test_reading_back_goes_on_meanwhile_and_its_pod_is_begun_first() -> None:
    both = msgspec.structs.replace(asked(), spec=msgspec.structs.replace(asked().spec, verify_nonce=1))
    first = decide_snapshot(observe(both, app=APP), NOW)
    assert created(first)["metadata"]["name"] == f"{ID}-verify-1"
    assert first.wake_after == 0.0
    reading = dataclasses.replace(pod(APP), name=f"{ID}-verify-1")
    o = observe(both, app=APP, verifying=reading)
    second = decide_snapshot(o, NOW)
    assert created(second)["metadata"]["name"] == f"{ID}-export-1"
    # Each ends by itself.
    whole = report(SnapshotState.VERIFIED)
    read = dataclasses.replace(pod_that_said(whole), name=reading.name, spec_hash=reading.spec_hash)
    plan = decide_snapshot(observe(both, app=APP, verifying=read, exporting=at_work()), NOW)
    assert "CountVerification" in kinds(plan)
    plan = decide_snapshot(observe(both, app=APP, verifying=reading, exporting=ended(WRITTEN)), NOW)
    assert "CountExport" in kinds(plan)


def test_a_pod_that_the_api_server_refuses_is_tried_again_with_pauses() -> None:
    refusal = PodRefusal(f"{ID}-export-1", Reason.LAUNCH_REFUSED, "quota", NOW, 3)
    o = observe(asked(), app=APP, memory=SnapshotMemory(refusal=refusal))
    plan = decide_snapshot(o, NOW)
    assert kinds(plan) == ["WriteSnapshotStatus"]
    assert (exported(plan)[0].reason, exported(plan)[0].message) == ("LaunchRefused", "quota")
    assert "CreateSnapshotPod" in kinds(decide_snapshot(o, NOW + 300))
