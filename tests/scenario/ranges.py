"""Many schedules over several days: how far a run has got when it ends. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.scenario.schedule import Result


@dataclass
class Progress:
    """Which seeds of a range were run; blocks of them are told in any order."""

    seeds: range
    options: str = ""
    """With which the run was begun, other than the seeds; each with a blank after it."""
    count: int = 0
    """How many were run."""
    failing: list[int] = field(default_factory=list)
    _run: set[int] = field(default_factory=set)
    """Those beyond the first one that is missing."""
    _next: int = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.seeds.start

    def note(self, results: Iterable[Result]) -> None:
        """Note that these seeds were run."""
        for result in results:
            self.count += 1
            self._run.add(result.seed)
            if result.violations:
                self.failing.append(result.seed)
        while self._next in self._run:
            self._run.remove(self._next)
            self._next += 1

    def __str__(self) -> str:
        """Return the seeds below which none is missing, those of them that fail, and how to go on after them."""
        first, end = self.seeds.start, self._next
        failing = sorted(seed for seed in self.failing if seed < end)
        but = f", but for {' '.join(map(str, failing))}" if failing else ""
        held = f"held: seeds {first} to {end - 1}{but}" if end > first else f"held: no seed from {first} on"
        if end == self.seeds.stop:
            return held
        return f"{held}\nto go on: make scenario N={self.seeds.stop - end} ARGS='{self.options}--first {end}'"
