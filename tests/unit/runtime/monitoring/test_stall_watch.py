"""What is taken for a stall of real queries; Spark is a stand-in. No JVM."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import DriverConfig, ExecutorSettings, Storage
from tidegate_spark.monitoring.metrics import Batches
from tidegate_spark.monitoring.stall_watch import CLEANS_UP, RUNS_BATCH, WAITS_FOR_TRIGGER, StallWatch
from tidegate_spark.process.progress import Commit, Progress

CONFIG = DriverConfig(
    app="a",
    namespace="n",
    uid="u",
    epoch=1,
    lineage=1,
    pod_name="a-driver",
    main="local:///m.py",
    storage=Storage("s3://b/p/n/a"),
    executor=ExecutorSettings(1, "i", "IfNotPresent", "sa", "a-e1"),
)
TIMEOUT = 600.0


class Spark:
    """One query inside a batch of one stage, and Spark's counts of that stage's tasks."""

    def __init__(self, patch: pytest.MonkeyPatch, timeout: float = TIMEOUT) -> None:
        self.now, self.completed, self.failed = 0.0, 0, 0
        patch.setattr("tidegate_spark.monitoring.stall_watch.time", SimpleNamespace(monotonic=lambda: self.now))
        self.status, self.triggered = RUNS_BATCH, True
        status = SimpleNamespace(message=lambda: self.status, isTriggerActive=lambda: self.triggered)
        self.between_epochs = 1.0
        self.batch_lasts = 0.0
        trigger = SimpleNamespace(
            getClass=lambda: SimpleNamespace(
                getSimpleName=lambda: "RealTimeTrigger" if self.batch_lasts else "Trigger"
            ),
            intervalMs=lambda: int(1000 * self.between_epochs),
            batchDurationMs=lambda: int(1000 * self.batch_lasts),
        )
        execution = SimpleNamespace(trigger=lambda: trigger)
        java = SimpleNamespace(status=lambda: status, streamingQuery=lambda: execution)
        query = SimpleNamespace(isActive=True, runId="r", _jsq=java)
        tracker = SimpleNamespace(
            getActiveJobsIds=lambda: [1],
            getJobIdsForGroup=lambda group: [1],
            getJobInfo=lambda job: SimpleNamespace(stageIds=[7]),
            getStageInfo=lambda stage: SimpleNamespace(numCompletedTasks=self.completed, numFailedTasks=self.failed),
        )
        session: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
        queries: Any = SimpleNamespace(entries=lambda: [SimpleNamespace(name="main", query=query)])
        self.progress = Progress(CONFIG)
        self.progress.query_started("main")
        self._watch = StallWatch(session, queries, self.progress, timeout, lambda: True)

    def go_on(self, seconds: int) -> None:
        """Have the watch look for so long."""
        for _ in range(seconds // 5):
            self.now += 5.0
            self._watch.check()


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    return Spark(monkeypatch)


def test_a_batch_whose_tasks_neither_finish_nor_fail_is_stalled(spark: Spark) -> None:
    spark.go_on(590)
    assert spark.progress.stalled == ""
    spark.go_on(30)
    assert "'main'" in spark.progress.stalled


def test_a_batch_without_input_that_only_cleans_up_state_is_stalled_likewise(spark: Spark) -> None:
    spark.status = CLEANS_UP
    spark.go_on(620)
    assert "'main'" in spark.progress.stalled


def test_tasks_that_fail_one_attempt_after_the_other_because_the_broker_is_down_are_no_stall(spark: Spark) -> None:
    # Each attempt to read waits for 180 s with Spark's and Kafka's defaults, and there are four of them.
    for _ in range(4):
        spark.go_on(180)
        spark.failed += 1
    assert spark.progress.stalled == ""


def test_a_stall_is_over_when_a_task_finishes(spark: Spark) -> None:
    spark.go_on(700)
    assert spark.progress.stalled
    spark.completed += 1
    spark.go_on(10)
    assert spark.progress.stalled == ""


def test_a_continuous_query_is_stalled_when_no_epoch_is_committed_for_long(spark: Spark) -> None:
    spark.progress.query_triggers("main", continuous=True)
    for epoch in range(3):
        spark.go_on(590)
        spark.progress.query_committed("main", Commit(epoch, 0, 0.0, 0.0, 1000, 0, 0, 1.0))
        spark.go_on(10)
        assert spark.progress.stalled == ""
    spark.go_on(620)
    assert "Query 'main' committed no epoch after 2" in spark.progress.stalled


def test_a_continuous_query_whose_trigger_is_longer_than_the_timeout_is_stalled_only_after_both(spark: Spark) -> None:
    spark.progress.query_triggers("main", continuous=True)
    spark.between_epochs = 900.0
    spark.go_on(1490)
    assert spark.progress.stalled == ""
    spark.go_on(30)
    assert "Query 'main' committed no epoch" in spark.progress.stalled


def test_a_real_time_query_is_stalled_only_when_its_batch_lasts_longer_than_its_trigger_says_and_the_timeout(
    spark: Spark,
) -> None:
    """Its tasks read until the batch is over, and finish all at once."""
    spark.batch_lasts = 1800.0
    for batch in range(2):
        spark.go_on(1800)
        spark.completed += 1
        spark.progress.query_committed("main", Commit(batch, 10, 1.0, 1.0, 1000, 0, 0, 1.0))
        assert spark.progress.stalled == ""
    spark.go_on(2390)
    assert spark.progress.stalled == ""
    spark.go_on(30)
    assert "No task of query 'main' finished" in spark.progress.stalled


def test_a_query_that_waits_longer_than_the_timeout_for_its_trigger_is_not_stalled(spark: Spark) -> None:
    spark.progress.query_committed("main", Commit(0, 10, 1.0, 1.0, 1000, 0, 0, 1.0, lag_rows=500))
    spark.status, spark.triggered = WAITS_FOR_TRIGGER, False
    spark.go_on(3600)
    assert spark.progress.stalled == ""


def test_a_query_whose_trigger_comes_once_an_hour_is_idle_in_between(spark: Spark) -> None:
    """The alert on a query that commits nothing leaves idle ones out, and counts from the beginning of a batch."""
    clock = SimpleNamespace(now=1000.0)
    batches = spark.progress.observer = Batches(lambda: clock.now)
    spark.progress.query_committed("main", Commit(0, 10, 1.0, 1.0, 1000, 0, 0, 1000.0, lag_rows=500))
    (query,) = spark.progress.report().queries
    spark.status, spark.triggered = WAITS_FOR_TRIGGER, False
    spark.go_on(10)
    clock.now += 3600
    assert batches.is_idle("main")
    # Its source does not answer: Spark has written no batch yet, and nothing comes of the trigger.
    spark.status, spark.triggered = "Getting offsets from KafkaV2[Subscribe[orders]]", True
    spark.go_on(10)
    clock.now += 20
    assert not batches.is_idle("main")
    assert batches.commit_age(query) == 20


def test_a_paused_query_is_idle_and_its_age_counts_from_the_resumption(spark: Spark) -> None:
    clock = SimpleNamespace(now=1000.0)
    batches = spark.progress.observer = Batches(lambda: clock.now)
    spark.progress.query_started("main", 4)
    (query,) = spark.progress.report().queries
    spark.progress.control = lambda: ControlReport(paused=True)
    spark.go_on(10)
    clock.now += 36_000
    assert batches.is_idle("main")
    spark.progress.control = ControlReport
    spark.go_on(10)
    clock.now += 30
    assert not batches.is_idle("main")
    assert batches.commit_age(query) == 30


def test_a_query_that_runs_again_does_not_wait_any_more(spark: Spark) -> None:
    batches = spark.progress.observer = Batches()
    spark.status, spark.triggered = WAITS_FOR_TRIGGER, False
    spark.go_on(10)
    assert batches.is_idle("main")
    spark.progress.query_started("main")
    assert not batches.is_idle("main")


@pytest.mark.parametrize("batch", [RUNS_BATCH, CLEANS_UP])
@pytest.mark.parametrize("timeout", [TIMEOUT, 0.0])
def test_a_query_that_found_nothing_to_read_and_has_begun_a_batch_since_is_not_idle(
    monkeypatch: pytest.MonkeyPatch, timeout: float, batch: str
) -> None:
    """Spark tells of a batch when it ends; an alert about one that lasts leaves idle queries out."""
    spark = Spark(monkeypatch, timeout)
    batches = spark.progress.observer = Batches()
    spark.status, spark.triggered = WAITS_FOR_TRIGGER, False
    spark.progress.query_idle("main")
    spark.go_on(30)
    assert batches.is_idle("main")
    assert not spark.progress.report().queries[0].at_batch
    spark.status, spark.triggered = batch, True
    spark.go_on(10)
    assert not batches.is_idle("main")
    assert spark.progress.report().queries[0].at_batch
    spark.progress.query_committed("main", Commit(0, 0, 0.0, 0.0, 1000, 0, 0, 1.0))
    assert not spark.progress.report().queries[0].at_batch
