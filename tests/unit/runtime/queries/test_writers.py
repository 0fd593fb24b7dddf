"""A writer that the script keeps and starts again is the query that it was, whatever it was given meanwhile."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.object_paths import checkpoint_directory, start_directory
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.script.script import outcome_of_refusal
from tidegate_spark.process.faults.faults import Failure
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FORMAT, SHUFFLE_PARTITIONS, STATE_STORE
from tidegate_spark.queries import entries
from tidegate_spark.queries.queries import Queries, Target
from tidegate_spark.queries.refusals import NotContinuedError, QueryRefusedError
from tidegate_spark.queries.unnamed.naming import UndecidedError
from tidegate_testing.driver_process import driver_config

LINEAGE = "s3a://lake/orders/lineages/1"
OWN = "/tmp/checkpoints/orders"


class Iterator:
    """Scala's, over options."""

    def __init__(self, options: dict[str, str]) -> None:
        self._pairs = list(options.items())

    def hasNext(self) -> bool:  # noqa: N802 - Scala's name
        return bool(self._pairs)

    def next(self) -> Any:
        key, value = self._pairs.pop(0)
        return SimpleNamespace(_1=lambda: key, _2=lambda: value)


class Writer:
    """A DataStreamWriter with as much of its JVM's side as is asked for."""

    def __init__(self, text: str = "rate") -> None:
        self.options: dict[str, str] = {}
        mode = SimpleNamespace(toString=lambda: "Append")
        java: dict[str, Any] = {"source": "console", "outputMode": mode}

        def field(name: str) -> Any:
            found = java.get(name) or SimpleNamespace(iterator=lambda: Iterator(self.options))
            return SimpleNamespace(setAccessible=lambda yes: None, get=lambda of: found)

        self._jwrite = SimpleNamespace(getClass=lambda: SimpleNamespace(getDeclaredField=field))
        leaves = SimpleNamespace(size=lambda: 0)
        plan = SimpleNamespace(treeString=lambda: text, collectLeaves=lambda: leaves)
        execution = SimpleNamespace(analyzed=lambda: plan)
        self._df = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))
        conf = {SHUFFLE_PARTITIONS: "2", STATE_STORE: "RocksDB", CHECKPOINT_FORMAT: "2"}
        self._spark = SimpleNamespace(conf=conf)

    def queryName(self, name: str) -> "Writer":  # noqa: N802 - Spark's name
        return self.option("queryName", name)

    def option(self, key: str, value: str) -> "Writer":
        self.options[key.lower()] = value
        return self


@pytest.fixture(autouse=True)
def _failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure(Reason.BROKER_UNAVAILABLE, "NoBrokers", "The broker is away.", own_storage=True)
    monkeypatch.setattr(entries, "failure_of", lambda query: failure if query._jsq.exception().isDefined() else None)


class Script:
    """Starts queries at one place, each of which fails at once, or ends well."""

    def __init__(self, fails: bool = True) -> None:
        self.refused: list[Reason] = []
        self.failed: list[Outcome] = []
        self._fails, self.cannot_name = fails, False
        config = driver_config("orders", "local:///main.py", Storage(uri="s3://lake/orders"))
        self._queries = Queries(LINEAGE, 2, Progress(config))
        self._queries.on_refusal = lambda reason, message: self.refused.append(reason)
        self._queries.on_failure = self.failed.append
        self.named: list[str] = []
        self._queries.name_unnamed = self._name
        self.empty = False
        self._queries.directory_of = self._directory
        self.why = ""
        self.asked: list[tuple[str, str]] = []
        self._queries.before_named = self._refusal

    def _directory(self, writer: Any, name: str, kind: str, mode: str) -> str:
        return start_directory(name, 1) if self.empty else checkpoint_directory(name)

    def _refusal(self, name: str, location: str, runs: Callable[[str], bool]) -> str:
        assert runs(name)
        assert not runs("other")
        self.asked.append((name, location))
        return self.why

    def _name(self, site: str, location: str, others: frozenset[str]) -> str:
        if self.cannot_name:
            raise UndecidedError("it may be another one")
        self.named.append(location)
        return "main"

    def start(self, writer: Writer, name: str | None = None, **options: Any) -> str:
        """Start a query; return its name and its checkpoint."""

        def call(**_: Any) -> StreamingQuery:
            exception = SimpleNamespace(isDefined=lambda: self._fails)
            return cast(StreamingQuery, SimpleNamespace(isActive=False, _jsq=Failed(exception)))

        self._queries._start_query(cast(DataStreamWriter, writer), name, options, call, Target(None, None))
        return f"{writer.options['queryname']} in {writer.options['checkpointlocation']}"


class Failed:
    """The JVM's side of a query that has failed."""

    def __init__(self, exception: Any) -> None:
        self._exception = exception

    def exception(self) -> Any:
        return self._exception

    def streamingQuery(self) -> Any:  # noqa: N802 - Spark's name
        raise OSError


