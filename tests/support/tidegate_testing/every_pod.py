"""Every kind of pod that Tidegate makes, of an application with a change to its spec."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from tidegate.api.stream_snapshot import ExportSpec, StreamSnapshot
from tidegate.api.streaming_app import RepartitionStatus, StartedFrom, StreamingApp, UpgradePhase
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.builders.rehearsal_pod import build_rehearsal
from tidegate.app.builders.release_pod import build_release_pod
from tidegate.app.builders.repartition_pod import build_repartition_pod
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.platform import Platform
from tidegate.snapshots.builders.export_pod import build_export_pod
from tidegate.snapshots.builders.snapshot_pod import build_snapshot_pod
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, VerifyOrder
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.rehearsals import rehearsing
from tidegate_testing.snapshot_observations import ID, begun, snapshot
from tidegate_testing.upgrades import PIN, under_test

Pod = dict[str, Any]
Change = dict[str, Any]


class Build(Protocol):
    """Makes a pod of an application with a change to its spec."""

    def __call__(self, change: Change, platform: Platform = ..., /) -> Pod:
        """Return it."""
        ...


ATTEMPT = RepartitionStatus(partitions=8, previous_partitions=4, snapshot_id=PIN, epoch=2, lineage=3, attempts=1)


def snapshot_of(app: StreamingApp) -> StreamSnapshot:
    found = snapshot(begun(app))
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, export=ExportSpec()))


def storage_pod(orders: SnapshotOrders, *, gone: bool = False) -> Build:
    def build(change: Change, platform: Platform = PLATFORM, /) -> Pod:
        app = launched(app_with(change))
        return build_snapshot_pod(snapshot_of(app), None if gone else app, orders, platform)

    return build


def export_pod(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    app = launched(app_with(change))
    return build_export_pod(snapshot_of(app), app, platform)


def export_pod_of_one_that_is_gone(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    return build_export_pod(snapshot_of(launched(app_with(change))), None, platform)


def release_pod(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    began = StartedFrom(snapshot_name="other", id=ID, app_uid="u-9", lineage=1, uri="s3://elsewhere/apps/shop/other")
    return build_release_pod(launched(app_with(change), start_from=began), platform)


def repartition_pod(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    asked = {"state.partitions": 8, **change}
    return build_repartition_pod(under_test(UpgradePhase.REPARTITIONING, asked, repartition=ATTEMPT, epoch=0), platform)


def of_driver(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    return build_driver_pod(app_with(change), 1, 1, platform)


BESIDE: dict[str, Build] = {
    "purge": lambda change, platform=PLATFORM, /: build_purge_pod(launched(app_with(change)), platform),
    "take": storage_pod(SnapshotOrders(take=(SnapshotOrder(ID),))),
    "verify": storage_pod(SnapshotOrders(verify=(VerifyOrder(f"{ID}-1", ID),))),
    "dispose": storage_pod(SnapshotOrders(dispose=(ID,))),
    "dispose of one whose application is gone": storage_pod(SnapshotOrders(dispose=(ID,)), gone=True),
    "export": export_pod,
    "export of one whose application is gone": export_pod_of_one_that_is_gone,
    "release": release_pod,
    "repartition": repartition_pod,
    "rehearsal": lambda change, platform=PLATFORM, /: build_rehearsal(rehearsing(change), platform).manifest,
}
ALL = BESIDE | {"driver": of_driver}


def of_executor(change: Change, platform: Platform = PLATFORM, /) -> Pod:
    app = app_with(change)
    return build_executor_template(app, 1, app_storage(app), platform)
