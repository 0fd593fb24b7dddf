"""Starts an upgrade, also in the place of one under way, and closes one whose spec was reverted. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tidegate.api.spec_hash import recorded_version, spec_hash, with_version
from tidegate.api.streaming_app import (
    EarlierRollbackSnapshot,
    RollbackSnapshot,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.app.observation import Observation, applied_hash
from tidegate.app.rules.launch.launch import MAY_COME, reason_not_built
from tidegate.app.rules.messages import named_in, references_unchecked
from tidegate.app.rules.origin import lineage_of
from tidegate.app.rules.upgrade import messages, record
from tidegate.app.rules.upgrade.copying import is_copied_first, why_not_copied
from tidegate.app.rules.upgrade.effective_spec import (
    ABANDON_ANNOTATION,
    is_confirmed,
    why_unconfirmed,
    with_effective_spec,
)
from tidegate.app.rules.upgrade.gate import is_stable_again, why_not_rolled_back
from tidegate.app.rules.upgrade.invalid_spec import can_go_on
from tidegate.app.rules.upgrade.launched import ends_as_kept, has_finished, is_in_time, spec_was_launched_last
from tidegate.app.rules.upgrade.record import Step, change
from tidegate.app.rules.upgrade.rehearsal import left_out
from tidegate.app.rules.upgrade.repartition import messages as texts
from tidegate.app.rules.upgrade.repartition.dry_run import why_not_launchable
from tidegate.app.rules.upgrade.repartition.phase import starts_again, state_of_newer, wanted_repartition
from tidegate.app.rules.upgrade.starting_offsets import offsets_asked, offsets_before_launch, why_unreadable
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.reasons import Reason

_MOST_EARLIER = 8
"""Each is one more rollback of which nothing ran before the next edit; the status does not grow with them for ever."""


def only_the_number_is_another(o: Observation, upgrade: UpgradeStatus | None, now: float) -> Step | None:
    """Record a restart of the stable version as such: `restartNonce` alone makes no other version.

    Nor does a secret in plain text. Unless it is to start with nothing, or to read elsewhere: an upgrade to itself.
    """
    stable, spec = o.app.status.last_stable, o.app.spec
    if stable is None or stable.spec_hash == o.spec_hash or _is_upgrade_to_itself(o):
        return None
    if upgrade is not None and _is_about_such_upgrade(o, upgrade):
        return None
    try:
        # With the secrets of the spec: a version that differs in nothing else has no other one to be taken back to,
        # since no secret is recorded. So it is started again, and not put to the test (docs/design/secrets.md).
        before = with_version(spec, stable.spec)
    except ValueError:
        return None
    again = replace(before, restart_nonce=spec.restart_nonce)
    if spec_hash(replace(o.app, spec=again)) != o.spec_hash or reason_not_built(o) is Reason.REFERENCE_MISSING:
        return None  # or what it runs on has gone since: it is held back as any edit is, and goes on as it is
    return Step(stable=replace(stable, spec_hash=o.spec_hash, spec=recorded_version(spec)))


def _is_upgrade_to_itself(o: Observation) -> bool:
    return o.app.spec.upgrade.mode is UpgradeMode.STATELESS or bool(offsets_asked(o))


def _is_about_such_upgrade(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the record is about an upgrade to itself: it was one when it began, whatever the next is to be.

    Also while it is rolled back, and after: the version that was rejected is not the stable one. What follows on one
    that reads from elsewhere goes on from there until it is stable. Without its offsets it is a restart.
    """
    if upgrade.to_spec_hash == o.spec_hash:
        is_begun = bool(upgrade.epoch) or upgrade.mode is UpgradeMode.STATELESS
        return upgrade.is_rolled_back or (is_begun and upgrade.phase in record.UNDER_TEST)
    return upgrade.phase in record.UNDER_TEST and bool(upgrade.starting_offsets)


