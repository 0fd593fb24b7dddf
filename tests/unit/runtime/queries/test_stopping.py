"""From where a query's thread is it follows whether it may be told to end."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.driver.ending import Budget, stop_message
from tidegate_spark.queries import stopping
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.stopping import Position, Stopped, stop_at_boundary

RUN = ("executeOneBatch", "$anonfun$execute$1", "runStream", "run")
PLANNING = Position(True, ("park", "lock", "withProgressLocked", "constructNextBatch", *RUN))
AFTER_BATCH = Position(True, ("park", "lock", "withProgressLocked", "markMicroBatchEnd", *RUN))
INSIDE_BATCH = Position(False, ("park", "awaitResult", "$anonfun$runBatch$2", "runBatch", *RUN))
ENDING = Position(True, ("park", "lock", "$anonfun$runStream$7", "runUninterruptibly", "runStream", "run"))
BETWEEN_TRIGGERS = Position(False, ("wait", "waitTillTime", "execute", "runActivatedStream", "runStream", "run"))
POLLING = Position(False, ("sleep", *RUN))


def test_a_thread_that_waits_to_plan_a_batch_is_let_go_on() -> None:
    assert PLANNING.begins_batch
    assert not PLANNING.ends_if_asked


@pytest.mark.parametrize("position", [AFTER_BATCH, ENDING, BETWEEN_TRIGGERS, POLLING])
def test_a_thread_that_is_past_its_batch_ends_when_told(position: Position) -> None:
    assert position.ends_if_asked
    assert not position.begins_batch


def test_a_thread_on_its_way_out_is_not_mistaken_for_one_that_begins_a_batch() -> None:
    # It comes to the lock a last time; taking the word back there would leave a dead query that counts as active.
    assert ENDING.waits_for_lock
    assert not ENDING.plans


def test_a_running_batch_is_waited_for() -> None:
    assert not INSIDE_BATCH.ends_if_asked
    assert not INSIDE_BATCH.begins_batch
    assert not INSIDE_BATCH.polls_for_data


def test_a_thread_that_polls_for_data_is_told_apart_from_a_batch_that_sleeps() -> None:
    assert POLLING.polls_for_data
    assert not Position(False, ("sleep", "addBatch", "runBatch", *RUN)).polls_for_data


class QueryOfAnotherSpark:
    """A query whose inside is not the one we know."""

    def __init__(self) -> None:
        self.stops = 0

    @property
    def _jsq(self) -> Any:
        raise Py4JError("Method streamingQuery([]) does not exist")

    def stop(self) -> None:
        self.stops += 1


def test_a_query_that_cannot_be_watched_is_interrupted_and_not_said_to_be_at_a_boundary() -> None:
    query = QueryOfAnotherSpark()
    entry = Entry("main", "s.py:1", True, cast(StreamingQuery, query))
    (stopped,) = stop_at_boundary([entry], time.monotonic() + 60, 5)
    assert query.stops == 1
    assert not stopped.boundary


class QueryInsideBatch:
    """A query inside a batch that ends with nothing but an interruption; its last batch is not committed."""

    def __init__(self, *, begun: int = 4, trigger: str = "ProcessingTimeTrigger") -> None:
        self.interrupted = False
        frames = [SimpleNamespace(getMethodName=lambda name=name: name) for name in INSIDE_BATCH.methods]
        thread = SimpleNamespace(
            isAlive=lambda: not self.interrupted, join=lambda milliseconds: None, getStackTrace=lambda: frames
        )
        lock = SimpleNamespace(tryLock=lambda *within: True, unlock=lambda: None, hasQueuedThread=lambda thread: False)
        state = SimpleNamespace(getClass=self._class_of("org.apache.spark.ACTIVE$"))
        execution = SimpleNamespace(
            getClass=self._class_of("org.apache.spark.MicroBatchExecution"),
            queryExecutionThread=lambda: thread,
            awaitProgressLock=lambda: lock,
            state=lambda: SimpleNamespace(get=lambda: state),
            offsetLog=lambda: self._log(begun),
            commitLog=lambda: self._log(3),
            trigger=lambda: SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: trigger)),
        )
        self._jsq = SimpleNamespace(streamingQuery=lambda: execution)

    def stop(self) -> None:
        self.interrupted = True

    @staticmethod
    def _class_of(name: str) -> Any:
        field = SimpleNamespace(get=lambda instance: None)
        loader = SimpleNamespace(loadClass=lambda name: SimpleNamespace(getField=lambda name: field))
        return lambda: SimpleNamespace(getName=lambda: name, getClassLoader=lambda: loader)

    @staticmethod
    def _log(batch: int) -> Any:
        latest = SimpleNamespace(isDefined=lambda: True, get=lambda: batch)
        return SimpleNamespace(getLatestBatchId=lambda: latest)


def test_a_batch_that_nobody_computes_is_interrupted_long_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate_spark.queries.patience.UNCOMPUTED_SECONDS", 0.0)
    unit = SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS=None))
    jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(concurrent=unit)))
    monkeypatch.setattr(SparkContext, "_jvm", jvm)
    query = QueryInsideBatch()
    entry = Entry("main", "s.py:1", True, cast(StreamingQuery, query))
    (stopped,) = stop_at_boundary([entry], time.monotonic() + 3600, 5, lambda running: False)
    assert query.interrupted
    assert stopped == Stopped("main", 4, 3, given_up=True)


def test_a_real_time_batch_that_is_interrupted_is_no_boundary_although_no_log_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unit = SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS=None))
    jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(concurrent=unit)))
    monkeypatch.setattr(SparkContext, "_jvm", jvm)
    query = QueryInsideBatch(begun=3, trigger="RealTimeTrigger")
    entry = Entry("main", "s.py:1", True, cast(StreamingQuery, query))
    (stopped,) = stop_at_boundary([entry], time.monotonic(), 5)
    assert query.interrupted
    assert stopped == Stopped("main", 4, 3)


class ThreadThatWakes:
    """A query's thread that moves on between two looks at it."""

    def __init__(self, *positions: Position) -> None:
        self.state = "ACTIVE"
        self._positions = list(positions)

    def position(self) -> Position:
        return self._positions.pop(0) if len(self._positions) > 1 else self._positions[0]


