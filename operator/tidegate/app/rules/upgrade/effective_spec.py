"""Which version is to run: the one of the spec, or the last stable one while that is held to. No I/O."""

from __future__ import annotations

import dataclasses

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import UpgradePhase
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.upgrade.record import rival_of, version_held

STABLE_PHASES = frozenset(
    {
        UpgradePhase.COPYING,
        UpgradePhase.REHEARSING,
        UpgradePhase.REFUSED,
        UpgradePhase.ROLLING_BACK,
        UpgradePhase.ROLLED_BACK,
    }
)
"""Phases in which the last stable version is to run, whatever the spec says."""


def with_effective_spec(o: Observation, asked: str = "") -> Observation:
    """Return the observation with the version that is to run in place of the spec's, as all other rules take it.

    What makes no version (policies, number of executors, suspend) is always the spec's.

    Args:
        o: everything that is known.
        asked: hash of all that the spec asks for, where something of it has to wait: a record may be about that.
    """
    upgrade, stable = o.app.status.upgrade, o.app.status.last_stable
    if upgrade is None or upgrade.phase not in STABLE_PHASES:
        return o
    if upgrade.to_spec_hash not in (o.spec_hash, asked) and upgrade.phase is not UpgradePhase.ROLLING_BACK:
        return o  # edited meanwhile, and nothing begins while the application is suspended
    if stable is not None and stable.spec_hash == o.spec_hash:
        return o
    held = version_held(o.app.spec, stable)
    if held is None:
        # Nobody knows the version that runs; it is left alone, and not started again.
        return dataclasses.replace(o, spec_hash=o.app.status.applied_spec_hash)
    app = msgspec.structs.replace(o.app, spec=held)
    rival = rival_of(o, stable)
    unasked = CheckedReferences()
    return dataclasses.replace(o, app=app, spec_hash=spec_hash(app), rival=rival, unfit=None, references=unasked)
