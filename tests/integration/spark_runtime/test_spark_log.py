"""What a real Spark has in memory of its offset log is what it wrote into it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate_spark.control.driver.spark_log import planned_offsets
from tidegate_spark.control_log.offsets import position_of_sources
from tidegate_testing.waiting import wait_for

BY_NUMBERS: dict[str, str] = {}
BY_NAMES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}


@pytest.mark.parametrize("settings", [BY_NUMBERS, BY_NAMES], ids=["sources by numbers", "sources by names"])
def test_offsets_of_the_newest_batch_are_what_the_offset_log_says(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    own = spark.newSession()
    for key, value in settings.items():
        own.conf.set(key, value)
    reader = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    read = (reader.name("rates") if settings else reader).load()
    checkpoint = tmp_path / "checkpoint"
    writer = read.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    # At multiples of the interval since 1970: with an hour, a second batch could come at once.
    query = writer.trigger(processingTime="36500 days").start()
    wait_for("a batch", (checkpoint / "commits" / "0").exists, timeout=120, interval=0.2)
    version, _, source = (checkpoint / "offsets" / "0").read_text().splitlines()
    assert version == ("v2" if settings else "v1")
    offset = source[source.index("{") :]
    reported = planned_offsets(query, 0)
    assert offset in reported
    assert planned_offsets(query, 7) == ""
    assert position_of_sources(reported.replace(offset, '{"tidegate-control": 3}')) == 3
    query.stop()


def test_who_has_no_spark_to_ask_is_told_nothing(spark: SparkSession, tmp_path: Path) -> None:
    read = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.stop()
    query._jsq = query._jsq.sparkSession()
    assert planned_offsets(query, 0) == ""
