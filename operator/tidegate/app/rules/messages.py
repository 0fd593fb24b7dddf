"""Messages about an application and its driver. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.pods.records.fault_messages import disruption, logs, out_of_service, sentence
from tidegate.pods.records.record import PREEMPTED
from tidegate_spark.contract.protocol import COMMAND_PORT
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import remedy_of

FINISHED = "The application has finished."
QUERIES_RUN = "The queries run."
UPGRADING = "An upgrade stops and starts the driver; the condition Ready says how far it is."

# --- a driver that runs ---


def running(pod: str) -> str:
    return f"The driver in pod {pod} runs."


def paused(pod: str) -> str:
    return f"{running(pod)} A control message has paused its queries; one of the type resume continues them."


def running_with(pod: str, also: str) -> str:
    return f"{running(pod)} {also}"


def executors_missing(pod: str, running: int, wanted: int, why: str) -> str:
    return f"The driver in pod {pod} runs with {running} of {wanted} executors. {why}"


def queries_missing(pod: str, namespace: str) -> str:
    return (
        f"The script in pod {pod} runs, but a query has ended, or has not started again. Its log says why: "
        f"{logs(pod, namespace)}."
    )


def silent(pod: str) -> str:
    return (
        f"The driver in pod {pod} is not ready, and its agent does not answer. If that stays, check the node of the "
        f"pod, and network policies for its port {COMMAND_PORT}."
    )


# --- a driver that starts ---


def starting(pod: str, epoch: int) -> str:
    return f"Driver pod {pod} of epoch {epoch} starts."


def before_spark(pod: str) -> str:
    return f"The driver in pod {pod} answers. Its script has not asked for Spark yet."


def restarting(pod: str) -> str:
    return f"The driver in pod {pod} was stopped and restarts."


def restarting_after(problem: str, pod: str) -> str:
    return f"{problem} The driver in pod {pod} restarts."


def new_pod_after(problem: str) -> str:
    return f"{problem} A new driver pod follows."


def older_pod_replaced(pod: str) -> str:
    return f"Driver pod {pod} of an older epoch is replaced."


def relaunch_delayed(times: int) -> str:
    return f"The driver pod was lost {times} times in quick succession; the next one follows later."


def not_created(pod: str, answer: str) -> str:
    return f"The API server could not create pod {pod}: {answer.rstrip('.')}. {_CORRECT_AND_RETRIED}"


def refused(pod: str, complaint: str, fields: str) -> str:
    """Return the text; ``fields`` are those of the spec that are to be corrected, empty if nobody knows."""
    return f"The API server refuses pod {pod}: {complaint}. Correct {fields or 'what it names'}; Tidegate retries."


_CORRECT_AND_RETRIED = "Correct what it names; Tidegate retries."


def storage_conflict(rival: str) -> str:
    return (
        f"The storage of this application overlaps that of application {rival}, which was launched there, or "
        "is older. Delete this application, and create it with another spec.storage.uri, or revert the edit of "
        "spec.storage. Or wait until the other one is deleted, or stable in another store."
    )


def place_taken(rival: str) -> str:
    return (
        f"spec.storage names a store in which application {rival} has an overlapping place. Revert the edit of "
        "spec.storage; or delete the other one or have it stable in another store, and the version is tried again by "
        "itself."
    )


def no_pod(error: object) -> str:
    return f"No driver pod can be built from the spec: {error}"


def pod_invalid(role: str, complaint: str) -> str:
    return f"The API server refuses the {role} pod of the spec: {complaint}."


def named_in(what: str, field: str) -> str:
    """Return an object or a key with the field that names it; the field may be empty."""
    return f"{what} ({field})" if field else what


_MOST_NAMED = 5


def references_missing(missing: Sequence[str]) -> str:
    them = "it" if len(missing) == 1 else "them"
    return (
        f"The spec names what does not exist: {_some(missing)}. Create {them}, and the version is tried again by "
        f"itself, or correct the spec."
    )


def references_unchecked(unchecked: Sequence[str]) -> str:
    """Return what is said of an edit that goes on although nobody could say whether all exists that it names."""
    return f" Not checked whether it exists: {_some(unchecked)}."


def _some(named: Sequence[str]) -> str:
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def left_running(problem: str, pod: str) -> str:
    return f"{problem.rstrip('.')}. Driver pod {pod} of the previous version is left as it is."


# --- a driver that stops, and what follows ---


def stopping(pod: str) -> str:
    return f"The driver in pod {pod} stops at a batch boundary."


def stopping_and(pod: str, follows: str, *, ended: bool) -> str:
    return f"Driver pod {pod} {'has ended and is deleted' if ended else 'stops at a batch boundary'}; {follows}"


NEW_POD_FOLLOWS = "a new one follows."
STABLE_VERSION_FOLLOWS = "then the last stable version starts."
CHANGED_SPEC_FOLLOWS = "then the changed spec starts."


def repartition_follows(before: int, partitions: int) -> str:
    return f"then a pod repartitions the state from {before} to {partitions} partitions, and the changed spec starts."


def problem_follows(problem: str) -> str:
    return f"nothing follows yet. {sentence(problem)}"


def suspending(pod: str) -> str:
    return f"Driver pod {pod} stops at a batch boundary; then the application is suspended."


EXECUTORS_DELETED = "The executors are deleted."
SUSPENDED = "The application is suspended and its state is retained. Set spec.suspend to false to continue."


def of_deleted_app(pod: str) -> str:
    return f"Pod {pod} belongs to a deleted application of the same name; it is stopped first."


def node_tainted(pod: str, node: str) -> str:
    return (
        f"Driver pod {pod} has to leave node {node}, which was tainted; it stops at a batch boundary, and a new one "
        f"follows. {out_of_service(node)}"
    )


def disrupted(pod: str, node: str, word: str) -> str:
    """Return the text; ``word`` is that of the pod's condition DisruptionTarget."""
    often = " If it recurs, set a higher priority in spec.podTemplate.spec.priorityClassName."
    return (
        f"Driver pod {pod} on node {node} {disruption(word)}; it stops at a batch boundary, and a new one follows."
        f"{often if word == PREEMPTED else ''}"
    )


