"""Executors of a real Spark come and go while tasks run: Spark's own small cluster, with executors as processes."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.status import SparkStageInfo

from tidegate_spark.executors.executor_work import read_work
from tidegate_spark.executors.executors import Scale, SparkBackend
from tidegate_spark.process.spark.sparkconf import DECOMMISSION
from tidegate_testing.streaming_queries import spark_here
from tidegate_testing.waiting import wait_for

GIVES_UP = 300.0
"""Seconds that a task waits for being let go."""


@pytest.fixture(
    params=[
        pytest.param("true", id="decommissioned"),
        pytest.param("false", id="ended at once"),
    ]
)
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SparkContext]:
    settings = {
        # An executor has one core here, as many as a worker: so each is on a worker of its own.
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.driver.host": "127.0.0.1",
        DECOMMISSION: request.param,
    }
    with spark_here(tmp_path, settings, master="local-cluster[3,1,1024]") as spark:
        yield spark.sparkContext


class Job:
    """A job of so many tasks that all wait to be released; every one returns its number."""

    def __init__(self, context: SparkContext, tasks: int, gate: Path) -> None:
        self.result: list[int] = []
        self._context, self._tasks, self._gate = context, tasks, gate
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def running(self) -> int:
        return sum(stage.numActiveTasks for stage in self._stages())

    def failed(self) -> int:
        return sum(stage.numFailedTasks for stage in self._stages())

    def _stages(self) -> list[SparkStageInfo]:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(None)]
        stages = [tracker.getStageInfo(each) for job in jobs if job is not None for each in job.stageIds]
        return [stage for stage in stages if stage is not None]

    def end(self) -> list[int]:
        """Let the tasks go; return what they made."""
        self._gate.touch()
        self._thread.join(300)
        assert not self._thread.is_alive()
        return self.result

    def _run(self) -> None:
        gate = self._gate

        def work(number: int) -> int:
            deadline = time.monotonic() + GIVES_UP
            while not gate.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            return number

        self.result = self._context.parallelize(range(self._tasks), self._tasks).map(work).collect()


def poll_until(scale: Scale, wanted: int, running: int, leaving: int = 0) -> None:
    def probe() -> bool:
        found = scale.check(wanted, time.monotonic())
        assert (found.running, found.leaving) == (running, leaving)
        return True

    wait_for(f"{running} executors and {leaving} that leave", probe, timeout=300, interval=0.5)


@pytest.mark.long
def test_of_three_executors_two_go_and_the_job_is_none_the_worse(context: SparkContext, tmp_path: Path) -> None:
    graceful = context.getConf().get(DECOMMISSION) == "true"
    scale = Scale(SparkBackend(context))
    poll_until(scale, 3, 3)
    job = Job(context, 3, tmp_path / "three")
    wait_for("a task on each executor", lambda: job.running() == 3, timeout=300)
    # Spark's own status follows a moment later. None of these tasks ends before it is let.
    wait_for("each to be known to work", lambda: [each.tasks for each in read_work(context).values()] == [1] * 3, 60)

    if graceful:
        poll_until(scale, 1, 1, 2)  # they end their tasks
    else:
        scale.check(1, time.monotonic())
    assert job.end() == [0, 1, 2]
    poll_until(scale, 1, 1)
    if graceful:
        assert job.failed() == 0

    assert Job(context, 2, tmp_path / "one").end() == [0, 1]
    poll_until(scale, 2, 2)
    assert Job(context, 2, tmp_path / "two").end() == [0, 1]
