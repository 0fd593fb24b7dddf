"""What the agent tells Prometheus of queries, and how a lag is read from Spark's account of a batch."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tidegate_spark.contract.protocol import DriverConfig, ExecutorSettings, Storage
from tidegate_spark.monitoring.lag import UNKNOWN, lag_of
from tidegate_spark.monitoring.listener import read_commit
from tidegate_spark.monitoring.metrics import build_registry
from tidegate_spark.process.progress import Commit, Progress

CONFIG = DriverConfig(
    app="orders",
    namespace="shop",
    uid="u",
    epoch=3,
    lineage=1,
    pod_name="orders-driver",
    main="local:///m.py",
    storage=Storage("s3://b/p"),
    executor=ExecutorSettings(2, "i", "Never", "sa", "orders-e3"),
)
LABELS = 'app="orders",epoch="3",namespace="shop",query="main"'
MIDNIGHT = 1_700_000_000.0


def kafka(end: dict[str, int] | None, latest: dict[str, int] | None, **metrics: str) -> dict[str, Any]:
    """Return one source of a progress report, as Spark writes it."""
    given = {"startOffset": None, "endOffset": end, "latestOffset": latest}
    offsets = {name: {"orders": partitions} if partitions else None for name, partitions in given.items()}
    return {"description": "KafkaV2[Subscribe[orders]]", **offsets, "metrics": metrics}


RATE: dict[str, Any] = {"startOffset": 3, "endOffset": 4, "latestOffset": 4, "metrics": {}}
FILES: dict[str, Any] = {"startOffset": {"logOffset": 1}, "endOffset": {"logOffset": 2}, "latestOffset": None}
LAGS = {
    "a batch that took everything": ([kafka({"0": 10, "1": 7}, {"0": 10, "1": 7})], 0),
    "a limited batch leaves rows in each partition": ([kafka({"0": 10, "1": 7}, {"0": 25, "1": 9})], 17),
    "two topics of two sources add up": ([kafka({"0": 1}, {"0": 3}), kafka({"0": 5}, {"0": 9})], 6),
    "a source that does not tell is left out": ([RATE, kafka({"0": 1}, {"0": 3})], 2),
    "nobody tells": ([RATE, FILES], UNKNOWN),
    "no sources": ([], UNKNOWN),
    "without the latest offset, Spark's average by partition": (
        [kafka({"0": 1, "1": 1, "2": 1}, None, avgOffsetsBehindLatest="33.333333")],
        100,
    ),
    "a topic made again has smaller offsets": ([kafka({"0": 100}, {"0": 3})], 0),
    "a new partition starts with the next batch": ([kafka({"0": 5}, {"0": 6, "1": 900})], 1),
}


@pytest.mark.parametrize(("sources", "rows"), LAGS.values(), ids=LAGS.keys())
def test_the_lag_is_what_a_batch_left_behind(sources: list[dict[str, Any]], rows: int) -> None:
    assert lag_of(sources) == rows


def test_a_progress_event_carries_its_lag() -> None:
    event: dict[str, Any] = {
        "batchId": 4,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "sources": [kafka({"0": 10}, {"0": 12})],
    }
    assert read_commit(event).lag_rows == 2


def commit(batch: int = 0, *, duration_ms: int = 200, at: float = MIDNIGHT, lag: int = UNKNOWN) -> Commit:
    return Commit(batch, 10, 5.0, 50.0, duration_ms, 7, 4096, at, lag)


class Scrape:
    """A driver of which Prometheus can ask; its clock stands until it is set."""

    def __init__(self) -> None:
        self.now = MIDNIGHT
        self.progress = Progress(CONFIG)
        self.registry: CollectorRegistry = build_registry(CONFIG, self.progress, lambda: self.now)

    def value(self, name: str, labels: str = LABELS) -> float | None:
        """Return a series' value, None if there is no such series."""
        text = generate_latest(self.registry).decode()
        found = [line for line in text.splitlines() if line.startswith(f"{name}{{{labels}}}")]
        return float(found[0].rpartition(" ")[2]) if found else None


