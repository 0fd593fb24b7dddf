"""Messages of a StreamSnapshot's conditions and events. No I/O."""

from __future__ import annotations

from tidegate.pods.records.fault_messages import OLDER_RUNTIME, logs, with_remedy
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport

_CREATE_ANOTHER = "Create another StreamSnapshot."
_WHEN_FEWER = "When some of them have ended, create another StreamSnapshot."
_CHANGE_NONCE = "To try again, change spec.export.nonce."
_RAISE_EXPORT = "Raise spec.export.timeoutSeconds, cores or resources, and change spec.export.nonce."


def of_report(report: SnapshotReport, reason: Reason) -> str:
    """Return what a report says is wrong, and what to do about it."""
    return with_remedy(reason, report.message) if reason else report.message.strip()


# --- the application ---


def app_unreadable(app: str, namespace: str) -> str:
    return (
        f"StreamingApp {app} cannot be read. Correct the field that its conditions name: "
        f'"kubectl describe streamingapp {app} -n {namespace}".'
    )


def app_not_found(app: str, namespace: str) -> str:
    return f"StreamingApp {app} does not exist in namespace {namespace}. The snapshot waits for it."


def too_many_of_app(app: str, most: int) -> str:
    return f"{most} snapshots of StreamingApp {app} are on their way already. {_WHEN_FEWER}"


def too_many_imports(namespace: str, most: int) -> str:
    return f"{most} snapshots are being imported into namespace {namespace} already. {_WHEN_FEWER}"


def too_many_without_app(app: str, namespace: str, most: int) -> str:
    return (
        f"StreamingApp {app} does not exist, and {most} snapshots wait for such applications in namespace {namespace} "
        f"already. Create the application. {_CREATE_ANOTHER}"
    )


def app_deleting(app: str) -> str:
    return f"StreamingApp {app} is being deleted; no more snapshots are taken of it."


def app_not_started(app: str) -> str:
    return f"StreamingApp {app} has never run, as far as its status says. The snapshot waits for it."


def app_not_running(app: str) -> str:
    return (
        f"StreamingApp {app} starts, stops or does not answer. The snapshot waits until it runs, is suspended or has "
        "ended."
    )


def app_replaced(app: str, *, recreated: bool) -> str:
    what = "was deleted and created again" if recreated else "was deleted"
    return f"StreamingApp {app} {what} before the snapshot was complete."


def app_replaced_deleting(replaced: str, progress: str) -> str:
    return f"{replaced} {progress} To give the snapshot up now, delete the StreamSnapshot."


def app_replaced_failed(replaced: str, left_in: str) -> str:
    left = f" What was copied may be left in {left_in}." if left_in else ""
    return f"{replaced}{left} {_CREATE_ANOTHER}"


# --- the driver ---


def order_refused(pod: str, answer: str) -> str:
    return f"The agent in pod {pod} refused the order: {answer}. The order is given again. {OLDER_RUNTIME}"


def ordered(pod: str) -> str:
    return f"The driver in pod {pod} was ordered to take the snapshot."


def driver(pod: str) -> str:
    return f"The driver in pod {pod}" if pod else "The driver"


def copying(who: str, files: int, of_files: int) -> str:
    return f"{who} copies: {files} of {of_files} files."


def waiting(who: str, why: str) -> str:
    return f"{who} waits: {why}"


def complete(batches: dict[str, int], files: int, size: str) -> str:
    queries = ", ".join(f"{name} after batch {batch}" for name, batch in sorted(batches.items()))
    return f"Complete: {queries or 'no query'}; {files} files, {size}."


# --- a pod ---

WORK_COPY, WORK_DELETE, WORK_VERIFY, WORK_EXPORT = "copies", "deletes the files", "verifies the snapshot", "exports"
WORK_DELETE_COPIED, WORK_IMPORT = "deletes what was copied", "checks whether the snapshot is intact"
"""What a pod does, for :func:`pod_works`."""


def pod(name: str) -> str:
    return f"Pod {name}"


def pod_starts(name: str, *, without_driver: bool) -> str:
    return f"Pod {name} starts{', because no driver runs' if without_driver else ''}."


def pod_works(name: str, work: str) -> str:
    return f"Pod {name} {work}."


def pod_progress(name: str, work: str, files: int, of_files: int) -> str:
    return f"Pod {name} {work}: {files} of {of_files} files."


def pod_deleted(name: str) -> str:
    return f"Pod {name} is deleted."


def pod_of_earlier_export_deleted(name: str) -> str:
    return f"Pod {name} of an earlier export is deleted."


def pod_replaced(name: str) -> str:
    return f"Pod {name} is replaced."


def no_report(name: str, namespace: str) -> str:
    return (
        f"Pod {name} ended without a report on the snapshot, and is replaced. If that recurs, follow the log of the "
        f'next one: "kubectl logs -f {name} -n {namespace}".'
    )


def pod_retries(problem: str, name: str) -> str:
    return f"{problem} Pod {name} retries."


def pod_failed(name: str, namespace: str, exit_code: int) -> str:
    return (
        f"The process in pod {name} ended without a termination message (exit code {exit_code}). It restarts and "
        f"continues; if that recurs, see its log: {logs(name, namespace, ' --previous')}."
    )


