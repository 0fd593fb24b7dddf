"""Takes a snapshot of an application's checkpoints while they are in use. I/O by the object store's port.

A file that Spark cleans up before it was copied makes the work start over at a newer batch; copies of immutable files
stay useful. It can be interrupted and continued with the same id, also by two processes at once: the name of a copy
says what it was copied from, and only one manifest is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tidegate_spark.contract.object_paths import left_after, of_queries_that_continue
from tidegate_spark.control_log.snapshot_state import kept_at
from tidegate_spark.snapshots import catalog, manifest, messages, reentry
from tidegate_spark.snapshots.catalog import DisposedError, NotBeingTakenError, Snapshot, State
from tidegate_spark.snapshots.checkpoint.query_logs import OFFSETS
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.copying import USUAL, Copiers, in_parallel
from tidegate_spark.snapshots.file_copies import Source, copy_files
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.manifest import Application, File, Manifest, QueryAt
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage import query_names
from tidegate_spark.storage.store import Entry, Found, SnapshotError, VanishedError

ATTEMPTS = 10
"""Spark has cleaned up under the copy so often: it keeps too few batches for a copy of this state."""
PUBLISHING_ATTEMPTS, PUBLISHING_PAUSE_SECONDS = 7, 0.1
"""How often a busy store is asked to take a manifest, with pauses that double: six seconds in all."""


class NothingCommittedError(SnapshotError):
    """No query has a committed batch."""


class BatchLostError(SnapshotError):
    """A batch that was asked for by its number cannot be had any more."""


class TooFastError(SnapshotError):
    """Spark cleans batches up faster than they can be copied."""


@dataclass(frozen=True)
class Request:
    """Which snapshot is wanted."""

    id: str
    """Unique for ever; the same for each attempt at this snapshot."""
    application: Application
    exact: Mapping[str, int] = field(default_factory=dict)
    """Query -> batch, if it must be this one; all others take their newest, or are left out if they have none."""
    alone: bool = False
    """Leave all others out."""
    parent: str = ""
    """What the lineage began with: the parent of its first snapshot."""
    manual: bool = False
    holders: frozenset[str] = frozenset()
    """Who needs it from the first."""
    image: str = ""
    spark_version: str = ""
    tidegate_version: str = ""
    spec_hash: str = ""
    spec: str = ""
    """See :class:`Manifest`."""


@dataclass(frozen=True)
class _Plan:
    queries: dict[str, QueryAt]
    sources: tuple[Source, ...]


def take(
    repository: SnapshotRepository, layout: Layout, request: Request, now: float, copiers: Copiers = USUAL
) -> Manifest:
    """Take a snapshot, or finish one that was begun; one that is complete is just returned.

    Args:
        repository: the application's.
        layout: how its checkpoints are to be read.
        request: what is wanted.
        now: seconds since the epoch.
        copiers: how files are copied, and what is called after each.

    Returns:
        The manifest that was published, which may be another process's.

    Raises:
        DisposedError: the snapshot was disposed of meanwhile.
        NothingCommittedError: there is nothing to take yet.
        DamagedError: it was complete before the catalog was put back to an earlier version, and files of it are gone.
        BatchLostError: an exact batch is gone, or the snapshot was completed at another one.
        TooFastError: each attempt lost files to Spark's cleaning.
        VanishedError: a file that the newest batch needs is not there.
        UnreadableManifestError: the snapshot is complete, and its manifest is lost.
        SnapshotError: others, such as UnreadableCheckpointError. What was begun is then left for another attempt or for
            :func:`tidegate_spark.snapshots.collect.dispose`, which whoever gives up is to call.
    """
    wanted = Snapshot(
        State.TAKING,
        now,
        request.application.lineage,
        request.parent,
        request.manual,
        holders=request.holders,
        queries=request.exact,
    )
    reentry.enter_if_published(repository, request.id)
    begun = repository.change(lambda it: catalog.begin(it, request.id, wanted))
    published = _published(repository, request)
    if published is None:
        try:
            published = _publish(repository, _copy(repository, layout, request, begun.snapshots[request.id], copiers))
        except NotBeingTakenError:
            published = _published(repository, request)
    if published is None:
        published = _published_after_all(repository, request)
    made = manifest.parse(published, repository.manifest_key(request.id))
    try:
        reentry.change(repository, lambda it: catalog.finish(it, request.id, made.summary(published)))
    except DisposedError:
        # The catalog may have been put back meanwhile.
        if request.id not in reentry.enter_published(repository, request.id).ready():
            raise
    for query, batch in request.exact.items():
        if query not in made.queries or made.queries[query].batch != batch:
            called = query_names.of_directory(repository, query)
            raise BatchLostError(f"snapshot {request.id} was completed, and not at batch {batch} of query {called}")
    return made


def _published(repository: SnapshotRepository, request: Request) -> bytes | None:
    found = repository.store.get(repository.manifest_key(request.id))
    return found[0] if found is not None else None


def _published_after_all(repository: SnapshotRepository, request: Request) -> bytes:
    """Return the manifest of which nothing was seen, if the catalog says that it is complete by now.

    The catalog first: what was looked for before another process published it says nothing about what is there.
    """
    known = repository.read().snapshots.get(request.id)
    if known is None or known.state is not State.READY:
        raise DisposedError(f"snapshot {request.id} was deleted while it was being taken")
    published = _published(repository, request)
    if published is None:
        raise manifest.UnreadableManifestError(f"{repository.manifest_key(request.id)} is gone, of a complete snapshot")
    return published


def _publish(repository: SnapshotRepository, made: Manifest) -> bytes | None:
    """Publish a manifest; return the one that is published, None if there is none and nobody waits for one.

    Raises:
        SnapshotError: the store goes on refusing it, and has none.
    """
    key, body = repository.manifest_key(made.id), made.body()
    for attempt in range(PUBLISHING_ATTEMPTS):
        if repository.store.put_if(key, body, None) is not None:
            return body
        found = repository.store.get(key)
        if found is not None:
            return found[0]
        # Refused, and nothing is there: it was deleted; or the store is still busy with another process's (S3 answers
        # 409 then), which may fail as well as succeed.
        known = repository.read().snapshots.get(made.id)
        if known is None or known.state is not State.TAKING:
            return None
        repository.pause(PUBLISHING_PAUSE_SECONDS * 2**attempt)
    raise SnapshotError(f"the store refuses {key}, and has none")


def _copy(
    repository: SnapshotRepository, layout: Layout, request: Request, begun: Snapshot, copiers: Copiers
) -> Manifest:
    copied: dict[str, Found] = {}
    lost_at: Mapping[str, int] = {}
    for attempt in range(1, ATTEMPTS + 1):
        checkpoints = repository.checkpoints(request.application.lineage)
        batches = _batches(layout, request, checkpoints)
        try:
            plan = _plan(repository, layout, checkpoints, batches, copiers)
            plan = _with_named(repository, request, plan)
            locations = _locations(repository, request, plan)
        except VanishedError as error:
            # A listing is not made in one moment: Spark may have cleaned up while it was. If no batch was committed
            # since the last one, it was not that.
            if batches == lost_at or attempt == ATTEMPTS:
                raise _lost(repository, request, error, attempt) from error
            lost_at = batches
            continue
        try:
            # What complete snapshots need is there, unless somebody deleted it.
            doubtful = bool(copied) or attempt > 1
            files = copy_files(repository, request.id, plan.sources, copied, copiers, doubtful=doubtful)
        except VanishedError as error:
            if attempt == ATTEMPTS:
                raise _lost(repository, request, error, attempt) from error
            lost_at = batches
            continue
        age = partial(_age_of_offsets, repository, checkpoints, batches)
        kept = kept_at(repository, {query: at.offsets for query, at in plan.queries.items()}, age)
        made = _manifest(request, begun, plan, files)
        return replace(made, control=kept, locations=locations)
    raise AssertionError("the last attempt returns or raises")


def _age_of_offsets(
    repository: SnapshotRepository,
    checkpoints: Mapping[str, Mapping[str, Entry]],
    batches: Mapping[str, int],
    query: str,
) -> float:
    """Return how old the offsets of a query's batch were when all was listed; -1 if Spark has removed them."""
    offsets = checkpoints[query].get(f"{OFFSETS}/{batches[query]}")
    if offsets is None or repository.store.head(offsets.key) is None:
        return -1.0
    return max(entry.modified for listing in checkpoints.values() for entry in listing.values()) - offsets.modified


