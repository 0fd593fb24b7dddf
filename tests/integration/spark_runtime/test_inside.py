"""Looks into a running application, over its agent and its program; and the library, on checkpoints of this process."""

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tidegate_spark import inside
from tidegate_spark.inside.__main__ import main
from tidegate_spark.inspect import state_frames
from tidegate_spark.inspect.errors import BadQuestionError, InspectionError, NotThereError, NotYetError
from tidegate_spark.inspect.questions import Operators, Rows, Windows
from tidegate_spark.inspect.reader import CheckpointReader
from tidegate_testing.driver_process import TOKEN, DriverProcess
from tidegate_testing.streaming_queries import Bench
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

QUERIES = ("windows", "chained", "shoppers", "pairs", "stateless")
PER_BATCH = 20
BEGIN = 1_700_000_000
FIRST_INSPECTED = 5
"""The batch from which on some windows are closed and others forgotten."""


@pytest.fixture(scope="module")
def driver(start_shared: StartDriver) -> DriverProcess:
    """An application with queries of every kind, all of which have committed enough batches."""
    started = start_shared("inside", "inside.py", args=("3 seconds",), driver_heap_mib=1024)
    for query in QUERIES:
        started.await_batch(FIRST_INSPECTED, query)
    return started


def ask(driver: DriverProcess, path: str, **parameters: Any) -> tuple[int, dict[str, Any]]:
    query = {"seconds": 60, **parameters} if path.count("/") > 2 and "/sources" not in path else parameters
    url = f"http://127.0.0.1:{driver.command_port}{path}" + (f"?{urlencode(query)}" if query else "")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def check(driver: DriverProcess, path: str, **parameters: Any) -> dict[str, Any]:
    status, body = ask(driver, path, **parameters)
    assert status == 200, body
    return body


def values_until(batch: int) -> range:
    return range((batch + 1) * PER_BATCH)