def unknown_termination(name: str) -> str:
    return (
        f"Pod {name} ended with an unknown termination message: its runtime is newer than the operator. Upgrade the "
        "operator, which then reports what became of the snapshot."
    )


def pod_not_built(error: object) -> str:
    return f"No pod can be built for the snapshot: {error}"


# --- a storage that is gone ---


def purged(app: str) -> str:
    return (
        f"The files of the snapshot were deleted together with the storage of StreamingApp {app}. Delete this "
        "StreamSnapshot."
    )


# --- deletion ---

NOTHING_LEFT = "Nothing is left to do."
FILES_DELETED = "The files of the snapshot were deleted, except those that others need."


def deleting(pod: str) -> str:
    return f"The driver in pod {pod} deletes the files of the snapshot."


def deletion_order_refused(pod: str, answer: str) -> str:
    return f"The agent in pod {pod} refused to delete the files: {answer}. The order is given again. {OLDER_RUNTIME}"


def deletion_waits(app: str) -> str:
    return f"StreamingApp {app} accepts no orders at the moment; the files are deleted when it does."


def needed_by(apps: str) -> str:
    return f"The snapshot is retained until StreamingApp {apps} starts from it or is deleted."


def held(report: str, name: str, namespace: str, annotation: str) -> str:
    return (
        f"{report} The files are deleted when nobody needs them. Only if a holder no longer exists, run "
        f'"kubectl annotate streamsnapshot {name} -n {namespace} --overwrite {annotation}=HOLDER"; if it still exists, '
        "it loses its files."
    ).strip()


def not_deleted(report: str) -> str:
    return f"The files of the snapshot were not deleted: {report}"


def with_patience(message: str, seconds: float) -> str:
    return f"{message} It is retried for {seconds:.0f} seconds in all."


def with_retention(message: str) -> str:
    return f"{message} To retain the files and finish the deletion, set spec.deletionPolicy to Retain."


def namespace_terminating(namespace: str) -> str:
    return f"namespace {namespace} is being deleted and accepts no pod for it."


def not_in_time(seconds: float, last: str) -> str:
    return f"that was not done within {seconds:.0f} seconds. {last}"


def files_left(snapshot: str, uri: str, why: str) -> str:
    return f"The files of snapshot {snapshot} in {uri} were not deleted: {why}"


def still_held(snapshot: str, uri: str, holder: str, annotation: str) -> str:
    return (
        f"Snapshot {snapshot} in {uri} was not released, and {holder} may still hold its files. Before the "
        f'StreamSnapshot that took it is deleted, annotate that with "{annotation}={holder}".'
    )


# --- retention ---


def expired(name: str, why: str) -> str:
    return f"Scheduled snapshot {name} is deleted: {why}"


STORAGE_GONE = "its application was deleted together with its storage."
FAILED_EARLIER = "it failed, and a later one has ended."


def too_many(max_count: int) -> str:
    return f"{max_count} later ones are retained (spec.snapshots.retention.maxCount)."


def too_old(max_age: int) -> str:
    return f"it is older than {max_age} s (spec.snapshots.retention.maxAgeSeconds)."


# --- export ---

EXPORT_CANCELLED = "spec.export was removed before the export was complete."
EXPORT_OF_DAMAGED = (
    "The snapshot was found not to be whole before the export was complete. Once the StreamSnapshot is Ready again, "
    "change spec.export.nonce."
)


def export_purged(app: str) -> str:
    return (
        f"The files of the snapshot were deleted together with the storage of StreamingApp {app} before the export was "
        "complete. Export another snapshot."
    )


def export_late(seconds: int, progress: str) -> str:
    return " ".join(part for part in (f"Not complete after {seconds} s.", progress, _RAISE_EXPORT) if part)


def export_evicted(pod: str, detail: str) -> str:
    return (
        f"Pod {pod} was evicted: {detail} Raise memory, or set ephemeral-storage, in spec.export.resources.requests. "
        f"{_CHANGE_NONCE}"
    )


def export_invalid(error: object) -> str:
    return f"No pod can be built for the export: {error}. {_CHANGE_NONCE}"


def export_out_of_memory(pod: str) -> str:
    return (
        f"Pod {pod} needed more than its memory and was killed. Raise spec.export.resources.requests.memory. "
        f"{_CHANGE_NONCE}"
    )


def export_failed(report: SnapshotReport, reason: Reason) -> str:
    text = of_report(report, reason)
    return text if reason in _NAMES_NONCE else f"{text} {_CHANGE_NONCE}"


_NAMES_NONCE = frozenset({Reason.STATE_NOT_FOUND, Reason.FORMAT_UNSUITABLE, Reason.EXPORT_EXISTS, Reason.EXPORT_FAILED})
"""Reasons of exports alone, whose remedies say to change it."""


def export_image_not_pulled(image: str, detail: str) -> str:
    return (
        f"Image {image} cannot be pulled: {detail} Correct spec.export.image or, of the application, "
        f"spec.application.imagePullSecrets. {_CHANGE_NONCE}"
    )
