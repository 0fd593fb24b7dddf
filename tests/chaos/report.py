"""What a run came to: a table for people, one line of JSON for programs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.checker import Verdict
from tests.chaos.faults import Fault, Kind


@dataclass(frozen=True)
class Outcome:
    """What became of one fault; times in seconds since the epoch."""

    fault: Fault
    target: str
    fired: float
    inside: bool
    """It did fall into a running batch."""
    since: float
    """The last but one commit before it: what was produced since then may have been in the batch that it hit."""
    recovered: float | None
    """When batches were committed again; None if they were not in time."""
    gap: float
    """The longest time without a commit around it, in seconds."""


@dataclass(frozen=True)
class Line:
    """The faults of one class."""

    faults: int = 0
    inside: int = 0
    survived: int = 0
    lost: int = 0
    doubled: int = 0
    repeats: int = 0
    longest_gap: float = 0.0


@dataclass(frozen=True)
class Rescaled:
    """How often the application was rescaled meanwhile."""

    executors: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)
    """How the repartitions ended, and how many of them did so."""

    def __str__(self) -> str:
        """Return it for a person."""
        ends = ", ".join(f"{number} {end}" for end, number in self.partitions.items()) or "none"
        return f"rescaled: executors {self.executors} times; repartitions of the state: {ends}"


BEFORE = "before the first"


def lines(outcomes: Sequence[Outcome], verdict: Verdict) -> dict[str, Line]:
    """Return a line for each class that occurred, by name; mistakes before the first fault have a line of their own.

    A mistake belongs to the last fault before the moment at which its record was produced, a repeat to the last one
    before it was written.
    """
    lost = _by_kind(outcomes, [(m.time, m.amount) for m in verdict.mistakes if m.kind == "lost"])
    doubled = _by_kind(outcomes, [(m.time, m.amount) for m in verdict.mistakes if m.kind == "doubled"])
    repeats = _by_kind(outcomes, [(time, 1) for time in verdict.repeats])
    found: dict[str, Line] = {}
    for name in [*Kind, BEFORE]:
        of_kind = [o for o in outcomes if o.fault.kind == name]
        mistakes = {"lost": lost.get(name, 0), "doubled": doubled.get(name, 0), "repeats": repeats.get(name, 0)}
        if of_kind or any(mistakes.values()):
            survived, inside = sum(o.recovered is not None for o in of_kind), sum(o.inside for o in of_kind)
            gap = max((o.gap for o in of_kind), default=0.0)
            found[str(name)] = Line(len(of_kind), inside, survived, **mistakes, longest_gap=gap)
    return found


def _by_kind(outcomes: Sequence[Outcome], events: Sequence[tuple[float, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for time, amount in events:
        last = [o for o in outcomes if o.since <= time]
        name = str(last[-1].fault.kind) if last else BEFORE
        counts[name] = counts.get(name, 0) + amount
    return counts


def total(found: Mapping[str, Line]) -> Line:
    """Return the sum of all lines, and their longest gap."""
    every = list(found.values())
    return Line(
        faults=sum(line.faults for line in every),
        inside=sum(line.inside for line in every),
        survived=sum(line.survived for line in every),
        lost=sum(line.lost for line in every),
        doubled=sum(line.doubled for line in every),
        repeats=sum(line.repeats for line in every),
        longest_gap=max((line.longest_gap for line in every), default=0.0),
    )


def table(found: Mapping[str, Line]) -> str:
    """Return the lines and their total as text."""
    heads = ("class", "faults", "in a batch", "survived", "lost", "duplicated", "repeats", "longest gap")
    rows: list[tuple[str, ...]] = [heads]
    for name, line in [*found.items(), ("all", total(found))]:
        counts = (line.faults, line.inside, line.survived, line.lost, line.doubled, line.repeats)
        rows.append((name, *map(str, counts), f"{line.longest_gap:.1f} s"))
    widths = [max(len(row[n]) for row in rows) for n in range(len(heads))]
    texts = [
        "  ".join(
            cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(texts)


def summary(
    outcomes: Sequence[Outcome], verdict: Verdict, rescaled: Rescaled, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the object that is printed last."""
    found = lines(outcomes, verdict)
    every = total(found)
    metrics = {
        "faults": every.faults,
        "faults_in_a_batch": every.inside,
        "survived": every.survived,
        "records": verdict.inputs,
        "outputs": verdict.outputs,
        "repeats": len(verdict.repeats),
        "lost": verdict.amount("lost"),
        "duplicated": verdict.amount("doubled"),
        "wrong_outputs": len(verdict.wrong),
        "unexpected_outputs": len(verdict.unexpected),
        "wrong_states": len(verdict.wrong_states),
        "longest_gap_seconds": round(every.longest_gap, 2),
    }
    classes = {
        name: {
            "faults": line.faults,
            "in_a_batch": line.inside,
            "survived": line.survived,
            "lost": line.lost,
            "duplicated": line.doubled,
            "repeats": line.repeats,
            "longest_gap_seconds": round(line.longest_gap, 2),
        }
        for name, line in found.items()
    }
    rescales = {"executors": rescaled.executors, "repartitions": dict(rescaled.partitions)}
    return {"chaos": metrics, "classes": classes, "rescales": rescales, "parameters": dict(parameters)}