def test_a_writer_without_a_name_that_is_started_again_is_the_same_query_and_not_a_named_one() -> None:
    script, writer = Script(), Writer()
    assert {script.start(writer) for _ in range(3)} == {f"main in {LINEAGE}/main"}
    assert script.refused == []


@pytest.mark.parametrize("by_start", [False, True])
def test_it_has_the_location_that_the_script_gave_it(by_start: bool) -> None:
    script, writer = Script(), Writer()
    if not by_start:
        writer.option("checkpointLocation", OWN)
    script.start(writer, **({"checkpointLocation": OWN} if by_start else {}))
    assert script.start(writer) == f"main in {LINEAGE}/main"
    assert script.named == [OWN, OWN]


def test_a_name_that_it_was_started_with_stays_as_in_spark() -> None:
    script, writer = Script(), Writer()
    assert [script.start(writer, "orders"), script.start(writer)] == [f"orders in {LINEAGE}/orders"] * 2
    assert script.named == []


def test_what_the_script_sets_between_two_starts_counts() -> None:
    script, writer = Script(), Writer()
    script.start(writer)
    writer.queryName("orders").option("checkpointLocation", OWN)
    assert script.start(writer) == f"orders in {LINEAGE}/orders"


def test_another_writer_without_a_name_and_location_is_refused_after_one_that_ended_well() -> None:
    script = Script(fails=False)
    script.start(Writer())
    with pytest.raises(QueryRefusedError) as caught:
        script.start(Writer("socket"))
    assert script.refused == [Reason.QUERY_REFUSED]
    assert str(caught.value).count(__file__) == 1  # both were started there, and so it is not two places


@pytest.mark.parametrize("location", [None, OWN], ids=["another plan", "another location"])
def test_after_one_that_failed_it_ends_the_driver_with_that_failure_so_that_the_next_one_continues(
    location: str | None,
) -> None:
    script = Script()
    script.start(Writer())
    again = Writer("rate" if location else "socket")
    if location:
        again.option("checkpointLocation", location)
    with pytest.raises(NotContinuedError) as caught:
        script.start(again)
    assert script.refused == []
    assert script.failed == [caught.value.outcome] == [outcome_of_refusal(caught.value)]
    (end,) = script.failed
    assert (end.reason, end.exception, end.own_storage) == (Reason.BROKER_UNAVAILABLE, "NoBrokers", True)
    assert "Query 'main': The broker is away. " in end.message
    assert ".queryName('main')" in end.message
    assert ("checkpointLocation" in end.message) == (location is not None)
    assert OWN not in end.message  # it may hold a secret


def test_so_does_one_that_may_be_one_query_or_another() -> None:
    script = Script()
    script.start(Writer())
    script.cannot_name = True
    with pytest.raises(NotContinuedError):
        script.start(Writer("socket"))
    assert script.refused == []


def test_a_name_comes_again_with_its_location_alone_unless_each_start_has_a_checkpoint_of_its_own() -> None:
    script = Script(fails=False)
    script.start(Writer(), "orders", checkpointLocation=OWN)
    assert script.start(Writer(), "orders", checkpointLocation=f"file://{OWN}/") == f"orders in {LINEAGE}/orders"
    for other in ({"checkpointLocation": f"{OWN}-2"}, {}):
        with pytest.raises(QueryRefusedError, match=r"two queries are named 'orders', with different checkpoint"):
            script.start(Writer(), "orders", **other)
    script.empty = True
    script.start(Writer(), "events", checkpointLocation=OWN)
    assert script.start(Writer(), "events").startswith(f"events in {LINEAGE}/events.empty-start-")


def test_one_that_failed_and_comes_again_with_another_location_ends_the_driver_with_that_failure() -> None:
    """A script may make a folder for each try: the next process continues the query, by its name."""
    script = Script()
    script.start(Writer(), "orders", checkpointLocation=OWN)
    with pytest.raises(NotContinuedError) as caught:
        script.start(Writer(), "orders", checkpointLocation=f"{OWN}-2")
    assert (script.refused, script.failed) == ([], [caught.value.outcome])
    assert "give it the same checkpointLocation each time" in script.failed[0].message


def test_why_a_location_is_another_querys_ends_the_driver_and_is_not_asked_of_empty_starts() -> None:
    script = Script()
    script.why = "its checkpointLocation is that of query 'load-1'"
    with pytest.raises(QueryRefusedError, match=r"query 'load-2' started at .*: its checkpointLocation is that of"):
        script.start(Writer(), "load-2", checkpointLocation=OWN)
    assert script.refused == [Reason.QUERY_REFUSED]
    assert script.asked == [("load-2", OWN)]
    script.start(Writer())
    script.empty = True
    script.start(Writer(), "load-2", checkpointLocation=OWN)
    assert script.asked == [("load-2", OWN)]