def _lost(repository: SnapshotRepository, request: Request, error: VanishedError, attempts: int) -> SnapshotError:
    if request.exact:
        called = {query_names.of_directory(repository, query): batch for query, batch in sorted(request.exact.items())}
        wanted = ", ".join(f"{batch} of query {query}" for query, batch in called.items())
        return BatchLostError(f"batch {wanted} cannot be had any more: {error}")
    if attempts < ATTEMPTS:
        return error
    return TooFastError(messages.cleaned_too_fast(attempts, error))


def _manifest(request: Request, begun: Snapshot, plan: _Plan, files: tuple[File, ...]) -> Manifest:
    return Manifest(
        manifest.VERSION,
        request.id,
        begun.created,
        begun.parent,
        request.application,
        plan.queries,
        files,
        request.image,
        request.spark_version,
        request.tidegate_version,
        request.spec_hash,
        request.spec,
    )


# --- what is to be copied --------------------------------------------------------------------------------------------


def _plan(
    repository: SnapshotRepository,
    layout: Layout,
    checkpoints: Mapping[str, Mapping[str, Entry]],
    batches: Mapping[str, int],
    copiers: Copiers,
) -> _Plan:
    queries: dict[str, QueryAt] = {}
    sources: list[Source] = []
    for query, batch in sorted(batches.items()):
        listing = checkpoints[query]
        read, read_head = repository.reader(listing), repository.head_reader(listing)
        at = layout.needed_files(listing, read, batch, partial(in_parallel, copiers), read_head)
        called = query_names.of_directory(repository, query)
        facts = {**at.facts, **({manifest.NAME: called} if called != query else {})}
        queries[query] = QueryAt(at.batch, at.offsets, facts)
        sources += [Source(query, file.path, listing[file.path], file.shared) for file in at.files]
    return _Plan(queries, tuple(sources))


