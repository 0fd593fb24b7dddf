"""Why a driver was asked to stop, as the status records it. No I/O."""

from __future__ import annotations

from tidegate.api.status.status import Phase, StreamingAppStatus
from tidegate_spark.contract.reasons import Reason

_ASKED_FOR = frozenset(
    {
        Reason.SUSPENDING,
        Reason.SPEC_CHANGED,
        Reason.RESUMING,
        Reason.UPGRADE_ROLLING_BACK,
        Reason.UPGRADE_REPARTITIONING,
    }
)


def stop_was_asked_for(status: StreamingAppStatus) -> bool:
    """Return whether the driver was last seen stopping for somebody's wish, be that wish taken back or not.

    The wish is written to status before the driver is asked to end; so the status knows of it when the spec, which was
    changed back meanwhile, does not.
    """
    ready = status.condition("Ready")
    # An earlier operator called it Stopping as well while state was divided.
    going = status.phase in (Phase.STOPPING, Phase.REPARTITIONING)
    return going and ready is not None and ready.reason in _ASKED_FOR
