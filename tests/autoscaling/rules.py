"""Three rules for the number of executors: ours, the HPA's on CPU, and Spark's dynamic allocation."""

import math
import random
from dataclasses import dataclass, field, replace
from typing import Protocol

from tests.autoscaling.application import Application
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Advice, Sight, recommend
from tidegate.autoscaling.algorithm.samples import History
from tidegate.autoscaling.algorithm.settings import Settings

UNSTEADY = 0.001
"""Seconds by which two looks at one moment may differ."""


class Rule(Protocol):
    """Looks at an application every so many seconds and says how many executors it is to have."""

    @property
    def name(self) -> str:
        """As the table has it."""

    @property
    def period(self) -> float:
        """Seconds between two looks."""

    def check(self, application: Application) -> int:
        """Return how many."""


@dataclass
class Tidegate:
    """The rule that the operator runs: the very same functions, on the reports of the simulated agent."""

    settings: Settings
    history: History = field(default_factory=History)
    past: Past = field(default_factory=Past)
    said: list[Advice] = field(default_factory=list)
    reports: int = 0
    clock: float = 1_000_000_000.0
    """Time 0 of the simulation, in seconds since the epoch."""
    again: int = 3
    """Every so many reports one is looked at twice, as in the operator, which is woken by much; 0: none is."""
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    name = "Tidegate"
    period = 10.0

    def check(self, application: Application) -> int:
        """Return the target."""
        self.reports += 1
        self._check(application, 0.0)
        if self.again and self.reports % self.again == 0:
            # By a clock that somebody sets, a little sooner or later than by the one that nobody does.
            self._check(application, self.chance.uniform(-UNSTEADY, UNSTEADY))
        return self.past.target or application.wanted

    def _check(self, application: Application, off: float) -> None:
        now = self.clock + application.now + off
        report = application.report()
        queries = tuple(replace(q, last_commit_time=self.clock + q.last_commit_time) for q in report.queries)
        sight = Sight(
            now=now,
            steady=application.now,
            wanted=application.wanted,
            cores=application.model.cores,
            version="1",
            report=replace(report, queries=queries),
            taken_at=application.now,
            process="1",
        )
        self.history, advice = recommend(self.settings, self.history, self.past, sight)
        self.past = advice.evaluation.past
        self.said.append(advice)


@dataclass
class CpuRule:
    """HorizontalPodAutoscaler, autoscaling/v2, on CPU, with the defaults of Kubernetes.

    Every 15 s: desired = ceil(pods x usage / target), nothing within 10 %. At once up, by at most 4 pods or 100 % in
    15 s; down to the highest that was desired in the last 5 minutes. Usage is of the last minute, as metrics-server
    has it.
    """

    fewest: int
    most: int
    target: float = 0.7
    desired: list[tuple[float, int]] = field(default_factory=list)

    period = 15.0

    @property
    def name(self) -> str:
        """With its target."""
        return f"HPA on CPU, {self.target:.0%}"

    def check(self, application: Application) -> int:
        """Return how many."""
        ready, now = max(1, application.running), application.now
        ratio = application.cpu(60.0) / self.target
        steady = abs(ratio - 1.0) <= 0.1
        wanted = application.wanted if steady else math.ceil(ready * ratio - 1e-9)
        wanted = min(max(wanted, self.fewest), self.most)
        # What it finds at first counts as desired, too: it takes nothing away before it has looked for so long.
        known = self.desired or [(now, application.wanted)]
        self.desired = [(at, n) for at, n in known if now - at <= 300.0] + [(now, wanted)]
        stable = max(n for _, n in self.desired)
        if wanted > application.wanted:
            return min(wanted, application.wanted + max(4, application.wanted))
        return min(stable, application.wanted)


@dataclass
class DynamicAllocation:
    """Spark's ExecutorAllocationManager with its defaults.

    While tasks have waited for a second, one more executor, and twice as many each second after that, up to one for
    each task. An executor that has had no task for a minute goes.
    """

    fewest: int
    most: int
    waiting_since: float | None = None
    adding: int = 1

    name = "Spark's dynamic allocation"
    period = 1.0

    def check(self, application: Application) -> int:
        """Return how many."""
        now, batch, wanted = application.now, application.under_way, application.wanted
        waiting = batch.waiting_tasks(now) if batch is not None else 0
        if batch is None or not waiting:
            self.waiting_since, self.adding = None, 1
            return max(self.fewest, wanted - application.idle(60.0))
        if self.waiting_since is None:
            self.waiting_since = now
        if now - self.waiting_since < 1.0:
            return wanted
        needed = math.ceil((waiting + batch.running_tasks(now)) / application.model.cores)
        more = min(wanted + self.adding, needed, self.most)
        self.adding *= 2
        return max(wanted, more)


@dataclass
class Fixed:
    """Always the same number: what somebody sets who knows the peak."""

    number: int

    name = "fixed, for the peak"
    period = 60.0

    def check(self, application: Application) -> int:
        """Return how many."""
        return self.number