def test_every_committed_batch_is_in_the_histogram() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    for number, duration in enumerate((50, 100, 240, 7_000_000)):
        driver.progress.query_committed("main", commit(number, duration_ms=duration))
    name = "tidegate_query_batch_duration_seconds"
    assert driver.value(f"{name}_bucket", 'app="orders",epoch="3",le="0.1",namespace="shop",query="main"') == 2
    assert driver.value(f"{name}_bucket", 'app="orders",epoch="3",le="0.25",namespace="shop",query="main"') == 3
    assert driver.value(f"{name}_bucket", 'app="orders",epoch="3",le="1800.0",namespace="shop",query="main"') == 3
    assert driver.value(f"{name}_count") == 4
    assert driver.value(f"{name}_sum") == pytest.approx(7000.39)


def test_the_age_of_a_commit_grows_until_the_next_one_and_starts_at_the_query() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    driver.now += 30
    assert driver.value("tidegate_query_last_commit_age_seconds") == 30
    driver.progress.query_committed("main", commit(at=driver.now))
    driver.now += 5
    assert driver.value("tidegate_query_last_commit_age_seconds") == 5
    driver.progress.query_ended("main")
    assert driver.value("tidegate_query_last_commit_age_seconds") is None


def test_a_query_started_again_is_not_as_old_as_the_last_commit_before_it() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    driver.progress.query_committed("main", commit())
    driver.progress.query_ended("main")
    driver.now += 3600
    driver.progress.query_started("main")
    assert driver.value("tidegate_query_last_commit_age_seconds") == 0


def test_a_query_is_idle_from_a_trigger_without_input_to_the_next_batch() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    assert driver.value("tidegate_query_idle") == 0
    driver.progress.query_idle("main")
    assert driver.value("tidegate_query_idle") == 1
    driver.progress.query_committed("main", commit())
    assert driver.value("tidegate_query_idle") == 0


def test_a_batch_that_began_after_a_lull_is_not_as_old_as_the_lull() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    driver.progress.query_committed("main", commit(at=driver.now))
    driver.progress.query_idle("main")
    driver.now += 36_000
    assert driver.value("tidegate_query_last_commit_age_seconds") == 36_000
    driver.progress.query_at_batch("main", True)
    driver.now += 20
    driver.progress.query_at_batch("main", True)
    assert driver.value("tidegate_query_last_commit_age_seconds") == 20
    driver.now += 20
    driver.progress.query_committed("main", commit(1, at=driver.now - 5))
    assert driver.value("tidegate_query_last_commit_age_seconds") == 5


def test_a_lag_that_nobody_knows_has_no_series() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    assert driver.value("tidegate_query_source_lag_rows") is None
    driver.progress.query_committed("main", commit(lag=0))
    assert driver.value("tidegate_query_source_lag_rows") == 0
    driver.progress.query_committed("main", commit(1, lag=17))
    assert driver.value("tidegate_query_source_lag_rows") == 17


def test_a_query_that_has_ended_is_not_behind() -> None:
    driver = Scrape()
    driver.progress.query_started("main")
    driver.progress.query_committed("main", commit(lag=17))
    driver.progress.query_ended("main")
    assert driver.value("tidegate_query_source_lag_rows") is None
    assert driver.value("tidegate_query_input_rows_total") == 10


def test_the_figures_of_the_last_batch_are_shown() -> None:
    driver = Scrape()
    driver.progress.query_started("main", 8)
    driver.progress.query_committed("main", commit(9))
    driver.progress.query_committed("main", commit(10))
    shown = {
        "tidegate_query_batch_id": 10,
        "tidegate_query_input_rows_per_second": 5,
        "tidegate_query_processed_rows_per_second": 50,
        "tidegate_query_state_rows": 7,
        "tidegate_query_state_bytes": 4096,
        "tidegate_query_input_rows_total": 20,
    }
    assert {name: driver.value(name) for name in shown} == shown
