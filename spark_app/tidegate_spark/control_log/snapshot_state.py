"""The part of the control stream that a snapshot keeps, so that a start from it needs no log. I/O by the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidegate_spark.contract.control_protocol import DUMP_STATE, PAUSE, RESUME, SNAPSHOT
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control_log import messages
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.offsets import SELDOM_SECONDS, position_in
from tidegate_spark.control_log.reducer import State, Verdict, is_whole, verdicts
from tidegate_spark.storage.app_objects import AppObjects

OF_THE_ORIGINAL = frozenset({PAUSE, RESUME, SNAPSHOT, DUMP_STATE})
"""Orders to one application, once: one that starts from its snapshot did not get them."""


@dataclass(frozen=True)
class Kept:
    """The control stream at the batches of a snapshot."""

    positions: dict[str, int]
    """Query -> position, of those that take part."""
    state: State
    """What is in force at the lowest of them."""
    entries: tuple[Entry, ...] = ()
    """From there to the highest."""


def kept_at(
    repository: AppObjects, offsets: Mapping[str, str], age: Callable[[str], float] = lambda query: -1.0
) -> Kept | None:
    """Return what is to be kept of the log, None if no query takes part.

    Args:
        repository: the application's.
        offsets: query -> content of ``offsets/<batch>``.
        age: returns for how long Spark has these offsets of a query, in seconds; -1: it has removed them. Where it has
            them the log goes back to them, unless the query was away for so long that the log does not wait for it: it
            is left out, and keeps no other one back.

    Raises:
        ControlLogError: the log does not have it.
        Exception: what the store's client raises.
    """
    found = {query: position_in(text) for query, text in sorted(offsets.items())}
    positions = {query: position for query, position in found.items() if position is not None}
    if not positions:
        return None
    log = ControlLog(repository)
    log.load()
    while True:
        lowest, highest = min(positions.values()), max(positions.values())
        try:
            return Kept(positions, log.state_at(lowest), log.entries(lowest, highest))
        except LostError:
            # Where a rollback undid what is missing, the query may only not have come to run since.
            is_undone = is_whole(log.entries(lowest, highest, whole=False), lowest, highest)
            least = SELDOM_SECONDS if is_undone else 0.0
            away = [query for query, position in positions.items() if position == lowest]
            positions = {query: position for query, position in positions.items() if position > lowest}
            if not positions or any(age(query) < least for query in away):
                raise


def start_from(repository: AppObjects, kept: Kept | None, lineage: int, *, own: bool) -> None:
    """Have the application's log go on where a lineage does that starts from a snapshot. Can be done again.

    Args:
        repository: the application's.
        kept: of the snapshot; None: nothing.
        lineage: which begins.
        own: whether the snapshot is of the same application: what came after it is rolled back. Otherwise the log
            starts with it, and the application is not paused, whatever the other one was.

    Raises:
        ControlLogError: the log has another history.
        Exception: what the store's client raises.
    """
    if kept is None:
        return
    log = ControlLog(repository)
    log.load()
    if own:
        log.roll_back(kept.state, kept.entries, lineage)
    else:
        known = verdicts(kept.entries, kept.state.lineage)
        entries = [_taken_along(entry, known.get(entry.sequence)) for entry in kept.entries]
        # The other one's lineages are none of its own, which are counted from one again.
        log.start_from(replace(kept.state, paused=False, lineage=0), entries)


def _taken_along(entry: Entry, verdict: Verdict | None) -> Entry:
    """Return an entry as it stands in another application's log: its number and its place in a topic stay.

    What was taken back is never in force there, and nothing says to which of the other one's lineages that was done.
    """
    if entry.kind is Kind.ROLLED_BACK:
        return Entry(entry.sequence, Kind.REJECTED, time=entry.time, reason=Reason.NOT_SENT_HERE)
    if verdict is Verdict.ROLLED_BACK:
        return _rejected(entry, Reason.ROLLED_BACK, messages.TAKEN_BACK_THERE)
    if entry.kind is Kind.MESSAGE and entry.type in OF_THE_ORIGINAL:
        return _rejected(entry, Reason.NOT_SENT_HERE, messages.SENT_TO_ORIGIN)
    return entry


def _rejected(entry: Entry, reason: Reason, message: str) -> Entry:
    return replace(entry, kind=Kind.REJECTED, payload="null", reason=reason, message=message)
