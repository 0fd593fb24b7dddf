"""Temperature control: each sensor's readings are judged by the setting in force at their time.

Plain PySpark, one file; copy it. Reads two Kafka topics of JSON records and writes a third:

  readings   {"sensor": "seattle+7", "time": "2010-07-01T12:00:00Z", "temperature": 71.3}          from latest
  settings   {"sensor": "seattle+7", "time": "2010-07-01T12:00:00Z",
              "desired": 68.0, "upDelta": 2.0, "downDelta": 3.0}                                   from earliest
  decisions  {"id": "seattle+7@2010-07-01T12:00:00Z", "sensor": …, "time": …, "decision": 1, …}    key: the sensor

With ``--settings-from messages`` settings come as control messages of type ``settings`` instead of the second topic, in
an application of Tidegate's: ``{"settings": [{"sensor": …, "time": …, "desired": …, "upDelta": …, "downDelta": …}]}``.

A reading's decision is 1 above desired + upDelta, 0 below desired - downDelta, and otherwise none. A decision equal to
the sensor's previous one is not sent again. Without a setting there is no control. ``--margin`` is added to both
deltas: with one it switches less, and lets temperatures stray further.

Which setting is in force: the newest one whose time is not after the reading's; at equal times the setting comes
first; of two settings with the same time the one sent later counts. A reading that is not newer than its sensor's last
judged one is a repeat and is ignored.

How input is cut into batches does not matter, because settings are kept in state until a reading has passed them, as
long as producers (a) give each record its sensor as key and send a sensor's readings in order of time, and (b) send no
reading before the broker has confirmed every setting of that sensor that is not newer. If they do not: a reading out of
order is judged or ignored according to the batch that it meets, and a setting that arrives after readings it should
have ruled takes effect from the next reading on; decisions already sent are not taken back.

Only a reading shows which of its sensor's settings are past; a clock does not, because records may be replayed. So a
sensor that gets settings and no readings keeps its newest 1,000: its state does not grow for ever.

Output is at least once: after a crash some decisions are sent again, equal to the byte. Consumers drop repeats by
``id``. Records that are not what is described above are dropped; how many is printed for each batch that has some, and
stands in the query's progress (``observedMetrics``).

Without Kubernetes:
  spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
    --conf spark.sql.streaming.stateStore.providerClass=\
org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
    --conf spark.sql.streaming.checkpointLocation=/some/where temperature_control.py --brokers localhost:9092
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

MESSAGE = "settings ARRAY<STRING>"
"""Payload of a control message; each setting as the JSON that it is."""
MOST_IN_MESSAGE = 65_536
"""More settings than a message has bytes."""
READING = "sensor STRING, time TIMESTAMP, temperature DOUBLE"
SETTING = "sensor STRING, time TIMESTAMP, desired DOUBLE, upDelta DOUBLE, downDelta DOUBLE"
DECISION = (
    "id STRING, sensor STRING, time STRING, decision INT, "
    "temperature DOUBLE, desired DOUBLE, upDelta DOUBLE, downDelta DOUBLE"
)
MEMORY = (
    "judged BIGINT, decision INT, "
    "settings ARRAY<STRUCT<time: BIGINT, desired: DOUBLE, upDelta: DOUBLE, downDelta: DOUBLE>>"
)


MOST_SETTINGS = 1000
"""What is remembered of a sensor at the most; beyond it the oldest settings make way, as if they were past."""


class Setting(NamedTuple):
    """What a sensor's temperature should be from ``time`` (microseconds since 1970) on."""

    time: int
    desired: float
    up_delta: float
    down_delta: float


class Reading(NamedTuple):
    """A temperature at ``time`` (microseconds since 1970)."""

    time: int
    temperature: float


class Memory(NamedTuple):
    """What is remembered of a sensor: time of its last judged reading, last decision sent, settings still needed."""

    judged: int | None = None
    decision: int | None = None
    settings: tuple[Setting, ...] = ()


class Decision(NamedTuple):
    """A decision to send, with the reading and the setting that led to it."""

    value: int
    reading: Reading
    setting: Setting


