"""Messages about repartitions. No I/O."""

from __future__ import annotations

from tidegate.pods.records.fault_messages import sentence
from tidegate_spark.contract.repartition_protocol import BACK

_RETRY_OR_REVERT = f"To try again, change spec.restartNonce; to cancel, set {BACK}."
_CONTINUES = "The previous version continues with the state as it was."

# --- before anything is stopped ---


def nothing_to_do(partitions: int) -> str:
    return f"All state is in {partitions} partitions already."


def pod_not_built(error: object) -> str:
    return f"The repartition pod cannot be built from the spec: {sentence(str(error))} {_CORRECT_THEN}"


def pod_refused(complaint: str, fields: str, *, by_limit_range: bool) -> str:
    what = f"{fields or 'what it names'}{', or the LimitRange' if by_limit_range else ''}"
    return f"The API server refuses the repartition pod: {complaint}. Correct {what}. {_CORRECT_THEN}"


_CORRECT_THEN = f"Then change spec.restartNonce to try again; to cancel, set {BACK}."
"""What the pod gets makes no version: with that alone nothing would be tried again."""

# --- what an upgrade says of one to come ---


def after_copy(before: int, partitions: int) -> str:
    return f" Then that version stops, and {_repartition(before, partitions)}"


def between(before: int, partitions: int) -> str:
    return f" In between, {_repartition(before, partitions)}"


def _repartition(before: int, partitions: int) -> str:
    return f"a pod repartitions the state from {before} to {partitions} partitions."


# --- an attempt ---

STARTED = "The previous version has stopped; a pod repartitions its state, in a lineage of its own."
SUSPENDED = "The application is suspended; its state is repartitioned when it continues."


def another_attempt(why: str, attempt: int, of: int) -> str:
    return f"{why} Attempt {attempt} of {of} follows, in another pod."


def copy_progress(pod: str, files: int, of_files: int) -> str:
    return f"{files} of {of_files} files are copied (pod {pod})."


def progress(pod: str, files: int, rows: int) -> str:
    return f"{files} files are copied{f', {rows} rows are repartitioned' if rows else ''} (pod {pod})."


def done(lineage: int, partitions: int, before: int, rows: int) -> str:
    return (
        f"The state is repartitioned from {before} to {partitions} partitions, with all of its {rows} rows; the new "
        f"version starts from it, in lineage {lineage}."
    )


def queries_without_room(reported: str, left_out: int, of: int) -> str:
    return f"{reported} The batches of {left_out} of {of} queries are left out here."


# --- an attempt that failed ---


def failed(why: str) -> str:
    return f"The state was not repartitioned: {sentence(why)} {_CONTINUES} {_RETRY_OR_REVERT}"


def deferred(why: str, batches: int, number: int, of: int) -> str:
    return (
        f"The repartition is deferred: {sentence(why)} The previous version continues with the state as it was, and "
        f"the upgrade starts again once that version has committed {batches} batches of each query or waits for input "
        f"(deferral {number} of {of}). To start it at once, change spec.restartNonce; to cancel, set {BACK}."
    )


def late(seconds: float) -> str:
    return f"It took longer than {seconds:.0f} s. {_MORE_TIME}"


def pod_late(pod: str) -> str:
    return f"Pod {pod} ran out of time. {_MORE_TIME}"


_MORE_TIME = "Raise spec.state.repartition.timeoutSeconds, or spec.state.repartition.resources."


def pod_deleted(pod: str) -> str:
    return f"Pod {pod} was deleted."


def pod_lost(pod: str) -> str:
    return f"Pod {pod} was lost."


def without_room(why: str, seconds: float) -> str:
    return f"{why} The repartition waited for {seconds:.0f} s. Make room, or lower spec.state.repartition.resources."


def out_of_memory(pod: str) -> str:
    return (
        f"Pod {pod} needed more than its memory and was killed. Raise spec.state.repartition.resources.requests.memory."
    )


# --- a number that does not take effect yet ---


def number_kept(partitions: int, wanted: int) -> str:
    return (
        f"The state has {partitions} partitions, and spec.state.partitions is {wanted}. To repartition it, set the "
        f"field to {partitions}, and to {wanted} when the application is stable."
    )


def number_deferred(partitions: int, wanted: int) -> str:
    return (
        f"The state keeps its {partitions} partitions until the running version is stable; then it is repartitioned "
        f"to {wanted}, as spec.state.partitions says. Only a stable version's state is repartitioned, since that "
        "version continues if the repartition fails."
    )


FIX_FIRST = "Fix the failure first: a change of spec.state.partitions alone starts nothing."
RESUME_FIRST = "Nothing becomes stable before the application continues: set spec.suspend to false."


def number_follows(before: int, wanted: int) -> str:
    return (
        f"When the application continues, its state is first repartitioned from {before} to {wanted} partitions, as "
        "spec.state.partitions says."
    )
