"""What the termination message says of batches that were committed, where queries have ended by themselves."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.contract.protocol import RestartSettings, Storage, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.ending import Ending
from tidegate_spark.driver.restart_budget import RestartBudget
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.queries import Queries
from tidegate_testing.driver_process import driver_config

FAILED = Outcome(Reason.APPLICATION_FAILED, "no such column", "ValueError")


@dataclass
class EndedQuery:
    """A query whose thread has ended, or has not; ``None`` for a commit log that cannot be read."""

    commits: int | None
    alive: bool = False

    @property
    def _jsq(self) -> Any:
        return SimpleNamespace(streamingQuery=lambda: self)

    def queryExecutionThread(self) -> Any:  # noqa: N802 - the JVM's name
        return SimpleNamespace(join=lambda milliseconds: None, isAlive=lambda: self.alive)

    def commitLog(self) -> Any:  # noqa: N802 - the JVM's name
        if self.commits is None:
            raise Py4JError("the storage does not answer")
        latest = SimpleNamespace(isDefined=lambda: self.commits != -1, get=lambda: self.commits)
        return SimpleNamespace(getLatestBatchId=lambda: latest)


@dataclass
class FakeQueries:
    """Queries none of which is active any more."""

    ended: Sequence[EndedQuery | int]
    """A number: the last batch of a run of which nothing is kept."""
    starting: bool = False

    def close(self) -> None:
        pass

    def active(self) -> list[Entry]:
        return []

    def entries(self) -> list[Entry]:
        return [
            Entry(f"q{i}", "s.py:1", True, ended_at=each)
            if isinstance(each, int)
            else Entry(f"q{i}", "s.py:1", True, cast(StreamingQuery, each))
            for i, each in enumerate(self.ended)
        ]


def committed(folder: Path, *ended: EndedQuery | int, began_after: int | None = -1) -> int:
    """Return how much is said to be committed of an application that fails, whose listener has reported nothing."""
    return end_of(folder, *ended, began_after=began_after).committed


def end_of(
    folder: Path, *ended: EndedQuery | int, began_after: int | None = -1, reported_of_first: int = -1
) -> Termination:
    """Return the termination message of an application that fails, and what its listener has reported by then."""
    config = driver_config("app", "local:///main.py", Storage("s3://here/apps/app"))
    progress = Progress(config)
    for number in range(len(ended)):
        progress.query_started(f"q{number}")  # the listener
        progress.query_started(f"q{number}", began_after)
    if reported_of_first >= 0:
        progress.query_ended("q0", reported_of_first)
    account = RestartBudget(str(folder), RestartSettings(), lambda: 1000.0, lambda: 0.0)
    reported, done = list[Termination](), threading.Event()

    def conclude(termination: Termination) -> None:
        reported.append(termination)
        done.set()

    ending = Ending(config, progress, cast(Queries, FakeQueries(ended)), account, conclude)
    ending.request(FAILED)
    ending.start()
    assert done.wait(60)
    return reported[0]


def test_a_batch_that_spark_had_not_told_of_yet_is_counted(tmp_path: Path) -> None:
    assert committed(tmp_path, EndedQuery(7), began_after=5) == 2


def test_it_is_counted_also_if_batches_of_other_queries_were_reported_in_time(tmp_path: Path) -> None:
    end = end_of(tmp_path, EndedQuery(3), EndedQuery(7), EndedQuery(None), reported_of_first=3)
    assert (end.batches, end.committed) == ({"q0": 3, "q1": 7}, 12)


def test_a_run_of_which_nothing_is_kept_is_counted_by_its_last_batch(tmp_path: Path) -> None:
    assert committed(tmp_path, 7, EndedQuery(6), began_after=5) == 3
    assert committed(tmp_path, -1) == 0
    assert committed(tmp_path, -1, EndedQuery(None)) == -1


def test_nothing_is_said_to_be_committed_only_if_every_log_says_so(tmp_path: Path) -> None:
    assert committed(tmp_path) == 0
    assert committed(tmp_path, EndedQuery(-1)) == 0
    assert committed(tmp_path, EndedQuery(5), EndedQuery(5), began_after=5) == 0


def test_a_log_that_cannot_be_read_and_a_thread_that_goes_on_leave_it_open(tmp_path: Path) -> None:
    assert committed(tmp_path, EndedQuery(-1), EndedQuery(None)) == -1
    assert committed(tmp_path, EndedQuery(-1, alive=True)) == -1
    assert committed(tmp_path, EndedQuery(3), began_after=None) == -1


def test_batches_of_the_processes_before_are_not_counted() -> None:
    progress = Progress(driver_config("app", "local:///main.py", Storage("s3://here/apps/app")))
    progress.query_started("main")
    progress.query_started("main", 41)
    assert (progress.commits, progress.committed) == (0, {"main": 41})


def test_what_a_script_left_is_ended_after_the_termination_message_and_holds_the_end_no_longer_than_it_may(
    tmp_path: Path,
) -> None:
    config = driver_config("app", "local:///main.py", Storage("s3://here/apps/app"), stop_grace_seconds=1)
    order, never, done = list[str](), threading.Event(), threading.Event()

    def conclude(_: Termination) -> None:
        order.append("the message is written")
        ending.await_remains()
        order.append("the process ends")
        done.set()

    def end_remains() -> None:
        order.append("files are written")
        never.wait()

    account = RestartBudget(str(tmp_path), RestartSettings(), lambda: 1000.0, lambda: 0.0)
    ending = Ending(config, Progress(config), cast(Queries, FakeQueries(())), account, conclude)
    ending.script_started.set()
    threading.Thread(target=lambda: ending.end_script(end_remains), daemon=True).start()
    ending.request(FAILED)
    ending.start()
    assert done.wait(60)
    assert order == ["the message is written", "files are written", "the process ends"]
    never.set()
