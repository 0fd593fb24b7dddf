"""The version whose state a snapshot ordered now would hold. No I/O."""

from __future__ import annotations

import json

from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.stream_snapshot import SnapshotVersion
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.plain_secrets import without_secrets
from tidegate.snapshots.observation import SnapshotObservation
from tidegate_spark.contract.snapshot_protocol import LONGEST_SPEC

_IMAGE = "application.image"


def version_taken(o: SnapshotObservation) -> SnapshotVersion | None:
    """Return the version of the driver that runs, else of the last that did; None if neither is known.

    The spec may have been edited since: what it says now is another version, which has committed nothing yet.
    """
    if o.app is None:
        return None
    wanted = _hash_taken(o, o.app)
    return SnapshotVersion(spec_hash=wanted, spec=_shown(_spec_of(o.app, wanted))) if wanted else None


def image_taken(o: SnapshotObservation) -> str:
    """Return the image of that version; the one that is known if nobody knows the version any more, else the spec's."""
    known = o.snapshot.status.image
    if o.app is None:
        return known
    return image_of_version(o.app, _hash_taken(o, o.app)) or known or o.app.spec.application.image


def image_of_version(app: StreamingApp, wanted: str) -> str:
    """Return the image of an application's version with this hash, empty if nobody knows it any more."""
    version = _spec_of(app, wanted)
    return str(json.loads(version)[_IMAGE]) if version else ""


def _hash_taken(o: SnapshotObservation, app: StreamingApp) -> str:
    return (o.driver.spec_hash if o.driver is not None else "") or app.status.applied_spec_hash


def _spec_of(app: StreamingApp, wanted: str) -> str:
    """Return what makes the version of this hash, as JSON, empty if nobody knows any more."""
    if wanted == spec_hash(app):
        return version_of(app.spec)
    upgrade = app.status.upgrade
    known = (app.status.last_stable, upgrade.previous if upgrade is not None else None)
    return next((each.spec for each in known if each is not None and each.spec_hash == wanted), "")


def _shown(version: str) -> str:
    """Return a version as anybody may read it who may read snapshots, empty if it is too long to be carried along."""
    shown = without_secrets(version)
    return shown if len(shown) <= LONGEST_SPEC else ""