def judge(
    memory: Memory, settings: Iterable[Setting], readings: Iterable[Reading], margin: float = 0.0
) -> tuple[Memory, list[Decision]]:
    """Return what to remember and what to send, given one batch of one sensor's records in the order they were sent.

    Pure. All settings of the batch are taken in before its readings: a reading picks its setting by time, so that a
    setting from its future does no harm, whichever of the two topics Spark happens to be ahead in.
    """
    known = {setting.time: setting for setting in (*memory.settings, *settings)}
    judged, previous = memory.judged, memory.decision
    decisions = []
    for reading in sorted(readings, key=lambda r: r.time):  # stable: of equal times the first sent is judged
        if judged is not None and reading.time <= judged:
            continue
        judged = reading.time
        in_force = max((time for time in known if time <= judged), default=None)
        if in_force is None:
            continue
        known = {time: setting for time, setting in known.items() if time >= in_force}
        value = decide(reading, known[in_force], margin)
        if value is not None and value != previous:
            previous = value
            decisions.append(Decision(value, reading, known[in_force]))
    kept = sorted(known)[-MOST_SETTINGS:]
    return Memory(judged, previous, tuple(known[time] for time in kept)), decisions


def decide(reading: Reading, setting: Setting, margin: float = 0.0) -> int | None:
    """Return 1 if it is too warm, 0 if it is too cold, None if it is right; ``margin`` is added to both deltas."""
    if reading.temperature > setting.desired + setting.up_delta + margin:
        return 1
    if reading.temperature < setting.desired - setting.down_delta - margin:
        return 0
    return None


def row(sensor: str, decision: Decision) -> Row:
    """Return a decision as a record; its id is made of what it is about, so it is the same however often it is sent."""
    value, reading, setting = decision
    time = (datetime(1970, 1, 1) + timedelta(microseconds=reading.time)).isoformat() + "Z"
    return Row(
        id=f"{sensor}@{time}",
        sensor=sensor,
        time=time,
        decision=value,
        temperature=reading.temperature,
        desired=setting.desired,
        upDelta=setting.up_delta,
        downDelta=setting.down_delta,
    )


class Thermostat(StatefulProcessor):
    """Keeps a sensor's :class:`Memory` in Spark's state, and applies :func:`judge` to each batch.

    Rows rather than pandas: a batch holds few records of each sensor, and building a DataFrame for each of hundreds of
    keys costs more than the work. One value rather than a list and two values: each access is a round trip
    between Python and the JVM, so that a key costs two of them in a batch, however many settings it remembers.
    """

    def __init__(self, margin: float = 0.0) -> None:
        self._margin = margin

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._memory = handle.getValueState("memory", MEMORY)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        in_order = sorted(rows, key=lambda row: row.position)  # the shuffle does not keep the topic's order
        settings = [Setting(r.micros, r.desired, r.upDelta, r.downDelta) for r in in_order if r.desired is not None]
        readings = [Reading(r.micros, r.temperature) for r in in_order if r.desired is None]
        stored = self._memory.get()
        memory = Memory(stored[0], stored[1], tuple(Setting(*s) for s in stored[2])) if stored else Memory()
        memory, decisions = judge(memory, settings, readings, self._margin)
        self._memory.update((memory.judged, memory.decision, [tuple(s) for s in memory.settings]))
        for decision in decisions:
            yield row(key[0], decision)

    def close(self) -> None:
        pass