def grace_period_exceeded(seconds: int) -> str:
    return (
        f"The grace period of {seconds} s ended inside a batch. The next start runs it again, and outputs that are not "
        "idempotent may get the rows of that batch twice. If batches take longer than "
        "spec.driver.stopGracePeriodSeconds, raise it."
    )


BATCH_GIVEN_UP = (
    "The driver stopped inside a batch, for which no executor was left. The next start runs it again, and outputs that "
    "are not idempotent may get the rows of that batch twice."
)


# --- a driver that ended ---


def budget_exhausted(last: str) -> str:
    remedy = remedy_of(Reason.RESTART_BUDGET_EXHAUSTED)
    return f"{last} {remedy} A change of spec.restart alone is not enough."


def policy_never(last: str) -> str:
    return f"{last} spec.restart.policy is Never. {remedy_of(Reason.RESTART_POLICY_NEVER)}"


def policy_always() -> str:
    return f"{FINISHED} It restarts, because spec.restart.policy is Always."


def unknown_termination(pod: str) -> str:
    return (
        f"The driver in pod {pod} ended with an unknown termination message: its runtime is newer than the operator. "
        "Upgrade the operator, which then reports why the driver ended."
    )


def epoch_adopted(stored: tuple[int, int], known: tuple[int, int], earlier: str = "") -> str:
    """Return what is said of epoch and lineage of the storage that take the place of those in the status."""
    if earlier:
        return (
            f"The application takes over what the earlier one with uid {earlier} left, and continues where that ended: "
            f"after epoch {stored[0]}, in lineage {stored[1]}."
        )
    return (
        f"The status was lost or changed: it has epoch {known[0]} and lineage {known[1]}, and the storage has epoch "
        f"{stored[0]} and lineage {stored[1]} of this application. The application continues from the storage."
    )


def fenced(by: str) -> str:
    return (
        f"{by} The driver does not restart by itself. If the folder belongs to this application, suspend the other "
        "one, or delete it with spec.storage.deletionPolicy Retain (with Delete, the files of both are lost); then "
        "change spec.restartNonce."
    )


# --- what it starts from ---


def snapshot_unreadable(name: str, namespace: str) -> str:
    return (
        f"StreamSnapshot {name} cannot be read. Correct the field that its conditions name "
        f'("kubectl describe streamsnapshot {name} -n {namespace}"), or {_ANOTHER_START}'
    )


