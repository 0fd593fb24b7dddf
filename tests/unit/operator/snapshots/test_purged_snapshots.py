"""Complete snapshots of an application that is deleted with its storage: they say that their files are gone. Pure."""

import dataclasses
import datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tidegate.api.stream_snapshot import ExportPhase, ExportSpec, SnapshotPhase, StreamSnapshot, is_damaged
from tidegate.api.streaming_app import DeletionPolicy
from tidegate.app.observe import observe as observe_app
from tidegate.app.observe_unreadable import observe_unreadable
from tidegate.app.rules.deleted.deletion import release_unreadable
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.cache.known_apps import UnreadableApp
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.engine.rules.event import build_event
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.actions import CountExport, DeleteSnapshotPod, SnapshotPlan
from tidegate.snapshots.controller import SnapshotController
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.observation import SnapshotMemory, SnapshotObservation
from tidegate.snapshots.observe import observe_snapshot
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.reasons import Reason
from tidegate_testing import snapshot_observations as snapshots
from tidegate_testing.observations import NOW, PLATFORM, app_with, deleted, driver_of, ended_with, launched
from tidegate_testing.plans import acts
from tidegate_testing.snapshot_observations import begun, kinds, pod, ready_snapshot, said, snapshot, status_of, written

EMPTIED = deleted(launched(app_with({"storage.deletionPolicy": "Delete"})))
KEY, ORDERS = ("shop", "nightly"), ("shop", "orders")


def purge_pod(reason: Reason = Reason.COMPLETED, **fields: Any) -> PodRecord:
    known = {"name": "orders-purge", "role": "purge", "phase": "Succeeded", "ended": ended_with(reason, 0)}
    return driver_of(EMPTIED, **{**known, **fields})


def world_of(of: StreamSnapshot, purge: PodRecord | None) -> Index:
    index = Index()
    index.put_app(EMPTIED)
    index.of(SnapshotIndex).put(of)
    if purge is not None:
        index.put_pod(purge)
    return index


def seen_by_snapshot(of: StreamSnapshot, purge: PodRecord | None) -> SnapshotObservation:
    found = observe_snapshot(world_of(of, purge), KEY, PLATFORM, NOW)
    assert found is not None
    return found


def planned(of: StreamSnapshot, purge: PodRecord | None) -> SnapshotPlan:
    return decide_snapshot(seen_by_snapshot(of, purge), NOW)


def the_application_goes(of: StreamSnapshot, purge: PodRecord | None) -> bool:
    found = observe_app(world_of(of, purge), ORDERS, PLATFORM, NOW)
    assert found is not None
    return acts(decide(found, NOW), RemoveFinalizer)


def the_unreadable_application_goes(of: StreamSnapshot, purge: PodRecord | None) -> bool:
    known = UnreadableApp(ORDERS, EMPTIED.metadata, "spec.application.runtime: invalid")
    found = observe_unreadable(world_of(of, purge), known, PLATFORM)
    return acts(release_unreadable(found, known.problem, NOW), RemoveFinalizer)


def ready(uid: str = "u-1") -> StreamSnapshot:
    found = ready_snapshot()
    assert found.status.app is not None
    status = msgspec.structs.replace(found.status, app=msgspec.structs.replace(found.status.app, uid=uid))
    return msgspec.structs.replace(found, status=status)


def scheduled() -> StreamSnapshot:
    found = ready()
    marks = {
        "labels": {"tidegate.dev/scheduled": "true"},
        "annotations": {"tidegate.dev/retention": '{"withApp":true}'},
    }
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, **marks))


def test_one_whose_files_were_purged_is_not_ready_any_more_and_the_application_stays_until_it_says_so() -> None:
    assert not the_application_goes(ready(), purge_pod())
    seen = seen_by_snapshot(ready(), purge_pod())
    plan = decide_snapshot(seen, NOW)
    assert said(plan) == (SnapshotPhase.FAILED, "Stalled", "SnapshotGone")
    assert "together with the storage of StreamingApp orders" in plan.message
    gone = written(seen)
    assert the_application_goes(gone, purge_pod())
    assert planned(gone, purge_pod()).actions == ()
    assert decide_snapshot(snapshots.observe(gone), NOW).actions == ()


def test_an_application_that_became_unreadable_after_its_purge_stays_too_until_they_say_so() -> None:
    assert not the_unreadable_application_goes(ready(), purge_pod())
    seen = dataclasses.replace(seen_by_snapshot(ready(), purge_pod()), app=None, app_unreadable=True)
    gone = written(seen)
    assert (gone.status.phase, is_damaged(gone)) == (SnapshotPhase.FAILED, True)
    assert the_unreadable_application_goes(gone, purge_pod())
    for others in (ready("u-0"), scheduled(), snapshots.deleted(ready(), DeletionPolicy.RETAIN)):
        assert the_unreadable_application_goes(others, purge_pod())
    assert the_unreadable_application_goes(ready(), purge_pod(Reason.STORAGE_OWNED))


def test_an_application_that_became_unreadable_waits_for_a_purge_that_is_under_way() -> None:
    assert not the_unreadable_application_goes(ready(), purge_pod(phase="Running", running=True, ended=None))
    for never_ran in (None, purge_pod(phase="Pending", running=False, ended=None)):
        assert the_unreadable_application_goes(ready(), never_ran)