def at(seconds: int) -> str:
    """Return a time of the input's as an answer has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(BEGIN + seconds))


@pytest.mark.long
def test_the_operators_of_all_queries_are_told_with_their_rows_and_bytes(driver: DriverProcess) -> None:
    reported = {each["query"]: each for each in check(driver, "/v1/state")["queries"]}
    assert set(reported) == set(QUERIES)
    assert reported["stateless"]["operators"] == []
    (distinct,) = (each for each in reported["chained"]["operators"] if each["operatorName"].startswith("dedupe"))
    assert distinct["rows"] > 0
    for query in ("windows", "shoppers", "pairs"):
        (operator,) = reported[query]["operators"]
        assert operator["rows"] > 0, query
        assert operator["bytes"] > 0, query
        assert operator["partitions"] == 2, query


@pytest.mark.long
def test_what_each_operator_keeps_is_told_with_its_own_figures(driver: DriverProcess) -> None:
    (shoppers,) = check(driver, "/v1/state/shoppers")["operators"]
    assert {each["name"]: each["kind"] for each in shoppers["state"]} == {
        "total": "value",
        "recent": "list",
        "by kind": "map",
    }
    (pairs,) = check(driver, "/v1/state/pairs")["operators"]
    assert [each["name"] for each in pairs["state"]] == ["left", "right"]
    # Two operators: Spark numbers them in the order in which it tells of them.
    chained = check(driver, "/v1/state/chained")["operators"]
    assert len(chained) == 2
    assert all("rows" in operator for operator in chained), chained
    assert check(driver, "/v1/state/stateless")["operators"] == []


def test_a_shopper_is_found_by_the_key_in_every_variable_at_one_batch(driver: DriverProcess) -> None:
    total = check(driver, "/v1/state/shoppers/0", name="total", key="shopper 3")
    own = [value for value in values_until(total["batch"]) if value % 5 == 3]
    assert total["rows"] == [{"key": {"id": "shopper 3"}, "value": {"n": len(own)}}]
    assert (total["complete"], total["partitions"]) == (True, {"read": 1, "of": 2})
    recent = check(driver, "/v1/state/shoppers/0", name="recent", key='{"id": "shopper 3"}')
    own = [value for value in values_until(recent["batch"]) if value % 5 == 3]
    (row,) = recent["rows"]
    assert sorted(each["x"] for each in row["list_value"]) == own
    kinds = check(driver, "/v1/state/shoppers/0", name="by kind", key="shopper 3")
    own = [value for value in values_until(kinds["batch"]) if value % 5 == 3]
    found = {row["user_map_key"]["kind"]: row["user_map_value"]["n"] for row in kinds["rows"]}
    assert found == {f"kind {k}": sum(1 for value in own if value % 3 == k) for k in range(3)}


@pytest.mark.long
def test_a_key_that_is_not_there_is_looked_for_in_every_partition(driver: DriverProcess) -> None:
    answer = check(driver, "/v1/state/shoppers/0", name="total", key="shopper 9")
    assert (answer["rows"], answer["complete"], answer["partitions"]) == ([], True, {"read": 2, "of": 2})


@pytest.mark.long
def test_a_filter_and_a_count_are_about_all_partitions(driver: DriverProcess) -> None:
    some = check(driver, "/v1/state/shoppers/0", name="by kind", filter="user_map_key.kind='kind 1'")
    assert {row["user_map_key"]["kind"] for row in some["rows"]} == {"kind 1"}
    assert (len(some["rows"]), some["complete"]) == (5, True)
    few = check(driver, "/v1/state/shoppers/0", name="by kind", limit=4)
    assert (len(few["rows"]), few["complete"]) == (4, False)
    counted = check(driver, "/v1/state/shoppers/0", name="by kind", count="true")
    assert (counted["count"], counted["complete"]) == (15, True)
    nobody = check(driver, "/v1/state/shoppers/0", name="total", filter="key.id='shopper 1' and value.n<0")
    assert nobody["rows"] == []


@pytest.mark.long
def test_each_side_of_a_join_has_the_values_it_waits_with(driver: DriverProcess) -> None:
    left = check(driver, "/v1/state/pairs/0", name="left", filter="value.a=7")
    (row,) = left["rows"]
    assert (list(row["key"].values()), row["value"]["a"]) == ([7], 7)
    counted = check(driver, "/v1/state/pairs/0", name="right", count="true")
    assert counted["count"] == len(values_until(counted["batch"]))


@pytest.mark.long
def test_what_a_deduplication_has_seen_is_told(driver: DriverProcess) -> None:
    operators = check(driver, "/v1/state/chained")["operators"]
    (number,) = (each["operator"] for each in operators if each["operatorName"].startswith("dedupe"))
    answer = check(driver, f"/v1/state/chained/{number}", limit=1000)
    seen = [row["key"]["value"] for row in answer["rows"]]
    assert len(seen) == len(set(seen)) > 0
    assert max(seen) == max(values_until(answer["batch"]))


def test_windows_are_open_or_closed_by_the_watermark_with_what_is_in_them(driver: DriverProcess) -> None:
    answer = check(driver, "/v1/windows/windows", which="all")
    batch = answer["batch"]
    # The batch itself went by the watermark of the one before, and forgot what that had passed.
    assert answer["watermark"] == at(batch - 1)
    (operator,) = answer["operators"]
    first = next(second for second in range(0, batch + 1, 2) if second + 2 > batch - 2)
    assert [(each["start"], each["end"]) for each in operator["windows"]] == [
        (at(second), at(second + 2)) for second in range(first, batch + 1, 2)
    ]
    for window, second in zip(operator["windows"], range(first, batch + 1, 2), strict=True):
        assert window["closed"] is (second + 2 <= batch - 1)
        counts = [row["value"]["count"] for row in window["rows"]]
        assert (window["count"], len(counts)) == (3, 3)
        assert sum(counts) == PER_BATCH * len({second, second + 1} & set(range(batch + 1)))


@pytest.mark.long
def test_open_windows_alone_are_told_without_being_asked_for_more(driver: DriverProcess) -> None:
    answer = check(driver, "/v1/windows/windows/0", rows=0)
    (operator,) = answer["operators"]
    assert operator["windows"]
    assert {each["closed"] for each in operator["windows"]} == {False}
    assert {len(each["rows"]) for each in operator["windows"]} == {0}
    assert operator["complete"]


def test_sources_are_told_with_their_offsets(driver: DriverProcess) -> None:
    (reported,) = check(driver, "/v1/sources/shoppers")["queries"]
    (source,) = reported["sources"]
    assert source["end"]["offset"] == len(values_until(reported["batch"]))
    assert source["lagRows"] is None
    assert len(check(driver, "/v1/sources")["queries"]) == len(QUERIES)


@pytest.mark.parametrize(
    ("path", "parameters", "status", "message"),
    [
        ("/v1/state/nobody/0", {}, 404, "there are: chained, pairs, shoppers, stateless, windows"),
        ("/v1/state/shoppers/3", {"name": "total"}, 404, "no operator 3 with state; it has 0 (transformWithState"),
        ("/v1/state/shoppers/0", {"name": "totals"}, 404, "it has by kind, recent, total"),
        ("/v1/state/stateless/0", {}, 404, "keeps no state"),
        ("/v1/windows/shoppers", {}, 404, "has windows"),
        ("/v1/state/shoppers/0", {}, 400, "name: operator 0 of query 'shoppers' keeps several"),
        ("/v1/state/shoppers/0", {"name": "total", "filter": "value.m>3"}, 400, "filter: value has no 'm'; it has n"),
        ("/v1/state/windows/0", {"key": "1"}, 400, "key: has 3 columns (window.start, window.end, third)"),
    ],
)
def test_what_can_not_be_answered_is_told_with_what_can(
    driver: DriverProcess, path: str, parameters: dict[str, str], status: int, message: str
) -> None:
    found, body = ask(driver, path, **parameters)
    assert (found, message in body["error"]) == (status, True), body


@pytest.mark.long
def test_batches_go_on_and_progress_is_answered_while_it_is_looked(driver: DriverProcess) -> None:
    before = {query: driver.batch(query) for query in QUERIES}
    seen: list[int] = []
    looking = threading.Thread(
        target=lambda: seen.extend(ask(driver, "/v1/state/pairs/0", name="left", count="true")[0] for _ in range(3))
    )
    looking.start()
    while looking.is_alive():
        assert driver.report() is not None
    looking.join()
    assert seen == [200, 200, 200]
    for query in QUERIES:
        driver.await_batch(before[query] + 1, query)


@contextmanager
def stopped_jvm(driver: DriverProcess) -> Iterator[None]:
    """Have a driver's JVM stand still in the block: no inspection that it is asked for comes to its end."""
    os.kill(driver.jvm_pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(driver.jvm_pid, signal.SIGCONT)


@pytest.mark.long
def test_all_but_one_of_several_looks_at_a_time_are_told_to_come_again_and_progress_is_answered(
    driver: DriverProcess,
) -> None:
    with ThreadPoolExecutor(3) as pool:
        with stopped_jvm(driver):
            asked = [pool.submit(ask, driver, "/v1/state/pairs/0", name="left", count="true") for _ in range(3)]
            answers = as_completed(asked)
            refused = [next(answers).result() for _ in range(2)]
            assert driver.report() is not None
        (answered,) = (each.result() for each in answers)
    assert [status for status, _ in refused] == [429, 429]
    assert all("another inspection is under way" in body["error"] for _, body in refused)
    assert answered[0] == 200, answered


def test_the_program_prints_the_state_of_a_key(
    driver: DriverProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEGATE_TOKEN", TOKEN)
    agent = ["--agent", f"http://127.0.0.1:{driver.command_port}"]
    words = [*agent, "state", "shoppers", "0", "--name", "total", "--key", "shopper 0", "--seconds", "60"]
    assert main(words) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["key"] == {"id": "shopper 0"}


# --- the library, in a Spark of this process -------------------------------------------------------------------------

STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
HDFS = {PROVIDER: f"{STATE}.HDFSBackedStateStoreProvider"}
OURS = {
    PROVIDER: f"{STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
BATCH = 3


def numbers(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PER_BATCH).option("numPartitions", 2)
    return stream.option("startTimestamp", BEGIN * 1000).option("advanceMillisPerBatch", 1000).load()


def sums(spark: SparkSession) -> DataFrame:
    keys = {"k": F.col("value") % 11, "t": F.concat(F.lit("t"), F.col("value") % 2)}
    return numbers(spark).withColumns(keys).groupBy(*keys).agg(F.count("*").alias("n"))


def windowed(spark: SparkSession) -> DataFrame:
    watched = numbers(spark).withWatermark("timestamp", "1 second").withColumn("third", F.col("value") % 3)
    return watched.groupBy(F.window("timestamp", "2 seconds"), "third").count()


@pytest.fixture(scope="module")
def checkpoints(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("checkpoints")
    for name, settings, query in (("sums", HDFS, sums), ("windowed", OURS, windowed)):
        Bench(spark, settings, partial(query, spark), "update").run(root / name, BATCH)
    return {name: str(root / name) for name in ("sums", "windowed")}


@pytest.mark.long
def test_the_library_gives_what_a_query_keeps_as_a_dataframe(spark: SparkSession, checkpoints: dict[str, str]) -> None:
    (kept,) = inside.operators(spark, checkpoints["sums"], BATCH)
    assert (kept.operator, kept.name, kept.kind) == (0, "default", "rows")
    rows = inside.state(spark, checkpoints["sums"], batch=BATCH)
    found = {(row.key.k, row.key.t): row.value["count"] for row in rows.collect()}
    values = values_until(BATCH)
    keys = {(value % 11, f"t{value % 2}") for value in values}
    assert found == {key: sum(1 for v in values if (v % 11, f"t{v % 2}") == key) for key in keys}
    assert inside.sources(spark, checkpoints["sums"], BATCH).batch == BATCH


def test_the_library_gives_windows_with_the_watermark(spark: SparkSession, checkpoints: dict[str, str]) -> None:
    position = inside.sources(spark, checkpoints["windowed"], BATCH)
    assert position.watermark == at(BATCH - 1)
    rows = inside.windows(spark, checkpoints["windowed"], batch=BATCH).collect()
    assert {(row.closed, row.value["count"] > 0) for row in rows} == {(True, True), (False, True)}
    with pytest.raises(NotThereError, match="has windows"):
        inside.windows(spark, checkpoints["sums"])


def test_a_checkpoint_that_is_not_there_is_told(
    spark: SparkSession, checkpoints: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(NotYetError):
        inside.operators(spark, str(tmp_path / "nowhere"))
    with pytest.raises(InspectionError, match="batch 99"):
        inside.sources(spark, checkpoints["sums"], 99)


@pytest.mark.long
def test_every_key_is_in_the_partition_where_it_is_looked_for_first(
    spark: SparkSession, checkpoints: dict[str, str]
) -> None:
    """Else a look at one key would be one at all partitions; it would be right all the same."""
    reader = CheckpointReader(spark, lambda: checkpoints)
    for row in inside.state(spark, checkpoints["sums"], batch=BATCH).collect():
        key = json.dumps({"k": row.key.k, "t": row.key.t})
        answer = reader.answer(Rows("sums", 0, key=key, seconds=60))
        assert [each["value"]["count"] for each in answer["rows"]] == [row.value["count"]]
        assert answer["partitions"] == {"read": 1, "of": 2}, key
    (window,) = reader.answer(Windows("windowed", which="all", limit=1, seconds=60))["operators"][0]["windows"]
    key = json.dumps({"window": {"start": window["start"], "end": window["end"]}, "third": 1})
    answer = reader.answer(Rows("windowed", 0, key=key, seconds=60))
    assert (len(answer["rows"]), answer["partitions"]) == (1, {"read": 1, "of": 2})


def test_a_batch_that_is_cleaned_up_under_a_look_is_left_for_the_newest(
    spark: SparkSession, checkpoints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt is told of a batch that is gone by the time it is read."""
    original = state_frames.tables_at
    reported: list[int] = []
    reader = CheckpointReader(spark, lambda: checkpoints)
    newest = reader.answer(Operators("sums", 60))["batch"]

    def tables_at(session: SparkSession, files: Any, checkpoint: str) -> Any:
        reported.append(0)
        if len(reported) == 1:
            spark.read.format("statestore").option("batchId", newest + 1000).load(checkpoint).collect()
        return original(session, files, checkpoint)

    monkeypatch.setattr(state_frames, "tables_at", tables_at)
    monkeypatch.setattr("tidegate_spark.inspect.checkpoint_logs.newest_batch", _counting(newest))
    assert reader.answer(Rows("sums", 0, count=True, seconds=60))["batch"] == newest
    assert len(reported) == 2


def _counting(newest: int) -> Any:
    """Return what finds an earlier batch the first time."""
    given = iter([newest - 1])
    return lambda files: next(given, newest)


def test_jobs_are_cancelled_when_the_time_of_their_look_is_over(spark: SparkSession, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def sleep(rows: Any) -> Any:
        begun.touch()
        time.sleep(600)
        return rows

    def seconds_left() -> float:
        """Return 0 when the job's tasks run, however long they took to get there."""
        wait_for("a task", begun.exists, 600, 0.05)
        return 0.0

    job = state_frames.Job(spark, "tidegate-inside-test", seconds_left)
    # One that is not cancelled would end by itself, and raise nothing.
    with job.bounded(), pytest.raises(Py4JError):
        job.run(spark.sparkContext.parallelize(range(2), 2), sleep, [0])
    assert list(job.in_turns([0, 1])) == []


def test_a_function_of_spark_is_no_filter(spark: SparkSession, checkpoints: dict[str, str]) -> None:
    reader = CheckpointReader(spark, lambda: checkpoints)
    with pytest.raises(BadQuestionError, match=r"^filter: "):
        reader.answer(Rows("sums", 0, filter="reflect('java.lang.System', 'exit', 1) = 1"))
