"""Which lineage an application continues, and what that lineage starts from. No I/O."""

from __future__ import annotations

import msgspec

from tidegate.api.stream_snapshot import SnapshotPhase, StreamSnapshot, is_imported
from tidegate.api.streaming_app import SnapshotBatch, StartedFrom, StreamingApp, UpgradePhase, UpgradeStatus
from tidegate.app.observation import Observation, applied_hash
from tidegate.engine.rules.health import Health
from tidegate.pods.builders.driver_config import app_storage
from tidegate_spark.contract.protocol import FIRST_LINEAGE
from tidegate_spark.contract.reasons import Reason

UNKNOWN_LINEAGE = 0
"""Of a launch that asks the storage for it: no application runs in it."""


def lineage_of(o: Observation) -> int:
    """Return the lineage the application's state is in; the first launch opens the first one."""
    return o.app.status.lineage or FIRST_LINEAGE


def lineage_to_launch(o: Observation) -> int:
    """Return the lineage of the next launch: another one only if an upgrade or its rollback begins one.

    Of an application that starts from a snapshot, and neither the status nor that snapshot says from which, only the
    storage knows where it is: :data:`UNKNOWN_LINEAGE`.
    """
    upgrade, lineage = o.app.status.upgrade, lineage_of(o)
    if upgrade is not None and upgrade.phase in (
        UpgradePhase.STOPPING,
        UpgradePhase.GATE,
        UpgradePhase.ROLLING_BACK,
    ):
        lineage = max(lineage, upgrade.lineage)
    if lineage == FIRST_LINEAGE and lacks_starting_point(o) and not is_usable(o.origin):
        return UNKNOWN_LINEAGE
    return lineage


def lacks_starting_point(o: Observation) -> bool:
    """Return whether an application starts from a snapshot and its status says neither from which nor where it is.

    It has not begun, or the status was lost.
    """
    start, status = o.app.spec.start_from, o.app.status
    return start is not None and bool(start.snapshot_name) and status.start_from is None and not status.lineage


def is_usable(origin: StreamSnapshot | None) -> bool:
    """Return whether an application can start from a snapshot.

    One that is being deleted is whole for as long as it is kept for applications that are to start with it.
    """
    if origin is None or origin.status.storage is None or origin.status.app is None:
        return False
    if origin.metadata.deletion_timestamp is None:
        return origin.status.phase is SnapshotPhase.READY
    ready = origin.status.condition(Health.READY.value)
    kept = origin.status.phase is SnapshotPhase.DELETING and ready is not None and ready.reason == Reason.NEEDED_BY_FORK
    return kept and origin.status.ready_time is not None


def with_starting_point(o: Observation) -> StreamingApp:
    """Return the application with what its coming launch starts with in the status, where drivers are built from.

    It says which version was launched last, which is none that is new, by the driver that is there, too.
    """
    status = msgspec.structs.replace(
        o.app.status,
        start_from=recorded_or_found(o),
        upgrade=upgrade_as_launched(o),
        applied_spec_hash=applied_hash(o),
    )
    return msgspec.structs.replace(o.app, status=status)


def upgrade_as_launched(o: Observation) -> UpgradeStatus | None:
    """Return the record of the upgrade with the phase that the coming launch begins, for what is built from it."""
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase is not UpgradePhase.STOPPING:
        return upgrade
    return msgspec.structs.replace(upgrade, phase=UpgradePhase.GATE)


def recorded_or_found(o: Observation) -> StartedFrom | None:
    """Return what the application began with or, if it has not begun, what it can start with now.

    A rollback is another beginning: of the lineage that it opens, with the pin of the upgrade that it undoes. So is an
    upgrade that reads topics from elsewhere, with its own pin.
    """
    by_pin = _starting_from_pin(o)
    if by_pin is not None:
        return by_pin
    start, origin, status = o.app.spec.start_from, o.origin, o.app.status
    if status.start_from is not None or start is None or origin is None or not is_usable(origin):
        return status.start_from
    if status.lineage:
        # It has started before its status was lost. The storage says what its lineage started from: another snapshot
        # may have the name by now.
        return None
    storage, owner = origin.status.storage, origin.status.app
    assert storage is not None
    assert owner is not None
    return StartedFrom(
        snapshot_name=start.snapshot_name,
        id=origin.status.snapshot_id,
        app_uid=owner.uid,
        lineage=lineage_of(o),
        uri=storage.uri,
        endpoint=storage.endpoint,
        region=storage.region,
        path_style_access=storage.path_style_access,
        credentials_secret_name=storage.credentials_secret_name if is_imported(origin) else "",
    )


def _starting_from_pin(o: Observation) -> StartedFrom | None:
    """Return what the lineage starts from that a rollback, or an upgrade with other offsets, is about to open.

    None if no such one is about to be launched for the first time.
    """
    upgrade, metadata = o.app.status.upgrade, o.app.metadata
    if upgrade is None or upgrade.epoch or upgrade.rollback_snapshot is None:
        return None
    elsewhere = starts_elsewhere(upgrade)
    if upgrade.phase is not UpgradePhase.ROLLING_BACK and not elsewhere:
        return None
    place = app_storage(o.app)
    return StartedFrom(
        snapshot_name=upgrade.rollback_snapshot.id,
        id=upgrade.rollback_snapshot.id,
        app_uid=metadata.uid,
        lineage=upgrade.lineage,
        uri=place.uri,
        endpoint=place.endpoint,
        region=place.region,
        path_style_access=place.path_style_access,
        snapshot_lineage=upgrade.rollback_snapshot.lineage,
        fallbacks=upgrade.rollback_snapshot.fallbacks,
        batches=_batches_left(o, upgrade.rollback_snapshot.lineage),
        offsets=upgrade.starting_offsets if elsewhere else "",
        follows_epoch=o.app.status.epoch,
    )


def starts_elsewhere(upgrade: UpgradeStatus) -> bool:
    """Return whether the coming launch is of a version that reads topics from elsewhere."""
    return bool(upgrade.starting_offsets) and upgrade.phase in (UpgradePhase.STOPPING, UpgradePhase.GATE)


def _batches_left(o: Observation, lineage: int) -> tuple[SnapshotBatch, ...]:
    """Return the newest batches that are known of the lineage that a rollback leaves."""
    known = o.app.status.known_batches() if o.app.status.lineage == lineage else {}
    return tuple(SnapshotBatch(name=name, batch_id=batch) for name, batch in sorted(known.items()))
