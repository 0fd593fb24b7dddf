"""Messages about upgrades, rehearsals and rollbacks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.pods.records.fault_messages import sentence
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import entry_of, remedy_of
from tidegate_spark.contract.rehearsal_protocol import RehearsalResult

_BOTH_STOP_AND_FOLLOW = "The previous version stops at a batch boundary, and the new version follows."

# --- an upgrade starts ---

SPEC_IS_STABLE_VERSION = "The spec is the last stable version again."
REPLACED = "The spec changed again before the new version was stable. The newer version replaces it."
SUPERSEDED_REHEARSAL = "The superseded version was not stable yet: there is no state to rehearse on."
NO_ROLLBACK_SNAPSHOT = "The upgrade makes no rollback snapshot: there is no state to rehearse on."
AGENT_NOT_ASKED = "The agent of the previous version takes no orders, or does not answer: its state was not copied."
NOTHING_COPIED = "The previous version does not run: its state was not copied."


def copying(then: str) -> str:
    return f"The state is copied while the previous version runs.{then}"


def stopping(then: str) -> str:
    return f"{_BOTH_STOP_AND_FOLLOW}{then}"


def state_abandoned(lineage: int, annotation: str) -> str:
    return f"Lineage {lineage} is abandoned, as annotation {annotation} says; a new lineage starts."


def abandon_unconfirmed(app: str, namespace: str, lineage: int, annotation: str) -> str:
    return (
        f"spec.upgrade.mode is Stateless: the new version would start without the state of lineage {lineage}. To "
        f'confirm that, run "kubectl annotate streamingapp {app} -n {namespace} --overwrite {annotation}={lineage}". '
        "To keep the state, set spec.upgrade.mode to Snapshot."
    )


def refused_at_once(why_not: str) -> str:
    return f"{why_not.rstrip('.')}. {PREVIOUS_CONTINUES}"


PREVIOUS_CONTINUES = "The previous version continues."


NOT_REHEARSED_ELSEWHERE = "With spec.upgrade.startingOffsets nothing is copied while the previous version runs."


def starts_elsewhere(lineage: int) -> str:
    return (
        "The previous version stops at a batch boundary. The new version follows with its state and the offsets of "
        f"spec.upgrade.startingOffsets, in lineage {lineage}."
    )


def replaced_elsewhere(lineage: int) -> str:
    return (
        "The spec changed again before the new version was stable. The newer version continues in lineage "
        f"{lineage}, where that one has started: spec.upgrade.startingOffsets has no effect on it."
    )


def offsets_unreadable(error: object) -> str:
    return f"The spec's offsets cannot be read: {error}"


# --- the copy ---

_SNAPSHOT_FOLLOWS = "The upgrade continues: the driver of the new version makes the rollback snapshot."
DRIVER_GONE = f"The previous version ended before its state was copied. {_SNAPSHOT_FOLLOWS}"
COPY_REMOVED_BEFORE_REPARTITION = (
    "The copy was deleted before it showed whether the state can be repartitioned. Nothing was stopped; to try again, "
    "change spec.restartNonce."
)
COPY_REMOVED = f"The copy of the state was deleted before it was used. {_SNAPSHOT_FOLLOWS}"
COPIED = "The state is copied; the previous version stops at a batch boundary, and the new version follows."
NOTHING_COMMITTED = (
    "The storage has no committed batch of the previous version, although that version reports some. "
    f"{PREVIOUS_CONTINUES} {remedy_of(Reason.STATE_MISSING)}"
)
AGENT_SILENT = (
    "The agent of the previous version has not accepted the order yet. Nothing stops before the copy shows whether the "
    "state can be repartitioned."
)


def copy_failed(why: str) -> str:
    return (
        f"The state cannot be copied: {sentence(why)} {PREVIOUS_CONTINUES} Correct this and change the spec, such as "
        "spec.restartNonce. With spec.upgrade.mode LastState, the upgrade starts without a copy, and cannot be rolled "
        "back after its first batch."
    )


def nothing_stopped(why: str) -> str:
    return f"{why} Nothing was stopped."


def copy_progress(files: int, of_files: int) -> str:
    return f"{files} of {of_files} files are copied."


def copy_waits(upgrade: str, why: str) -> str:
    return f"{upgrade} The copy waits: {why} To withdraw the upgrade, revert the spec."


# --- the rehearsal ---

REHEARSING = "The state is copied; the new version is rehearsed on the copy while the previous version runs."
REHEARSAL_CANCELLED = "spec.upgrade.rehearsal was removed."
_MORE_MEMORY = "Raise spec.upgrade.rehearsal.resources.requests.memory."


def not_ordered(why: str) -> str:
    """Return the text; ``why`` is what the agent refused the order with, empty if it gave no answer."""
    because = f" ({why})" if why else ""
    return f"The agent of the previous version accepts no orders{because}. {_SNAPSHOT_FOLLOWS}"


def not_orderable(*, repartitions: bool) -> str:
    """Return the text about a driver with another key; ``repartitions``: the state is to be repartitioned next."""
    pod_decides = (
        "The upgrade continues: the repartition pod makes the rollback snapshot, and the previous version continues if "
        "its state cannot be repartitioned."
    )
    return (
        "The previous version was launched with another key than this operator's, and its agent accepts no orders. "
        f"{pod_decides if repartitions else _SNAPSHOT_FOLLOWS}"
    )


def rehearsal_failed(why: str) -> str:
    return (
        f"The new version failed its rehearsal: {sentence(why)} {PREVIOUS_CONTINUES} "
        f"{remedy_of(Reason.REHEARSAL_FAILED)}"
    )


def rehearsal_passed(what: str) -> str:
    return f"Rehearsed: {sentence(what)} {_BOTH_STOP_AND_FOLLOW}"


def rehearsal_inconclusive(why: str) -> str:
    return f"The rehearsal shows nothing for or against the new version: {sentence(why)} {_BOTH_STOP_AND_FOLLOW}"


_CAME_TO = {
    RehearsalResult.PASSED: "passed",
    RehearsalResult.FAILED: "failed",
    RehearsalResult.INCONCLUSIVE: "was inconclusive",
}


def rehearsal_event(result: RehearsalResult, cause: str, what: str) -> str:
    return f"The rehearsal of the new version {_CAME_TO[result]}{f' ({cause})' if cause else ''}. {what}"


def rehearsal_out_of_memory(pod: str) -> str:
    return f"Pod {pod} needed more than its memory and was killed. {_MORE_MEMORY}"


def rehearsal_needs_memory(reported: str) -> str:
    return f"{sentence(reported)} {_MORE_MEMORY}"


def rehearsal_late(pod: str) -> str:
    return (
        f"Pod {pod} had no result within spec.upgrade.rehearsal.timeoutSeconds. For the next rehearsal, raise that or "
        "spec.upgrade.rehearsal.resources."
    )


def rehearsal_lost(pod: str, seconds: int) -> str:
    return (
        f"Pod {pod} was lost before it had a result, and there is no time for another one: {seconds} s "
        "(spec.upgrade.rehearsal.timeoutSeconds) have passed."
    )


def rehearsal_without_room(why: str, seconds: int) -> str:
    return f"{why} The rehearsal waited for {seconds} s (spec.upgrade.rehearsal.timeoutSeconds)."


# --- the gate ---

STARTED = "The new version was started."
NOT_STOPPED = "The spec was set back to the version that runs. Its test goes on."
NO_BATCHES = "no query reports a batch"
WAITS_FOR_INPUT = "It waits for input."


def stable(batches: str, dropped: Sequence[str], without_input: Sequence[str]) -> str:
    text = f"The new version is stable: {batches} without a failure."
    if without_input:
        text += f" {_queries(without_input)} had no input for more."
    if not dropped:
        return text
    was, counts = ("was", "counts") if len(dropped) == 1 else ("were", "count")
    return f"{text} {_queries(dropped)} of the previous version {was} not started, and {counts} as dropped."


def stable_before(batches: int, seconds: int) -> str:
    return (
        f"The new version is stable: before its driver ended, it worked for longer than {seconds} s "
        f"(spec.upgrade.timeoutSeconds), and each query that had input committed {batches} batches or more."
    )


def _queries(names: Sequence[str]) -> str:
    """Return the beginning of a sentence about them."""
    return f"{'Query' if len(names) == 1 else 'Queries'} {', '.join(repr(name) for name in names)}"


def batches(committed: Iterable[tuple[str, int]]) -> str:
    """Return the text; ``committed`` are queries, each with its number of batches."""
    return ", ".join(f"query '{query}' committed {number} batches" for query, number in committed) or NO_BATCHES


def gate_progress(wanted: int, committed: int, lacks: str) -> str:
    text = f"It is stable after {wanted} batches of each query, and has committed {committed}."
    return f"{text} {lacks}".strip()


def queries_failed(names: Sequence[str]) -> str:
    return f"{_queries(names)} {'has' if len(names) == 1 else 'have'} failed."


def queries_missing(names: Sequence[str]) -> str:
    return f"{_queries(names)} of the previous version {'was' if len(names) == 1 else 'were'} not started yet."


def not_stable_in_time(seconds: int, shown: str) -> str:
    return f"The new version was not stable within {seconds} s (spec.upgrade.timeoutSeconds): {shown}."


def no_pod_created(reason: str) -> str:
    return f"no driver pod of it was created ({reason})"


def pod_not_started(reason: str) -> str:
    return f"its driver pod did not start ({reason})"


def pod_does_not_start(reason: str) -> str:
    return f"Its driver pod does not start ({reason})."


def held_up(shown: str, reason: str, fault: str) -> str:
    return f"{shown} ({reason}: {fault.rstrip('.')})"


def not_started(refusal: str, then: str) -> str:
    return f"The new version has not started. {refusal} {then}"


def rolled_back_after(seconds: int) -> str:
    return f"If it is not stable within {seconds} s (spec.upgrade.timeoutSeconds), it is rolled back."


def failed(problem: str, stays: str) -> str:
    return f"{problem} {stays}"


# --- why a version is not rolled back ---

NO_STABLE_VERSION = "There is no stable version to roll back to."
POLICY_NEVER = "spec.upgrade.rollbackPolicy is Never: the new version is not rolled back automatically."
RAN_FOR_LONG = (
    "Before, the new version may have run for longer than spec.upgrade.timeoutSeconds: it is not rolled back for a pod "
    "that does not start."
)
LAST_STATE = (
    "The new version may have committed batches, and spec.upgrade.mode LastState retains no state to roll back to: it "
    "is not rolled back."
)


def state_lost(why: str) -> str:
    return f"The new version is not rolled back, because the rollback snapshot is lost: {sentence(why)}"


def secret_gone(field: str) -> str:
    return (
        f"The new version is not rolled back: {field} of the stable version was a secret in plain text, which is not "
        "recorded. Put it into the spec again, or set the spec to a version that works."
    )


def by_hand(why: str, snapshot: str) -> str:
    """Return the text with how a person rolls back what is not rolled back automatically; empty id: nobody can."""
    return f'{why} To roll it back, set spec.upgrade.rollbackTo to "{snapshot}".' if snapshot else why


# --- a rollback ---

SPEC_REVERTED = "The spec was reverted before the new version was stable."


def rollback_requested(snapshot: str) -> str:
    return f"spec.upgrade.rollbackTo names {snapshot}."


def rolling_back(why: str, lineage: int, *, with_state: bool, unrecorded: Sequence[str] = ()) -> str:
    """Return the text; ``unrecorded`` are fields in which alone the two versions differ, secrets in plain text."""
    state = f"the state that it had, in lineage {lineage}" if with_state else "the last committed batch"
    if unrecorded:
        # The hash of the version is that of its former values: an edit of the value alone would start nothing again.
        state += (
            f" and with the present values of {', '.join(unrecorded)}: only there the versions differ, and former "
            "values are not recorded; if they are wrong, correct them in the spec together with spec.restartNonce"
        )
    return f"{why} The last stable version continues with {state}."


def superseded(lineage: int) -> str:
    return (
        "The spec changed again before the new version was stable. It is rolled back to the state of the last stable "
        f"version, in lineage {lineage}, and the newer version follows."
    )


def lost_for_new_version(text: str) -> str:
    return (
        f"{sentence(text)} Before you change the spec again, restore the records, or set the source option "
        "failOnDataLoss to false in the new version; spec.upgrade.mode Stateless starts it without the state."
    )


def rolled_back(why: str) -> str:
    return f"The new version was rolled back: {why} {entry_of(Reason.UPGRADE_ROLLED_BACK).after}"


def rollback_ignored(wish: str, snapshot: str) -> str:
    if not snapshot:
        return f"spec.upgrade.rollbackTo names {wish}, but there is nothing to roll back. Nothing has to be done."
    return (
        f"spec.upgrade.rollbackTo names {wish}, but the rollback snapshot is {snapshot} "
        f"(status.upgrade.rollbackSnapshot.id). {remedy_of(Reason.ROLLBACK_IGNORED)}"
    )


def rollback_snapshot_lost(snapshot: str, why: str) -> str:
    return (
        f"Rollback snapshot {snapshot} (spec.upgrade.rollbackTo) is lost: {sentence(why)} The running version "
        f"continues. {remedy_of(Reason.ROLLBACK_SNAPSHOT_LOST)}"
    )


def secret_not_recorded(snapshot: str, field: str) -> str:
    return (
        f"The rollback to {snapshot} (spec.upgrade.rollbackTo) waits: {field} of that version was a secret in plain "
        f"text. {remedy_of(Reason.SECRET_NOT_RECORDED)}"
    )


# --- a version from which no pod can be built ---

CORRECT_OR_REVERT = " Correct the spec, and the upgrade starts again; or revert it."
UPGRADE_CONTINUES = "The upgrade under way continues with the version in status.upgrade.toSpec."
FAILED_STAYS = "The version in status.upgrade.toSpec has failed and stays until the spec is corrected."


def continues(why_not: str, remedy: str) -> str:
    return f"{why_not} {PREVIOUS_CONTINUES}{remedy}"


def continues_where_stopped(why_not: str, remedy: str) -> str:
    return f"{why_not} The previous version continues where it stopped.{remedy}"


def continues_without_repartition(why_not: str, remedy: str) -> str:
    return f"{why_not} The previous version continues with the state as it was.{remedy}"


def previous_cannot_start(refused: str, secret: str) -> str:
    """Return the text of a refusal where nothing runs, and the previous version cannot start.

    ``secret``: the field of a secret of that version which the spec has no more; empty: what it was is not known.
    """
    why = f"{secret} of it was a secret in plain text, which is not recorded" if secret else "it is not recorded"
    remedy = "Put it into the spec again, or set" if secret else "Set"
    before = " ".join(part.strip() for part in refused.split(PREVIOUS_CONTINUES)).strip()
    cannot = f"No driver runs, and the previous version cannot start: {why}."
    return f"{before} {cannot} {remedy} the spec to a version that works."


def nothing_continues(why_not: str, remedy: str) -> str:
    return f"{why_not} No pod can be built from the previous version either; its state stays as it was.{remedy}"


def beside(first: str, *others: str) -> str:
    """Return texts one after the other, without empty ones."""
    return " ".join(part for part in (first, *others) if part)
