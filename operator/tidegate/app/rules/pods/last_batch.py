"""The last committed batches of the lineage in use: reported now, recorded before, or those it started from. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import (
    QueryStatus,
    RepartitionResult,
    RollbackSnapshot,
    SnapshotBatch,
    StreamingAppStatus,
    UpgradeStatus,
)
from tidegate.app.observation import Observation
from tidegate.pods.records.faults import read_termination

MOST_QUERIES, LONGEST_QUERY_NAME = 100, 253
"""Of the queries that a status lists; a name is as long there as that of an object of Kubernetes."""


def last_batch(o: Observation, queries: tuple[QueryStatus, ...], lineage: int) -> int | None:
    """Return the highest committed batch, None if the lineage is not known to have any.

    Args:
        o: everything that is known.
        queries: as the status is to report them.
        lineage: the one in use, or about to be launched on.
    """
    known = o.app.status
    committed = [query.batch_id for query in queries if query.batch_id is not None]
    if queries and len(committed) == len(queries):
        return max(committed)
    if lineage == known.lineage:
        termination = read_termination(o.driver.ended) if o.driver else None
        committed += [batch for batch in (termination.batches.values() if termination else ()) if batch >= 0]
        committed += [] if known.batch is None else [known.batch]
    return max((*committed, *_made_at(known, lineage)), default=None)


def last_batches(o: Observation, lineage: int) -> tuple[SnapshotBatch, ...]:
    """Return the newest batch of each query that is known to be committed in a lineage, sorted by name.

    What a ready driver reports of a query is what the storage has. A query that it does not report may start later;
    one that was removed from the program has left its checkpoint, so its batch does no harm here. Only on an older copy
    that a person accepted does the driver's report alone count.

    Args:
        o: everything that is known.
        lineage: the one in use, or about to be launched on.
    """
    known = o.app.status
    if lineage != known.lineage:
        return ()
    found = known.known_batches()
    # A late watch may show an earlier epoch, of another lineage.
    report = o.agent.report if o.agent is not None and o.agent.report.epoch >= known.epoch else None
    named = {query.name: query.batch_id for query in report.queries} if report is not None else {}
    if report is not None and report.ready:
        found = named if _accepts_older(o, lineage) else found | named
    else:
        found |= {name: batch for name, batch in named.items() if batch >= 0}
    termination = read_termination(o.driver.ended) if o.driver is not None and o.driver.epoch >= known.epoch else None
    for name, batch in termination.batches.items() if termination is not None else ():
        found[name] = max(batch, found.get(name, -1))
    committed = {name: batch for name, batch in found.items() if batch >= 0 and len(name) <= LONGEST_QUERY_NAME}
    # Beyond the room in the status, the driver's queries stay.
    listed = sorted(committed, key=lambda name: (name not in named, name))[:MOST_QUERIES]
    return tuple(SnapshotBatch(name=name, batch_id=committed[name]) for name in sorted(listed))


def _accepts_older(o: Observation, lineage: int) -> bool:
    start = o.app.spec.start_from
    return start is not None and start.adopt and start.adopt_lineage == lineage


def _made_at(known: StreamingAppStatus, lineage: int) -> tuple[int, ...]:
    """Return batches that a lineage had when it was made of another one, as far as they are known.

    Of a fork nothing is said before its first batch: the snapshot may be of queries that the fork does not have.
    """
    upgrade = known.upgrade
    if upgrade is None or upgrade.lineage != lineage:
        return ()
    if upgrade.is_rolled_back:
        return _after_rollback(upgrade, upgrade.rollback_snapshot) if upgrade.rollback_snapshot is not None else ()
    repartition = upgrade.repartition
    if repartition is None or repartition.result != RepartitionResult.COMPLETED or repartition.lineage != lineage:
        return ()
    # It has what was seen of the earlier lineage, also of queries that the pod's termination message left out.
    before = (
        known.batch
        if upgrade.rollback_snapshot is not None and upgrade.rollback_snapshot.lineage == known.lineage
        else None
    )
    return tuple(batch for batch in (repartition.batch, before) if batch is not None)


def _after_rollback(upgrade: UpgradeStatus, pin: RollbackSnapshot) -> tuple[int, ...]:
    # One that is not complete, or of which only some queries are known, may hold more than is known of it.
    if pin.loss or not pin.batches or pin.lineage == upgrade.lineage or len(pin.batches) < len(upgrade.queries):
        return ()
    return tuple(query.batch_id for query in pin.batches)