def spec_is_stable_version(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Close the record when the spec is the last stable version again, which runs or goes on."""
    stable = o.app.status.last_stable
    if stable is None or o.spec_hash != stable.spec_hash:
        return None
    return change(upgrade, messages.SPEC_IS_STABLE_VERSION, lineage=lineage_of(o))


def newer_version_after_a_rollback(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Roll back a version under test for a newer one, which starts from the stable version's state.

    At once: whoever fixes a version waits neither for its gate nor for its timeout.
    """
    stable, lineage = o.app.status.last_stable, record.next_lineage(o)
    if stable is None or not _is_newer(o, upgrade) or not _is_undone(o, upgrade, now) or not can_go_on(o, stable):
        return None  # without the stable version the newer one would wait for a launch that never comes
    return change(upgrade, messages.superseded(lineage), lineage=lineage, epoch=0, previous=None)


def newer_version_on_what_there_is(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Replace the version under test by a newer one on the present state; the stable version stays the rollback's."""
    if not _is_newer(o, upgrade):
        return None
    known = _with_offsets_of_spec(o, upgrade)
    mode, (repartition, lineage) = known.mode, state_of_newer(o, known)
    if known.starting_offsets and not known.epoch:
        lineage = known.lineage  # which nobody has opened yet
    message = messages.replaced_elsewhere(lineage) if known.starting_offsets and known.epoch else messages.REPLACED
    # What one that started empty has made since is given up as well, if somebody has confirmed that very lineage.
    other = mode is not UpgradeMode.STATELESS or known.lineage == lineage_of(o)
    if o.app.spec.upgrade.mode is UpgradeMode.STATELESS and other and is_confirmed(o):
        mode, repartition, lineage = UpgradeMode.STATELESS, None, record.next_lineage(o)
        known, message = replace(known, starting_offsets=""), messages.REPLACED
    return change(
        known,
        message + _unchecked(o),
        to_spec_hash=o.spec_hash,
        mode=mode,
        lineage=lineage,
        repartition=repartition,
        rehearsal=left_out(o, messages.SUPERSEDED_REHEARSAL, now),
    )


def newer_version_without_a_way_back(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Start a newer version on the present state where no pod can be made of the stable one that was to follow."""
    if upgrade.epoch or can_go_on(o, o.app.status.last_stable):
        return None
    # Only what was launched is taken back; what the lineage that was to be opened starts from is in this record alone.
    launched = replace(upgrade, epoch=o.app.status.epoch, lineage=lineage_of(o))
    return newer_version_on_what_there_is(o, launched, now)


def other_offsets_before_the_launch(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Have a version that was not launched yet start with the offsets that the spec has by now, or with none."""
    known = _with_offsets_of_spec(o, upgrade)
    if known is upgrade:
        return None
    elsewhere = messages.starts_elsewhere(known.lineage) if known.starting_offsets else messages.stopping("")
    return change(known, elsewhere + _unchecked(o))


def _with_offsets_of_spec(o: Observation, upgrade: UpgradeStatus) -> UpgradeStatus:
    """Return the record with the spec's offsets in place of those it had; the same once a lineage depends on them."""
    if upgrade.epoch or upgrade.mode is UpgradeMode.STATELESS or upgrade.repartition is not None:
        return upgrade
    offsets = offsets_before_launch(o, upgrade)
    if offsets == upgrade.starting_offsets:
        return upgrade
    if not offsets:
        return replace(upgrade, starting_offsets="", lineage=lineage_of(o))
    kept = upgrade if upgrade.rollback_snapshot is not None else _with_snapshot(o, upgrade)
    return replace(kept, mode=UpgradeMode.SNAPSHOT, starting_offsets=offsets, lineage=record.next_lineage(o))


def _is_newer(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether the spec is neither the version under test nor the stable one, and can be launched."""
    stable = o.app.status.last_stable
    if upgrade.to_spec_hash == o.spec_hash or (stable is not None and stable.spec_hash == o.spec_hash):
        return False
    return not why_not_launchable(o)  # what is under test is not stopped for what could not follow it


def _is_undone(o: Observation, upgrade: UpgradeStatus, now: float) -> bool:
    """Return whether the work of a version under test is undone when a newer one takes its place.

    That of its test is. What it did later, such as one that waits for the input of one of its queries for weeks, nobody
    wants to lose by an edit; and where nothing was done, or no state kept, there is nothing to go back for.
    """
    if not upgrade.epoch or upgrade.rollback_snapshot is None or ends_as_kept(o, upgrade):
        return False
    if UpgradeMode.STATELESS in (upgrade.mode, o.app.spec.upgrade.mode) or upgrade.starting_offsets:
        return False  # somebody gave up the state to go back to, or its place in the topics, or is to give up this one
    # All the work of one that has finished would be done once more.
    return not has_finished(o, upgrade) and is_in_time(o, upgrade, now) and not why_not_rolled_back(o, upgrade)


def cannot_start(o: Observation, known: UpgradeStatus | None, now: float) -> Step | None:
    """Refuse a version before anything is done for it; the last upgrade can still be rolled back."""
    refusal = _refusal(o) if _is_new(o) else None
    if refusal is None:
        return None
    refused = replace(_fresh(o, known, now), starting_offsets=offsets_asked(o))
    if known is not None and known.previous is not None:
        snapshot, previous, obsolete = known.rollback_snapshot, known.previous, known.obsolete
        refused = replace(refused, rollback_snapshot=snapshot, previous=previous, obsolete=obsolete)
    return change(refused, refusal[1], refusal[0])


def starts_without_state(o: Observation, known: UpgradeStatus | None, now: float) -> Step | None:
    """Stop the previous version for a confirmed start with nothing, in a new lineage."""
    if _mode(o) is not UpgradeMode.STATELESS or not _is_new(o):
        return None
    fresh = _with_rollback_snapshot(o, known, now)
    message = messages.state_abandoned(fresh.lineage, ABANDON_ANNOTATION)
    return change(fresh, message, lineage=record.next_lineage(o))


def starts_with_other_offsets(o: Observation, known: UpgradeStatus | None, now: float) -> Step | None:
    """Stop the previous version for one that reads topics from elsewhere, in a lineage with the state there is.

    Nothing is copied or rehearsed before: what can be wrong is whether the topics have these offsets.
    """
    offsets = offsets_asked(o) if _is_new(o) else ""
    if not offsets:
        return None
    fresh = replace(_fresh(o, known, now), mode=UpgradeMode.SNAPSHOT, starting_offsets=offsets)
    lineage, message = record.next_lineage(o), messages.starts_elsewhere(record.next_lineage(o))
    rehearsal = left_out(o, messages.NOT_REHEARSED_ELSEWHERE, now)
    return change(_with_snapshot(o, fresh), message + _unchecked(o), lineage=lineage, rehearsal=rehearsal)


def starts_with_a_copy(o: Observation, known: UpgradeStatus | None, now: float) -> Step | None:
    """Copy the state while the previous version runs."""
    fresh = _with_rollback_snapshot(o, known, now) if _is_new(o) else None
    if fresh is None or fresh.rollback_snapshot is None or not is_copied_first(o, fresh):
        return None
    message = messages.copying(_repartition_then(fresh, texts.after_copy)) + _unchecked(o)
    snapshot = replace(fresh.rollback_snapshot, copy=f"{fresh.rollback_snapshot.id}-copy")
    return change(fresh, message, rollback_snapshot=snapshot)


def starts_with_the_stop(o: Observation, known: UpgradeStatus | None, now: float) -> Step | None:
    """Stop the previous version at once, because nothing can be copied first."""
    if not _is_new(o):
        return None
    fresh = _with_rollback_snapshot(o, known, now)
    message = messages.stopping(_repartition_then(fresh, texts.between)) + _unchecked(o)
    return change(fresh, message, rehearsal=left_out(o, why_not_copied(o, fresh), now))


def something_else_is_missing(o: Observation, upgrade: UpgradeStatus, now: float) -> Step | None:
    """Update the message of a refused version when other objects are missing than before."""
    refusal = _refusal(o) if upgrade.reason in MAY_COME else None
    if refusal is None or refusal == (upgrade.reason, upgrade.message):
        return None
    return change(upgrade, refusal[1], refusal[0])


def _fresh(o: Observation, known: UpgradeStatus | None, now: float) -> UpgradeStatus:
    """Return the record of the upgrade to the spec's version; the phase is the table's."""
    wish = o.app.spec.upgrade.rollback_to
    repartition, queries = wanted_repartition(o), _queries_of_base(o, known)
    fresh = UpgradeStatus(
        phase=UpgradePhase.STOPPING,
        mode=_mode(o),
        number=1,
        from_spec_hash=_base(o),
        to_spec_hash=o.spec_hash,
        lineage=lineage_of(o),
        start_time=time_from_seconds(now),
        queries=queries,
        rollback_to=wish,
        repartition=repartition,
    )
    if known is None:
        return fresh
    snapshot, before = known.rollback_snapshot, known.repartition
    if repartition is not None and before is not None and known.to_spec_hash == o.spec_hash:
        repartition = replace(repartition, deferrals=before.deferrals)  # how often the same one was deferred
    return replace(
        fresh,
        number=known.number + 1,
        # The wish for a rollback that was answered before: of the upgrade before, it means nothing now.
        rollback_to=wish if snapshot is not None and snapshot.id == wish else known.rollback_to,
        obsolete=record.with_obsolete(known, *record.ids_of(snapshot)),
        repartition=repartition,
        last_lineage=known.last_lineage,
    )


def _queries_of_base(o: Observation, known: UpgradeStatus | None) -> tuple[str, ...]:
    """Return the names of the queries that the version to be left has.

    Between its launch and its first word none has started: then they are those of the last upgrade from it, or all
    that the lineage knows. One of these that it has no more is waited for, and counts as dropped.
    """
    status = o.app.status
    if status.queries:
        return tuple(sorted(query.name for query in status.queries))
    of_base = known is not None and (known.phase is UpgradePhase.ROLLING_BACK or known.from_spec_hash == _base(o))
    if known is not None and of_base and known.queries:
        return known.queries
    return tuple(sorted(status.known_batches()))


def _with_rollback_snapshot(o: Observation, known: UpgradeStatus | None, now: float) -> UpgradeStatus:
    """Return the same with the rollback snapshot to be made, if there is anything to roll back to."""
    fresh = _fresh(o, known, now)
    if o.app.status.last_stable is None or (fresh.repartition is None and fresh.mode is UpgradeMode.LAST_STATE):
        return fresh
    return _with_snapshot(o, fresh)


def _with_snapshot(o: Observation, fresh: UpgradeStatus) -> UpgradeStatus:
    status, uid = o.app.status, o.app.metadata.uid.replace("-", "")[:8]
    begun = int(fresh.start_time.timestamp()) if fresh.start_time is not None else 0
    snapshot = RollbackSnapshot(
        # Never the same again, also after an older status came back: the storage knows what became of an id.
        id=f"up-{uid}-{status.epoch}-{fresh.number}-{begun:x}",
        lineage=fresh.lineage,
        partitions=status.state_partitions,
        fallbacks=_fallbacks(o),
    )
    # A driver in another lineage would dispose of what this upgrade's own rollback may have to start from.
    needed = {earlier.id for earlier in snapshot.fallbacks}
    obsolete = tuple(name for name in fresh.obsolete if name not in needed)
    return replace(fresh, rollback_snapshot=snapshot, obsolete=obsolete)


def _fallbacks(o: Observation) -> tuple[EarlierRollbackSnapshot, ...]:
    """Return what the lineage to be left was to start from, if it is a rollback's in which nothing was seen to run.

    Nobody knows then whether a process has filled it: it holds what the previous version had, or nothing at all.
    """
    began = o.app.status.start_from
    if began is None or began.has_started or not began.undone_lineage or began.lineage != lineage_of(o):
        return ()
    newest = EarlierRollbackSnapshot(id=began.id, lineage=began.undone_lineage, batches=began.batches)
    return (newest, *began.fallbacks)[:_MOST_EARLIER]


def _unchecked(o: Observation) -> str:
    """Return what is said of objects of which nobody knows whether they exist, empty if there are none."""
    unchecked = tuple(named_in(each.what, each.field) for each in o.references.unchecked)
    return references_unchecked(unchecked) if unchecked else ""


def _repartition_then(upgrade: UpgradeStatus, then: Callable[[int, int], str]) -> str:
    """Return what is said of a repartition to come, empty if there is none."""
    known = upgrade.repartition
    return then(known.from_partitions, known.partitions) if known is not None else ""


def _base(o: Observation) -> str:
    """Return the hash of the version to be left, empty if this is no upgrade."""
    status, stable, launched = o.app.status, o.app.status.last_stable, applied_hash(o)
    if o.app.spec.suspend or not (status.epoch or launched):
        return ""
    if stable is not None:
        return stable.spec_hash
    # Without a stable version nothing can be gone back to, but state is not given up without a word either. What was
    # refused for want of that word is held back until its record is followed by another one.
    stateless = o.app.spec.upgrade.mode is UpgradeMode.STATELESS
    refused = status.upgrade is not None and status.upgrade.phase is UpgradePhase.REFUSED
    return launched if stateless or refused else ""


def _mode(o: Observation) -> UpgradeMode:
    """Return the mode of an upgrade that begins; what was launched last, beside an older status, has its state."""
    mode = o.app.spec.upgrade.mode
    return UpgradeMode.SNAPSHOT if mode is UpgradeMode.STATELESS and spec_was_launched_last(o) else mode


def _is_new(o: Observation) -> bool:
    """Return whether an upgrade is to begin, or to be refused: not what was launched last, beside an older status."""
    return _is_another(o) and not (spec_was_launched_last(o) and _refusal(o) is not None)


def _is_another(o: Observation) -> bool:
    """Return whether the spec is another version than the one to be left, and no record is about it."""
    base, upgrade = _base(o), o.app.status.upgrade
    if base in ("", o.spec_hash):
        return False
    if upgrade is None or upgrade.phase in (UpgradePhase.COMPLETED, UpgradePhase.WITHDRAWN):
        return True
    # What a rollback's lineage starts from is in this record alone until its launch is recorded.
    rolls_back = upgrade.phase is UpgradePhase.ROLLING_BACK and not upgrade.epoch
    if upgrade.phase in record.UNDER_TEST or rolls_back:
        return False
    if upgrade.to_spec_hash != o.spec_hash:
        return True
    if upgrade.is_rolled_back:
        return not upgrade.is_rejected
    return upgrade.phase is UpgradePhase.REFUSED and _may_be_tried_again(o, upgrade)


def _may_be_tried_again(o: Observation, upgrade: UpgradeStatus) -> bool:
    """Return whether something else than the version answers the refusal."""
    due = starts_again(upgrade) and is_stable_again(with_effective_spec(o))
    if due or o.app.spec.upgrade.mode is not upgrade.mode:
        return True
    if upgrade.reason == Reason.INVALID_SPEC and offsets_asked(o) != upgrade.starting_offsets:
        return _refusal(o) is None  # they make no version
    if upgrade.reason == Reason.REHEARSAL_FAILED:
        return o.app.spec.upgrade.rehearsal is None
    waits = upgrade.reason in MAY_COME and not o.references.unanswered
    return (waits or upgrade.reason == Reason.ABANDON_STATE_UNCONFIRMED) and _refusal(o) is None


def _refusal(o: Observation) -> tuple[Reason, str] | None:
    """Return reason and message if the upgrade cannot be begun."""
    if (unconfirmed := why_unconfirmed(o)) is not None:
        return unconfirmed
    if unreadable := why_unreadable(o):
        return Reason.INVALID_SPEC, messages.refused_at_once(unreadable)
    why_not = why_not_launchable(o)
    return (reason_not_built(o), messages.refused_at_once(why_not)) if why_not else None
