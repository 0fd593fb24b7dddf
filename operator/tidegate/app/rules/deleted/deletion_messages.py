"""Messages about an application that is being deleted. No I/O."""

from __future__ import annotations

NOTHING_LEFT = "Nothing of the application is left."
EXECUTORS_DELETED = "The executors are deleted."
REHEARSAL_STOPPING = "The rehearsal of the new version is stopped."
REPARTITION_STOPPING = "The repartition of the state is stopped."

# --- the storage ---


def purging(pod: str) -> str:
    return f"Pod {pod} purges the storage."


PURGE_REPLACED = "The pod that purges the storage is replaced."
STORAGE_PURGED = "The storage of the application was purged."


def purge_waits(problem: object) -> str:
    return f"{problem} To retain the storage and finish the deletion, set spec.storage.deletionPolicy to Retain."


def purge_refused(why: str) -> str:
    return f"The storage of the application was not purged: {why}"


def purge_unconfirmed(pod: str) -> str:
    return f"pod {pod} did not confirm that it is."


def storage_retained(uri: str, why: str) -> str:
    """Return the text; ``uri`` is empty if nobody knows where the storage is."""
    where = f" in {uri}" if uri else ""
    return (
        f"What the application stored{where} was not deleted: {why} Delete it by hand if neither its state nor a "
        "StreamSnapshot or fork of it is needed."
    )


def namespace_terminating(namespace: str) -> str:
    return f"namespace {namespace} is being deleted and accepts no pod for it."


def unreadable(problem: str) -> str:
    return f"the resource cannot be read ({problem})."


NO_LAUNCH_KNOWN = "the status of the application was lost, and knows of no launch."


def purge_given_up(pod: str, seconds: float) -> str:
    return f"its status was lost, and pod {pod} did not succeed within {seconds:.0f} seconds."


# --- the snapshot that it was to start from ---


def origin_releasing(pod: str) -> str:
    return f"Pod {pod} releases the snapshot that the application was to start from."


ORIGIN_POD_REPLACED = "The pod that releases the snapshot is replaced."


def origin_retried(problem: str, seconds: float) -> str:
    return f"{problem} It is retried for {seconds:.0f} seconds in all."


def origin_pod_not_built(error: object) -> str:
    return f"No pod can be built that releases the snapshot: {error}"


def origin_still_held(snapshot: str, uri: str, holder: str) -> str:
    return (
        f"Snapshot {snapshot} in {uri} was not released, and {holder} may still hold its files. Before the "
        f'StreamSnapshot that took it is deleted, annotate that with "tidegate.dev/release-holders={holder}".'
    )


# --- snapshots ---


def snapshots_retained(number: int, name: str) -> str:
    return (
        f"{number} scheduled snapshots are marked as retained, as the storage is; the first is StreamSnapshot {name}. "
        "To finish the deletion without one, delete it."
    )


def snapshots_purged(number: int, name: str) -> str:
    return (
        f"The storage was purged. {number} snapshots are marked as gone with it; the first is StreamSnapshot {name}. "
        "To finish the deletion without one, delete it."
    )


def final_snapshot(name: str) -> str:
    return f"StreamSnapshot {name} is taken."


def final_snapshot_waits(problem: str) -> str:
    return f"{problem} To finish the deletion without it, set spec.snapshots.finalSnapshot to false."


def snapshot_waits(problem: str, name: str) -> str:
    return f"{problem} To finish the deletion without StreamSnapshot {name}, delete it."


def of_snapshot(name: str, problem: str) -> str:
    return f"StreamSnapshot {name}: {problem}"


def final_snapshot_missing(why: str) -> str:
    return (
        f"The final snapshot is missing: {why or 'it could not be created.'} What the application stored is retained."
    )