class DroppedRecords(StreamingQueryListener):
    """Prints how many records a batch dropped, so that bad input is seen without stopping the stream."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        for topic, counts in (event.progress.observedMetrics or {}).items():
            if counts.dropped:
                print(f"batch {event.progress.batchId}: dropped {counts.dropped} of {counts.total} {topic}", flush=True)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        pass


def records(raw: DataFrame, schema: str, kind: str) -> DataFrame:
    """Return a topic's well-formed records: their fields, ``micros`` (the time) and ``position`` (the offset)."""
    parsed = raw.select(
        f.from_json(f.col("value").cast("string"), schema, {"allowNonNumericNumbers": "false"}).alias("record"),
        f.col("offset").alias("position"),
    ).select("record.*", "position")
    good = f.col("sensor").isNotNull() & (f.col("sensor") != "")
    for name in parsed.columns:
        good &= f.col(name).isNotNull()
    for name in ("upDelta", "downDelta"):
        good &= f.col(name) >= 0 if name in parsed.columns else f.lit(True)
    marked = parsed.withColumn("good", f.coalesce(good, f.lit(False)))
    counted = marked.observe(kind, f.count("*").alias("total"), f.count_if(~f.col("good")).alias("dropped"))
    return counted.where("good").withColumn("micros", f.unix_micros("time")).drop("good", "time")


def decisions(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """Return the stream of decisions."""
    limit = {"maxOffsetsPerTrigger": str(options.max_readings)} if options.max_readings else {}
    kafka = {"kafka.bootstrap.servers": options.brokers}
    of_readings = {"subscribe": options.readings, "startingOffsets": "latest", **limit, **kafka}
    of_settings = {"subscribe": options.settings, "startingOffsets": "earliest", **kafka}
    readings = records(spark.readStream.format("kafka").options(**of_readings).load(), READING, "readings")
    if options.settings_from == "messages":
        settings = records(settings_of_messages(spark), SETTING, "settings")
    else:
        settings = records(spark.readStream.format("kafka").options(**of_settings).load(), SETTING, "settings")
    # Readings first: Spark asks the sources for their newest offsets in this order, so that no batch holds a reading
    # without the settings that were confirmed before it. For the same reason settings are never limited.
    together = readings.unionByName(settings, allowMissingColumns=True)
    thermostat = Thermostat(options.margin)
    return together.groupBy("sensor").transformWithState(thermostat, DECISION, outputMode="Append", timeMode="None")


def settings_of_messages(spark: SparkSession) -> DataFrame:
    """Return the settings of control messages as a topic's records: ``value`` is one's JSON, ``offset`` its place."""
    from tidegate_spark import control  # noqa: PLC0415 - only here: everything else runs without Tidegate

    control.accept("settings", schema={"settings": list})
    messages = control.stream(spark).where(f.col("type") == "settings")
    each = f.posexplode(f.from_json("payload", MESSAGE).getField("settings")).alias("place", "value")
    place = (f.col("sequence") * MOST_IN_MESSAGE + f.col("place")).alias("offset")
    return messages.select("sequence", each).select("value", place)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Judge temperature readings by the settings of their sensors.")
    parser.add_argument("--brokers", required=True, help="Kafka bootstrap servers: host:port[,host:port]")
    parser.add_argument("--readings", default="readings", help="topic of readings, from latest (default: %(default)s)")
    parser.add_argument(
        "--settings", default="settings", help="topic of settings, from earliest (default: %(default)s)"
    )
    parser.add_argument(
        "--settings-from",
        choices=("topic", "messages"),
        default="topic",
        help="how settings come (default: %(default)s)",
    )
    parser.add_argument("--decisions", default="decisions", help="topic to write to (default: %(default)s)")
    parser.add_argument("--trigger", default="1 second", help="time between batches (default: %(default)s)")
    parser.add_argument("--margin", type=float, default=0.0, help="degrees added to both deltas (default: %(default)s)")
    parser.add_argument("--max-readings", type=int, default=0, help="most readings in a batch; 0: no limit")
    return parser.parse_args(arguments)


def main() -> None:
    """Run until stopped."""
    options = parse()
    spark = SparkSession.builder.appName("temperature-control").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # a time without zone is UTC wherever this runs
    spark.streams.addListener(DroppedRecords())
    output = decisions(spark, options).select(f.col("sensor").alias("key"), f.to_json(f.struct("*")).alias("value"))
    query = (
        output.writeStream.queryName("decisions")
        .format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("topic", options.decisions)
        .outputMode("append")
        .trigger(processingTime=options.trigger)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
