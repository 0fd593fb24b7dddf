"""An application that starts from a snapshot: when, with what, and what its status tells of snapshots."""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, StreamSnapshotSpec, StreamSnapshotStatus
from tidegate.api.streaming_app import (
    DeletionPolicy,
    LastSnapshot,
    Phase,
    RepartitionStatus,
    RollbackSnapshot,
    SnapshotBatch,
    StartedFrom,
    StreamingApp,
    UpgradePhase,
)
from tidegate.app.actions import CreateDriver, RecordLaunch
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, QueryReport, StartFrom, Storage, from_json
from tidegate_spark.contract.reasons import Reason
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
from tidegate_testing.upgrades import stable, upgraded, upgrading

ORIGIN_APP = launched(app_with(name="orders", uid="u-0"))
ORIGIN = ready_snapshot(ORIGIN_APP)
FORK = app_with({"startFrom": {"snapshotRef": {"name": "nightly"}}}, name="variant", uid="u-9")
NEW_FORK = msgspec.structs.replace(FORK, metadata=msgspec.structs.replace(FORK.metadata, finalizers=()))
"""Nobody has begun to launch it."""
RECORD = StartedFrom(
    snapshot_name="nightly", id="nightly-aabbccdd", app_uid="u-0", lineage=1, uri="s3://streams/apps/shop/orders"
)


def config_of(o: Observation) -> DriverConfig:
    (create,) = [action for action in decide(o, NOW).actions if isinstance(action, CreateDriver)]
    (container,) = create.manifest["spec"]["containers"]
    (value,) = [item["value"] for item in container["env"] if item["name"] == CONFIG_VARIABLE]
    return from_json(DriverConfig, value)


def test_a_snapshot_that_can_not_be_read_is_not_called_missing() -> None:
    o = observe(NEW_FORK, origin_unreadable=True)
    assert decide(o, NOW).reason == "SnapshotUnreadable"


def test_an_application_that_starts_from_an_export_waits_for_nothing_and_its_driver_is_told() -> None:
    uri = "s3://streams/apps/shop/orders/exports/nightly-1/manifest.json"
    o = observe(app_with({"startFrom": {"exportedState": {"uri": uri}}}))
    found = config_of(o)
    assert (found.export, found.start_from, found.lineage) == (uri, None, 1)
    assert config_of(observe(app_with())).export == ""


def test_a_fork_that_was_created_again_without_its_snapshot_continues_once_it_is_told_to_take_over() -> None:
    waiting = decide(observe(NEW_FORK), NOW)
    assert waiting.reason == "SnapshotNotFound"
    assert "spec.startFrom.adopt" in waiting.message
    reported = app_with({"startFrom": {"snapshotRef": {"name": "nightly"}, "adopt": True}}, name="variant", uid="u-9")
    for finalizers in (reported.metadata.finalizers, ()):  # launched before, or told so from the first
        metadata = msgspec.structs.replace(reported.metadata, finalizers=finalizers)
        for origin in (None, with_phase(SnapshotPhase.FAILED), with_phase(SnapshotPhase.PENDING)):
            found = config_of(observe(msgspec.structs.replace(reported, metadata=metadata), origin=origin))
            assert (found.adopt, found.start_from, found.lineage) == (True, None, 1)


def with_phase(phase: SnapshotPhase) -> StreamSnapshot:
    return snapshot(begun(ORIGIN_APP, phase=phase))


def kept_for_forks() -> StreamSnapshot:
    waiting = snapshots.observe(deleted(ORIGIN, DeletionPolicy.DELETE), forks=("variant",), app=ORIGIN_APP)
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
    plan = decide(observe(NEW_FORK, origin=origin), NOW)
    assert verdict_of(plan) == (Phase.PENDING, condition, reason)
    assert "nightly" in plan.message


@pytest.mark.parametrize("origin", [ORIGIN, kept_for_forks()], ids=["ready", "deleted and kept for forks"])
def test_the_first_launch_records_what_it_starts_from_and_tells_the_driver(origin: StreamSnapshot) -> None:
    o = observe(NEW_FORK, origin=origin)
    (record,) = [action for action in decide(o, NOW).actions if isinstance(action, RecordLaunch)]
    assert (record.status.lineage, record.status.start_from) == (1, RECORD)
    place = Storage("s3://streams/apps/shop/orders")
    assert config_of(o).start_from == StartFrom(place, "nightly-aabbccdd", "fork-u-9", fork=True)


OFFSETS = '{"orders":{"0":120,"1":17}}'


def fork_with(offsets: str) -> StreamingApp:
    start = {"snapshotRef": {"name": "nightly"}, "startingOffsets": offsets}
    return app_with({"startFrom": start}, name="variant", uid="u-9")


