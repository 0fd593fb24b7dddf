"""A streaming application as a small discrete-event model: batches, tasks, executors that take time to start.

A batch takes what has arrived when it is planned, up to a limit. It has a fixed part, in which only the driver works,
and tasks, whose work is spread over the partitions unevenly; a task goes to the core that is free first. As in Spark,
an executor that comes while a batch is under way takes tasks of it that wait; one that is ordered away ends those that
it runs, and gets no more. Nothing here knows of an autoscaler.
"""

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tests.autoscaling.traces import Trace
from tidegate_spark.contract.protocol import AgentReport, DriverState, QueryReport

LATE = 60.0
"""Seconds of age of the oldest waiting row that nobody minds."""


@dataclass(frozen=True)
class Model:
    """What an application is like; seconds, and rows per second."""

    per_core: float = 100.0
    """Rows that one core does in a second of work."""
    cores: int = 1
    partitions: int = 24
    """Tasks of a batch."""
    overhead: float = 0.6
    """Of a batch, in the driver alone."""
    task_overhead: float = 0.0
    """Of each task, however few rows it has: its start, a commit to the state store."""
    interval: float = 10.0
    """Of the trigger; 0: one batch after the other."""
    most_rows: float = 60_000.0
    """Of a batch (maxOffsetsPerTrigger)."""
    noise: float = 0.1
    """Standard deviation of a task's work, as a share."""
    skew: float = 0.15
    """Of a partition's share of the rows, likewise; the same partitions are always the larger ones."""
    hot: float = 0.0
    """Share of the rows that one partition has, however the others are: those of one key, say."""
    start_delay: float = 25.0
    """From an order until an executor works; up to half as much again."""
    knee: int = 0
    """Executors beyond which more are of no use, as before a slow sink; 0: there is no such number."""
    dearer: float = 1.0
    """By how much rows take longer from ``dearer_from`` on, which is a time of the trace."""
    dearer_from: float = math.inf


@dataclass
class Executor:
    """One executor, ordered and there from ``since`` on."""

    number: int
    since: float
    last_task: float


Slot = tuple[int, int]
"""A core of an executor, by both numbers."""


@dataclass(frozen=True)
class Task:
    """When a task of a batch begins and ends, if nobody comes or goes, and where it runs."""

    begin: float
    end: float
    slot: Slot


@dataclass(frozen=True)
class Batch:
    """A batch under way; ``after`` is what it takes when its tasks have ended."""

    begin: float
    rows: float
    lag: float
    after: float
    tasks: tuple[Task, ...]

    @cached_property
    def end(self) -> float:
        """When it is committed."""
        return max(task.end for task in self.tasks) + self.after

    @cached_property
    def worked(self) -> float:
        """Duration of all its tasks."""
        return sum(task.end - task.begin for task in self.tasks)

    def waiting_tasks(self, at: float) -> int:
        """Return how many tasks have not begun at a time."""
        return sum(1 for task in self.tasks if task.begin > at)

    def running_tasks(self, at: float) -> int:
        """Return how many are at it."""
        return sum(1 for task in self.tasks if task.begin <= at < task.end)


@dataclass
class Account:
    """What came of it."""

    executor_seconds: float = 0.0
    lag_seconds: float = 0.0
    """Age of the oldest waiting row beyond LATE, integrated over time."""
    late_seconds: float = 0.0
    """For how long it was older than that."""
    worst_lag: float = 0.0
    changes: int = 0
    turns: int = 0
    """Changes up after one down, and down after one up."""


