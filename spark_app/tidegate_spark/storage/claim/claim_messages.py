"""Messages: whose storage it is, and why this process does not write or delete there. No I/O."""

from __future__ import annotations

from collections.abc import Sequence


def taken_over(place: str, uid: str, epoch: int, lineage: int) -> str:
    return (
        f"{place} is taken over from the application with uid {uid}, which ended in epoch {epoch} and lineage "
        f"{lineage}."
    )


def other_beginning(place: str, lineage: int) -> str:
    return f"{place}: lineage {lineage} did not start with what this driver was to begin it with."


def other_lineage(place: str, lineage: int, own: int) -> str:
    return (
        f"{place} names lineage {lineage} of this application; this driver is to run in lineage {own} and does "
        "not write."
    )


def other_user(place: str, user: str, epoch: int) -> str:
    return (
        f"{place} names {user} of this application as the user of the storage; this driver is epoch {epoch} and "
        "does not write."
    )


def claim_contended(uri: str, file: str) -> str:
    return f"{uri}/{file} kept changing while it was claimed."


def nothing_to_adopt(uri: str) -> str:
    return f"spec.startFrom.adopt is true, and there is nothing in {uri} to be taken over."


def nothing_there(uri: str, endpoint: str) -> str:
    return (
        f"{_at(uri, endpoint)} has no state of this application, which has run before or started from a snapshot, so "
        "it is not started empty."
    )


def _at(uri: str, endpoint: str) -> str:
    return f"{uri} " + (
        f"at {endpoint} (spec.storage.endpoint)" if endpoint else "in AWS (spec.storage.endpoint is not set)"
    )


def older_batch(uri: str, endpoint: str, lineage: int, query: str, batches: tuple[int, int]) -> str:
    """Return the text; ``batches``: the query's newest one there, negative if there is none, and the one it had."""
    newest, known = batches
    there = f"ends with batch {newest}" if newest >= 0 else "has no batch"
    return (
        f"{_older(uri, endpoint)}: query {query!r} {there} in lineage {lineage}, but the application has committed "
        f"batch {known}."
    )


def older_lineage(uri: str, endpoint: str, lineage: int, known: int) -> str:
    return f"{_older(uri, endpoint)}: it ends in lineage {lineage}, but the application has run in lineage {known}."


def not_repartitioned(uri: str, endpoint: str, lineage: int, made: int) -> str:
    """Return the text; ``lineage`` is the one that the storage ends in, ``made`` the one that a repartition made."""
    return (
        f"{_older(uri, endpoint)}: it ends in lineage {lineage}, but the state was repartitioned into lineage {made}, "
        "which is not there."
    )


def mark_missing(uri: str, endpoint: str, lineage: int, made: int) -> str:
    """Return the same where ``made`` has batches, and nothing says that it is whole."""
    return (
        f"{_older(uri, endpoint)}: app.json names lineage {lineage}, but the state was repartitioned into lineage "
        f"{made}, which has batches there, and lineages/{made}.json is missing. spec.startFrom.adoptLineage {made} "
        f"continues with those, {lineage} with the state from before the repartition."
    )


def later_lineages(uri: str, endpoint: str, lineage: int, later: Sequence[int]) -> str:
    """Return the text; ``lineage`` is the one that ``app.json`` names, ``later`` those with batches."""
    those = f"a later one, {later[0]}, has" if len(later) == 1 else f"later ones, {', '.join(map(str, later))}, have"
    return (
        f"{_at(uri, endpoint)} contradicts itself: app.json names lineage {lineage}, and {those} batches, as in a "
        f"bucket that was copied while the application ran. spec.startFrom.adoptLineage {later[-1]} continues with "
        f"those, {lineage} without them; move their folders elsewhere then, or a later rollback stands still for them."
    )


def lineage_of_others(lineage: int, uri: str, prefix: str) -> str:
    return (
        f"Lineage {lineage} is to start from a snapshot, and there are batches of another history below "
        f"{uri}/{prefix}/{lineage}. Move them elsewhere first."
    )


def _older(uri: str, endpoint: str) -> str:
    return f"The state in {_at(uri, endpoint)} is an older copy"


def owner_unknown(missing: str) -> str:
    return f"{missing}: whose they are, and which one is used, is not known."


def adopted_unknown(missing: str, file: str, lineages: Sequence[int]) -> str:
    return (
        f"{missing}; {file} is missing or damaged as well, so which one is to be taken over is not known. "
        f"Set spec.startFrom.adoptLineage to the one that the application ended in. {_there_are(lineages)}"
    )


def no_such_lineage(lineage: int, lineages: Sequence[int]) -> str:
    return f"There is no lineage {lineage} (spec.startFrom.adoptLineage). {_there_are(lineages)}"


def _there_are(lineages: Sequence[int]) -> str:
    return f"There are: {', '.join(map(str, lineages)) or 'none'}."


def lineage_not_empty(lineage: int, uri: str, prefix: str) -> str:
    return (
        f"Lineage {lineage} is to start with nothing (spec.upgrade.mode Stateless), and there are files below "
        f"{uri}/{prefix}/{lineage}."
    )


def claim_unreadable(uri: str, name: str, error: Exception) -> str:
    return f"{uri}/{name} cannot be read: {error}."


def belongs_to(uri: str, owner: str, namespace: str, app: str, uid: str) -> str:
    return f"{uri} (from spec.storage.uri) belongs to {owner}; this is {namespace}/{app} with uid {uid}."


def inside_others(uri: str, owner: str) -> str:
    return f"{uri} (from spec.storage.uri) is inside storage that {owner} has claimed."


def fence_lost(to: int, uri: str, file: str, epoch: int) -> str:
    """Return the text; ``to`` is the epoch of the driver that has the fence now, 0 if that is not known."""
    who = f"A driver of epoch {to}" if to else "Somebody"
    return f"{who} took the storage {uri} over ({file}); this driver, epoch {epoch}, stopped."


def belongs_to_another(uri: str, owner: str) -> str:
    return f"{uri} belongs to another application by now (uid {owner}): nothing is taken there."


def of_other_namespaces(number: int) -> str:
    return f"{number} of other namespaces"


def purged(objects: int, kept: Sequence[str]) -> str:
    """Return the text; ``kept`` are the places that other applications have claimed."""
    retained = f" Retained, because other applications have claimed them: {', '.join(kept)}." if kept else ""
    return f"{objects} objects deleted.{retained}"


def purge_stopped(objects: int) -> str:
    return f"Asked to stop after {objects} objects were deleted. The next start deletes the rest."


def whole_bucket(uri: str) -> str:
    return f"{uri} is a whole bucket, not an application's."


def not_deleted(left: str) -> str:
    return f"The store does not delete {left}; see the pod's log."


def others_not_purged(uri: str, owner: str) -> str:
    return f"{uri} belongs to {owner}; nothing is deleted."


def claim_missing(uri: str, file: str) -> str:
    return f"{uri}/{file} is missing, and there are other objects; nothing is deleted."
