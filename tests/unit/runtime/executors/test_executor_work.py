"""How much executors work, and what of it is told. Pure."""

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.executors.executor_work import IDLE_SECONDS, Work, WorkTotals
from tidegate_spark.monitoring.lag import partitions_of
from tidegate_spark.monitoring.listener import read_commit
from tidegate_spark.process.progress import Commit, Progress
from tidegate_testing.driver_process import driver_config


def resting(**seconds: float) -> dict[str, Work]:
    """Return executors without a task, and how long those lasted that have ended; ``e1`` is executor 1."""
    return {name[1:]: Work(done) for name, done in seconds.items()}


def test_work_adds_up_over_executors_that_come_and_go() -> None:
    account = WorkTotals()
    account.take(0.0, resting(e1=5.0, e2=7.0))
    account.take(10.0, resting(e2=9.0, e3=1.0))
    account.take(20.0, resting(e2=9.0, e3=4.0))
    assert account.total == 5.0 + 9.0 + 4.0


def test_an_executor_without_a_task_for_a_while_is_idle() -> None:
    account = WorkTotals()
    assert account.take(0.0, resting(e1=5.0, e2=7.0)) == 0
    assert account.take(IDLE_SECONDS, resting(e1=6.0, e2=7.0)) == 1
    assert account.take(IDLE_SECONDS + 1, resting(e1=6.0, e2=8.0)) == 0
    assert account.take(2 * IDLE_SECONDS, resting(e1=6.0)) == 1


def test_an_executor_is_not_idle_while_it_is_at_a_task_that_takes_minutes() -> None:
    account, long_task = WorkTotals(), {"1": Work(5.0, tasks=1)}
    account.take(0.0, long_task)
    assert account.take(3 * IDLE_SECONDS, long_task) == 0
    ended = resting(e1=5.0 + 3 * IDLE_SECONDS)
    assert account.take(3 * IDLE_SECONDS + 1, ended) == 0
    assert account.take(4 * IDLE_SECONDS + 1, ended) == 1


def commit(batch: int) -> Commit:
    return Commit(batch, 10, 1.0, 1.0, 2000, 0, 0, 1.0, source_partitions=3, state_partitions=4)


def test_work_is_told_as_it_was_when_a_batch_was_committed() -> None:
    progress = Progress(driver_config("orders", "local:///main.py", Storage("s3://streams/apps")))
    assert progress.report().task_seconds < 0
    progress.work(3.0, 0)
    assert progress.report().task_seconds == 3.0
    progress.work(5.0, 1)
    assert (progress.report().task_seconds, progress.report().executors_idle) == (3.0, 1)
    progress.query_committed("main", commit(0))
    progress.query_committed("main", commit(1))
    assert progress.report().task_seconds == 5.0
    (query,) = progress.report().queries
    assert (query.busy_ms_total, query.source_partitions, query.state_partitions) == (4000, 3, 4)


def test_partitions_are_counted_where_sources_tell_them() -> None:
    kafka = {"endOffset": {"orders": {"0": 5, "1": 7}}}
    assert partitions_of([kafka, {"endOffset": {"returns": {"0": 5}}}]) == 3
    assert partitions_of([kafka, {"endOffset": {"logOffset": 3}}]) == -1
    assert partitions_of([{"endOffset": None}]) == -1


def test_the_source_of_control_messages_is_no_partition_of_the_applications() -> None:
    sources = [{"endOffset": {"orders": {"0": 5}}}, {"endOffset": {"tidegate-control": 7}}]
    reported = {"batchId": 1, "timestamp": "2026-11-23T04:00:00.000Z", "sources": sources}
    assert read_commit(reported).source_partitions == 1