def test_an_unreadable_application_says_each_hour_which_of_them_nobody_may_change_and_not_for_each_request() -> None:
    world, names = world_of(ready(), purge_pod()), []
    known = UnreadableApp(ORDERS, EMPTIED.metadata, "spec.application.runtime: invalid")
    for request, at in (("a1", NOW), ("b2", NOW + 1), ("c3", NOW + 3600)):
        world.of(SnapshotIndex).memories[KEY] = SnapshotMemory(write_refused=("status", f"denied (request {request})."))
        plan = release_unreadable(observe_unreadable(world, known, PLATFORM), known.problem, at)
        (said_of_it,) = [action for action in plan.actions if isinstance(action, PublishEvent)]
        assert said_of_it.reason == "WriteRefused"
        assert said_of_it.message.startswith(f"denied (request {request}). To finish the deletion without StreamSnapsh")
        assert plan.wake_after is not None
        names.append(name_of(said_of_it))
    assert len(set(names)) == 2
    assert names[0] == names[1]


def name_of(event: PublishEvent) -> str:
    """Return the name by which the API server knows whether an event was published before."""
    manifest = build_event(
        EMPTIED.metadata,
        reason=event.reason,
        message=event.message,
        now=datetime.datetime.fromtimestamp(NOW, datetime.UTC),
        key=event.occasion,
        any_message=event.any_message,
    )
    return str(manifest["metadata"]["name"])


@pytest.mark.parametrize(
    "purge",
    [None, purge_pod(Reason.STORAGE_OWNED), purge_pod(phase="Running", running=True, ended=None)],
    ids=["none", "refused", "at work"],
)
def test_one_whose_files_are_not_known_to_be_purged_stays_as_it_is(purge: PodRecord | None) -> None:
    assert planned(ready(), purge).reason == "Completed"
    assert kinds(planned(ready(), purge)) == []


def test_the_snapshot_of_an_earlier_application_of_the_name_stays_as_it_is() -> None:
    earlier = ready("u-0")
    assert planned(earlier, purge_pod()).reason == "Completed"
    assert the_application_goes(earlier, purge_pod())


def test_those_that_are_deleted_after_the_application_need_not_say_so() -> None:
    assert planned(scheduled(), purge_pod()).reason == "Completed"
    assert the_application_goes(scheduled(), purge_pod())
    assert the_application_goes(snapshots.deleted(ready(), DeletionPolicy.RETAIN), purge_pod())
    assert the_application_goes(snapshot(begun()), purge_pod())


def test_one_that_was_to_be_read_back_is_known_to_be_gone_without_another_pod() -> None:
    asked = msgspec.structs.replace(ready(), spec=msgspec.structs.replace(ready().spec, verify_nonce=3))
    at_work = dataclasses.replace(pod(EMPTIED), name=f"{snapshots.ID}-verify-3")
    seen = dataclasses.replace(seen_by_snapshot(asked, purge_pod()), verifying=at_work)
    plan = decide_snapshot(seen, NOW)
    condition, done = status_of(plan).condition("Verified"), status_of(plan).verification
    assert condition is not None
    assert done is not None
    assert (condition.status, condition.reason, done.nonce) == ("False", "SnapshotGone", 3)
    assert DeleteSnapshotPod(at_work) in plan.actions
    assert kinds(planned(written(seen), purge_pod())) == []


@pytest.mark.parametrize("begun_before", [True, False], ids=["at work", "only asked for"])
def test_an_export_that_is_asked_for_fails_with_it_and_says_what_happened(begun_before: bool) -> None:
    asked = msgspec.structs.replace(ready(), spec=msgspec.structs.replace(ready().spec, export=ExportSpec(nonce=2)))
    at_work = dataclasses.replace(pod(EMPTIED), name=f"{snapshots.ID}-export-2", role="export")
    if begun_before:
        asked = written(snapshots.observe(asked, app=EMPTIED))
        assert asked.status.export is not None
    exporting = at_work if begun_before else None
    seen = dataclasses.replace(seen_by_snapshot(asked, purge_pod()), exporting=exporting)
    plan = decide_snapshot(seen, NOW)
    condition, record = status_of(plan).condition("Exported"), status_of(plan).export
    assert condition is not None
    assert record is not None
    assert (condition.status, condition.reason, record.phase, record.nonce) == (
        "False",
        "SnapshotGone",
        ExportPhase.FAILED,
        2,
    )
    assert "together with the storage of StreamingApp orders" in condition.message
    assert "removed" not in condition.message
    assert [a for a in plan.actions if isinstance(a, DeleteSnapshotPod)] == [DeleteSnapshotPod(at_work)] * begun_before
    assert CountExport(False) in plan.actions
    assert planned(written(seen), purge_pod()).actions == ()


def test_the_end_of_a_purge_wakes_the_snapshots_of_its_application() -> None:
    def woken(of: StreamSnapshot, purge: PodRecord | None) -> list[object]:
        keys: list[object] = []
        queue: Any = SimpleNamespace(wake=keys.append)
        nobody: Any = None
        SnapshotController(nobody, nobody, world_of(of, purge), queue, nobody, nobody).wake_for(ORDERS)
        return keys

    assert woken(ready(), purge_pod()) == [KEY]
    assert woken(ready(), None) == woken(ready("u-0"), purge_pod()) == []