@pytest.mark.parametrize("waits", [BETWEEN_TRIGGERS, POLLING])
def test_a_thread_that_wakes_up_as_it_is_told_to_end_plans_its_batch_undisturbed(
    waits: Position, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = ThreadThatWakes(waits, PLANNING)
    assert not ask(woken, monkeypatch)
    assert woken.state == "ACTIVE"


@pytest.mark.parametrize("ends", [BETWEEN_TRIGGERS, ENDING, AFTER_BATCH])
def test_a_thread_that_sees_that_it_is_told_to_end_is_not_called_back(
    ends: Position, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = ThreadThatWakes(BETWEEN_TRIGGERS, ends)
    assert ask(stays, monkeypatch)
    assert stays.state == "TERMINATED"


def test_a_thread_that_polls_is_waited_for_until_it_comes_to_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = ThreadThatWakes(POLLING, POLLING, POLLING, ENDING)
    assert ask(polls, monkeypatch)
    assert polls.state == "TERMINATED"


def ask(woken: ThreadThatWakes, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Look where the thread is, and tell it to end."""
    monkeypatch.setattr(stopping, "_states", lambda execution: ("ACTIVE", "TERMINATED"))
    monkeypatch.setattr(stopping, "position_of", lambda thread, lock: woken.position())

    def exchange(old: str, new: str) -> None:
        woken.state = new if woken.state == old else woken.state

    state = SimpleNamespace(set=lambda new: setattr(woken, "state", new), compareAndSet=exchange)
    execution = SimpleNamespace(state=lambda: state)
    thread = SimpleNamespace(isAlive=lambda: True, join=lambda milliseconds: None)
    assert woken.position().ends_if_asked
    return stopping.ask_to_end(execution, thread, None, lambda: False)


def test_the_running_batch_gets_most_of_the_grace_period() -> None:
    for grace in (10, 120, 3600):
        budget = Budget.of(grace)
        assert budget.batch >= 0.6 * grace
        assert budget.batch + 2 * budget.unwinding + budget.session + budget.upload <= grace


def test_the_log_gets_what_the_others_left_of_the_grace_period_and_its_own_part_at_least() -> None:
    budget = Budget.of(120)
    assert [budget.upload_within(left) for left in (115.0, 20.0, 3.0, -5.0)] == [30.0, 18.0, 6.25, 6.25]


def test_a_stop_is_put_in_words() -> None:
    assert stop_message([], []) == "Stopped; no query was running."
    assert stop_message([Stopped("a", 3, 3)], []) == "Stopped at a batch boundary: 'a' after batch 3."
    assert "ended inside a batch of 'a'" in stop_message([Stopped("a", 4, 3)], ["a"])
    cut = [Stopped("a", 4, 3, given_up=True), Stopped("b", 2, 2)]
    assert stop_message(cut, ["a"]) == (
        "Stopped inside a batch of 'a', for which no executor was left; the next start runs it again."
    )
    failed = Stopped("c", 4, 3, failure="ValueError: bad.")
    says = "A batch of 'c' failed as the driver stopped (ValueError: bad); the next start runs it again."
    assert stop_message([failed, Stopped("b", 2, 2)], ["c"]) == says
    late = stop_message([failed, Stopped("a", 4, 3)], ["c", "a"])
    assert late.startswith(f"{says} The grace period (spec.driver.stopGracePeriodSeconds) ended inside a batch of 'a'")
