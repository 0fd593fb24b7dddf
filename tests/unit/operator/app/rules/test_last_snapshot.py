"""The snapshot of an application that is deleted: when it is taken, and what is done about one that fails. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot
from tidegate.api.streaming_app import Condition, Phase, QueryStatus, StreamingApp
from tidegate.app.actions import CreateSnapshot
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import NotCreated, ProcessState, Refusal, SnapshotRefusal
from tidegate.engine.rules.actions import PublishEvent, RemoveFinalizer
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.reasons import Reason
from tidegate_testing import snapshot_observations as snapshots
from tidegate_testing.observations import (
    NOW,
    app_with,
    deleted,
    executor_of,
    launched,
    lost_unbuildable,
    never_launched,
    observe,
    running_driver,
)
from tidegate_testing.plans import acts
from tidegate_testing.snapshot_observations import TIME, begun, ready_snapshot, snapshot

NAME = "orders-last-u1"
TAKE = {"snapshots": {"finalSnapshot": True}}


def doomed(change: dict[str, Any] | None = None, **status: Any) -> StreamingApp:
    fields = {"queries": (QueryStatus(name="main", batch_id=9),), **status}
    return deleted(launched(app_with(TAKE if change is None else change), phase=Phase.DELETING, **fields))


def last(**status: Any) -> StreamSnapshot:
    found = snapshot(begun(**status), name=NAME)
    metadata = msgspec.structs.replace(found.metadata, labels={"tidegate.dev/at-deletion": "true"})
    return msgspec.structs.replace(found, metadata=metadata)


def names(o: Observation) -> list[str]:
    return [type(action).__name__ for action in decide(o, NOW).actions]


def test_it_is_made_when_nothing_writes_any_more_and_waited_for() -> None:
    app = doomed()
    assert "CreateSnapshot" not in names(observe(app, driver=running_driver(app)))
    assert "CreateSnapshot" not in names(observe(app, executors=(executor_of(app, 1),)))
    (create,) = [a for a in decide(observe(app), NOW).actions if isinstance(a, CreateSnapshot)]
    assert create.manifest["metadata"]["name"] == NAME
    assert create.manifest["metadata"]["labels"]["tidegate.dev/at-deletion"] == "true"
    assert create.manifest["spec"] == {"appRef": {"name": "orders"}, "deletionPolicy": "Retain"}
    waiting = observe(app, snapshots=(last(),))
    assert (decide(waiting, NOW).reason, "RemoveFinalizer" in names(waiting)) == ("FinalSnapshot", False)


def test_it_is_made_only_once_the_driver_was_looked_for_and_not_beside_a_pod_that_may_be_it() -> None:
    kinds = names(observe(doomed()))
    assert kinds.index("ConfirmDriverGone") < kinds.index("CreateSnapshot")
    refusal = Refusal("orders-driver", "", 1, Reason.POD_NAME_TAKEN, "Delete it.", NOW - 1, 1, holds_end=True)
    plan = decide(observe(doomed(), memory=ProcessState(refusal=refusal)), NOW)
    assert (plan.reason, acts(plan, CreateSnapshot)) == ("PodNameTaken", False)


def test_the_application_goes_when_it_is_complete() -> None:
    plan = decide(observe(doomed(), snapshots=(last(phase=SnapshotPhase.READY),)), NOW)
    assert [type(a) for a in plan.actions if isinstance(a, RemoveFinalizer | PublishEvent)] == [RemoveFinalizer]


def test_one_that_failed_is_told_and_does_not_keep_the_application() -> None:
    ready = Condition(type="Ready", status="False", reason="x", message="No batch.", last_transition_time=TIME)
    plan = decide(observe(doomed(), snapshots=(last(phase=SnapshotPhase.FAILED, conditions=(ready,)),)), NOW)
    events = [action for action in plan.actions if isinstance(action, PublishEvent)]
    assert [event.reason for event in events] == ["FinalSnapshotMissing"]
    assert "No batch." in events[0].message
    assert "RemoveFinalizer" in [type(action).__name__ for action in plan.actions]


def test_one_that_can_not_go_on_says_how_to_do_without() -> None:
    stalled = Condition(type="Stalled", status="True", reason="x", message="No answer.", last_transition_time=TIME)
    plan = decide(observe(doomed(), snapshots=(last(conditions=(stalled,)),)), NOW)
    assert "No answer." in plan.message
    assert "spec.snapshots.finalSnapshot to false" in plan.message


@pytest.mark.parametrize(
    "app",
    [
        doomed({"snapshots": {"schedule": "0 * * * *"}}),
        deleted(never_launched(app_with(TAKE))),
        doomed({**TAKE, "storage.deletionPolicy": "Delete"}),
    ],
    ids=["nobody asks for it", "it never ran", "its storage goes, too"],
)
def test_there_may_be_no_need(app: StreamingApp) -> None:
    assert "CreateSnapshot" not in names(observe(app))
    assert "FinalSnapshotMissing" not in str(decide(observe(app), NOW).actions)


@pytest.mark.parametrize("lost", [app_with(TAKE), lost_unbuildable(app_with(TAKE))], ids=["no status", "an epoch"])
def test_none_is_taken_of_an_application_whose_status_was_lost_and_that_is_said(lost: StreamingApp) -> None:
    plan = decide(observe(deleted(lost)), NOW)
    assert not acts(plan, CreateSnapshot)
    (event,) = [action for action in plan.actions if isinstance(action, PublishEvent)]
    assert (event.reason, "knows of no launch" in event.message) == ("FinalSnapshotMissing", True)


def test_it_is_taken_also_if_the_newest_seems_to_have_all_batches() -> None:
    app = doomed(queries=(QueryStatus(name="main", batch_id=7),))
    assert "CreateSnapshot" in names(observe(app, last_snapshot=ready_snapshot()))


def test_a_namespace_that_goes_takes_none_and_one_that_refuses_says_so() -> None:
    refusal = SnapshotRefusal(NAME, Reason.NAMESPACE_TERMINATING, "goes", NOW)
    o = observe(doomed(), memory=ProcessState(snapshot_refusal=refusal))
    assert "RemoveFinalizer" in names(o)
    assert "FinalSnapshotMissing" in str(decide(o, NOW).actions)
    quota = dataclasses.replace(refusal, reason=Reason.SNAPSHOT_REFUSED, message="quota")
    plan = decide(dataclasses.replace(o, memory=ProcessState(snapshot_refusal=quota)), NOW)
    assert ("quota" in plan.message, plan.wake_after) == (True, 300.0)


def test_one_that_the_api_server_could_not_create_is_waited_for_and_the_cause_is_said() -> None:
    memory = ProcessState(snapshot_not_created=NotCreated(NAME, "failed calling webhook.", NOW))
    o = observe(doomed(), memory=memory)
    waiting, again = decide(o, NOW), decide(o, NOW + 30)
    assert (acts(waiting, CreateSnapshot), waiting.wake_after, acts(again, CreateSnapshot)) == (False, 30.0, True)
    for plan in (waiting, again):
        assert not acts(plan, RemoveFinalizer)
        assert (plan.reason, plan.message) == (
            "FinalSnapshot",
            "failed calling webhook. To finish the deletion without it, set spec.snapshots.finalSnapshot to false.",
        )
        assert "Stalled" in str(plan.actions)


def test_one_that_nobody_may_change_is_waited_for_and_the_cause_is_said() -> None:
    plan = decide(observe(doomed(), snapshots=(last(),), refused_writes={NAME: "a policy denied it."}), NOW)
    assert not acts(plan, RemoveFinalizer)
    assert (plan.reason, plan.message) == (
        "WriteRefused",
        "a policy denied it. To finish the deletion without it, set spec.snapshots.finalSnapshot to false.",
    )
    assert [action.reason for action in plan.actions if isinstance(action, PublishEvent)] == ["WriteRefused"]


# --- the snapshot's own side ---


def test_a_pod_takes_it_while_its_application_is_deleted() -> None:
    fresh = msgspec.structs.replace(last(), status=snapshot().status)
    gone = snapshots.observe(fresh, app=doomed())
    assert "CreateSnapshotPod" in snapshots.kinds(decide_snapshot(gone, NOW))
    stopping = dataclasses.replace(gone, driver=running_driver(doomed(), delete_by=NOW + 9))
    assert "CreateSnapshotPod" not in snapshots.kinds(decide_snapshot(stopping, NOW))


def test_one_of_an_application_that_is_not_deleted_waits() -> None:
    fresh = msgspec.structs.replace(last(), status=snapshot().status)
    back = launched(app_with(TAKE), phase=Phase.SUSPENDED)
    assert "CreateSnapshotPod" not in snapshots.kinds(decide_snapshot(snapshots.observe(fresh, app=back), NOW))
