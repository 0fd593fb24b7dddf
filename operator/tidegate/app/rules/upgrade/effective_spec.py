"""Which version pods are built from: the spec's, the recorded one under test, or the last stable one. No I/O."""

from __future__ import annotations

import dataclasses

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import StableSpec, UpgradeMode, UpgradePhase
from tidegate.app.observation import CheckedReferences, Observation, applied_hash
from tidegate.app.rules.launch.launch import reason_not_built
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages
from tidegate.app.rules.upgrade.adoption import runs_another_elsewhere
from tidegate.app.rules.upgrade.record import OLD_RUNS, UNDER_TEST, rival_of, version_held
from tidegate.app.rules.upgrade.repartition.dry_run import why_not_launchable
from tidegate.pods.records.fault_messages import sentence
from tidegate_spark.contract.reasons import Reason

ABANDON_ANNOTATION = "tidegate.dev/abandon-state"
"""On a StreamingApp: the lineage that an upgrade of mode Stateless may give up."""
STABLE_PHASES = frozenset({*OLD_RUNS, UpgradePhase.REFUSED, UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK})
"""Phases in which the last stable version is to run, whatever the spec says."""


def with_version_under_test(o: Observation) -> Observation:
    """Return the observation with the version under test in place of a later edit that has to wait.

    Such an edit changes nothing about the upgrade under way. The record of an earlier operator has no version. In an
    older status that a backup brings back, a version under test may have been rolled back since: nobody asks for it.
    """
    upgrade, stable = o.app.status.upgrade, o.app.status.last_stable
    if upgrade is None or upgrade.phase not in UNDER_TEST or not upgrade.to_spec:
        return o
    known = (upgrade.to_spec_hash, stable.spec_hash if stable is not None else "")
    if o.spec_hash in known or runs_another_elsewhere(o, upgrade) or why_edit_waits(o) is None:
        return o
    tested = with_version(o, StableSpec(spec_hash=upgrade.to_spec_hash, spec=upgrade.to_spec))
    if tested is None or o.app.spec.upgrade.mode is not UpgradeMode.STATELESS:
        return tested or o
    # Where to read from, and how to repartition, follows from the mode: this version has its own.
    own = msgspec.structs.replace(tested.app.spec.upgrade, mode=upgrade.mode)
    spec = msgspec.structs.replace(tested.app.spec, upgrade=own)
    return dataclasses.replace(tested, app=msgspec.structs.replace(tested.app, spec=spec))


def why_edit_waits(o: Observation) -> tuple[Reason, str] | None:
    """Return reason and message of why a later edit changes nothing while another version is under test.

    No pod can be built from it, or it would give up state that nobody has given up. What takes the place of a version
    that started without state gives up no more, unless somebody confirms that.
    """
    if why_not := why_not_launchable(o):
        return reason_not_built(o), sentence(why_not)
    upgrade = o.app.status.upgrade
    return None if upgrade is not None and upgrade.mode is UpgradeMode.STATELESS else why_unconfirmed(o)


def why_unconfirmed(o: Observation) -> tuple[Reason, str] | None:
    """Return reason and message where mode Stateless is not confirmed, None if it is, or the mode is another."""
    if o.app.spec.upgrade.mode is not UpgradeMode.STATELESS or is_confirmed(o):
        return None
    name, namespace = o.app.metadata.name, o.app.metadata.namespace
    message = messages.abandon_unconfirmed(name, namespace, lineage_of(o), ABANDON_ANNOTATION)
    return Reason.ABANDON_STATE_UNCONFIRMED, message


def is_confirmed(o: Observation) -> bool:
    """Return whether somebody has given up the state of the present lineage."""
    return o.app.metadata.annotations.get(ABANDON_ANNOTATION) == str(lineage_of(o))


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
    return with_version(o, stable) or dataclasses.replace(o, spec_hash=applied_hash(o))


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
