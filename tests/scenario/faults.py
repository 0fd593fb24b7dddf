"""What can go wrong at any moment, how likely it is now, and which pairs of action and crash point there were."""

import random
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class Fault(Enum):
    """What happens to one request."""

    NONE = "none"
    UNSENT = "it never arrived"
    LOST = "it took effect, and the answer was lost"
    CONFLICT = "409"
    THROTTLED = "429"
    ERROR = "500"
    DOWN = "the API server is down"


class Crash(Enum):
    """When an operator process dies."""

    NONE = "none"
    BEFORE = "before the action"
    LATE = "in flight: the process is dead when its request takes effect"
    DONE = "after the effect, before the answer"
    AFTER = "after the action"


Pair = tuple[str, str, Crash]
"""Action, effect (empty for the action as a whole), crash point."""


@dataclass
class FaultInjection:
    """Probabilities; all zero is fair weather."""

    rng: random.Random
    faults: dict[Fault, float] = field(default_factory=dict)
    down: bool = False
    slow: float = 0.05
    """Longest latency of a request's way, in seconds."""
    slow_lists: float = 0.0
    """How much longer the answer to a list may be under way."""
    longest_lag: float = 0.1
    """Of watches, in seconds."""
    crashes: float = 0.0
    armed: int = 0
    """The process dies at this number of crash points from now; 0: at none."""
    aimed: Pair | None = None
    """Where the process dies as soon as it gets there."""
    crashed: Counter[Pair] = field(default_factory=Counter)
    passed: Counter[Pair] = field(default_factory=Counter)

    def some(self, low: float, high: float) -> float:
        """Return a random number."""
        return self.rng.uniform(low, high)

    def latency(self) -> float:
        """Return how long a request or an answer is under way."""
        return self.rng.random() * self.slow

    def lag(self) -> float:
        """Return how late an event of a watch is."""
        return self.rng.random() * self.longest_lag

    def fault(self, write: bool) -> Fault:
        """Return what happens to a request."""
        if self.down:
            return Fault.DOWN
        if not self.faults:
            return Fault.NONE
        drawn = self.rng.random()
        for fault, chance in self.faults.items():
            drawn -= chance
            if drawn < 0:
                return fault if write or fault is not Fault.CONFLICT else Fault.NONE
        return Fault.NONE

    def crash(self, process: str, action: str, effect: str, point: Crash | None = None) -> Crash:
        """Return whether the process dies here, and at which of the points before or after an effect."""
        at = point or (Crash.LATE if self.rng.random() < 0.5 else Crash.DONE)
        dies = self.crashes > 0 and self.rng.random() < self.crashes
        if self.armed:
            self.armed -= 1
            dies = self.armed == 0
        if self.aimed is not None and self.aimed[:2] == (action, effect) and point in (None, self.aimed[2]):
            at, dies, self.aimed = self.aimed[2], True, None
        self.passed[action, effect, at] += 1
        if not dies:
            return Crash.NONE
        self.crashed[action, effect, at] += 1
        return at

    def clear(self) -> None:
        """Have fair weather from now on."""
        self.faults, self.down, self.slow, self.slow_lists, self.longest_lag = {}, False, 0.02, 0.0, 0.05
        self.crashes, self.armed, self.aimed = 0.0, 0, None
