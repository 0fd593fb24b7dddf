"""The last committed batch of the lineage in use: of what is told now, of what was seen before, or of its beginning.

No I/O.
"""

from __future__ import annotations

from tidegate.decide.faults import read_termination
from tidegate.model.streaming_app import (
    QueryStatus,
    RepartitionResult,
    RollbackSnapshot,
    StreamingAppStatus,
    UpgradePhase,
    UpgradeStatus,
)
from tidegate.observe.observation import Observation

_TAKEN_BACK = frozenset({UpgradePhase.ROLLING_BACK, UpgradePhase.ROLLED_BACK})


def last_batch(o: Observation, queries: tuple[QueryStatus, ...], lineage: int) -> int | None:
    """Return the highest committed batch, None if the lineage is not known to have any.

    Args:
        o: everything that is known.
        queries: as the status is to tell of them.
        lineage: the one in use, or about to be launched on.
    """
    known = o.app.status
    committed = [query.batch_id for query in queries if query.batch_id is not None]
    if queries and len(committed) == len(queries):
        return max(committed)
    if lineage == known.lineage:
        told = read_termination(o.driver.ended) if o.driver else None
        committed += [batch for batch in (told.batches.values() if told else ()) if batch >= 0]
        committed += [] if known.batch is None else [known.batch]
    return max((*committed, *_made_at(known, lineage)), default=None)


def _made_at(known: StreamingAppStatus, lineage: int) -> tuple[int, ...]:
    """Return batches that a lineage had when it was made of another one, as far as they are known.

    Of a fork nothing is said before its first batch: the snapshot may be of queries that the fork does not have.
    """
    upgrade = known.upgrade
    if upgrade is None or upgrade.lineage != lineage:
        return ()
    if upgrade.phase in _TAKEN_BACK:
        return _after_rollback(upgrade, upgrade.rollback_snapshot) if upgrade.rollback_snapshot is not None else ()
    divided = upgrade.repartition
    if divided is None or divided.result != RepartitionResult.COMPLETED or divided.lineage != lineage:
        return ()
    # What was seen of the lineage that it was made of is in it, also of queries that the pod's last words left out.
    before = (
        known.batch
        if upgrade.rollback_snapshot is not None and upgrade.rollback_snapshot.lineage == known.lineage
        else None
    )
    return tuple(batch for batch in (divided.batch, before) if batch is not None)


def _after_rollback(upgrade: UpgradeStatus, pin: RollbackSnapshot) -> tuple[int, ...]:
    # One that is not complete, or of which only some queries were told, may hold more than is known of it.
    if pin.loss or not pin.batches or pin.lineage == upgrade.lineage or len(pin.batches) < len(upgrade.queries):
        return ()
    return tuple(query.batch_id for query in pin.batches)
