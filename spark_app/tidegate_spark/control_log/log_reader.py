"""Reads the control log, and keeps what a process has read of it. I/O by the object store's port.

:mod:`tidegate_spark.control_log.log` describes its objects.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from tidegate_spark.control_log import messages
from tidegate_spark.control_log.dedup_window import Taken
from tidegate_spark.control_log.entries import VERSION, Entry
from tidegate_spark.control_log.log_objects import BASES, SEGMENTS, Base, LogObjects, LostError
from tidegate_spark.control_log.reducer import OtherBranchError, State, Verdict, reduce_entries, verdicts
from tidegate_spark.storage.app_objects import AppObjects

LOADS = 5
"""Each is lost to a write of another process, and those get somewhere."""
MOST_FOLDED = 8


class LogReader:
    """One process's view of the log, as far as it only reads. Thread safe.

    Every method that is not said to be without I/O may raise what the store's client raises, and ControlLogError for
    what cannot be understood; it can be called again then.
    """

    def __init__(self, repository: AppObjects, clock: Callable[[], float] = time.time) -> None:
        """Look at the log in the application's storage; nothing is read before :meth:`load`."""
        self._objects, self._clock, self._lock = LogObjects(repository), clock, threading.RLock()
        self._entries: dict[int, Entry] = {}
        self._taken = Taken()
        self._bases: dict[int, Base | None] = {}
        """Those that there are; None: not read yet."""
        self._last = self._settled = self._begin = 0
        """The newest entry, up to where everything is decided, and the base that was read first."""
        self._folded: deque[State] = deque(maxlen=MOST_FOLDED)
        """What was in force at the newest positions that were asked for: each as good as a base to go on from."""
        self._gone = self._confirmed = 0
        """Up to where entries were removed by this process, and up to where they are known to be the log's."""
        self._segments, self._since = 0, clock()
        self._opened = self._since
        """How many segments came after the newest base, and since when it is the newest."""

    def use(self, repository: AppObjects) -> None:
        """Reach the storage by another client from now on; without I/O."""
        self._objects = LogObjects(repository)

    @property
    def last(self) -> int:
        """Sequence of the newest entry that is known here; without I/O."""
        with self._lock:
            return self._last

    @property
    def is_settled(self) -> bool:
        """Whether everything that is known here is decided; without I/O, and without waiting for any."""
        return self._settled == self._last

    @property
    def begin(self) -> int:
        """The position behind which entries are at hand; without I/O."""
        with self._lock:
            return self._begin

    def find(self, message: str) -> int | None:
        """Return the sequence of the message of this id, None if it is not known; without I/O."""
        with self._lock:
            return self._taken.find(message)

    @property
    def consumed(self) -> dict[str, int]:
        """Part of a broker's topic, or writer -> the offset from which on nothing was taken yet; without I/O."""
        with self._lock:
            return self._taken.places

    def load(self) -> None:
        """Read what is there."""
        with self._lock:
            for _ in range(LOADS):
                try:
                    self._load()
                except LostError as error:
                    # Removed by somebody who has written a newer base.
                    lost = error
                else:
                    return
            raise lost

    def _load(self) -> None:
        self._bases = dict.fromkeys(self._objects.numbers(BASES))
        newest = self._base_at(max(self._bases, default=0))
        self._entries, self._taken = {}, Taken(newest.known, newest.state.consumed, newest.writers)
        self._folded.clear()
        self._last = self._settled = self._begin = self._confirmed = newest.state.position
        self._segments = 0
        for first in self._objects.numbers(SEGMENTS):
            if first > newest.state.position:
                self._take(self._objects.segment(first))

    def read_on(self) -> None:
        """Read what others have written meanwhile."""
        with self._lock:
            while True:
                found = self._objects.segment_if_there(self._last + 1)
                if found is None:
                    return
                self._take(found)

    def entries(self, after: int, upto: int, *, whole: bool = True) -> tuple[Entry, ...]:
        """Return the entries behind one position up to another.

        Raises:
            LostError: some are not there any more, and ``whole`` says that all must be.
        """
        with self._lock:
            missing = [number for number in range(after + 1, upto + 1) if number not in self._entries]
            if missing and missing[-1] > self._gone:
                self._read_back(missing[0], missing[-1])
            if not whole:
                return tuple(self._entries[number] for number in range(after + 1, upto + 1) if number in self._entries)
            try:
                return tuple(self._entries[number] for number in range(after + 1, upto + 1))
            except KeyError:
                raise LostError(messages.LOG_BEGINS_LATER) from None

    def state_at(self, position: int) -> State:
        """Return what is in force at a position that was handed out.

        Raises:
            LostError: the log does not go back so far.
        """
        with self._lock:
            limit = position
            while True:
                state, entries = self._window(limit, position)
                try:
                    found = reduce_entries(state, entries)
                except OtherBranchError as error:
                    limit = error.position
                    continue
                # Only where no message before it is decided later may one go on from there.
                if position == self._settled and entries:
                    self._folded.append(found)
                return found

    def verdict(self, sequence: int) -> Verdict | None:
        """Return what is known of a message now, None if the entry is none; raises LostError as :meth:`entries`."""
        with self._lock:
            state, entries = self._window(sequence - 1, self._last)
            return verdicts(entries, state.lineage).get(sequence)

    def verdicts(self, sequences: Iterable[int]) -> dict[int, Verdict]:
        """Return what is known now of each of these messages that the log has not forgotten."""
        with self._lock:
            wanted = sorted(set(sequences))
            while wanted:
                try:
                    state, entries = self._window(wanted[0] - 1, self._last)
                except LostError:
                    # Looking has shown which bases there are.
                    oldest = min(self._bases, default=0)
                    if wanted[0] > oldest:
                        raise
                    wanted = [number for number in wanted if number > oldest]
                else:
                    found = verdicts(entries, state.lineage)
                    return {number: found[number] for number in wanted if number in found}
            return {}

    def _take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.sequence != self._last + 1:
                # Removed between two listings; if not, it is missing at the next reading, too.
                raise LostError(f"{self._objects.place} has entry {entry.sequence}, and not {self._last + 1}")
            self._entries[entry.sequence] = entry
            self._last = entry.sequence
            self._taken.note(entry)
        self._segments += 1

    def _window(self, position: int, upto: int) -> tuple[State, tuple[Entry, ...]]:
        """Return what is in force at some place up to ``position``, and the entries from there to ``upto``."""
        try:
            state = self._nearest(position)
            return state, self.entries(state.position, upto)
        except LostError:
            # Somebody else has written a newer base, and removed what is before it.
            self._bases = {base: self._bases.get(base) for base in self._objects.numbers(BASES)}
            self._folded.clear()
            state = self._nearest(position)
            return state, self.entries(state.position, upto)

    def _nearest(self, position: int) -> State:
        folded = max((it for it in self._folded if it.position <= position), key=_position, default=None)
        if folded is not None and folded.position > max((base for base in self._bases if base <= position), default=0):
            return folded
        return self._base_at(position).state

    def _base_at(self, position: int) -> Base:
        """Return the newest base up to ``position``; before the first one there is nothing."""
        newest = max((number for number in self._bases if number <= position), default=0)
        base = self._bases.get(newest)
        if base is None:
            base = self._objects.base(newest) if newest else Base(VERSION, State())
            self._bases = {**self._bases, newest: base} if newest else self._bases
        return base

    def _read_back(self, first: int, last: int) -> None:
        segments = self._objects.numbers(SEGMENTS)
        for number, following in zip(segments, [*segments[1:], last + 1], strict=False):
            if number <= last and following > first:
                self._entries.update((entry.sequence, entry) for entry in self._objects.segment(number))


def _position(state: State) -> int:
    return state.position
