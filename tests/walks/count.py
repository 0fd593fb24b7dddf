"""From calls that processes have noted to the modules that are on the walk of an act. Pure.

A module is ON THE WALK of an act if one of its functions is called during the act, whenever that is done, and none is
called during a quiet time: at least as long, with batches and polls that go on, and one event that changes nothing, an
annotation on the application. "Whenever": an act is done several times, and a retry because the machine was busy is not
part of it. What is called in the quiet time, among it what every reconcile passes, is the FRAME, the same for all
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
    newcomers: bool | None = None
    """Only processes that have begun since, or only those that ran already; None: all of them."""

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

    acts: tuple[Act, ...]
    """Each time that it was done."""
    parts: tuple[Part, ...]
    """Of the first time, in order of their first calls."""
    sides: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str:
        """Of the act."""
        return self.acts[0].name

    @property
    def limit(self) -> int | None:
        """Modules that it may have."""
        return self.acts[0].limit

    @property
    def seconds(self) -> float:
        """How long the act took at most."""
        return max(act.seconds for act in self.acts)

    @property
    def modules(self) -> frozenset[str]:
        """Those of all processes: each counts once."""
        return frozenset(module for part in self.parts for module in part.modules)

    @property
    def is_over(self) -> bool:
        """Whether it has more modules than it may."""
        return self.limit is not None and len(self.modules) > self.limit


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


def walk(trace: Trace, acts: Sequence[Act], frames: Mapping[str, frozenset[str]]) -> Walk:
    """Return the walk of an act that was done several times.

    A module of any side's frame is not on it, whoever calls it; nor is what was not called each time.
    """
    framed = frozenset[str]().union(*frames.values())
    found = [_by_side(trace, act) for act in acts]
    sides = {
        side: frozenset.intersection(*(frozenset(call.module for call in each[side]) for each in found)) - framed
        for side in acts[0].ended
    }
    calls = sorted(
        (call for side, of_side in found[0].items() for call in of_side if call.module in sides[side]),
        key=lambda call: call.at,
    )
    pids = dict.fromkeys(call.pid for call in calls)
    parts = (Part(pid, trace.programs.get(pid, "?"), _modules(calls, pid)) for pid in pids)
    return Walk(tuple(acts), tuple(parts), sides)


def _by_side(trace: Trace, act: Act) -> dict[str, list[Call]]:
    return {side: _during(trace, act, side) for side in act.ended}


def _during(trace: Trace, act: Act, side: str) -> list[Call]:
    within = [c for c in trace.calls if act.began <= c.at <= act.ended[side] and trace.side(c.pid) == side]
    if act.newcomers is None:
        return within
    ran = {call.pid for call in trace.calls if call.at < act.began}
    return [call for call in within if (call.pid not in ran) is act.newcomers]


def _modules(calls: Sequence[Call], pid: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call.module for call in calls if call.pid == pid))
