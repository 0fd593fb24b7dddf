"""The ids by which a control log recognizes a message that is sent again. Pure; not thread safe.

A message is known by its id, for a while. One from a topic is also known by its offset, for ever. One from the inbox is
also known by its writer's number, while that is one of the newest writers: ten thousand messages of others may come
before it is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate_spark.control_log.entries import Entry, Kind, is_by_writer
from tidegate_spark.control_log.reducer import consumed_after

KNOWN_SECONDS, MOST_KNOWN = 7 * 86400.0, 10_000
"""How long the id of a message is remembered, and of how many; of those from a broker as many more."""
MOST_WRITERS = 500
"""Into the storage's inbox, of whom it is remembered how far they were read; as long as ids are."""


@dataclass(frozen=True)
class Known:
    """A message of which it is remembered that it was taken."""

    id: str
    sequence: int
    time: float
    channel: bool = False
    """It came from a broker: however many those are, they displace no other."""


@dataclass(frozen=True)
class Writer:
    """One who writes into the storage's inbox."""

    origin: str
    following: int
    """The number of his first message that was not taken yet."""
    sequence: int
    time: float
    """Of the newest one that was."""


class Taken:
    """Ids, and from where on topics and writers are to be read."""

    def __init__(
        self, known: Iterable[Known] = (), consumed: Mapping[str, int] | None = None, writers: Iterable[Writer] = ()
    ) -> None:
        """Start with what a base remembers."""
        self._known = {it.id: it for it in known}
        self._consumed = dict(consumed or {})
        self._writers = {it.origin: it for it in writers}

    @property
    def consumed(self) -> dict[str, int]:
        """Part of a topic -> the offset from which on nothing was taken yet."""
        return dict(self._consumed)

    @property
    def places(self) -> dict[str, int]:
        """The same, and writer -> the number from which on nothing of his was taken yet."""
        return {**self._consumed, **{name: it.following for name, it in self._writers.items()}}

    @property
    def count(self) -> int:
        """How many messages are remembered."""
        return len(self._known)

    def find(self, name: str) -> int | None:
        """Return the sequence of the message of this id, None if it is not known."""
        known = self._known.get(name)
        return known.sequence if known is not None else None

    def note(self, entry: Entry) -> None:
        """Take note of an entry that is in the log."""
        if entry.id:
            self._known.setdefault(entry.id, Known(entry.id, entry.sequence, entry.time, bool(entry.origin)))
        if is_by_writer(entry):
            following = consumed_after(self.places, [entry])[entry.origin]
            self._writers[entry.origin] = Writer(entry.origin, following, entry.sequence, entry.time)
        elif entry.offset >= 0:
            self._consumed = consumed_after(self._consumed, [entry])

    def all(self) -> tuple[Known, ...]:
        """Return all that is remembered, in the order of the log."""
        return tuple(sorted(self._known.values(), key=_sequence))

    def remembered(self, since: float, but: Collection[str] = ()) -> tuple[Known, ...]:
        """Forget what is older, or too much, but these ids, which somebody still offers; return what is left."""
        kept = {name: self._known[name] for name in but if name in self._known}
        recent = [it for it in self._known.values() if it.time >= since]
        for of in (True, False):
            kept.update((it.id, it) for it in sorted(_of(recent, of), key=_sequence)[-MOST_KNOWN:])
        self._known = kept
        return self.all()

    def writers(self, now: float) -> tuple[Writer, ...]:
        """Forget the writers of whom nothing came for long; return those that are left, in the order of the log."""
        recent = [it for it in self._writers.values() if it.time >= now - KNOWN_SECONDS]
        kept = sorted(recent, key=lambda it: it.sequence)[-MOST_WRITERS:]
        self._writers = {it.origin: it for it in kept}
        return tuple(kept)

    def new_among(self, drafts: Sequence[Entry], decided: Iterable[int], lineage: int) -> list[Entry]:
        """Return those drafts that are not in the log, by what they do there.

        Args:
            drafts: entries without numbers, in their order.
            decided: messages about which something was decided.
            lineage: the newest that began with a rollback.
        """
        decided, consumed = set(decided), self.places
        new: dict[object, Entry] = {}
        for draft in drafts:
            key = draft.id or (draft.kind, draft.of, draft.lineage, draft.origin, draft.offset)
            if key in new or not self._is_new(draft, decided, lineage, consumed):
                continue
            new[key] = draft
            consumed = consumed_after(consumed, [draft]) if draft.offset >= 0 else consumed
        return list(new.values())

    def _is_new(self, draft: Entry, decided: set[int], lineage: int, consumed: Mapping[str, int]) -> bool:
        if draft.kind is Kind.CONSUMED:
            return draft.offset > consumed.get(draft.origin, -1)
        if draft.id:
            is_behind = 0 <= draft.offset < consumed.get(draft.origin, 0)
            return draft.id not in self._known and not is_behind
        if draft.kind is Kind.ROLLED_BACK:
            return draft.lineage > lineage
        return draft.of not in decided


def _of(known: Iterable[Known], channel: bool) -> list[Known]:
    return [it for it in known if it.channel is channel]


def _sequence(known: Known) -> int:
    return known.sequence