def _locations(repository: SnapshotRepository, request: Request, plan: _Plan) -> dict[str, str]:
    """Return which location each unnamed query had when it wrote what is taken, also those that wrote nothing.

    A rollback snapshot is of the previous version, and what is noted now may be the new version's.
    """
    at_pin = upgrade_pin.locations(repository, request.id)
    if at_pin is not None:
        return at_pin
    batches = {query: at.batch for query, at in plan.queries.items()}
    return upgrade_pin.locations_now(repository, request.application.lineage, batches)


def _with_named(repository: SnapshotRepository, request: Request, plan: _Plan) -> _Plan:
    """Return a plan with the location that each query had which the script names: as :func:`_locations`."""
    named = upgrade_pin.locations(repository, request.id, upgrade_pin.NAMED)
    if named is None:
        named = upgrade_pin.named_now(repository, request.application.lineage)
    queries = dict(plan.queries)
    for directory, at in plan.queries.items():
        location = named.get(at.called(directory))
        if location:
            queries[directory] = replace(at, facts={**at.facts, manifest.LOCATION: location})
    return replace(plan, queries=queries)


def _batches(layout: Layout, request: Request, checkpoints: Mapping[str, Mapping[str, Entry]]) -> dict[str, int]:
    wanted = request.exact if request.alone else checkpoints
    newest = {query: layout.newest_committed(listing) for query, listing in checkpoints.items() if query in wanted}
    for query, batch in request.exact.items():
        committed = newest.get(query)
        if committed is None or committed < batch:
            raise BatchLostError(f"query {query} has not committed batch {batch}")
    committed_ones = {query: batch for query, batch in newest.items() if batch is not None}
    if not committed_ones:
        raise NothingCommittedError(
            f"no query of lineage {request.application.lineage} has committed a batch yet: there is nothing to take"
        )
    left = {query: left_after(listing) for query, listing in checkpoints.items()}
    return {**of_queries_that_continue(committed_ones, left), **request.exact}