def test_the_driver_is_told_of_offsets_that_take_the_place_of_the_snapshots_at_every_launch() -> None:
    first, later = fork_with(OFFSETS), launched(fork_with(OFFSETS), start_from=RECORD)
    for o in (observe(first, origin=ORIGIN), observe(later, origin=None)):
        reported = config_of(o).start_from
        assert reported is not None
        assert reported.offsets == OFFSETS


@pytest.mark.parametrize(
    "offsets", ["{", "[]", '{"orders":{"0":-2}}', '{"orders":{"0":1.5}}', '{"orders":{"a":1}}', '{"orders":{}}']
)
def test_offsets_that_say_nothing_keep_the_application_from_being_launched(offsets: str) -> None:
    plan = decide(observe(fork_with(offsets), origin=ORIGIN), NOW)
    assert verdict_of(plan) == (Phase.PENDING, "Stalled", "InvalidSpec")
    assert "spec.startFrom.startingOffsets: must be JSON such as" in plan.message
    assert not [action for action in plan.actions if isinstance(action, RecordLaunch)]


def test_every_later_launch_starts_from_the_same_even_if_its_resource_is_gone() -> None:
    app = launched(FORK, start_from=RECORD)
    reported = config_of(observe(app, origin=None)).start_from
    assert reported is not None
    assert (reported.snapshot, reported.holder) == ("nightly-aabbccdd", "fork-u-9")
    another = ready_snapshot(launched(app_with(uid="u-5")))
    assert config_of(observe(app, origin=another)).start_from == reported


def test_an_application_that_starts_from_nothing_is_told_nothing() -> None:
    assert config_of(observe(app_with())).start_from is None


def test_it_has_begun_when_its_driver_runs() -> None:
    app = launched(FORK, phase=Phase.STARTING, start_from=RECORD)
    driver = running_driver(app)
    assert decide(observe(app, driver=driver), NOW).rule == "wait_for_driver_to_start"
    plan = decide(observe(app, driver=driver, agent=report_of(driver)), NOW)
    assert status_of(plan).start_from == msgspec.structs.replace(RECORD, started=True)


def test_a_snapshot_that_can_not_be_read_is_for_a_person() -> None:
    app = launched(FORK, start_from=RECORD)
    driver = driver_of(app, phase="Succeeded", ended=ended_with(Reason.SNAPSHOT_UNUSABLE, 0, message="It is gone."))
    o = observe(app, driver=driver)
    plan = decide(o, NOW)
    assert verdict_of(plan) == (Phase.FAILED, "Stalled", "SnapshotUnusable")
    assert plan.message.startswith(
        "It is gone. Restore what the message names, or move the other files that it names elsewhere; "
        'then run "kubectl delete pod variant-driver -n shop"'
    )
    assert decide(settled(o), NOW + 3600).actions == ()


def test_the_status_names_the_newest_snapshot() -> None:
    app = launched(app_with())
    plan = decide(observe(app, last_snapshot=ready_snapshot(app)), NOW)
    queries = (SnapshotBatch(name="main", batch_id=7),)
    assert status_of(plan).last_snapshot == LastSnapshot(
        name="nightly", id="nightly-aabbccdd", ready_time=TIME, queries=queries
    )


def test_the_secret_of_an_imported_snapshot_is_mounted_into_the_driver_that_starts_from_it() -> None:
    assert ORIGIN.status.storage is not None
    storage = msgspec.structs.replace(ORIGIN.status.storage, credentials_secret_name="far-keys")
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


def fork_on(partitions: int, change: dict[str, Any] | None = None, **fields: Any) -> StreamingApp:
    """Return a fork that asks for four partitions, if nothing else, and whose state is known to have another number."""
    asked = {"startFrom": {"snapshotRef": {"name": "nightly"}}, **(change or {})}
    app = app_with(asked, name="variant", uid="u-9")
    begun = msgspec.structs.replace(RECORD, started=True)
    status = {"start_from": begun, "state_partitions": partitions, "phase": Phase.RUNNING, "batch": 3}
    return launched(app, **{**status, **fields})


def running(app: StreamingApp, *reported: int) -> dict[str, Any]:
    driver = running_driver(app, ready=True)
    queries = tuple(
        QueryReport(f"q{number}", batch_id=3, committed=9, state_partitions=partitions)
        for number, partitions in enumerate(reported)
    )
    return {"driver": driver, "agent": report_of(driver, queries=queries)}


def test_how_many_partitions_a_snapshots_state_has_is_not_known_before_its_queries_tell() -> None:
    assert status_of(decide(observe(FORK, origin=ORIGIN), NOW)).state_partitions == 0
    again = fork_on(0, phase=Phase.FAILED)
    assert status_of(decide(observe(again), NOW)).state_partitions == 0


