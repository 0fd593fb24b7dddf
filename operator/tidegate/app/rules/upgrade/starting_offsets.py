"""Whether the next version reads topics from elsewhere than where the application is, with its state. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import UpgradeMode
from tidegate.app.observation import Observation
from tidegate.app.rules.upgrade.repartition import wanted_repartition


def offsets_asked(o: Observation) -> str:
    """Return the offsets with which the next version starts, empty if it goes on where the application is.

    They are those of a spec that names the present lineage: once used, they mean nothing any more. State that is to be
    repartitioned, or given up, has a lineage of its own, and goes first.
    """
    asked = o.app.spec.upgrade.starting_offsets
    if asked is None or asked.lineage != o.app.status.lineage or o.app.spec.upgrade.mode is UpgradeMode.STATELESS:
        return ""
    return asked.offsets if wanted_repartition(o) is None else ""
