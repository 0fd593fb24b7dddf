"""Flight delays, learned while flights land: a model that is keyed state, and can be looked into, fixed and kept.

Plain PySpark and Tidegate's library, one file; copy it. Reads a Kafka topic of JSON records, and writes another:

  flights   {"event": "departure", "id": "UA1545@2013-01-01T10:15Z", "carrier": "UA", "origin": "EWR", "dest": "IAH",
             "day": "2013-01-01", "departureDelay": 2}                                                 from earliest
            {"event": "landing", … the same …, "arrivalDelay": 11}
  arrivals  {"id": "UA1545@2013-01-01T10:15Z", …, "departureDelay": 2, "expected": -3.4, "model": "built-in"}

When a flight leaves, its delay at arrival is predicted, from the flights that have landed by then; when it lands, it is
learned from. Delays are in minutes, negative ones are early. What is learned is how many minutes flights lose on their
way (most make up a few): by carrier, by its routes, and by its days. The mean of a route is drawn towards that of its
carrier, as if so and so many flights like the carrier's mean had been seen on the route; and so is the mean of a day.

How strongly they are drawn, and whether the day counts at all, is the model's: a JSON file,

  {"version": "2", "overall": -5.7, "carrierWeight": 20, "routeWeight": 22.8, "dayWeight": 5.1}

of which there is one in here, without days, until a control message ``reload-model`` names another one
(``{"name": "delays", "uri": …, "sha256": …}``). It decides how what was learned is used, and not what is learned.
Predictions say which model they are of. One that cannot be had or makes no sense is not used, and the message's
acknowledgement says why.

All that is learned are numbers of flights, sums of minutes and sums of their squares: integers, so that nothing depends
on how input is cut into batches, as long as producers give each record its carrier as key and send each landing once.
``dump-state`` writes them to files. With ``--begin-with-dump`` an application without state starts from such a dump
(``spec.startFrom.exportedState``), and goes on with the record after it.

Output is at least once: after a crash some predictions are sent again, equal to the byte. Consumers drop repeats by
``id``. Records that are not what is described above are dropped; how many of how many stands in the query's progress
(``observedMetrics``).

Outside of Tidegate no message is ever sent, and the model stays what it is; tidegate_spark has to be on the path.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate_spark import control, initial_state, starting_offsets

RECORD = (
    "event STRING, id STRING, carrier STRING, origin STRING, dest STRING, day DATE, "
    "departureDelay INT, arrivalDelay INT"
)
ARRIVAL = (
    "id STRING, carrier STRING, origin STRING, dest STRING, day STRING, departureDelay INT, "
    "expected DOUBLE, model STRING"
)
DEPARTURE, LANDING = "departure", "landing"
TALLY = "flights BIGINT, minutes BIGINT, squares BIGINT"
QUERY = "arrivals"
MODEL = "delays"
"""Its name in ``reload-model``."""
MOST_DAYS = 100
"""Of a carrier; the oldest ones make way."""


class Flight(NamedTuple):
    """A flight that has left, or, if ``arrival_delay`` says how late, has landed. Minutes."""

    id: str
    carrier: str
    origin: str
    dest: str
    day: str
    departure_delay: int
    arrival_delay: int | None = None


class Tally(NamedTuple):
    """What is known of minutes that flights lost on their way: how many flights, their sum, the sum of squares."""

    flights: int = 0
    minutes: int = 0
    squares: int = 0

    def with_one_more(self, lost: int) -> Tally:
        """Return it with another flight."""
        return Tally(self.flights + 1, self.minutes + lost, self.squares + lost * lost)

    def drawn(self, towards: float, weight: float) -> float:
        """Return the mean, with ``weight`` flights more that lost ``towards`` minutes each."""
        return (self.minutes + weight * towards) / (self.flights + weight)


class Learned(NamedTuple):
    """All that is known of a carrier."""

    total: Tally = Tally()
    routes: Mapping[tuple[str, str], Tally] = {}
    """By origin and destination."""
    days: Mapping[str, Tally] = {}


class Model(NamedTuple):
    """How predictions are made of what is known. Weights are numbers of flights."""

    version: str
    overall: float
    """Minutes that a flight loses whose carrier was never seen."""
    carrier_weight: float
    route_weight: float
    day_weight: float | None
    """None: the day does not count."""


class Prediction(NamedTuple):
    """When a flight is expected: minutes after its schedule, by which model."""

    flight: Flight
    expected: float
    model: str


BUILT_IN = Model("built-in", overall=0.0, carrier_weight=20.0, route_weight=20.0, day_weight=None)
UNKNOWN = Tally()


def predict(learned: Learned, flight: Flight, model: Model) -> Prediction:
    """Return when a flight is expected that has just left. Pure."""
    carrier = learned.total.drawn(model.overall, model.carrier_weight)
    lost = learned.routes.get((flight.origin, flight.dest), UNKNOWN).drawn(carrier, model.route_weight)
    if model.day_weight is not None:
        lost += learned.days.get(flight.day, UNKNOWN).drawn(carrier, model.day_weight) - carrier
    return Prediction(flight, flight.departure_delay + lost, model.version)


def follow(learned: Learned, flights: Iterable[Flight], model: Model) -> tuple[Learned, list[Prediction]]:
    """Return what is known after some of a carrier's flights, in their order, and what was expected of those that left.

    Pure. Each prediction is made with what had landed before, whether in this batch or in an earlier one.
    """
    total, routes, days = learned.total, dict(learned.routes), dict(learned.days)
    predictions = []
    for flight in flights:
        if flight.arrival_delay is None:
            predictions.append(predict(Learned(total, routes, days), flight, model))
            continue
        lost, route = flight.arrival_delay - flight.departure_delay, (flight.origin, flight.dest)
        total = total.with_one_more(lost)
        routes[route] = routes.get(route, UNKNOWN).with_one_more(lost)
        days[flight.day] = days.get(flight.day, UNKNOWN).with_one_more(lost)
        if len(days) > MOST_DAYS:
            del days[min(days)]
    return Learned(total, routes, days), predictions


def row(prediction: Prediction) -> Row:
    """Return a prediction as a record; its id is the flight's, so it is the same however often it is sent."""
    flight = prediction.flight
    return Row(
        id=flight.id,
        carrier=flight.carrier,
        origin=flight.origin,
        dest=flight.dest,
        day=flight.day,
        departureDelay=flight.departure_delay,
        expected=prediction.expected,
        model=prediction.model,
    )


