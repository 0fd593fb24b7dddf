"""How many messages and snapshots wait: of an application, and of those that are not there."""

import msgspec

from tidegate.api.control_message import ControlMessage, ControlMessageStatus, MessagePhase
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshotStatus
from tidegate.api.streaming_app import LocalReference, Phase
from tidegate.app.rules.verdict import Verdict
from tidegate.cache.index import Index
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.control.index import ControlIndex
from tidegate.control.observe import observe_control
from tidegate.engine.rules.conditions import build_conditions
from tidegate.engine.rules.health import Health
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.observe import observe_snapshot
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.control_observations import message
from tidegate_testing.observations import NOW, PLATFORM
from tidegate_testing.snapshot_observations import APP, TIME, snapshot

ORDERS, NOBODYS = ("shop", "orders"), ("shop", "nobody")
SAID = build_conditions((), Verdict(Phase.PENDING, Health.RECONCILING, Reason.APP_NOT_FOUND, ""), 1, NOW)


def accepted(name: str, app: str, version: int = 1) -> ControlMessage:
    made = message(name, ControlMessageStatus(conditions=SAID), resource_version=str(version))
    spec = msgspec.structs.replace(made.spec, app_ref=LocalReference(name=app), payload=msgspec.Raw(b'"four"'))
    return msgspec.structs.replace(made, spec=spec)


def test_messages_that_wait_are_counted_with_their_payloads_until_they_end_or_go() -> None:
    index = Index()
    for name in ("a", "b", "c"):
        index.of(ControlIndex).put(accepted(name, "nobody"))
    index.of(ControlIndex).put(message("new", resource_version="1"))
    assert index.of(ControlIndex).waiting.of_app(NOBODYS) == OpenCount(3, 18)
    index.of(ControlIndex).put(accepted("a", "nobody", 2))
    failed = ControlMessageStatus(conditions=SAID, phase=MessagePhase.FAILED)
    index.of(ControlIndex).put(msgspec.structs.replace(accepted("b", "nobody", 2), status=failed))
    index.of(ControlIndex).remove(("shop", "c"), "uid-c")
    assert index.of(ControlIndex).waiting.of_app(NOBODYS) == OpenCount(1, 6)


def test_those_of_applications_that_are_not_there_are_counted_together_by_namespace() -> None:
    index = Index()
    for number in range(5):
        index.of(ControlIndex).put(accepted(f"m{number}", f"nobody-{number}"))
    index.of(ControlIndex).put(accepted("real", "orders"))
    assert observe_control(index, NOBODYS, NOW).without_app == OpenCount(6, 36)
    index.put_app(APP)
    assert observe_control(index, NOBODYS, NOW).without_app == OpenCount(5, 30)
    assert observe_control(index, ORDERS, NOW).without_app == OpenCount()
    assert observe_control(index, ("elsewhere", "nobody"), NOW).without_app == OpenCount()
    index.remove_app(ORDERS, APP.metadata.uid)
    assert observe_control(index, ORDERS, NOW).without_app == OpenCount(6, 36)


def test_an_application_that_cannot_be_read_is_there() -> None:
    index = Index()
    index.of(ControlIndex).put(accepted("a", "orders"))
    stored = msgspec.to_builtins(APP)
    index.put_app({**stored, "metadata": {**stored["metadata"], "resourceVersion": "99"}, "spec": {}})
    assert index.of(ControlIndex).waiting.without_app("shop") == OpenCount()


def test_snapshots_on_their_way_are_counted_and_imported_ones_for_themselves() -> None:
    index, waits = Index(), StreamSnapshotStatus(phase=SnapshotPhase.PENDING, conditions=SAID)
    plain = msgspec.structs.replace(snapshot(name="plain", uid="u-plain"), status=waits)
    imported = msgspec.structs.replace(snapshot(name="import", uid="u-import"), status=waits)
    spec = msgspec.structs.replace(imported.spec, app_ref=None, uri="s3://b/p/snapshots/x/manifest.json")
    for known in (plain, msgspec.structs.replace(imported, spec=spec), snapshot(name="new", uid="u-new")):
        index.of(SnapshotIndex).put(known)
    seen = [observe_snapshot(index, ("shop", name), PLATFORM, NOW) for name in ("new", "import")]
    assert [(o.waiting.number, o.without_app.number) for o in seen if o is not None] == [(1, 1), (1, 0)]
    index.put_app(APP)
    done = StreamSnapshotStatus(phase=SnapshotPhase.READY, conditions=SAID)
    metadata = msgspec.structs.replace(plain.metadata, resource_version="21")
    index.of(SnapshotIndex).put(msgspec.structs.replace(plain, status=done, metadata=metadata))
    after = observe_snapshot(index, ("shop", "new"), PLATFORM, NOW)
    assert after is not None
    assert (after.waiting.number, after.without_app.number) == (0, 0)


def test_a_snapshot_that_is_being_deleted_is_not_on_its_way_and_keeps_no_other_one_from_being_taken() -> None:
    index = Index()
    done = StreamSnapshotStatus(phase=SnapshotPhase.READY, conditions=SAID)
    ready = msgspec.structs.replace(snapshot(name="old", uid="u-old"), status=done)
    gone = msgspec.structs.replace(ready.metadata, deletion_timestamp=TIME, resource_version="21")
    for known in (ready, msgspec.structs.replace(ready, metadata=gone), snapshot(name="new", uid="u-new")):
        index.of(SnapshotIndex).put(known)
    seen = observe_snapshot(index, ("shop", "new"), PLATFORM, NOW)
    assert seen is not None
    assert seen.waiting.number == 0
