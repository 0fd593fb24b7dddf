"""Whatever a script asks a query to write to, in a rehearsal Spark is asked for nothing but noop. Without a JVM."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceRegistration, DataSourceStreamReader
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tidegate_spark.rehearsal import sink_suppression

Call = dict[str, Any]


class Writer(DataStreamWriter):
    """A writer that no session stands behind."""

    def __init__(self) -> None:
        """Make it of nothing."""


class Session:
    """A session that no JVM stands behind."""

    @property
    def dataSource(self) -> DataSourceRegistration:  # noqa: N802 - Spark's name
        """Return what registers sources."""
        return DataSourceRegistration(self)  # type: ignore[arg-type] # that is the point


class Reader(DataStreamReader):
    """A reader that no session stands behind."""

    def __init__(self) -> None:
        """Make it of nothing."""
        self._spark = Session()  # type: ignore[assignment] # likewise


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What reaches Spark, whose classes are as they were after the test."""
    made: list[Call] = []

    def start(  # noqa: PLR0917 - Spark's signature
        writer: DataStreamWriter,
        path: Any = None,
        format: Any = None,  # noqa: A002 - Spark's name
        outputMode: Any = None,  # noqa: N803 - Spark's name
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        queryName: Any = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> str:
        made.append(
            {"path": path, "format": format, "mode": outputMode, "by": partitionBy, "name": queryName, **options}
        )
        return "query"

    def foreach(writer: DataStreamWriter, function: Any) -> DataStreamWriter:
        made.append({"rows": function})
        return writer

    def option(reader: DataStreamReader, key: str, value: Any) -> DataStreamReader:
        made.append({key: value})
        return reader

    def options(reader: DataStreamReader, **given: Any) -> DataStreamReader:
        made.append(given)
        return reader

    monkeypatch.setattr(DataStreamWriter, "start", start)
    monkeypatch.setattr(DataStreamWriter, "toTable", lambda *given, **options: made.append({"table": given}))
    monkeypatch.setattr(DataStreamReader, "option", option)
    monkeypatch.setattr(DataStreamReader, "options", options)
    monkeypatch.setattr(DataStreamReader, "format", lambda reader, name: made.append({"format": name}))
    monkeypatch.setattr(DataSourceRegistration, "register", lambda self, source: made.append({"source": source}))
    monkeypatch.setattr(DataStreamWriter, "foreach", foreach)
    sink_suppression.mute(
        lambda writer: getattr(writer, "set_format", "parquet"), lambda writer: getattr(writer, "real_time", False)
    )
    return made


NOTHING = {"path": None, "format": "noop", "mode": None, "by": None, "name": None}
STARTS: dict[str, tuple[Callable[[Writer], object], Call]] = {
    "what was set before": (lambda w: w.start(), NOTHING),
    "a path": (lambda w: w.start("/out"), NOTHING),
    "a path by name": (lambda w: w.start(path="/out", format="parquet", partitionBy="day"), NOTHING),
    "everything in its place": (
        lambda w: w.start("/out", "json", "append", ["day"], "out"),
        {**NOTHING, "mode": "append", "name": "out"},
    ),
    "options": (lambda w: w.start(topic="orders", Path="/out"), {**NOTHING, "topic": "orders"}),
    "a table": (lambda w: w.toTable("orders"), NOTHING),
    "a table with everything": (
        lambda w: w.toTable("orders", "delta", "append", ["day"], "out", path="/out"),
        {**NOTHING, "mode": "append", "name": "out"},
    ),
}


@pytest.mark.parametrize(("start", "expected"), STARTS.values(), ids=STARTS.keys())
def test_no_way_to_start_a_query_leads_to_its_sink(
    calls: list[Call], start: Callable[[Writer], object], expected: Call
) -> None:
    assert start(Writer()) == "query"
    assert calls == [expected]


def test_the_sink_memory_which_stays_in_the_driver_is_left_to_the_script(calls: list[Call]) -> None:
    set_before = Writer()
    set_before.set_format = "memory"  # type: ignore[attr-defined] # what stands for the JVM's field
    set_before.start(queryName="newest")
    Writer().start(format="memory", queryName="counts", outputMode="complete")
    assert [(call["format"], call["name"]) for call in calls] == [(None, "newest"), ("memory", "counts")]
    calls.clear()
    set_before.toTable("orders")
    assert calls == [NOTHING]


@pytest.mark.parametrize("sink", ["kafka", "console", "foreach"])
def test_in_real_time_mode_which_has_no_noop_each_row_is_thrown_away(calls: list[Call], sink: str) -> None:
    set_before = Writer()
    set_before.real_time = True  # type: ignore[attr-defined] # what stands for the JVM's field
    set_before.start(format=sink, outputMode="update", queryName="alerts", topic="alerts")
    assert calls.pop(0)["rows"](("a row",)) is None
    assert calls == [{**NOTHING, "format": None, "mode": "update", "name": "alerts", "topic": "alerts"}]


def test_a_sink_that_real_time_mode_does_not_have_is_left_to_spark_to_refuse(calls: list[Call]) -> None:
    set_before = Writer()
    set_before.real_time = True  # type: ignore[attr-defined] # likewise
    set_before.start("/out", "parquet")
    assert calls == [NOTHING]


def test_a_name_of_a_table_that_is_none_is_refused_as_spark_does(calls: list[Call]) -> None:
    with pytest.raises(TypeError, match="tableName"):
        Writer().toTable(3)  # type: ignore[arg-type] # that is the point
    assert calls == []


def test_no_consumer_group_of_the_applications_is_used(calls: list[Call]) -> None:
    Reader().option("kafka.group.id", "orders").option("subscribe", "orders")
    Reader().options(**{"Kafka.Group.Id": "orders", "subscribe": "orders"})
    group = "orders-rehearsal"
    assert calls == [
        {"kafka.group.id": group},
        {"subscribe": "orders"},
        {"Kafka.Group.Id": group, "subscribe": "orders"},
    ]


def test_no_source_of_files_cleans_up(calls: list[Call]) -> None:
    Reader().option("cleanSource", "delete").option("sourceArchiveDir", "/archive")
    Reader().options(cleansource="archive", maxFilesPerTrigger=1)
    assert calls == [
        {"cleanSource": "off"},
        {"sourceArchiveDir": "/archive"},
        {"cleansource": "off", "maxFilesPerTrigger": 1},
    ]


class Queue(DataSourceStreamReader):
    """Reads a queue, and removes there what was read."""

    def __init__(self) -> None:
        """Make it; nothing is removed yet."""
        self.removed: list[Any] = []

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where it begins."""
        return {"at": 3}

    def read(self, partition: Any) -> Any:
        """Return no rows."""
        return iter(())

    def commit(self, end: Any) -> None:
        """Remove what was read."""
        self.removed.append(end)


class Queued(DataSource):
    """A source that has its class's name."""

    def streamReader(self, schema: Any) -> Queue:  # noqa: N802 - Spark's name
        """Return what reads."""
        return Queue()


def sent(thing: Any) -> Any:
    """Return something as it is in another process."""
    return cloudpickle.loads(cloudpickle.dumps(thing))  # type: ignore[no-untyped-call] # PySpark's copy has no types


def test_no_source_in_python_is_told_what_was_committed(calls: list[Call]) -> None:
    DataSourceRegistration.register(object(), Queued)  # type: ignore[arg-type] # no session stands behind it
    [registered] = [call["source"] for call in calls]
    assert registered.name() == "Queued"
    reader = sent(registered)({}).streamReader("value long")
    reader.commit({"at": 4})
    assert (reader.initialOffset(), reader.removed) == ({"at": 3}, [])
    elsewhere = sent(reader)
    elsewhere.commit({"at": 5})
    assert elsewhere.removed == []


@dataclass(frozen=True)
class Frozen(DataSourceStreamReader):
    """Has nothing set that it does not set itself."""

    at: int = 3

    def read(self, partition: Any) -> Any:
        """Return no rows."""
        return iter(())

    def commit(self, end: Any) -> None:
        """Remove what was read."""
        raise AssertionError(end)


class FrozenSource(DataSource):
    """Reads with it."""

    def streamReader(self, schema: Any) -> Frozen:  # noqa: N802 - Spark's name
        """Return what reads."""
        return Frozen()


def test_a_reader_whose_class_lets_nothing_be_set_is_no_failure_of_the_version(calls: list[Call]) -> None:
    DataSourceRegistration.register(object(), FrozenSource)  # type: ignore[arg-type] # no session stands behind it
    [registered] = [call["source"] for call in calls]
    sent(registered)({}).streamReader("value long").commit({"at": 4})


PACKAGE = """
from pyspark.sql.datasource import DataSource, DataSourceStreamReader

class Reader(DataSourceStreamReader):
    def read(self, partition):
        return iter(())

    def commit(self, end):
        raise AssertionError(end)

class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "OrderQueue"

    def streamReader(self, schema):
        return Reader()
"""
"""Of a package that the script need not import: Spark looks for such by itself."""


def test_a_source_in_python_that_spark_finds_by_itself_is_not_told_either(
    calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark_orders_of_this_test.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    Reader().format("orderqueue")
    registered, asked = calls
    # Spark takes no other source under the name of one that it has found, and the name that it is told has to be its.
    assert registered["source"].name() == asked["format"] == "OrderQueue-rehearsal"
    sent(registered["source"])({}).streamReader("value long").commit({"at": 4})


@pytest.mark.parametrize("name", ["kafka", "json", "orders_of_the_scripts_own"])
def test_every_other_source_is_asked_for_by_its_name(calls: list[Call], name: str) -> None:
    Reader().format(name)
    assert calls == [{"format": name}]


def test_a_package_that_cannot_be_imported_is_no_failure_of_the_version(
    calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark_broken_in_this_test.py").write_text("raise RuntimeError('no such library')")
    monkeypatch.syspath_prepend(str(tmp_path))
    Reader().format("orderqueue")
    assert calls == [{"format": "orderqueue"}]
