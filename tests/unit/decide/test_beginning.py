"""An application that begins with a snapshot: when, with what, and what its status tells of snapshots."""

from typing import Any

import msgspec
import pytest

from tidegate.decide.actions import CreateDriver, RecordLaunch
from tidegate.decide.plan import decide
from tidegate.model.stream_snapshot import (
    ReclaimPolicy,
    SnapshotPhase,
    StreamSnapshot,
    StreamSnapshotSpec,
    StreamSnapshotStatus,
)
from tidegate.model.streaming_app import LastSnapshot, Phase, SnapshotBatch, StartedFrom
from tidegate.observe.observation import Observation
from tidegate_spark.protocol import CONFIG_VARIABLE, DriverConfig, Reason, StartFrom, Storage, from_json
from tidegate_testing import snapshot_observations as snapshots
from tidegate_testing.observations import (
    NOW,
    app_with,
    driver_of,
    ended_with,
    launched,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.plans import settled, status_of, verdict_of
from tidegate_testing.snapshot_observations import TIME, begun, deleted, ready_snapshot, snapshot

ORIGIN_APP = launched(app_with(name="orders", uid="u-0"))
ORIGIN = ready_snapshot(ORIGIN_APP)
FORK = app_with({"startFrom": {"snapshot": {"name": "nightly"}}}, name="variant", uid="u-9")
RECORD = StartedFrom(
    snapshot="nightly", id="nightly-aabbccdd", app_uid="u-0", lineage=1, uri="s3://streams/apps/shop/orders"
)


def config_of(o: Observation) -> DriverConfig:
    (create,) = [action for action in decide(o, NOW).actions if isinstance(action, CreateDriver)]
    (container,) = create.manifest["spec"]["containers"]
    (value,) = [item["value"] for item in container["env"] if item["name"] == CONFIG_VARIABLE]
    return from_json(DriverConfig, value)


def test_a_snapshot_that_can_not_be_read_is_not_called_missing() -> None:
    o = observe(app_with({"startFrom": {"snapshot": {"name": "nightly"}}}), origin_unreadable=True)
    assert decide(o, NOW).reason == "SnapshotUnreadable"


def test_an_application_that_begins_with_an_export_waits_for_nothing_and_its_driver_is_told() -> None:
    uri = "s3://streams/apps/shop/orders/exports/nightly-1/manifest.json"
    o = observe(app_with({"startFrom": {"export": uri}}))
    found = config_of(o)
    assert (found.export, found.start_from, found.lineage) == (uri, None, 1)
    assert config_of(observe(app_with())).export == ""


def with_phase(phase: SnapshotPhase) -> StreamSnapshot:
    return snapshot(begun(ORIGIN_APP, phase=phase))


def kept_for_forks() -> StreamSnapshot:
    waiting = snapshots.observe(deleted(ORIGIN, ReclaimPolicy.DELETE), forks=("variant",), app=ORIGIN_APP)
    return snapshots.written(waiting)


@pytest.mark.parametrize(
    ("origin", "condition", "reason"),
    [
        (None, "Stalled", "SnapshotNotFound"),
        (snapshot(StreamSnapshotStatus()), "Reconciling", "SnapshotNotReady"),
        (with_phase(SnapshotPhase.COPYING), "Reconciling", "SnapshotNotReady"),
        (with_phase(SnapshotPhase.FAILED), "Stalled", "SnapshotFailed"),
        (deleted(ORIGIN), "Stalled", "SnapshotDeleting"),
    ],
)
def test_the_first_launch_waits_for_the_snapshot(origin: Any, condition: str, reason: str) -> None:
    plan = decide(observe(FORK, origin=origin), NOW)
    assert verdict_of(plan) == (Phase.PENDING, condition, reason)
    assert "nightly" in plan.message


@pytest.mark.parametrize("origin", [ORIGIN, kept_for_forks()], ids=["ready", "deleted and kept for forks"])
def test_the_first_launch_records_what_it_begins_with_and_tells_the_driver(origin: StreamSnapshot) -> None:
    o = observe(FORK, origin=origin)
    (record,) = [action for action in decide(o, NOW).actions if isinstance(action, RecordLaunch)]
    assert (record.status.lineage, record.status.start_from) == (1, RECORD)
    place = Storage("s3://streams/apps/shop/orders")
    assert config_of(o).start_from == StartFrom(place, "nightly-aabbccdd", "fork-u-9", fork=True)


def test_every_later_launch_begins_with_the_same_even_if_its_resource_is_gone() -> None:
    app = launched(FORK, start_from=RECORD)
    told = config_of(observe(app, origin=None)).start_from
    assert told is not None
    assert (told.snapshot, told.holder) == ("nightly-aabbccdd", "fork-u-9")
    another = ready_snapshot(launched(app_with(uid="u-5")))
    assert config_of(observe(app, origin=another)).start_from == told


def test_an_application_that_begins_with_nothing_is_told_nothing() -> None:
    assert config_of(observe(app_with())).start_from is None


def test_it_has_begun_when_its_driver_runs() -> None:
    app = launched(FORK, phase=Phase.STARTING, start_from=RECORD)
    driver = running_driver(app)
    assert decide(observe(app, driver=driver), NOW).rule == "wait_for_driver_to_start"
    plan = decide(observe(app, driver=driver, agent=report_of(driver)), NOW)
    assert status_of(plan).start_from == msgspec.structs.replace(RECORD, begun=True)


def test_a_snapshot_that_can_not_be_read_is_for_a_person() -> None:
    app = launched(FORK, start_from=RECORD)
    driver = driver_of(app, phase="Succeeded", ended=ended_with(Reason.SNAPSHOT_UNUSABLE, 0, message="It is gone."))
    o = observe(app, driver=driver)
    plan = decide(o, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "SnapshotUnusable")
    assert plan.message.startswith("It is gone. Mend what is named and delete the driver's pod")
    assert decide(settled(o), NOW + 3600).actions == ()


def test_the_status_names_the_newest_snapshot() -> None:
    app = launched(app_with())
    plan = decide(observe(app, last_snapshot=ready_snapshot(app)), NOW)
    queries = (SnapshotBatch(name="main", batch_id=7),)
    assert status_of(plan).last_snapshot == LastSnapshot(
        name="nightly", id="nightly-aabbccdd", ready_at=TIME, queries=queries
    )


def test_the_secret_of_an_imported_snapshot_is_mounted_into_the_driver_that_begins_with_it() -> None:
    assert ORIGIN.status.storage is not None
    storage = msgspec.structs.replace(ORIGIN.status.storage, credentials_secret="far-keys")
    imported = msgspec.structs.replace(
        ORIGIN,
        spec=StreamSnapshotSpec(uri="s3://streams/apps/shop/orders/snapshots/nightly-aabbccdd/manifest.json"),
        status=msgspec.structs.replace(ORIGIN.status, storage=storage),
    )
    o = observe(FORK, origin=imported)
    config = config_of(o)
    assert config.start_from is not None
    assert config.start_from.credentials_secret == "far-keys"
    (create,) = [action for action in decide(o, NOW).actions if isinstance(action, CreateDriver)]
    spec = create.manifest["spec"]
    (volume,) = [v for v in spec["volumes"] if v["name"] == "tidegate-origin-credentials"]
    assert volume["secret"] == {"secretName": "far-keys", "optional": True, "defaultMode": 0o440}
    (container,) = [c for c in spec["containers"] if c["name"] == "driver"]
    assert {"name": volume["name"], "mountPath": "/var/run/tidegate/origin-credentials", "readOnly": True} in container[
        "volumeMounts"
    ]
    # Of one that was taken here, the application's own credentials read the place, as ever.
    ours = msgspec.structs.replace(imported, spec=ORIGIN.spec)
    own = config_of(observe(FORK, origin=ours)).start_from
    assert own is not None
    assert own.credentials_secret == ""
