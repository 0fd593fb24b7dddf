"""Whether an application has been launched, or may have been before its status was lost. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import Phase, StreamingApp, StreamingAppStatus
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_spark.contract.reasons import Reason

_NEVER_LAUNCHED = frozenset({Reason.INVALID_SPEC, Reason.CONFIGURATION_TOO_LONG})
"""Reasons of an application of which no pod could be made yet."""


def may_be_lost(app: StreamingApp) -> bool:
    """Return whether an application may have been launched although its status knows of no launch.

    The finalizer comes with the first launch. An earlier operator gave it as well to an application of which no pod
    could be made, and the status says that: one that was lost does not, as it has an epoch by then. It counts only
    beside the condition Available: who reports a resource that cannot be decoded uses the same reason, and knows
    nothing of launches. Nor does it count while the application is deleted: a purge of which no pod can be made has
    that reason, too.
    """
    if app.status.epoch or FINALIZER not in app.metadata.finalizers:
        return False
    ready = app.status.condition("Ready")
    decided = app.status.condition("Available") is not None and app.status.phase is not Phase.DELETING
    return ready is None or not decided or ready.reason not in _NEVER_LAUNCHED


def has_launched(status: StreamingAppStatus) -> bool:
    """Return whether a status knows of a launch, and so of state and of a version that wrote it.

    An epoch alone does not: an application that lost its status while no pod can be made has one, too.
    """
    return bool(status.epoch and (status.applied_spec_hash or status.lineage))


def may_have_launched(app: StreamingApp) -> bool:
    """Return whether there may be a driver of the application, or something in its storage."""
    return bool(app.status.epoch) or may_be_lost(app)
