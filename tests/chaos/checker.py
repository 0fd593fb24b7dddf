"""Accounts for every input record, in the output and in the state. Pure.

Inputs are what the topic held, outputs every copy that was written, the state what the checkpoint holds at the end. It
shares no code with the application: there one record is folded after another into what is stored, batch by batch; here
everything is known, and each key's history is laid out at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tests.chaos.records import Account, Output, Record

EXAMPLES = 5
Place = tuple[int, int]


@dataclass(frozen=True)
class Mistake:
    """Records lost, or accounted for more than once: how many, and since which input record it shows."""

    kind: str
    """``lost`` or ``doubled``."""
    key: str
    number: int
    time: float
    amount: int

    def __str__(self) -> str:
        """Return it for a person."""
        return f"{self.amount} {self.kind} at {self.key} number {self.number}"


@dataclass(frozen=True)
class Verdict:
    """What became of the input."""

    inputs: int
    outputs: int
    """All copies."""
    mistakes: tuple[Mistake, ...]
    wrong: tuple[Place, ...]
    """Input records of which some copy of the output tells another account than the right one."""
    unexpected: tuple[Place, ...]
    """Outputs about records that the input does not have."""
    wrong_states: tuple[str, ...]
    """Keys whose state is not the account of all their records."""
    repeats: tuple[float, ...]
    """When each copy after the first of an id was written; the cost of writing at least once, and no mistake."""

    def amount(self, kind: str) -> int:
        """Return how many records were lost, or doubled."""
        return sum(mistake.amount for mistake in self.mistakes if mistake.kind == kind)

    @property
    def ok(self) -> bool:
        """True if none was lost and none is wrong: the output deduplicated by id and the state are exactly right."""
        return not (self.mistakes or self.wrong or self.unexpected or self.wrong_states)

    def report(self) -> str:
        """Return the verdict for a person."""
        lines = [
            f"{self.inputs:,} records in, {self.outputs:,} out, {len(self.repeats):,} of them repeats: "
            f"{self.amount('lost'):,} lost, {self.amount('doubled'):,} doubled, {len(self.wrong):,} outputs wrong, "
            f"{len(self.unexpected):,} unexpected, {len(self.wrong_states):,} keys with a wrong state"
        ]
        lines += [f"  {line}" for line in _examples("mistakes", self.mistakes)]
        lines += [f"  {line}" for line in _examples("wrong", self.wrong)]
        lines += [f"  {line}" for line in _examples("unexpected", self.unexpected)]
        lines += [f"  {line}" for line in _examples("wrong state", self.wrong_states)]
        return "\n".join(lines)


def check(inputs: Iterable[Record], outputs: Iterable[Output], state: Mapping[str, Account]) -> Verdict:
    """Return the verdict.

    Args:
        inputs: every record of the input topic.
        outputs: every record of the output topic, in the order in which they were written.
        state: each key's account, read from the checkpoint after the last batch.
    """
    by_key = _by_key(inputs)
    copies: dict[Place, list[Output]] = defaultdict(list)
    for output in outputs:
        copies[output.place].append(output)
    mistakes: list[Mistake] = []
    wrong: list[Place] = []
    wrong_states = [key for key in state if key not in by_key]
    due: set[Place] = set()
    for key, records in by_key.items():
        right = _accounts(records)
        due.update(record.place for record in records)
        wrong += [
            record.place
            for record, account in zip(records, right, strict=True)
            if any((copy.key, copy.account) != (key, account) for copy in copies.get(record.place, ()))
        ]
        mistakes += _mistakes(records, copies, state.get(key))
        if state.get(key) != right[-1]:
            wrong_states.append(key)
    return Verdict(
        inputs=len(due),
        outputs=sum(map(len, copies.values())),
        mistakes=tuple(sorted(mistakes, key=lambda m: m.time)),
        wrong=tuple(wrong),
        unexpected=tuple(place for place in copies if place not in due),
        wrong_states=tuple(wrong_states),
        repeats=tuple(sorted(copy.time for written in copies.values() for copy in written[1:])),
    )


def _by_key(inputs: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in inputs:
        found[record.key].append(record)
    for records in found.values():
        records.sort(key=lambda r: r.place)
    return found


def _accounts(records: Sequence[Record]) -> list[Account]:
    """Return the right account after each of a key's records."""
    sums = accumulate(record.value for record in records)
    return [Account(n, total, record.number) for n, (record, total) in enumerate(zip(records, sums, strict=True), 1)]


def _mistakes(
    records: Sequence[Record], copies: Mapping[Place, Sequence[Output]], state: Account | None
) -> Iterable[Mistake]:
    """Yield where a key's records went wrong: the count tells lost and doubled ones as soon as it is off by more.

    Records without output and those by which the next count falls short are the same ones, so the larger number counts.
    If records were lost and others doubled between two outputs, their numbers can offset each other, but never to none.
    """
    surplus = silent = 0
    since: Record | None = None
    for right, record in enumerate(records, 1):
        written = copies.get(record.place)
        since = since or record
        if not written:
            silent += 1
            continue
        yield from _between(since if silent else record, written[0].count - right - surplus, silent)
        surplus, silent, since = written[0].count - right, 0, None
    held = state.count if state else 0
    yield from _between(since or records[-1], held - len(records) - surplus, silent)


def _between(record: Record, change: int, silent: int) -> Iterable[Mistake]:
    lost = max(silent, -change)
    if lost:
        yield Mistake("lost", record.key, record.number, record.time, lost)
    if change > 0:
        yield Mistake("doubled", record.key, record.number, record.time, change)


def _examples(name: str, found: Sequence[object]) -> list[str]:
    if not found:
        return []
    return [f"{name}: {', '.join(map(str, found[:EXAMPLES]))}{' …' if len(found) > EXAMPLES else ''}"]