def snapshot_not_found(name: str) -> str:
    return f"StreamSnapshot {name} does not exist in this namespace. Create it, or {_ANOTHER_START}"


def starts_from_snapshot_again(pod: str, name: str) -> str:
    return f"The storage has nothing of the application. Pod {pod} is replaced, and the new one starts from {name}."


def place_unproven(pod: str, name: str) -> str:
    return (
        f"The runtime in pod {pod} is too old to report whether the storage is empty, and StreamSnapshot {name} cannot "
        "be started from. Upgrade the image of spec.application.image, or create a StreamSnapshot of that name."
    )


def snapshot_deleting(name: str) -> str:
    return f"StreamSnapshot {name} is being deleted. When it is gone, create one of the same name, or {_ANOTHER_START}"


def snapshot_failed(name: str) -> str:
    return f"StreamSnapshot {name} has failed. Delete it and create one of the same name, or {_ANOTHER_START}"


_ANOTHER_START = (
    "delete this application and create it with another spec.startFrom. If the application has run before and its "
    "status was lost, set spec.startFrom.adopt to true: it continues where it ended, without the snapshot."
)


def snapshot_not_ready(name: str, phase: str) -> str:
    return f"StreamSnapshot {name} is {phase}. The application starts from it when it is Ready."


# --- the control channel ---

CHANNEL_UNREAD = "No driver reads the channel; messages wait there."


def channel_read(broker: str) -> str:
    """Return the text; without a broker they are read from the storage."""
    return f"Control messages are read from {broker or 'the inbox in the storage of the application'}."


def channel_connecting(kind: str) -> str:
    return f"The driver reads from {kind} when the application runs."


def channel_lost(problem: str) -> str:
    return f"{problem} The application continues; the driver retries by itself."


# --- scheduled snapshots ---

UNCHANGED = "No snapshot was taken: the newest one has all batches."
NOT_STARTED = "No snapshot was taken: the application has never run, as far as its status says."


def snapshot_there(name: str) -> str:
    return f"No snapshot was taken: {name} is there already."


def snapshot_in_progress(name: str) -> str:
    return f"StreamSnapshot {name} is not complete yet; the next one follows it."


def schedule_invalid(why: str) -> str:
    return f"spec.snapshots.schedule: {why}. No snapshots are taken until it is corrected."


# --- offsets that are not in use ---

_OFFSETS = "spec.upgrade.startingOffsets"
OFFSETS_AFTER_TEST = (
    f"{_OFFSETS} takes effect with the next version once the one under test is stable. To use it before, revert the "
    "spec; once that is rolled back, set its lineage to status.lineage and change spec.restartNonce."
)
OFFSETS_OF_NEXT = (
    f"{_OFFSETS} takes effect with the next version that is launched after a stable one: to have it done, change "
    "spec.restartNonce."
)
OFFSETS_OLDER = (
    f"{_OFFSETS} is older than the status of this application, or than the lineage that it names, and has no effect. "
    "If you want it, remove it from the spec, and add it again."
)
OFFSETS_WITHOUT_STATE = f"{_OFFSETS} has no effect while spec.upgrade.mode is Stateless: no state is kept."
OFFSETS_NEED_STABLE = (
    f"{_OFFSETS} takes effect once the application has been stable (status.lastStable), with the next version. Until "
    "then, create another application from a snapshot, with spec.startFrom.startingOffsets."
)
OFFSETS_AFTER_REPARTITION = (
    f"{_OFFSETS} has no effect together with another spec.state.partitions: the state is repartitioned first. Then set "
    f"{_OFFSETS}.lineage to status.lineage, and change spec.restartNonce."
)


def offsets_of_another(asked: int, present: int) -> str:
    return (
        f"{_OFFSETS}.lineage is {asked}, but the application is in lineage {present}: it has no effect. If you want "
        f"it, set lineage to {present}, and change spec.restartNonce."
    )


# --- pods of an upgrade ---


def pod_did_not_run(pod: str) -> str:
    return f"Pod {pod} did not run."


def see_pod(pod: str, namespace: str) -> str:
    return f'Pod {pod} reports no progress yet: "kubectl describe pod {pod} -n {namespace}".'