def tally_of(held: Mapping[str, int]) -> Tally:
    """Return the tally that a dump's record holds."""
    return Tally(held["flights"], held["minutes"], held["squares"])


def read_model(file: Path) -> Model:
    """Return the model that a file holds.

    Raises:
        ValueError: it holds none; says why.
    """
    held = json.loads(file.read_text())
    try:
        overall, carrier, route = (float(held[name]) for name in ("overall", "carrierWeight", "routeWeight"))
        day = None if held["dayWeight"] is None else float(held["dayWeight"])
        version = str(held["version"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"a model has version, overall, carrierWeight, routeWeight, dayWeight: {error!r}") from error
    weights = [carrier, route, *([] if day is None else [day])]
    if not (math.isfinite(overall) and all(math.isfinite(weight) and weight > 0 for weight in weights)):
        raise ValueError(f"weights must be positive, and all numbers finite: {held}")
    return Model(version, overall, carrier, route, day)


def model_in_force() -> Model:
    """Return the model of this batch.

    A worker that never had a good one goes on with the built-in one, and does not stop the stream; that the new one is
    of no use is reported in the acknowledgement of its message all the same.
    """
    now = control.current()
    try:
        return now.load(MODEL, read_model, BUILT_IN) or BUILT_IN
    except control.ControlError:
        return BUILT_IN


class Forecaster(StatefulProcessor):
    """Keeps a carrier's :class:`Learned` in Spark's state, and applies :func:`follow` to each batch.

    A whole map is read at once: that is one round trip between Python and the JVM, where each entry by itself is one.
    Only entries that have changed are written.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", TALLY)
        self._routes = handle.getMapState("routes", "origin STRING, dest STRING", TALLY)
        self._days = handle.getMapState("days", "day STRING", TALLY)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """Take over what a dump holds of a carrier."""
        # By their names: what is within a column is a dictionary here, and in what state returns it is a tuple.
        total, routes = initialState["total"], initialState["routes"] or ()
        by_route = {(pair["key"]["origin"], pair["key"]["dest"]): tally_of(pair["value"]) for pair in routes}
        by_day = {pair["key"]["day"]: tally_of(pair["value"]) for pair in initialState["days"] or ()}
        self._keep(Learned(), Learned(tally_of(total) if total else UNKNOWN, by_route, by_day))

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        in_order = sorted(rows, key=lambda row: row.position)  # the shuffle does not keep the topic's order
        flights = [Flight(r.id, r.carrier, r.origin, r.dest, r.day, r.departureDelay, r.arrivalDelay) for r in in_order]
        before = self._known()
        after, predictions = follow(before, flights, model_in_force())
        self._keep(before, after)
        for prediction in predictions:
            yield row(prediction)

    def close(self) -> None:
        pass

    def _known(self) -> Learned:
        total = self._total.get()
        routes = {(str(k[0]), str(k[1])): Tally(*value) for k, value in self._routes.iterator()}
        days = {str(k[0]): Tally(*value) for k, value in self._days.iterator()}
        return Learned(Tally(*total) if total else UNKNOWN, routes, days)

    def _keep(self, before: Learned, after: Learned) -> None:
        if after.total != before.total:
            self._total.update(tuple(after.total))
        for route, tally in after.routes.items():
            if before.routes.get(route) != tally:
                self._routes.updateValue(route, tuple(tally))
        for day, tally in after.days.items():
            if before.days.get(day) != tally:
                self._days.updateValue((day,), tuple(tally))
        for day in before.days.keys() - after.days.keys():
            self._days.removeKey((day,))


def flights(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """Return the topic's well-formed records: their fields, and ``position`` (the offset)."""
    # After a dump the first record is read that it has not seen.
    begin = starting_offsets(spark, query=QUERY) if options.begin_with_dump else "earliest"
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", options.brokers)
    if options.max_records:
        reader = reader.option("maxOffsetsPerTrigger", str(options.max_records))
    raw = reader.option("subscribe", options.flights).option("startingOffsets", begin).load()
    parsed = raw.select(
        f.from_json(f.col("value").cast("string"), RECORD).alias("record"), f.col("offset").alias("position")
    ).select("record.*", "position")
    good = (f.col("event") == DEPARTURE) | ((f.col("event") == LANDING) & f.col("arrivalDelay").isNotNull())
    for name in ("id", "carrier", "origin", "dest", "day", "departureDelay"):
        good &= f.col(name).isNotNull()
    marked = parsed.withColumn("good", f.coalesce(good, f.lit(False)))
    counted = marked.observe("flights", f.count("*").alias("total"), f.count_if(~f.col("good")).alias("dropped"))
    # A departure has not landed, whatever its record says.
    landed = f.when(f.col("event") == LANDING, f.col("arrivalDelay"))
    day = f.date_format("day", "yyyy-MM-dd")
    return counted.where("good").withColumns({"arrivalDelay": landed, "day": day}).drop("good", "event")


def arrivals(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """Return the stream of predictions."""
    keyed = control.controlled(flights(spark, options)).groupBy("carrier")
    dumped = initial_state(spark, query=QUERY).groupBy("carrier") if options.begin_with_dump else None
    return keyed.transformWithState(Forecaster(), ARRIVAL, outputMode="Append", timeMode="None", initialState=dumped)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Predict how late flights arrive, and learn from those that land.")
    parser.add_argument("--brokers", required=True, help="Kafka bootstrap servers: host:port[,host:port]")
    parser.add_argument("--flights", default="flights", help="topic of flights, from earliest (default: %(default)s)")
    parser.add_argument("--arrivals", default="arrivals", help="topic to write to (default: %(default)s)")
    parser.add_argument("--trigger", default="1 second", help="time between batches (default: %(default)s)")
    parser.add_argument("--max-records", type=int, default=0, help="most records in a batch; 0: no limit")
    parser.add_argument(
        "--begin-with-dump", action="store_true", help="start from the dump in spec.startFrom.exportedState"
    )
    return parser.parse_args(arguments)


def main() -> None:
    """Run until stopped."""
    options = parse()
    spark = SparkSession.builder.appName("flight-delays").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    output = arrivals(spark, options).select(f.col("carrier").alias("key"), f.to_json(f.struct("*")).alias("value"))
    query = (
        output.writeStream.queryName(QUERY)
        .format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("topic", options.arrivals)
        .outputMode("append")
        .trigger(processingTime=options.trigger)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