class Application:
    """The application while it is simulated; time moves with each call of ``run_until``."""

    def __init__(self, trace: Trace, model: Model, seed: int, executors: int = 1) -> None:
        """Begin at time 0 with executors that are there."""
        self.trace, self.model, self.now = trace, model, 0.0
        self.chance = random.Random(f"{trace.name}/{seed}")
        shares = [max(0.2, self.chance.gauss(1.0, model.skew)) for _ in range(model.partitions)]
        if model.hot:
            shares[0] = sum(shares[1:]) * model.hot / (1.0 - model.hot)
        self.shares = [share / sum(shares) for share in shares]
        self.executors = [Executor(number, 0.0, 0.0) for number in range(executors)]
        self.numbers, self.up = executors, True
        self.account = Account()
        self.under_way: Batch | None = None
        self.next_at = 0.0
        self.taken = 0.0
        """Rows that are in a batch, or were in one."""
        self.committed = 0.0
        self.batches, self.busy, self.task_seconds = 0, 0.0, 0.0
        self.recent: list[Batch] = []
        self.is_idle = True
        self.lags: list[tuple[float, float]] = []

    @property
    def wanted(self) -> int:
        """Executors that are there or on their way."""
        return len(self.executors)

    @property
    def running(self) -> int:
        """Executors that are there."""
        return sum(1 for each in self.executors if each.since <= self.now)

    def scale(self, wanted: int) -> None:
        """Have so many executors: new ones start, the youngest of those too many go."""
        if wanted == self.wanted:
            return
        up = wanted > self.wanted
        self.account.changes += 1
        self.account.turns += up != self.up
        self.up = up
        while self.wanted < wanted:
            since = self.now + self.model.start_delay * self.chance.uniform(1.0, 1.5)
            self.executors.append(Executor(self.numbers, since, since))
            self.numbers += 1
        del self.executors[wanted:]
        self._share_out()

    def run_until(self, at: float) -> None:
        """Let time pass."""
        while True:
            if self.under_way is not None and self.under_way.end <= at:
                self._commit(self.under_way)
            elif self.under_way is None and self.next_at <= at:
                self._plan(self.next_at)
            else:
                break
        lag = max(0.0, at - self.trace.time_of(self.committed)) if self.trace.until(at) - self.committed > 1 else 0.0
        self.account.lag_seconds += max(0.0, lag - LATE) * (at - self.now)
        self.account.late_seconds += (at - self.now) * (lag > LATE)
        self.account.worst_lag = max(self.account.worst_lag, lag)
        self.account.executor_seconds += self.wanted * (at - self.now)
        self.lags.append((at, lag))
        self.now = at

    def cpu(self, seconds: float) -> float:
        """Return the share of the executors' cores that worked in the last seconds."""
        batches = [*self.recent, *([self.under_way] if self.under_way is not None else [])]
        worked = sum(_overlap(batch, self.now - seconds, self.now) for batch in batches)
        return min(1.0, worked / (seconds * max(1, self.running) * self.model.cores))

    def idle(self, seconds: float) -> int:
        """Return how many executors have had no task for so long."""
        running = self.under_way.tasks if self.under_way is not None else ()
        at_it = {task.slot[0] for task in running if task.begin <= self.now and self.now - task.end < seconds}
        rest = (each for each in self.executors if each.number not in at_it)
        return sum(1 for each in rest if self.now - max(each.last_task, each.since) >= seconds)

    def report(self) -> AgentReport:
        """Return what the agent tells."""
        last = self.recent[-1] if self.recent else None
        seconds = last.end - last.begin if last else 0.0
        query = QueryReport(
            name="main",
            batch_id=self.batches - 1,
            input_rows_per_second=0.0 if self.is_idle or not last else last.rows / max(seconds, self.model.interval),
            processed_rows_per_second=0.0 if self.is_idle or not last else last.rows / seconds,
            input_rows_total=round(self.committed),
            batch_duration_ms=round(seconds * 1000),
            last_commit_time=last.end if last else 0.0,
            lag_rows=round(last.lag) if last else -1,
            committed=self.batches,
            busy_ms_total=round(self.busy * 1000),
            source_partitions=self.model.partitions,
            state_partitions=self.model.partitions,
        )
        return AgentReport(
            app="simulated",
            uid="simulated",
            epoch=1,
            state=DriverState.RUNNING,
            queries=(query,),
            executors_wanted=self.wanted,
            executors_running=self.running,
            ready=True,
            task_seconds=self.task_seconds,
            executors_idle=self.idle(60.0),
        )

    def _plan(self, begin: float) -> None:
        model, waiting = self.model, self.trace.until(begin) - self.taken
        self.is_idle = waiting < 1.0
        if self.is_idle:
            self.next_at = begin + max(1.0, model.interval)
            return
        rows = min(waiting, model.most_rows)
        self.taken += rows
        tasks = self._run(begin + model.overhead / 2, self._work_of(rows, begin), {})
        self.under_way = Batch(begin, rows, waiting - rows, model.overhead / 2, tasks)

    def _work_of(self, rows: float, begin: float) -> list[float]:
        """Return how long each task of a batch takes, in the order in which they begin."""
        model, chance = self.model, self.chance
        slow = max(1.0, self.running / model.knee) if model.knee else 1.0
        order = chance.sample(range(model.partitions), model.partitions)
        dear = model.dearer if begin >= model.dearer_from else 1.0
        each = rows / model.per_core * slow * dear
        return [(each * self.shares[i] + model.task_overhead) * max(0.3, chance.gauss(1.0, model.noise)) for i in order]

    def _run(self, begin: float, work: Sequence[float], busy: Mapping[Slot, float]) -> tuple[Task, ...]:
        """Return the tasks, each on the core that is free first; ``busy`` is until when cores have others."""
        slots = [
            (max(begin, each.since, busy.get((each.number, core), 0.0)), core, each.number)
            for each in self.executors
            for core in range(self.model.cores)
        ]
        heapq.heapify(slots)
        tasks = []
        for seconds in work:
            free, core, number = heapq.heappop(slots)
            heapq.heappush(slots, (free + seconds, core, number))
            tasks.append(Task(free, free + seconds, (number, core)))
        return tuple(tasks)

    def _share_out(self) -> None:
        """Give the tasks that wait to the executors that there are now, or that are on their way."""
        batch, now = self.under_way, self.now
        if batch is None:
            return
        begun = [task for task in batch.tasks if task.begin <= now]
        busy = {task.slot: max(now, task.end) for task in sorted(begun, key=lambda task: task.end)}
        waiting = [task.end - task.begin for task in batch.tasks if task.begin > now]
        begin = max(now, batch.begin + self.model.overhead / 2)
        self.under_way = replace(batch, tasks=(*begun, *self._run(begin, waiting, busy)))

    def _commit(self, batch: Batch) -> None:
        self.under_way = None
        by_number = {each.number: each for each in self.executors}
        for task in batch.tasks:
            if task.slot[0] in by_number:
                its = by_number[task.slot[0]]
                its.last_task = max(its.last_task, task.end)
        self.batches += 1
        self.committed += batch.rows
        self.busy += batch.end - batch.begin
        self.task_seconds += batch.worked
        self.recent = [*(each for each in self.recent if each.end > batch.end - 300), batch]
        self.next_at = max(batch.end, batch.begin + self.model.interval)


def _overlap(batch: Batch, begin: float, end: float) -> float:
    common = min(batch.end, end) - max(batch.begin, begin)
    return batch.worked * common / (batch.end - batch.begin) if common > 0 else 0.0
