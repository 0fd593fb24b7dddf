"""Candidates for one Lease in virtual time, with everything that can happen between them and the API server. Pure.

Each process has a clock of its own, with another zero and another rate; it can be stopped, killed or cut off; requests
and answers are late or lost, and a request that its sender gave up long ago can still arrive.
"""

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tidegate.kube.leadership import Answer, Candidate, Lease, NoLease, Read, Request, Timing

TIMING = Timing()
RESTART_SECONDS = 1.0
DRIFT = 0.05


@dataclass(frozen=True)
class Fault:
    """Something happens at a time, to one process, and for some seconds where that means anything."""

    at: float
    kind: str
    process: int
    seconds: float


FAULTS = ("stop", "kill", "cut off", "slow", "resign", "delete lease")


class Server:
    """The API server: one Lease."""

    def __init__(self, checks_versions: bool = True) -> None:
        self.lease: Lease | None = None
        self._checks_versions = checks_versions
        self._versions = itertools.count(1)

    def apply(self, request: Request) -> Answer:
        if isinstance(request, Read):
            return self.lease or NoLease.MISSING
        if not request.version and self.lease is not None and self._checks_versions:
            return NoLease.CHANGED
        if request.version and self.lease is None:
            return NoLease.MISSING
        if self._checks_versions and self.lease is not None and self.lease.version != request.version:
            return NoLease.CHANGED
        version = str(next(self._versions))
        self.lease = Lease(version, request.holder, request.seconds, request.transitions)
        return self.lease


@dataclass
class Process:
    """One operator process as long as it lives; it behaves as the real one around its candidate."""

    candidate: Candidate
    zero: float
    rate: float
    stopped_until: float = 0.0
    alive: bool = True
    asked: int = 0
    """Number of the step or request under way; an answer to an earlier one comes too late."""

    def local(self, now: float) -> float:
        return self.zero + now * self.rate

    def holds(self, now: float) -> bool:
        return self.alive and self.candidate.holds(self.local(now))


@dataclass
class Election:
    """The world; :meth:`run` lets time pass and notes who held when."""

    seed: int
    count: int
    faults: Sequence[Fault]
    make: Callable[[str, Timing], Candidate] = Candidate
    server: Server = field(default_factory=Server)
    now: float = 0.0
    overlaps: list[tuple[float, list[str]]] = field(default_factory=list)
    tenures: list[tuple[float, str]] = field(default_factory=list)
    """When somebody began to hold."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._names = itertools.count(1)
        self.processes = [self._start() for _ in range(self.count)]
        for fault in self.faults:
            self._at(fault.at, partial(self.strike, fault))
        self._slow: dict[int, float] = {}
        self._cut_off: dict[int, float] = {}

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        tick = self.now
        while tick < end:
            tick += 1.0
            self._at(tick, lambda: None)
        while self._events and self._events[0][0] <= end:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
            self._check()
        self.now = end

    def holders(self) -> list[str]:
        """Return who holds now."""
        return [process.candidate.identity for process in self.processes if process.holds(self.now)]

    def _check(self) -> None:
        holders = self.holders()
        if len(holders) > 1:
            self.overlaps.append((self.now, holders))
        if holders and (not self.tenures or self.tenures[-1][1] != holders[-1]):
            self.tenures.append((self.now, holders[-1]))

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.now), next(self._order), happen))

    # --- processes ---

    def _start(self) -> Process:
        candidate = self.make(f"operator-{next(self._names)}", TIMING)
        rate = 1 + self._random.uniform(-DRIFT, DRIFT)
        process = Process(candidate, self._random.uniform(0, 1e6), rate)
        self._step_after(process, self._random.uniform(0, 1))
        return process

    def _replace(self, process: Process) -> None:
        if not process.alive:
            return
        process.alive = False
        place = next(place for place, other in enumerate(self.processes) if other is process)

        def start() -> None:
            self.processes[place] = self._start()

        self._at(self.now + RESTART_SECONDS, start)

    def _awake(self, process: Process, then: Callable[[], None]) -> bool:
        """Return whether the process can do something now; otherwise it does so when it goes on."""
        if process.alive and self.now < process.stopped_until:
            self._at(process.stopped_until, then)
            return False
        return process.alive

    def _step_after(self, process: Process, seconds: float) -> None:
        process.asked += 1
        number = process.asked
        self._at(self.now + seconds, lambda: self._step(process, number))

    def _step(self, process: Process, number: int) -> None:
        if process.asked != number or not self._awake(process, lambda: self._step(process, number)):
            return
        local = process.local(self.now)
        request = process.candidate.next_request(local)
        if request is not None:
            self._send(process, request, local)
        elif process.candidate.ended:
            self._replace(process)
        else:
            self._step_after(process, max(1e-6, process.candidate.pause(local) / process.rate))

    def _send(self, process: Process, request: Request, sent_at: float) -> None:
        process.asked += 1
        number = process.asked
        there, back = self._delay(process), self._delay(process)

        def arrive() -> None:
            answer = self.server.apply(request)
            if back is not None:
                self._at(self.now + back, lambda: receive(answer))

        def receive(answer: Answer) -> None:
            if process.asked != number or not self._awake(process, lambda: receive(answer)):
                return
            process.candidate.take_in(request, answer, sent_at, process.local(self.now))
            self._step_after(process, 0.0)

        if there is not None:
            self._at(self.now + there, arrive)
        patience = process.candidate.patience(sent_at) / process.rate
        self._at(self.now + patience, lambda: receive(NoLease.SILENT))

    def _delay(self, process: Process) -> float | None:
        """Return how long a message takes; None if it is lost."""
        if self.now < self._cut_off.get(id(process), 0.0):
            return None if self._random.random() < 0.7 else self._random.uniform(5.0, 40.0)
        if self.now < self._slow.get(id(process), 0.0):
            return None if self._random.random() < 0.1 else self._random.uniform(0.0, 6.0)
        return self._random.uniform(0.001, 0.02)

    def strike(self, fault: Fault) -> None:
        """Let a fault happen now."""
        process = self.processes[fault.process % len(self.processes)]
        match fault.kind:
            case "stop":
                process.stopped_until = max(process.stopped_until, self.now + fault.seconds)
            case "kill":
                self._replace(process)
            case "cut off":
                self._cut_off[id(process)] = self.now + fault.seconds
            case "slow":
                self._slow[id(process)] = self.now + fault.seconds
            case "resign":
                process.candidate.resign(process.local(self.now))
                self._step_after(process, 0.0)
            case "delete lease":
                self.server.lease = None
