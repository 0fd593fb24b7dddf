"""What Spark's streaming events come to in the driver's measures, and how little is asked of Spark for it."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate_spark.contract.protocol import AgentReport, DriverState, QueryReport, Storage, from_json, to_json
from tidegate_spark.control_log.offsets import SOURCE
from tidegate_spark.monitoring.listener import SparkCalls, read_commit
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config


@dataclass
class JavaObject:
    """A Java object as Py4J shows it: whatever is asked of it costs a call, and these answer no other."""

    text: str

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.text

    def json(self) -> str:
        return self.text

    def isDefined(self) -> bool:  # noqa: N802 - Scala's name
        return bool(self.text)


@dataclass
class Event:
    """One of Spark's events."""

    run: str
    query: str = ""
    measures: str = ""
    error: str = ""

    def id(self) -> JavaObject:
        return JavaObject("id-of-the-query")

    def runId(self) -> JavaObject:  # noqa: N802 - Java's name
        return JavaObject(self.run)

    def name(self) -> str | None:
        return self.query or None

    def progress(self) -> JavaObject:
        return JavaObject(self.measures)

    def exception(self) -> JavaObject:
        return JavaObject(self.error)


class Driver:
    """A driver whose script runs, as Spark tells of it."""

    def __init__(self) -> None:
        self.progress = Progress(driver_config("orders", "local:///main.py", Storage("s3://streams/apps")))
        self.progress.enter(DriverState.RUNNING)
        self.spark = SparkCalls(self.progress)

    def starts(self, run: str) -> None:
        self.spark.onQueryStarted(Event(run, "counts"))

    def ends(self, run: str, error: str = "") -> None:
        self.spark.onQueryTerminated(Event(run, error=error))

    @property
    def query(self) -> QueryReport:
        (query,) = self.progress.report().queries
        return query


def figures_of(batch: int) -> str:
    operator = {"numRowsTotal": 9, "customMetrics": {"rocksdbSstFileSize": 77}}
    reported = {"name": "counts", "batchId": batch, "timestamp": "2026-01-01T00:00:00.000Z", "numInputRows": 5}
    return json.dumps({**reported, "batchDuration": 250, "stateOperators": [operator], "sources": []})


def test_all_figures_of_a_batch_are_taken_from_one_text() -> None:
    driver = Driver()
    driver.starts("run")
    driver.spark.onQueryProgress(Event("run", measures=figures_of(4)))
    query = driver.query
    assert (query.name, query.batch_id, query.committed, query.input_rows_total) == ("counts", 4, 1, 5)
    assert (query.state_rows, query.state_bytes, query.batch_duration_ms) == (9, 77, 250)


def test_messages_are_no_rows_of_input_unless_there_is_nothing_else_to_read() -> None:
    files = {
        "numInputRows": 2,
        "inputRowsPerSecond": "NaN",
        "processedRowsPerSecond": 4.0,
        "endOffset": {"logOffset": 1},
    }
    control = {"numInputRows": 40, "inputRowsPerSecond": 80.0, "endOffset": {SOURCE: 40}}
    reported = {
        "batchId": 1,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": 42,
        "processedRowsPerSecond": 84.0,
    }
    both = read_commit({**reported, "sources": [files, control]})
    assert (both.input_rows, both.input_rows_per_second, both.processed_rows_per_second) == (2, 0.0, 4.0)
    assert both.control == 40
    alone = read_commit({**reported, "sources": [control]})
    assert (alone.input_rows, alone.processed_rows_per_second) == (42, 84.0)


def test_an_unnamed_query_goes_by_its_id() -> None:
    driver = Driver()
    driver.spark.onQueryStarted(Event("run"))
    assert driver.query.name == "id-of-the-query"


def test_only_the_last_run_of_a_name_ends_it() -> None:
    driver = Driver()
    driver.starts("r1")
    driver.starts("r2")
    driver.ends("r1", "no")
    assert (driver.query.active, driver.query.failed) == (True, False)
    driver.spark.onQueryIdle(Event("r2"))
    driver.ends("r2")
    assert not driver.query.active


@pytest.mark.parametrize("error", ["", "org.apache.spark.SparkException: no"])
def test_a_query_that_ended_with_an_exception_has_failed(error: str) -> None:
    driver = Driver()
    driver.starts("r1")
    driver.ends("r1", error)
    assert (driver.query.active, driver.query.failed) == (False, bool(error))


def test_a_query_that_is_started_again_has_not_failed() -> None:
    driver = Driver()
    driver.starts("r1")
    driver.ends("r1", "no")
    driver.starts("r2")
    assert (driver.query.active, driver.query.failed) == (True, False)


def test_a_query_that_failed_before_its_checkpoint_was_looked_at_has_failed_nevertheless() -> None:
    driver = Driver()
    driver.starts("r1")
    driver.ends("r1", "no")
    driver.progress.query_started("counts", 41)
    assert (driver.query.active, driver.query.failed, driver.query.batch_id) == (False, True, 41)


def test_a_driver_that_stops_does_not_forget_that_a_query_failed() -> None:
    driver = Driver()
    driver.starts("r1")
    driver.ends("r1", "no")
    driver.progress.query_ended("counts", 7)
    assert driver.query.failed


def test_an_agent_that_does_not_tell_of_failures_is_understood() -> None:
    driver = Driver()
    driver.starts("r1")
    text = to_json(driver.progress.report())
    assert '"failed":false' in text
    reported: Any = from_json(AgentReport, text.replace(',"failed":false', ""))
    assert reported.queries[0].failed is False


def test_of_a_query_that_the_script_has_not_started_nothing_is_noted() -> None:
    """The status would have it as one that is looked after, and a driver with nothing else would be ready."""
    driver, planned = Driver(), list[str]()
    driver.spark = SparkCalls(driver.progress, planned.append, is_ours=lambda name: name == "counts")
    driver.spark.onQueryStarted(Event("r1", "of-a-jar"))
    driver.spark.onQueryProgress(Event("r1", measures=json.dumps({**json.loads(figures_of(4)), "runId": "r1"})))
    driver.spark.onQueryIdle(Event("r1"))
    assert (driver.progress.report().queries, driver.progress.commits, planned) == ((), 0, [])
    driver.starts("r2")
    driver.ends("r1", "no")
    assert (driver.query.name, driver.query.active, driver.query.failed) == ("counts", True, False)
    assert planned == ["id-of-the-query"]
