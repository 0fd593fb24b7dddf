"""Which version is in force: the spec's, the recorded one under test, or the last stable one. No I/O."""

from __future__ import annotations

import dataclasses

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import StableSpec, UpgradePhase
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.upgrade.record import OLD_RUNS, UNDER_TEST, rival_of, version_held
from tidegate.app.rules.upgrade.repartition.dry_run import why_not_launchable

STABLE_PHASES = frozenset({*OLD_RUNS, UpgradePhase.REFUSED, UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK})
"""Phases in which the last stable version is to run, whatever the spec says."""


def with_version_under_test(o: Observation) -> Observation:
    """Return the observation with the version under test in place of a later edit from which no pod can be built.

    Such an edit changes nothing about the upgrade under way. The record of an earlier operator has no version.
    """
    upgrade, stable = o.app.status.upgrade, o.app.status.last_stable
    if upgrade is None or upgrade.phase not in UNDER_TEST or not upgrade.to_spec:
        return o
    known = (upgrade.to_spec_hash, stable.spec_hash if stable is not None else "")
    if o.spec_hash in known or not why_not_launchable(o):
        return o
    return with_version(o, StableSpec(spec_hash=upgrade.to_spec_hash, spec=upgrade.to_spec)) or o


def with_effective_spec(o: Observation, asked: str = "") -> Observation:
    """Return the observation with the version that is to run in place of the spec's, as all other rules take it.

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
    # Where nobody knows the version that runs, it is left alone, and not started again.
    return with_version(o, stable) or dataclasses.replace(o, spec_hash=o.app.status.applied_spec_hash)


def with_version(o: Observation, version: StableSpec | None) -> Observation | None:
    """Return the observation with a recorded version in the spec, None if nothing can be made of the record.

    What makes no version (policies, number of executors, suspend) stays the spec's.
    """
    held = version_held(o.app.spec, version)
    if held is None or version is None:
        return None
    app = msgspec.structs.replace(o.app, spec=held)
    rival = rival_of(o, version)
    unasked = CheckedReferences()
    return dataclasses.replace(o, app=app, spec_hash=spec_hash(app), rival=rival, rejection=None, references=unasked)
