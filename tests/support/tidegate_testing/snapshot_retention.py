"""What the operator's retention releases, by the operator's own rules: it deletes resources, and those have files
removed. Pure."""

import datetime
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import ANNOTATION_KEEP, LABEL_SCHEDULED, StreamSnapshot
from tidegate.api.streaming_app import DeletionPolicy
from tidegate.snapshots.actions import CreateSnapshotPod, DeleteSnapshot
from tidegate.snapshots.rules.plan import decide_snapshot
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, from_json
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrders
from tidegate_testing.observations import NOW
from tidegate_testing.snapshot_observations import deleted, later_than, observe, ready_snapshot

_MINUTE = 60.0
"""A second of the tests' clock: no spec says less."""


@dataclass(frozen=True)
class Kept:
    """A complete snapshot, as its resource tells of it."""

    id: str
    created: float
    scheduled: bool = True


@dataclass(frozen=True)
class Keep:
    """What ``spec.snapshots.retention`` says; 0: no limit."""

    last: int = 0
    seconds: int = 0


def to_release(those: Iterable[Kept], keep: Keep, now: float) -> list[str]:
    """Return the ids of the snapshots whose files the operator then has removed, the oldest first.

    Args:
        those: all complete ones of an application.
        keep: how long scheduled ones stay.
        now: seconds, as ``created``.
    """
    ordered = sorted(those, key=lambda kept: kept.created)
    known = {kept.id: _resource(kept, keep) for kept in ordered}
    return [name for name in known if _is_deleted(name, known, now) and _has_its_files_removed(known[name])]


def _is_deleted(name: str, known: dict[str, StreamSnapshot], now: float) -> bool:
    others = tuple(resource for other, resource in known.items() if other != name)
    plan = decide_snapshot(observe(known[name], later=later_than(known[name], others)), NOW + now * _MINUTE)
    return any(action == DeleteSnapshot(known[name]) for action in plan.actions)


def _has_its_files_removed(resource: StreamSnapshot) -> bool:
    plan = decide_snapshot(observe(deleted(resource)), NOW)
    orders = [_orders(action) for action in plan.actions if isinstance(action, CreateSnapshotPod)]
    return orders == [SnapshotOrders(dispose=(snapshot_id(resource.metadata),))]


def _orders(create: CreateSnapshotPod) -> SnapshotOrders:
    variables: Sequence[dict[str, str]] = create.manifest["spec"]["containers"][0]["env"]
    return from_json(SnapshotOrders, next(it["value"] for it in variables if it["name"] == ORDERS_VARIABLE))


def _resource(kept: Kept, keep: Keep) -> StreamSnapshot:
    found = _complete()
    limits = {"maxCount": keep.last} if keep.last else {}
    limits |= {"maxAgeSeconds": 60 * keep.seconds} if keep.seconds else {}
    metadata = msgspec.structs.replace(
        found.metadata,
        name=kept.id,
        creation_timestamp=datetime.datetime.fromtimestamp(NOW + kept.created * _MINUTE, datetime.UTC),
        labels={LABEL_SCHEDULED: "true"} if kept.scheduled else {},
        annotations={ANNOTATION_KEEP: msgspec.json.encode(limits).decode(), ANNOTATION_APP_UID: "u-1"},
    )
    status = msgspec.structs.replace(found.status, snapshot_id=snapshot_id(metadata))
    spec = msgspec.structs.replace(found.spec, deletion_policy=DeletionPolicy.DELETE)
    return msgspec.structs.replace(found, metadata=metadata, spec=spec, status=status)


@functools.cache
def _complete() -> StreamSnapshot:
    return ready_snapshot()
