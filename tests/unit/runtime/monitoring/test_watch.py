"""What the watch asks of queries each second, of which a script may start thousands; Spark is a stand-in. No JVM."""

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.monitoring import watch
from tidegate_spark.monitoring.watch import first_failure
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.queries import Queries
from tidegate_testing.driver_process import driver_config


class Run:
    """One run of a query, and how often the JVM was asked about it."""

    def __init__(self, name: str, *, active: bool = False, failure: str = "") -> None:
        self.name, self.active, self.failure, self.asked = name, active, failure, 0
        self.unwound = not active

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        self.asked += 1
        return self.active

    def failed(self) -> Any:
        self.asked += 1
        known = {"reason": Reason.APPLICATION_FAILED, "message": self.failure, "exception": "AnalysisException"}
        return SimpleNamespace(**known) if self.failure else None


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "failure_of", lambda run: run.failed())
    monkeypatch.setattr(watch, "has_unwound", lambda run: run.unwound)


def started(*runs: Run) -> Queries:
    queries = Queries("s3a://b/p", 2, Progress(driver_config("a", "local:///m.py", Storage(uri="s3://b/p"))))
    again(queries, *runs)
    return queries


def again(queries: Queries, *runs: Run) -> None:
    for run in runs:
        query: Any = run
        queries._entries[run.name] = Entry(run.name, "main.py:1", named=True, query=query)


def test_about_a_query_that_has_ended_well_nobody_asks_again() -> None:
    ended, running = [Run(f"day-{number}") for number in range(1000)], Run("now", active=True)
    queries = started(*ended, running)
    assert first_failure(queries) is None
    asked = sum(run.asked for run in ended)
    for _ in range(60):
        assert first_failure(queries) is None
        assert [entry.name for entry in queries.active()] == ["now"]
    assert sum(run.asked for run in ended) == asked
    assert len(queries.entries()) == 1001


def test_of_runs_that_ended_well_nothing_is_kept_but_their_last_batch() -> None:
    runs = [Run(f"day-{number}") for number in range(100)]
    queries = started(*runs)
    known = [weakref.ref(run) for run in runs]
    del runs
    assert first_failure(queries) is None
    queries.release_ended(lambda run: 7)
    gc.collect()
    assert [run() for run in known] == [None] * 100
    assert {(entry.query, entry.ended_at) for entry in queries.entries()} == {(None, 7)}
    assert (queries.active(), queries.not_ended_well(), first_failure(queries)) == ([], [], None)
    assert len(queries.entries()) == 100


def test_a_run_is_kept_while_it_runs_and_until_its_last_batch_can_be_read() -> None:
    queries = started(Run("ended"), Run("now", active=True))
    assert first_failure(queries) is None
    queries.release_ended(lambda run: None)
    assert [(entry.name, entry.query is not None) for entry in queries.entries()] == [("ended", True), ("now", True)]
    queries.release_ended(lambda run: -1)
    assert [(entry.name, entry.query is not None) for entry in queries.entries()] == [("ended", False), ("now", True)]


def test_a_run_that_began_while_the_one_before_was_released_stays() -> None:
    queries = started(Run("counts"))
    run: Any = Run("counts", active=True)
    assert first_failure(queries) is None

    def restarted(ended: object) -> int:
        again(queries, run)
        return 7

    queries.release_ended(restarted)
    assert [entry.query for entry in queries.active()] == [run]


def test_a_query_that_fails_when_it_is_started_again_is_found_though_it_ended_well_before() -> None:
    queries = started(Run("counts"))
    assert first_failure(queries) is None
    run = Run("counts", active=True)
    again(queries, run)
    assert first_failure(queries) is None
    run.active, run.failure = False, "no such table"
    for _ in range(2):
        found = first_failure(queries)
        assert found is not None
        assert found.message == "Query 'counts': no such table"
    again(queries, Run("counts", active=True))
    assert first_failure(queries) is None


def test_a_run_that_is_stopped_is_asked_about_until_its_thread_has_ended() -> None:
    """Whoever stops it may let it run on, to the end of its batch; or it fails meanwhile."""
    run = Run("counts")
    run.unwound = False
    queries = started(run)
    assert first_failure(queries) is None
    run.active = True
    assert [entry.name for entry in queries.active()] == ["counts"]
    run.active, run.failure, run.unwound = False, "no such table", True
    found = first_failure(queries)
    assert found is not None
    assert found.message == "Query 'counts': no such table"
