"""Epochs of queries with a continuous trigger, counted as batches. Spark is a stand-in; no JVM."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_spark.contract.protocol import DriverState, QueryReport, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.monitoring.continuous import Epochs
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.entries import Entry
from tidegate_testing.driver_process import driver_config


class Driver:
    """A driver with one query, whose commit log says how far it is."""

    def __init__(self, *, continuous: bool = True, begun: int = -1) -> None:
        self.now, self.newest, self.continuous = 100.0, begun, continuous
        self.progress = Progress(driver_config("app", "main.py", Storage("s3://here/apps/orders")))
        self.progress.enter(DriverState.RUNNING)
        self.start("run-1")
        self.batch_seconds = 0.0
        self._epochs = Epochs(
            self.progress,
            95.0,
            batch_seconds=lambda query: self.batch_seconds,
            is_continuous=lambda query: self.continuous,
            newest=lambda query: self.newest,
            clock=lambda: self.now,
        )

    def start(self, run: str) -> None:
        """Start the query; Spark tells of it first, and who started it afterwards."""
        query: Any = SimpleNamespace(runId=run)
        self.active = [Entry("events", "main.py:1", named=True, query=query)]
        self.progress.query_started("events")
        self.progress.query_started("events", self.newest)

    def check(self, newest: int, seconds: float = 1.0) -> QueryReport:
        """Let epochs be committed, and time go by, then look."""
        self.newest, self.now = newest, self.now + seconds
        self._epochs.check(self.active)
        [query] = self.progress.report().queries
        return query


def test_a_query_is_ready_and_has_committed_by_its_epochs() -> None:
    driver = Driver()
    driver.check(-1)
    assert not driver.progress.ready
    query = driver.check(1, 4.0)
    assert driver.progress.ready
    assert (query.batch_id, query.committed, query.continuous) == (1, 2, True)
    assert (query.batch_duration_ms, query.last_commit_time, driver.progress.commits) == (2000, 105.0, 2)


def test_epochs_of_before_are_not_counted_and_none_is_counted_twice() -> None:
    driver = Driver(begun=7)
    assert driver.check(7).committed == 0
    for _ in range(3):
        query = driver.check(9)
    assert (query.batch_id, query.committed, driver.progress.commits) == (9, 2, 2)


@pytest.mark.parametrize(("seconds", "warning"), [(300.0, True), (95.0, True), (30.0, False)])
def test_a_query_in_real_time_mode_says_at_its_start_what_its_long_batches_need(seconds: float, warning: bool) -> None:
    driver = Driver(continuous=False)
    driver.batch_seconds = seconds
    driver.check(-1)
    driver.check(-1)
    [notice] = driver.progress.report().notices
    assert [query.real_time for query in driver.progress.report().queries] == [True]
    assert (notice.reason, notice.warning) == (Reason.REAL_TIME_TRIGGER, warning)
    assert f"each of its batches lasts {seconds:.0f} s" in notice.message
    assert f"more than {seconds + 25:.0f} in spec.driver.stopGracePeriodSeconds" in notice.message


def test_what_cannot_be_had_is_said_at_the_start() -> None:
    driver = Driver()
    driver.check(-1)
    [notice] = driver.progress.report().notices
    assert (notice.reason, notice.warning) == (Reason.CONTINUOUS_TRIGGER, True)
    assert "Query 'events' has a continuous trigger" in notice.message
    assert "no rows, rates and lag" in notice.message


def test_a_query_with_batches_is_left_to_spark() -> None:
    driver = Driver(continuous=False)
    query = driver.check(5)
    assert (query.committed, query.continuous, driver.progress.report().notices) == (0, False, ())


def test_a_query_that_is_started_again_with_batches_is_continuous_no_more() -> None:
    driver = Driver()
    driver.check(3)
    driver.continuous = False
    driver.start("run-2")
    assert not driver.check(3).continuous


def test_a_query_that_is_started_again_with_batches_is_in_real_time_mode_no_more() -> None:
    driver = Driver(continuous=False)
    driver.batch_seconds = 30.0
    assert driver.check(3).real_time
    driver.batch_seconds = 0.0
    driver.start("run-2")
    assert not driver.check(3).real_time


def test_a_query_that_is_started_again_goes_on_counting() -> None:
    driver = Driver()
    driver.check(3)
    driver.start("run-2")
    assert driver.check(3).committed == 4
    assert (driver.check(5).committed, driver.progress.commits) == (6, 6)