@pytest.mark.parametrize(
    ("known", "reported", "said"), [(0, (200,), 200), (4, (200,), 200), (0, (4, 200), 200), (4, (200, 4), 4)]
)
def test_its_status_has_the_number_that_the_queries_tell_whatever_the_spec_says(
    known: int, reported: tuple[int, ...], said: int
) -> None:
    app = fork_on(known)
    assert settled(observe(app, **running(app, *reported))).app.status.state_partitions == said


def test_queries_that_have_not_told_yet_or_are_of_an_earlier_epoch_change_nothing() -> None:
    app = fork_on(200)
    assert settled(observe(app, **running(app, 0))).app.status.state_partitions == 200
    later = fork_on(200, epoch=2)
    earlier = running_driver(later, ready=True, epoch=1)
    agent = report_of(earlier, queries=(QueryReport("main", state_partitions=4),))
    assert settled(observe(later, driver=earlier, agent=agent)).app.status.state_partitions == 200


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"state.partitions": 8}, RepartitionStatus(partitions=8, previous_partitions=200)),
        ({"state.partitions": 200}, None),
        ({"application.image": "shop/orders:2"}, None),
    ],
)
def test_an_edit_of_a_stable_fork_is_compared_with_the_number_that_its_state_has(
    change: dict[str, Any], wanted: RepartitionStatus | None
) -> None:
    fork = stable(fork_on(200))
    newer = msgspec.structs.replace(fork_on(200, change), status=fork.status)
    upgrade = status_of(decide(observe(newer, **running(fork, 200)), NOW)).upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.repartition) == (UpgradePhase.COPYING, wanted)


@pytest.mark.parametrize("change", [{"application.image": "shop/orders:3"}, {"application.args": ["--b"]}])
def test_a_forks_number_that_nobody_changed_does_not_wait_for_anything(change: dict[str, Any]) -> None:
    fork = fork_on(200)
    first = msgspec.structs.replace(fork_on(200, change), status=fork.status)
    assert decide(observe(first, **running(fork, 200)), NOW).spec_hash == spec_hash(first)
    tested = upgrading(fork_on(200, {"application.image": "shop/orders:2"}), fork, UpgradePhase.FAILED)
    newer = msgspec.structs.replace(fork_on(200, change), status=tested.status)
    plan = decide(observe(newer, **running(tested, 200)), NOW)
    upgrade = status_of(plan).upgrade
    assert upgrade is not None
    assert (upgrade.to_spec_hash, upgrade.repartition) == (spec_hash(newer), None)


def test_a_launch_on_state_in_another_number_says_what_both_are_and_how_it_is_repartitioned_after_all() -> None:
    plan = decide(observe(fork_on(200)), NOW)
    (events,) = [
        each for each in plan.actions if isinstance(each, PublishEvent) and each.reason == "StatePartitionsKept"
    ]
    assert "has 200 partitions, and spec.state.partitions is 4" in events.message
    assert "set the field to 200, and to 4 when the application is stable" in events.message


def test_a_fork_is_repartitioned_by_the_two_edits_that_its_event_names() -> None:
    same = upgraded(fork_on(200, {"state.partitions": 200}), fork_on(200))
    back = msgspec.structs.replace(fork_on(200), status=same.status)
    upgrade = status_of(decide(observe(back, **running(same, 200)), NOW)).upgrade
    assert upgrade is not None
    assert (upgrade.phase, upgrade.repartition) == (
        UpgradePhase.COPYING,
        RepartitionStatus(partitions=4, previous_partitions=200),
    )


def test_a_status_with_former_names_is_read_and_the_next_write_has_the_new_ones() -> None:
    place = {"snapshotName": "up", "id": "up", "appUid": "u", "lineage": 2, "uri": "s3://streams"}
    former = msgspec.convert({**place, "begun": True, "ofLineage": 1}, StartedFrom)
    assert (former.has_started, former.undone_lineage) == (True, 1)
    lost = msgspec.convert({"id": "up", "lineage": 1, "lost": "A file is gone."}, RollbackSnapshot)
    assert lost.loss == "A file is gone."
    assert msgspec.convert({"partitions": 8, "before": 4}, RepartitionStatus).from_partitions == 4
    app = launched(FORK, phase=Phase.STARTING, start_from=msgspec.structs.replace(RECORD, begun=True))
    driver = running_driver(app)
    plan = decide(observe(app, driver=driver, agent=report_of(driver)), NOW)
    assert status_of(plan).start_from == msgspec.structs.replace(RECORD, started=True)
