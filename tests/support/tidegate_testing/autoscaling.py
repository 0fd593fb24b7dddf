"""Figures and situations that tests of the autoscaler need, built from a few words. Pure."""

import dataclasses
from typing import Any

from tidegate.autoscaling.algorithm.evaluate import Evaluation, evaluate
from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.samples import History, take_sample
from tidegate.autoscaling.algorithm.settings import Settings
from tidegate.autoscaling.algorithm.situation import Situation
from tidegate_spark.contract.protocol import AgentReport, DriverState, QueryReport

NOW = 1_800_000_000.0
STEADY = 5_000.0
"""What the monotonic clock says then."""
SETTINGS = Settings(stabilization=60.0, most=20)


def measured(arriving: float, **fields: Any) -> Measured:
    """Return figures of four executors that do 100 rows a second each and keep up."""
    known: dict[str, Any] = {
        "seconds": 60.0,
        "batches": 6,
        "executors": 4,
        "arriving": arriving,
        "arriving_lately": arriving,
        "processed": arriving,
        "rate": 100.0,
        "utilization": 0.5,
        "busy": 0.5,
        "saturated": False,
        "lag_rows": 0,
        "backlog": 0.0,
        "idle_executors": 0,
    }
    return Measured(**{**known, **fields})


def situation(measures: Measured | None, at: float = 0.0, **fields: Any) -> Situation:
    """Return a situation so many seconds from now, with four executors of one core."""
    known: dict[str, Any] = {"now": NOW + at, "wanted": 4, "cores": 1, "version": "v", "measured": measures}
    known["steady"] = STEADY + at
    return Situation(**{**known, **fields})


class Autoscaled:
    """An application whose situation is looked at again and again; orders take effect at once."""

    def __init__(self, settings: Settings = SETTINGS, executors: int = 4, every: float = 10.0) -> None:
        """Start with executors that somebody asked for, and look after so many seconds."""
        self.every = every
        self.settings, self.executors, self.at = settings, executors, 0.0
        self.past = Past()
        self.said: list[Evaluation] = []

    def for_seconds(
        self, seconds: float, measures: Measured | None, *, as_long: bool = False, **fields: Any
    ) -> Evaluation:
        """Look for so long at figures that stay as they are, but for the number of executors; returns the last.

        With more of them the pauses between batches are longer, as long as it keeps up and its batches are not
        ``as_long`` as they were.
        """
        for _ in range(int(seconds // self.every)):
            self.at += self.every
            seen = measures
            if seen is not None and "executors" not in fields:
                more = 1.0 if seen.saturated or seen.back_to_back else self.executors / seen.executors
                busy = seen.busy if as_long else min(1.0, seen.busy / more)
                share = min(1.0, seen.utilization / more)
                seen = dataclasses.replace(seen, executors=self.executors, busy=busy, utilization=share)
            extra = {name: value for name, value in fields.items() if name != "executors"}
            found = evaluate(self.settings, situation(seen, self.at, **{"wanted": self.executors, **extra}), self.past)
            self.past = found.past
            self.executors = self.past.target or self.executors
            self.said.append(found)
        return self.said[-1]

    @property
    def changes(self) -> list[tuple[int, int]]:
        """From and to of everything that was done."""
        return [(each.current, each.recommended) for each in self.said if each.due]


def query(batch: int, begin: float, seconds: float, rows: int, **fields: Any) -> QueryReport:
    """Return a query after its batch of this number: all were alike, one every ten seconds."""
    known: dict[str, Any] = {
        "name": "main",
        "batch_id": batch,
        "committed": batch + 1,
        "input_rows_total": rows * (batch + 1),
        "busy_ms_total": round(1000 * seconds * (batch + 1)),
        "batch_duration_ms": round(1000 * seconds),
        "last_commit_time": begin + seconds,
        "input_rows_per_second": rows / 10,
        "processed_rows_per_second": rows / seconds,
        "lag_rows": 0,
        "source_partitions": 8,
        "state_partitions": 8,
    }
    return QueryReport(**{**known, **fields})


def report(queries: tuple[QueryReport, ...], executors: int = 4, task_seconds: float = -1.0) -> AgentReport:
    """Return an agent's report."""
    return AgentReport(
        app="orders",
        uid="u-1",
        epoch=1,
        state=DriverState.RUNNING,
        queries=queries,
        executors_wanted=executors,
        executors_running=executors,
        ready=True,
        task_seconds=task_seconds,
        executors_idle=0,
    )


def history_of(seconds: float = 4.0, rows: int = 1000, work: float = 8.0, batches: int = 24, **fields: Any) -> History:
    """Return samples of a query with a batch every ten seconds, looked at after each.

    Args:
        seconds: duration of a batch.
        rows: of a batch.
        work: duration of its tasks; negative if the driver does not tell.
        batches: how many.
        fields: of the query's report.
    """
    history = History()
    for batch in range(batches):
        begin = NOW + 10.0 * batch
        done = work * (batch + 1) if work >= 0 else -1.0
        sample = take_sample(report((query(batch, begin, seconds, rows, **fields),), 4, done), "p", begin + seconds)
        history = history.add(sample)
    return history
