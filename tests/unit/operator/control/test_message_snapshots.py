"""Messages that have a snapshot taken: a StreamSnapshot is made of it, and a dump's state is exported. Pure."""

from typing import Any

import msgspec
import pytest

from tidegate.api.control_message import ControlMessage, channel_message_name
from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.status.status import Condition
from tidegate.api.stream_snapshot import (
    ExportPhase,
    SnapshotExport,
    SnapshotPhase,
    StreamSnapshot,
    StreamSnapshotSpec,
    StreamSnapshotStatus,
)
from tidegate.api.streaming_app import LocalReference, Metadata
from tidegate.cache.process_state import NotCreated
from tidegate.control.actions import GiveMessages, MakeSnapshot
from tidegate.control.builders.message_snapshot import build_message_snapshot, message_snapshot_name, taken_id
from tidegate.control.observation import ControlMemory, ControlObservation
from tidegate.control.rules.plan import decide_control
from tidegate_spark.contract.control_protocol import MessageState
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID
from tidegate_testing.control_observations import (
    APP,
    TIME,
    message,
    observe,
    observe_running,
    offered,
    report,
    said,
    statuses,
)
from tidegate_testing.observations import NOW

ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def asking(kind: str = "dump-state", payload: Any = None) -> ControlMessage:
    return message("look", offered(), kind=kind, payload=payload, uid=ID)


def taken(of: ControlMessage, **fields: Any) -> ControlObservation:
    results = {"snapshot": f"control-{of.metadata.uid}", "manifest": "s3://b/p"}
    reported = report(of, MessageState.DONE, 12, (2, 2), results=results)
    found: ControlObservation = observe_running(of, reports=(reported,), **fields)
    return found


def made(of: ControlMessage, phase: SnapshotPhase | None = None, text: str = "So it is.", **status: Any) -> Any:
    built = build_message_snapshot(of, APP)
    ready = Condition(
        type="Ready", status="True", reason="Why", message=text, observed_generation=1, last_transition_time=TIME
    )
    metadata = Metadata(
        name=built["metadata"]["name"], namespace="shop", uid="s-1", annotations=built["metadata"]["annotations"]
    )
    known = StreamSnapshotStatus(phase=phase, conditions=(ready,), **status)
    snapshot = StreamSnapshot(
        metadata=metadata, spec=StreamSnapshotSpec(app_ref=LocalReference(name="orders")), status=known
    )
    return {"snapshots": {of.metadata.uid: snapshot}}


def test_what_a_message_had_taken_is_a_resource_with_the_drivers_id() -> None:
    of = asking("snapshot")
    built = build_message_snapshot(of, APP)
    metadata = msgspec.convert({**built["metadata"], "uid": "s-1"}, Metadata)
    assert built["metadata"]["name"] == "look-0f8fad5b"
    assert snapshot_id(metadata) == taken_id(of) == f"control-{ID}"
    assert built["spec"] == {"appRef": {"name": "orders"}, "deletionPolicy": "Retain"}
    assert "ownerReferences" not in built["metadata"]


def test_a_dumps_resource_goes_with_the_message_and_says_what_is_written() -> None:
    payload = {"format": "CSV", "states": [{"query": "main"}], "image": "any/thing:1", "other": 1}
    built = build_message_snapshot(asking(payload=payload), APP)
    assert built["spec"]["deletionPolicy"] == "Delete"
    assert built["spec"]["export"] == {"format": "CSV", "states": [{"query": "main"}]}
    assert [owner["uid"] for owner in built["metadata"]["ownerReferences"]] == [ID]
    assert build_message_snapshot(asking(), APP)["spec"]["export"] == {"format": "JSONLines"}


@pytest.mark.parametrize(
    ("word", "known"), [("Csv", "CSV"), ("JsonLines", "JSONLines"), ("Parquet", "Parquet"), ("Tar", "Tar"), (1, 1)]
)
def test_a_format_in_the_words_of_an_older_runtime_is_the_same_format(word: Any, known: Any) -> None:
    assert build_message_snapshot(asking(payload={"format": word}), APP)["spec"]["export"] == {"format": known}


def test_names_fit_however_long_and_dotted_the_messages_is() -> None:
    name = message_snapshot_name(message("a." * 30 + "b", uid=ID))
    assert len(name) <= 54
    assert (name[:4], name[-10:]) == ("a-a-", "a-0f8fad5b")


def test_another_resources_id_is_not_what_somebody_notes_on_it() -> None:
    noted = {"tidegate.dev/snapshot-id": "nightly-0f8fad5b"}
    assert snapshot_id(Metadata(name="mine", namespace="shop", uid=ID, annotations=noted)) == "mine-0f8fad5b"


@pytest.mark.parametrize("is_noted", [True, False], ids=["", "by an earlier operator"])
def test_a_copy_of_the_resource_has_a_snapshot_of_its_own(is_noted: bool) -> None:
    """Its deletion would remove the files of the original."""
    built = build_message_snapshot(asking("snapshot"), APP)["metadata"]
    if not is_noted:
        del built["annotations"]["tidegate.dev/made-as"]
    original = msgspec.convert({**built, "uid": "s-1"}, Metadata)
    copy = msgspec.convert({**built, "uid": "5fad0f8b-1", "name": "before-the-move"}, Metadata)
    again = msgspec.convert({**built, "uid": "s-3"}, Metadata)
    assert snapshot_id(original) == snapshot_id(again) == f"control-{ID}"
    assert snapshot_id(copy) == "before-the-move-5fad0f8b"


