"""From calls that processes have noted to the modules that are on the walk of an act. Pure.

A module is ON THE WALK of an act if one of its functions is called during the act, and none is called during a quiet
time: at least as long, with batches and polls that go on, and one event that changes nothing, an annotation on the
application. What is called in the quiet time, among it what every reconcile passes, is the FRAME, the same for all
acts. A generator or coroutine that goes on counts as called; what an import runs does not count (traced/).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OPERATOR, RUNTIME = "operator", "runtime"
_OPERATORS_MODULE = "tidegate.main"
_FIELDS_OF_A_PROGRAM = 4


@dataclass(frozen=True)
class Call:
    """A process has run a module at that time."""

    at: float
    pid: int
    module: str


@dataclass(frozen=True)
class Trace:
    """All that was noted, in order of time."""

    calls: tuple[Call, ...]
    programs: Mapping[int, str]
    """What each process runs."""

    def side(self, pid: int) -> str:
        """Return whose process it is: the operator's or the runtime's."""
        return OPERATOR if _OPERATORS_MODULE in self.programs.get(pid, "").split() else RUNTIME


@dataclass(frozen=True)
class Act:
    """Something that was done, and until when what came of it counts, for each side that has to do with it."""

    name: str
    limit: int | None
    """Modules that may be on its walk."""
    began: float
    ended: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(self.ended.values()) - self.began


@dataclass(frozen=True)
class Part:
    """What one process has of a walk."""

    pid: int
    program: str
    modules: tuple[str, ...]
    """In order of their first calls."""


@dataclass(frozen=True)
class Walk:
    """The modules that an act passes beyond the frame."""

    act: Act
    parts: tuple[Part, ...]
    """In order of their first calls."""
    sides: Mapping[str, frozenset[str]]

    @property
    def modules(self) -> frozenset[str]:
        """Those of all processes: each counts once."""
        return frozenset(module for part in self.parts for module in part.modules)

    @property
    def is_over(self) -> bool:
        """Whether it has more modules than it may."""
        return self.act.limit is not None and len(self.modules) > self.act.limit


def read(lines: Iterable[str]) -> Trace:
    """Return what the lines of traced processes say; a line that is not whole is still being written."""
    calls, programs = list[Call](), dict[int, str]()
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) == _FIELDS_OF_A_PROGRAM:
            programs[int(fields[1])] = fields[3]
        elif line.endswith("\n"):
            calls.append(Call(float(fields[0]), int(fields[1]), fields[2]))
    return Trace(tuple(sorted(calls, key=lambda call: call.at)), programs)


def frame(trace: Trace, quiet: Act) -> Mapping[str, frozenset[str]]:
    """Return the modules of each side that are called while nothing is to do."""
    return {side: frozenset(call.module for call in _during(trace, quiet, side)) for side in quiet.ended}


def walk(trace: Trace, act: Act, frames: Mapping[str, frozenset[str]]) -> Walk:
    """Return the walk of an act: a module of any side's frame is not on it, whoever calls it."""
    framed = frozenset().union(*frames.values())
    calls = sorted((c for side in act.ended for c in _during(trace, act, side)), key=lambda call: call.at)
    beyond = [call for call in calls if call.module not in framed]
    pids = dict.fromkeys(call.pid for call in beyond)
    parts = (Part(pid, trace.programs.get(pid, "?"), _modules(beyond, pid)) for pid in pids)
    sides = {side: frozenset(c.module for c in beyond if trace.side(c.pid) == side) for side in act.ended}
    return Walk(act, tuple(parts), sides)


def _during(trace: Trace, act: Act, side: str) -> list[Call]:
    return [c for c in trace.calls if act.began <= c.at <= act.ended[side] and trace.side(c.pid) == side]


def _modules(calls: Sequence[Call], pid: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call.module for call in calls if call.pid == pid))
