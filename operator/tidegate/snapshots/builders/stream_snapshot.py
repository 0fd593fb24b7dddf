"""Builds the StreamSnapshots that Tidegate creates: scheduled and final ones. No I/O."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from tidegate.api.stream_snapshot import (
    ANNOTATION_KEEP,
    ANNOTATION_SCHEDULED_AT,
    LABEL_AT_DELETION,
    LABEL_SCHEDULED,
    SNAPSHOT_KIND,
    Retention,
)
from tidegate.api.streaming_app import API_VERSION, DeletionPolicy, StreamingApp
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, LABEL_APP, LABEL_MANAGED_BY, MANAGED_BY


def keep_text(app: StreamingApp) -> str:
    """Return what is noted on an application's scheduled snapshots about how long they stay."""
    snapshots = app.spec.snapshots
    with_app = app.spec.storage.deletion_policy is DeletionPolicy.DELETE
    if snapshots is None:
        # Who takes the schedule away has not said that its snapshots are to go.
        return msgspec.json.encode(Retention(with_app=with_app)).decode()
    limits = snapshots.retention
    noted = Retention(max_count=limits.max_count, max_age_seconds=limits.max_age_seconds, with_app=with_app)
    return msgspec.json.encode(noted).decode()


def scheduled_name(app_name: str, slot: float) -> str:
    """Return the name of the snapshot of one time of the schedule, which is a whole minute."""
    return f"{app_name}-{datetime.datetime.fromtimestamp(slot, datetime.UTC):%Y%m%d-%H%M}"


def last_name(app: StreamingApp) -> str:
    """Return the name of the snapshot that is taken when the application is deleted."""
    return f"{app.metadata.name}-last-{app.metadata.uid.replace('-', '')[:8]}"


def build_scheduled(app: StreamingApp, slot: float) -> dict[str, Any]:
    """Return the snapshot of one time of the schedule; it belongs to nobody, so that it outlives the application."""
    at = datetime.datetime.fromtimestamp(slot, datetime.UTC).isoformat()
    annotations = {ANNOTATION_SCHEDULED_AT: at, ANNOTATION_KEEP: keep_text(app)}
    return _build(app, scheduled_name(app.metadata.name, slot), LABEL_SCHEDULED, DeletionPolicy.DELETE, annotations)


def build_last(app: StreamingApp) -> dict[str, Any]:
    """Return the snapshot that is taken when the application is deleted, and stays until somebody removes it."""
    return _build(app, last_name(app), LABEL_AT_DELETION, DeletionPolicy.RETAIN, {})


def _build(
    app: StreamingApp, name: str, label: str, policy: DeletionPolicy, annotations: dict[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": SNAPSHOT_KIND,
        "metadata": {
            "name": name,
            "namespace": app.metadata.namespace,
            "labels": {LABEL_APP: app.metadata.name, LABEL_MANAGED_BY: MANAGED_BY, label: "true"},
            "annotations": {ANNOTATION_APP_UID: app.metadata.uid, **annotations},
        },
        "spec": {
            "appRef": {"name": app.metadata.name},
            "deletionPolicy": policy.value,
            **({"verifyNonce": 1} if app.spec.snapshots is not None and app.spec.snapshots.verify else {}),
        },
    }
