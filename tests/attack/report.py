"""What an attack came to: a table for people, one line of JSON for programs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.audit import percentile

READY_GOAL = 0.95
CLEANED_GOAL = 0.9
"""Share of the ready ones whose batch Spark has cleaned up since: with fewer it was no attack."""


@dataclass(frozen=True)
class Taken:
    """One snapshot that was ordered."""

    id: str
    ready: bool
    batch: int = -1
    seconds: float = 0.0
    message: str = ""
    """Why it is not ready."""
    cleaned: bool = False
    """Spark has cleaned its batch up since."""
    equal: bool = False
    """What Spark's state reader reads in it is what the input says."""
    difference: str = ""
    resumed: bool | None = None
    """An application that starts with it does the next batches right; None if that was not tried."""


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    taken: tuple[Taken, ...]
    batches: int
    """Committed while the snapshots were taken."""
    seconds: float
    wanted: int
    """Snapshots that were to be ordered."""
    to_resume: int = 0
    problems: tuple[str, ...] = ()
    """What else is wrong with the run, each in a sentence."""

    @property
    def ready(self) -> list[Taken]:
        """Those that became ready."""
        return [taken for taken in self.taken if taken.ready]

    @property
    def held(self) -> bool:
        """Whether what is promised was kept."""
        ready = self.ready
        whole = all(taken.equal and taken.resumed is not False for taken in ready)
        return len(ready) >= READY_GOAL * self.wanted and whole

    @property
    def proves_nothing(self) -> str:
        """Why the run is no proof, empty if it is one."""
        if self.problems:
            return self.problems[0]
        if sum(taken.resumed is not None for taken in self.ready) < min(self.to_resume, len(self.ready)):
            return "not as many snapshots were resumed as were to be"
        if sum(taken.cleaned for taken in self.ready) < CLEANED_GOAL * len(self.ready):
            return "Spark has not cleaned up behind the snapshots"
        return ""


def results(result: Result) -> dict[str, float]:
    """Return the figures."""
    ready = result.ready
    seconds = [taken.seconds for taken in ready] or [0.0]
    return {
        "snapshots": result.wanted,
        "ready": len(ready),
        "ready_ratio": len(ready) / result.wanted,
        "states_equal": sum(taken.equal for taken in ready),
        "batches_cleaned_since": sum(taken.cleaned for taken in ready),
        "resumed": sum(taken.resumed is not None for taken in ready),
        "resumed_equal": sum(taken.resumed is True for taken in ready),
        "different_batches": len({taken.batch for taken in ready}),
        "batches": result.batches,
        "p50_seconds": percentile(seconds, 0.5),
        "p99_seconds": percentile(seconds, 0.99),
    }


def table(result: Result) -> str:
    """Return the same as text, and whatever is not as it should be."""
    found = results(result)
    resumed = (found["resumed_equal"], found["resumed"])
    rows = [
        ("snapshots ready", found["ready"], found["snapshots"]),
        ("state equal to the input's", found["states_equal"], found["ready"]),
        ("batch cleaned up by Spark since", found["batches_cleaned_since"], found["ready"]),
        ("resumed, next batches right", *resumed),
    ]
    lines = [f"{name:34}{number:>6.0f} of {of:.0f}" for name, number, of in rows]
    lines.append(f"{'seconds until ready':34}{found['p50_seconds']:>6.1f} (p50), {found['p99_seconds']:.1f} (p99)")
    lines += [f"{taken.id}: {wrong}" for taken in result.taken for wrong in wrongs(taken)]
    return "\n".join([*lines, *(f"problem: {problem}" for problem in result.problems)])


def wrongs(taken: Taken) -> list[str]:
    """Return what is wrong with a snapshot, in sentences."""
    if not taken.ready:
        return [f"not ready: {taken.message}"]
    wrong = [] if taken.equal else [f"at batch {taken.batch}, its state is not what the input says: {taken.difference}"]
    return wrong + ([f"resumed at batch {taken.batch + 1}, it goes on wrongly"] if taken.resumed is False else [])


def spread(ready: Sequence[Taken], number: int) -> list[Taken]:
    """Return so many of the snapshots, evenly from the first to the last."""
    if number >= len(ready):
        return list(ready)
    if number <= 1:
        return list(ready[:number])
    return [ready[position * (len(ready) - 1) // (number - 1)] for position in range(number)]


def summary(result: Result, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that is printed last."""
    rounded = {name: float(f"{value:.4g}") for name, value in results(result).items()}
    return {
        "attack": rounded,
        "held": result.held,
        "proves_nothing": result.proves_nothing,
        "parameters": {**parameters, "seconds": round(result.seconds)},
    }
