"""Applications in the middle of an upgrade, or after one, for tests of decisions. Pure."""

import datetime
from typing import Any

import msgspec

from tidegate.decide.spec_hash import spec_hash, version_of
from tidegate.model.streaming_app import (
    StableSpec,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
    UpgradePin,
    UpgradeStatus,
)
from tidegate_testing.observations import NOW

PIN, COPY = "up-u1-1-1", "up-u1-1-1-copy"
BEGUN = datetime.datetime.fromtimestamp(NOW - 10, datetime.UTC)


def stable_of(app: StreamingApp) -> StableSpec:
    """Return the application's spec as a stable version."""
    return StableSpec(spec_hash=spec_hash(app), spec=version_of(app.spec), lineage=1, at=BEGUN)


def stable(app: StreamingApp) -> StreamingApp:
    """Return the application with its spec as the last stable version."""
    return _with_status(app, last_stable=stable_of(app))


def upgrading(app: StreamingApp, old: StreamingApp, phase: UpgradePhase, **fields: Any) -> StreamingApp:
    """Return the application on its way from the version of ``old`` to its own, by a pin of lineage 1."""
    launched = phase not in (UpgradePhase.COPYING, UpgradePhase.STOPPING, UpgradePhase.REFUSED)
    known: dict[str, Any] = {
        "phase": phase,
        "mode": UpgradeMode.SNAPSHOT,
        "number": 1,
        "from_spec_hash": spec_hash(old),
        "to_spec_hash": spec_hash(app),
        "lineage": 1,
        "started_at": BEGUN,
        "since": BEGUN,
        "reason": "Reason",
        "message": "Words.",
        "epoch": 2 if launched else 0,
        "pin": UpgradePin(id=PIN, lineage=1, copy=COPY),
    }
    return _with_status(app, last_stable=stable_of(old), upgrade=UpgradeStatus(**{**known, **fields}))


def upgraded(app: StreamingApp, old: StreamingApp) -> StreamingApp:
    """Return the application after an upgrade from the version of ``old``."""
    done = upgrading(app, old, UpgradePhase.DONE, previous=stable_of(old))
    return _with_status(done, last_stable=stable_of(app))


def _with_status(app: StreamingApp, **fields: Any) -> StreamingApp:
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, **fields))
