"""The control log in an application's storage. I/O by the object store's port.

``control/segments/<first sequence>.json`` holds entries that were written together, by a put that succeeds only if the
object does not exist. So the log is one sequence whoever writes: the loser reads what it missed and continues after it.

``control/bases/<sequence>.json`` holds what is in force after that entry, and the ids of recent messages.

Names of removed segments are free again, and a driver that was frozen could put an entry where nobody reads. Nothing is
removed without a base behind it, and the newest base stays. So an entry is confirmed, and reported as logged, only if a
listing of the bases after its put shows none at its place or behind it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tidegate_spark.control_log.dedup_window import KNOWN_SECONDS
from tidegate_spark.control_log.entries import VERSION, ControlLogError, Entry, Kind
from tidegate_spark.control_log.log_objects import BASES, SEGMENTS, Base, LostError
from tidegate_spark.control_log.log_reader import LogReader
from tidegate_spark.control_log.reducer import State, Verdict, reduce_entries, rollbacks, verdicts

ATTEMPTS = 50
"""Each is lost to a write of another process, and those get somewhere."""
ENTRIES_PER_BASE, SEGMENTS_PER_BASE, KNOWN_PER_ENTRY = 256, 64, 8
"""After so many a new base is worth its write; after more entries where it has to name many messages: one for so
many of them."""
BASES_AT_HAND = 2
"""Each has what is in force, and thousands of ids."""
OFFERED_SECONDS = 3600.0
"""A process forgets no id for its age before: by then whatever has not come to its end was offered to it again."""


class ControlLog(LogReader):
    """One process's view of the log, and what it writes there. Thread safe, as all of it is."""

    def append(self, drafts: Sequence[Entry]) -> None:
        """Write entries, whose numbers and times are given here, in their order; those that are there are left out.

        Raises:
            ControlLogError: others were faster all the time.
        """
        with self._lock:
            for _ in range(ATTEMPTS):
                new = self._unknown(drafts)
                if not new:
                    if self._confirm():
                        return
                    continue
                now, first = self._clock(), self._last + 1
                numbered = [replace(draft, sequence=first + index, time=now) for index, draft in enumerate(new)]
                if self._objects.put_segment(numbered):
                    self._take(numbered)
                else:
                    # Somebody else's, or an earlier attempt of our own, whose answer was lost.
                    self.read_on()
        raise ControlLogError(f"{self._objects.place} was written {ATTEMPTS} times by others meanwhile")

    def settle(self) -> int:
        """Decide about all messages that can expire; return the newest position, which may be handed out."""
        with self._lock:
            while True:
                undecided = self._undecided()
                if undecided:
                    self._decide(undecided)
                elif self._confirm():
                    self._settled = self._last
                    return self._last

    def undecided(self) -> tuple[Entry, ...]:
        """Return the messages that may expire, and of which it is not decided whether they do."""
        with self._lock:
            return tuple(self._undecided()) if self._last else ()

    def let_expire(self) -> None:
        """Decide about messages whose time has passed: nobody may plan a batch for a long time."""
        with self._lock:
            late = [entry for entry in self._undecided() if entry.expires < self._clock()] if self._last else []
            if late:
                self._decide(late)

    def decide(self, sequences: Iterable[int]) -> dict[int, Verdict]:
        """Decide about some messages, as far as they can expire; return what is known of them then."""
        with self._lock:
            wanted = set(sequences)
            while True:
                undecided = [entry for entry in self._undecided() if entry.sequence in wanted]
                if not undecided:
                    return self.verdicts(wanted)
                self._decide(undecided)

    def start_from(self, state: State, entries: Sequence[Entry]) -> None:
        """Have the log go on behind what another one holds, or this one held: done again it changes nothing.

        Args:
            state: what is in force at a position.
            entries: of behind it, as they were.

        Raises:
            ControlLogError: it has a history of its own.
        """
        with self._lock:
            if self._last not in (0, state.position, _end(state, entries)):
                raise ControlLogError(f"{self._objects.place} has messages of its own, up to {self._last}")
            self._adopt(state, entries)

    def roll_back(self, state: State, entries: Sequence[Entry], lineage: int) -> int:
        """Take back everything that came after ``entries``, which follow ``state``, for a lineage and those after it.

        Done again it changes nothing.

        Returns:
            The first position that may be handed out in the lineage.
        """
        with self._lock:
            self._adopt(state, entries)
            self.append([Entry(0, Kind.ROLLED_BACK, of=_end(state, entries), lineage=lineage)])
            found = [entry for entry in self._entries.values() if entry.lineage == lineage]
            if found:
                # Segments in between may have been removed, so a base keeps what is in force behind them. What was read
                # from topics stays read.
                behind = replace(reduce_entries(state, [*entries, found[0]]), consumed=self._taken.consumed)
                base = self._base_of(behind)
                self._objects.put_base(base)
                self._bases[base.state.position] = base
            return self._last

    def wants_base(self, seconds: float) -> bool:
        """Return whether a new base is worth its write: after many entries, or some and ``seconds``; without I/O."""
        with self._lock:
            entries = self._last - max(self._bases, default=0)
            # The cost of a base grows with the ids in it.
            many = max(ENTRIES_PER_BASE, self._taken.count // KNOWN_PER_ENTRY)
            if entries >= many or self._segments >= SEGMENTS_PER_BASE:
                return True
            return entries > 0 and self._clock() - self._since >= seconds

    def write_base(self, offered: Collection[str] = ()) -> int:
        """Write what is in force now as a base, and forget old ids; return its position.

        Args:
            offered: ids that are offered still, however old they are: forgotten, they would be taken again.
        """
        with self._lock:
            position = self.settle()
            now = self._clock()
            self._taken.remembered(now - KNOWN_SECONDS if now - self._opened >= OFFERED_SECONDS else 0.0, offered)
            base = self._base_of(self.state_at(position))
            # An existing base has the same state.
            self._objects.put_base(base)
            self._bases[position] = base
            # A query that ended long ago keeps all of them: they are read again if somebody asks.
            newest = sorted(self._bases)[-BASES_AT_HAND:]
            self._bases = {number: read if number in newest else None for number, read in self._bases.items()}
            self._segments, self._since = 0, now
            return position

    def remove_before(self, oldest: int) -> int:
        """Remove what no position from ``oldest`` on needs, and nothing behind the last base but one.

        Only the holder of the fence may call it: what another lineage needs is not known here.

        Returns:
            The position up to which entries are gone.
        """
        with self._lock:
            self.read_on()
            bases = self._objects.numbers(BASES)
            nearest = max((base for base in bases[:-1] if base <= oldest), default=0)
            segments = self._objects.numbers(SEGMENTS)
            if nearest in bases[:1] and not _before(segments, nearest):
                # A query that ran long ago keeps all of it: it is not read, base after base, to find that out again.
                return self._gone
            kept = self._needed_base(bases[:-1], oldest)
            if not kept:
                return 0
            # Bases first, because a reader of an old base looks for the segments behind it.
            self._objects.delete(BASES, [base for base in bases if base < kept])
            self._bases = {base: read for base, read in self._bases.items() if base >= kept}
            self._objects.delete(SEGMENTS, _before(segments, kept))
            self._entries = {number: entry for number, entry in self._entries.items() if number > kept}
            self._begin, self._gone = max(self._begin, kept), kept
            return kept

    # --- parts ---

    def _adopt(self, state: State, entries: Sequence[Entry]) -> None:
        if state.position and state.position not in self._bases:
            # It may be the newest one now: what was taken is not to be taken again.
            self._objects.put_base(self._base_of(state))
        if entries and not self._has(entries):
            self._objects.put_segment(entries)
        self.load()

    def _has(self, entries: Sequence[Entry]) -> bool:
        try:
            return self.entries(entries[0].sequence - 1, entries[-1].sequence) == tuple(entries)
        except LostError:
            return False

    def _needed_base(self, bases: Sequence[int], oldest: int) -> int:
        """Return the base from which every position from ``oldest`` on can be reached, 0 if all are needed."""
        while True:
            base = max((number for number in bases if number <= oldest), default=0)
            if not base:
                return 0
            try:
                state, entries = self._window(base, self._last)
            except LostError:
                # A rollback put it back, to before what was removed: it is needed, and so is all that is there.
                return 0
            # What is in force behind a rollback follows from a base before it.
            lowest = min((marker.of for marker in rollbacks(entries, state.lineage)), default=base)
            if lowest >= base:
                return base
            oldest = lowest

    def _confirm(self) -> bool:
        """Return whether all entries that are known here are the log's; if they may not be, read it again.

        What another driver wrote is read again as well if it has a base by now: that looks the same from here.
        """
        if self._confirmed == self._last:
            return True
        if max(self._objects.numbers(BASES), default=0) > self._confirmed:
            self.load()
            return False
        self._confirmed = self._last
        return True

    def _unknown(self, drafts: Sequence[Entry]) -> list[Entry]:
        """Return those drafts that are not in the log, by what they do there."""
        state, behind = self._behind()
        decided = {entry.of for entry in behind if entry.kind in (Kind.ACCEPTED, Kind.VOID)}
        lineage = max([state.lineage, *(entry.lineage for entry in behind)])
        return self._taken.new_among(drafts, decided, lineage)

    def _undecided(self) -> list[Entry]:
        state, entries = self._behind()
        found = verdicts(entries, state.lineage)
        return [entry for entry in entries if found.get(entry.sequence) is Verdict.UNDECIDED]

    def _decide(self, undecided: Iterable[Entry]) -> None:
        now = self._clock()
        kinds = {entry.sequence: Kind.VOID if entry.expires < now else Kind.ACCEPTED for entry in undecided}
        self.append([Entry(0, kind, of=sequence) for sequence, kind in kinds.items()])

    def _base_of(self, state: State) -> Base:
        """Return a base that remembers all that was taken, also what came after its state."""
        return Base(VERSION, state, self._taken.all(), self._taken.writers(self._clock()))

    def _behind(self) -> tuple[State, tuple[Entry, ...]]:
        """Return a state and the entries behind it, in which everything is that is undecided."""
        try:
            return self._window(self._settled, self._last)
        except LostError:
            if min(self._bases, default=0) > self._last:
                self.load()
            # What is before a base is decided.
            self._settled = max(self._settled, min(self._bases, default=0))
            return self._window(self._settled, self._last)


def _before(segments: Sequence[int], base: int) -> list[int]:
    """Return those segments all of whose entries are before a base, or at it."""
    return [first for first, following in itertools.pairwise(segments) if following <= base + 1]


def _end(state: State, entries: Sequence[Entry]) -> int:
    return entries[-1].sequence if entries else state.position
