"""What is reported of queries that code in the JVM starts. Spark's map of running queries is a stand-in."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tidegate_spark.contract.protocol import DriverState, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.monitoring.jvm_queries import PATIENCE_SECONDS, JvmQueries
from tidegate_spark.monitoring.watch import cut_with_script
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.queries import Queries
from tidegate_testing.driver_process import driver_config


class JavaObject:
    """What Py4J shows of a Java object that is a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self._text


class RunningQueries(dict[JavaObject, Any]):
    """Spark's map, id -> what runs the query, as Py4J shows it."""

    def keySet(self) -> JavaObject:  # noqa: N802 - Java's name
        return JavaObject(f"[{', '.join(key.toString() for key in self)}]")


class Spark:
    """A driver whose script runs, and the queries of its JVM."""

    def __init__(self) -> None:
        self.progress = Progress(driver_config("orders", "local:///main.py", Storage("s3://streams/apps")))
        self.progress.enter(DriverState.RUNNING)
        self.queries = Queries("s3a://b/p", 2, self.progress)
        self.running, self.asked = RunningQueries(), 0
        self.context = SimpleNamespace(_jsc=object())
        shared = SimpleNamespace(activeStreamingQueries=lambda: self.running)
        session: Any = SimpleNamespace(
            sparkContext=self.context, _jsparkSession=SimpleNamespace(sharedState=lambda: shared)
        )
        self.watched = JvmQueries(session, self.queries, self.progress)
        self.queries.elsewhere = self.watched.running
        self._now = 0.0

    def runs(self, name: str | None, run: int) -> None:
        """Have a run under way; of a query of the same name, it is the next one."""
        self.ends(name)
        key = JavaObject(str(UUID(int=sum(map(ord, name or "")))))

        def name_of() -> str | None:
            self.asked += 1
            return name

        self.running[key] = SimpleNamespace(name=name_of, runId=lambda: JavaObject(str(UUID(int=run))))

    def ends(self, name: str | None) -> None:
        for key in [key for key, each in self.running.items() if each.name() == name]:
            del self.running[key]

    def script_starts(self, name: str) -> None:
        """Have the script call ``start()``, which has not returned."""
        self.queries._entries[name] = Entry(name, "main.py:1", named=True)

    def script_started(self, name: str, run: int) -> None:
        """Have it returned."""
        query: Any = SimpleNamespace(runId=UUID(int=run), isActive=True)
        self.queries._entries[name] = Entry(name, "main.py:1", named=True, query=query)

    def go_on(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self._now += 1.0
            self.watched.check(self._now)

    @property
    def noticed(self) -> list[tuple[str, str]]:
        return [(notice.reason, notice.message.split()[1]) for notice in self.progress.report().notices]

    @property
    def fault(self) -> Reason | None:
        fault = self.progress.report().fault
        return fault.reason if fault is not None else None


@pytest.fixture
def spark() -> Spark:
    return Spark()


def test_a_query_of_the_jvm_is_noticed_at_once_and_is_a_fault_while_the_script_has_none(spark: Spark) -> None:
    spark.runs("loads", 1)
    spark.go_on(2)
    assert spark.noticed == [(Reason.SCRIPT_UNSUPPORTED, "'loads'")]
    assert spark.fault is None
    spark.go_on(PATIENCE_SECONDS)
    assert spark.fault is Reason.SCRIPT_UNSUPPORTED
    assert len(spark.noticed) == 1


@pytest.mark.parametrize("how", ["its end", "a query of the script"])
def test_the_fault_ends_with(spark: Spark, how: str) -> None:
    spark.runs("loads", 1)
    spark.go_on(PATIENCE_SECONDS + 2)
    assert spark.fault is Reason.SCRIPT_UNSUPPORTED
    if how == "its end":
        spark.ends("loads")
    else:
        spark.runs("counts", 2)
        spark.script_started("counts", 2)
    spark.go_on(1)
    assert spark.fault is None


def test_one_without_a_name_goes_by_its_id_and_one_beside_a_query_of_the_script_is_no_fault(spark: Spark) -> None:
    spark.runs("counts", 1)
    spark.script_started("counts", 1)
    spark.runs(None, 2)
    spark.go_on(2 * PATIENCE_SECONDS)
    assert spark.noticed == [(Reason.SCRIPT_UNSUPPORTED, f"'{UUID(int=0)}'")]
    assert spark.fault is None


def test_a_query_of_the_script_is_none_of_the_jvm_from_its_start_to_its_next_run(spark: Spark) -> None:
    spark.script_starts("counts")
    spark.runs("counts", 1)
    spark.go_on(3)
    spark.script_started("counts", 1)
    spark.go_on(3)
    spark.script_starts("counts")
    spark.go_on(3)
    spark.runs("counts", 2)
    spark.go_on(3)
    spark.script_started("counts", 2)
    spark.go_on(PATIENCE_SECONDS)
    assert spark.noticed == []
    assert spark.queries.elsewhere() == ()


def test_a_run_that_the_next_one_replaces_during_a_look_is_not_reported(spark: Spark) -> None:
    spark.script_started("counts", 2)
    spark.runs("counts", 1)  # as it was when Spark was asked
    spark.go_on(1)
    spark.runs("counts", 2)
    spark.go_on(3)
    assert spark.noticed == []


def test_about_a_query_of_the_script_spark_is_asked_once(spark: Spark) -> None:
    spark.runs("counts", 1)
    spark.script_started("counts", 1)
    spark.go_on(1)
    asked = spark.asked
    spark.go_on(600)
    assert spark.asked == asked


def test_one_of_the_name_of_a_query_that_the_script_has_ended_is_of_the_jvm(spark: Spark) -> None:
    spark.script_started("counts", 1)
    spark.runs("counts", 7)
    spark.go_on(2)
    assert spark.noticed == [(Reason.SCRIPT_UNSUPPORTED, "'counts'")]


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "with the context stopped"])
def test_a_script_that_ends_while_the_jvm_runs_a_query_is_not_completed(spark: Spark, stopped: bool) -> None:
    spark.runs("loads", 1)
    assert spark.queries.elsewhere() == ("loads",)
    if stopped:
        spark.context._jsc = None
        spark.running.clear()
        spark.go_on(2)
    outcome = cut_with_script(spark.queries)
    assert outcome is not None
    assert outcome.reason is Reason.SCRIPT_UNSUPPORTED
    assert "Query 'loads'" in outcome.message
    assert "still ran when the script ended" in outcome.message


def test_one_that_has_ended_before_the_script_does_not_count_at_its_end(spark: Spark) -> None:
    spark.runs("loads", 1)
    spark.go_on(5)
    spark.ends("loads")
    assert cut_with_script(spark.queries) is None