def test_a_resource_that_an_earlier_operator_made_for_a_message_from_a_channel_has_the_drivers_id() -> None:
    log_id = "ab" * 16
    noted = {ANNOTATION_APP_UID: "u-1", "tidegate.dev/snapshot-id": f"control-{log_id}"}
    name = channel_message_name("orders", "u-1", log_id)
    assert snapshot_id(Metadata(name=name, namespace="shop", uid=ID, annotations=noted)) == f"control-{log_id}"


def test_a_copy_with_the_name_in_its_own_or_in_another_namespace_is_a_copy() -> None:
    built = build_message_snapshot(asking("snapshot"), APP)["metadata"]
    copies = ({"name": "copy-of-look-0f8fad5b"}, {"namespace": "other"})
    found = [snapshot_id(msgspec.convert({**built, "uid": "5fad0f8b-1", **copy}, Metadata)) for copy in copies]
    assert found == ["copy-of-look-0f8fad5b-5fad0f8b", "look-0f8fad5b-5fad0f8b"]


@pytest.mark.parametrize("kind", ["snapshot", "dump-state"])
def test_the_resource_is_made_once_the_driver_has_taken_it_and_the_message_is_not_at_its_end(kind: str) -> None:
    of = asking(kind)
    plan = decide_control(taken(of), NOW)
    assert [action.manifest for action in plan.actions if isinstance(action, MakeSnapshot)] == [
        build_message_snapshot(of, APP)
    ]
    status = statuses(plan)["look"]
    assert (status.phase, status.acks, status.results["snapshot"]) == ("Published", "2/2", f"control-{ID}")
    assert not any(isinstance(action, GiveMessages) for action in plan.actions)


def test_a_driver_that_took_something_else_is_not_believed() -> None:
    of = asking()
    reported = report(of, MessageState.DONE, 12, results={"snapshot": "nightly-0f8fad5b"})
    o = observe_running(of, reports=(reported,))
    assert said(o, name="look")[:3] == ("Failed", "Stalled", "SnapshotFailed")


def test_a_driver_that_failed_to_take_it_says_why() -> None:
    of = asking()
    o = observe_running(of, reports=(report(of, MessageState.FAILED, 12, reason="BatchLost", message="Gone."),))
    assert said(o, name="look") == ("Failed", "Stalled", "BatchLost", "Gone.")


COMPLETE = SnapshotExport(
    nonce=1, phase=ExportPhase.COMPLETED, format="CSV", uri="s3://b/m.json", digest="d", tables=2, rows=30
)


@pytest.mark.parametrize(
    ("kind", "phase", "export", "expected"),
    [
        ("snapshot", None, None, ("Published", "Reconciling", "SnapshotTaken")),
        ("snapshot", SnapshotPhase.READY, None, ("Applied", "Ready", "Applied")),
        ("snapshot", SnapshotPhase.FAILED, None, ("Failed", "Stalled", "SnapshotFailed")),
        ("dump-state", SnapshotPhase.READY, None, ("Published", "Reconciling", "Exporting")),
        ("dump-state", SnapshotPhase.READY, ExportPhase.RUNNING, ("Published", "Reconciling", "Exporting")),
        ("dump-state", SnapshotPhase.READY, ExportPhase.COMPLETED, ("Applied", "Ready", "Applied")),
        ("dump-state", SnapshotPhase.READY, ExportPhase.FAILED, ("Failed", "Stalled", "ExportFailed")),
    ],
)
def test_a_message_is_as_far_as_what_is_made_of_it(
    kind: str, phase: SnapshotPhase, export: ExportPhase | None, expected: tuple[str, str, str]
) -> None:
    of = asking(kind)
    known = msgspec.structs.replace(COMPLETE, phase=export, message="Why.") if export is not None else None
    # Whether the driver still runs does not matter.
    o = observe(of, app=APP, **made(of, phase, export=known))
    assert said(o, name="look")[:3] == expected
    assert statuses(decide_control(o, NOW))["look"].results["streamSnapshot"] == "look-0f8fad5b"
    assert not any(isinstance(action, MakeSnapshot) for action in decide_control(o, NOW).actions)


def test_the_address_of_a_dump_is_in_the_status() -> None:
    of = asking()
    status = statuses(decide_control(taken(of, **made(of, SnapshotPhase.READY, export=COMPLETE)), NOW))["look"]
    assert (status.results["uri"], status.results["rows"], status.results["format"]) == ("s3://b/m.json", "30", "CSV")
    assert status.results["snapshot"] == f"control-{ID}"


def test_somebody_elses_resource_of_that_name_is_not_taken_for_it() -> None:
    of = asking()
    other = message("look", offered(), kind="dump-state", uid=ID.replace("950e", "0000"))
    (snapshot,) = made(other, SnapshotPhase.READY)["snapshots"].values()
    o = observe(of, app=APP, snapshots={ID: snapshot})
    assert said(o, name="look")[:3] == ("Failed", "Stalled", "SnapshotNameTaken")


def test_a_resource_that_the_api_server_refuses_fails_the_message() -> None:
    o = taken(asking(), memory=ControlMemory(refused={ID: "spec.export.cores: 0"}))
    phase, _, reason, text = said(o, name="look")
    assert (phase, reason) == ("Failed", "SnapshotRefused")
    assert "spec.export.cores: 0" in text


def test_a_message_whose_snapshot_was_not_created_for_a_while_ends_as_usual() -> None:
    of = asking("snapshot")
    memory = ControlMemory(not_created={ID: NotCreated(ID, "exceeded quota", NOW, is_refused=True)})
    assert said(taken(of, memory=memory), name="look") == ("Published", "Stalled", "SnapshotRefused", "exceeded quota")
    o = taken(of, memory=memory, **made(of, SnapshotPhase.READY))
    assert statuses(decide_control(o, NOW))["look"].phase == "Applied"
