"""When a script's own stop of a query takes effect. Spark is a stand-in."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.utils import ForeachBatchFunction

from tidegate_spark.driver.context_stop import guard_queries
from tidegate_spark.driver.ending import Ending
from tidegate_spark.queries.stopping import stop_now

LIMIT = 60.0
MOMENT = 0.2
"""A stop that does not wait has long taken effect then; too short, it would only find less."""


class World:
    """A query in a batch, and a driver that may be stopping."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.stopped, self.requested, self.all_stopped = threading.Event(), threading.Event(), threading.Event()
        # The monkeypatch puts Spark's own method back.
        patch.setattr(StreamingQuery, "stop", lambda query: self.stopped.set())
        guard_queries(cast(Ending, SimpleNamespace(requested=self.requested, queries_stopped=self.all_stopped)))
        self.query = StreamingQuery(SimpleNamespace())

    def somebody(self, stops: Callable[[], None]) -> threading.Thread:
        """Have a thread stop the query."""
        thread = threading.Thread(target=stops, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_script_stops_a_query_at_once_while_the_driver_runs(world: World) -> None:
    world.query.stop()
    assert world.stopped.is_set()


def test_a_query_that_the_script_stops_while_the_driver_stops_ends_its_batch_first(world: World) -> None:
    world.requested.set()
    script = world.somebody(world.query.stop)
    assert not world.stopped.wait(MOMENT)
    world.all_stopped.set()
    script.join(LIMIT)
    assert world.stopped.is_set()


def test_the_drivers_own_stop_does_not_wait_for_itself(world: World) -> None:
    world.requested.set()
    stop_now(world.query)
    assert world.stopped.is_set()
    world.stopped.clear()
    world.somebody(world.query.stop)
    assert not world.stopped.wait(MOMENT)


def test_a_batch_that_stops_its_query_does_not_wait_for_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    world.requested.set()
    # Spark's own function looks for these, and gives the script a frame of a session.
    monkeypatch.setattr("pyspark.sql.session.SparkSession", lambda context, java: None)
    monkeypatch.setattr("pyspark.sql.dataframe.DataFrame", lambda java, session: None)
    function = ForeachBatchFunction(
        cast(SparkSession, SimpleNamespace(sparkContext=None)), lambda frame, number: world.query.stop()
    )
    java: Any = SimpleNamespace(sparkSession=lambda: None)
    world.somebody(lambda: function.call(java, 1))
    assert world.stopped.wait(LIMIT)
