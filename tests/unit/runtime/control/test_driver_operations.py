"""What a driver does about built-in messages, with a Spark that does as it is told."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from tidegate_spark.contract.control_protocol import QueryAcknowledgement
from tidegate_spark.contract.protocol import DriverState, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_spark.control.driver.driver_operations import SparkOperations, snapshot_id
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.deadlines import MOST_AT_WORK
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import State
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.snapshots.service.service import SnapshotService
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, repository_in
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_operations import await_work
from tidegate_testing.memory_store import Buckets, Stored


@dataclass
class Office:
    """Snapshots that are taken when the test says so."""

    orders: dict[str, SnapshotOrder] = field(default_factory=dict)
    state: SnapshotState = SnapshotState.COPYING

    def give(self, orders: SnapshotOrders) -> None:
        self.orders.update((order.id, order) for order in orders.take)

    def reports(self) -> tuple[SnapshotReport, ...]:
        reason = Reason.BATCH_LOST if self.state is SnapshotState.FAILED else Reason.NONE
        return tuple(SnapshotReport(name, self.state, reason, "words") for name in self.orders)


@dataclass
class Spark:
    """A session."""

    reported: list[str] = field(default_factory=list)
    executors: list[str] = field(default_factory=lambda: ["driver", "1"])
    is_local: bool = False
    refuses: bool = False
    free: threading.Event | None = None
    """What it waits for before it clears its caches, or sets a level."""

    @property
    def sparkContext(self) -> "Spark":  # noqa: N802 - Spark's name
        return self

    @property
    def catalog(self) -> "Spark":
        return self

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        if self.free is not None:
            self.free.wait()
        if self.refuses:
            raise ValueError("no")
        self.reported.append(level)

    @property
    def _jsc(self) -> "Spark":
        return self

    def sc(self) -> "Spark":
        return self

    def isLocal(self) -> bool:  # noqa: N802 - Spark's name
        return self.is_local

    def getExecutorIds(self) -> "Spark":  # noqa: N802 - Spark's name
        assert not self.is_local
        return self

    def mkString(self, separator: str) -> str:  # noqa: N802 - Scala's name
        return separator.join(self.executors)

    def schedulerBackend(self) -> "Spark":  # noqa: N802 - Spark's name
        return self

    def updateExecutorsLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        self.reported.append(f"executors: {level}")

    def clearCache(self) -> None:  # noqa: N802 - Spark's name
        if self.free is not None:
            self.free.wait()
        if self.refuses:
            raise ValueError("no")
        self.reported.append("cleared")


@dataclass
class Holder:
    """A pauser."""

    wanted: bool = False
    holds: list[str] | None = None

    def want(self, paused: bool) -> None:
        self.wanted = paused

    def held(self) -> list[str] | None:
        return self.holds


class Driver:
    """A driver with two queries, of which ``one`` takes part."""

    def __init__(self, message_seconds: float = 60.0) -> None:
        self.progress = Progress(driver_config("app", "local:///main.py", Storage("s3://b/p")))
        self.progress.enter(DriverState.RUNNING)
        for name in ("one", "other"):
            self.progress.query_started(name)
            self.progress.query_committed(name, Commit(7, 0, 0.0, 0.0, 1, 0, 0, 1.0))
        self.office, self.spark, self.holder, self.clock = Office(), Spark(), Holder(), Clock()
        self.operations = SparkOperations(
            self.progress,
            cast(SnapshotService, self.office),
            1,
            is_open=lambda: True,
            inspection=lambda entry: None,
            message_seconds=message_seconds,
            clock=self.clock,
        )
        self.operations.asks("one")
        self.buckets = Buckets()

    def commit(self, query: str, batch: int) -> None:
        """Have a batch in Spark's logs, of which Spark has not told yet."""
        repository = repository_in(self.buckets)
        for directory in ("offsets", "commits"):
            repository.store.put(repository.lineage_key(1, query, directory, str(batch)), b"v1")

    def meet(self) -> None:
        self.operations.meet(cast(Any, self.spark), cast(Any, self.holder))

    def carry_out(self, kind: str, payload: str = "null", account: Account | None = None, **state: Any) -> Any:
        entry = Entry(3, id="uid-1", type=kind, payload=payload)
        return self.operations.carry_out(repository_in(self.buckets), entry, account or Account(3), State(**state))


ACKNOWLEDGED = Account(3, queries={"one": QueryAcknowledgement(6, 2, 2)})


def test_only_queries_that_run_and_take_part_are_asking() -> None:
    driver = Driver()
    driver.operations.asks("gone")
    assert driver.operations.asking() == {"one"}
    driver.progress.query_ended("one")
    assert driver.operations.asking() == frozenset()


def test_a_query_that_the_program_has_no_more_holds_the_log_for_a_month_and_a_day_of_this_process() -> None:
    driver = Driver()
    for name, position, day in (("renamed", 3, 0), ("one", 90, 31), ("ended", 95, 25)):
        offsets = f'v1\n{{}}\n{{"tidegate-control": {position}}}'.encode()
        driver.buckets.content.setdefault(BUCKET, {})[f"{PREFIX}/lineages/1/{name}/offsets/7"] = Stored(
            offsets, '"etag"', day * 86400.0
        )
    repository = repository_in(driver.buckets)
    assert driver.operations.oldest(repository) == 3
    driver.clock.now += 86000
    assert driver.operations.oldest(repository) == 3
    driver.clock.now += 400
    assert driver.operations.oldest(repository) == 90
    # Whenever the program starts it.
    driver.operations.asks("renamed")
    assert driver.operations.oldest(repository) == 3


def test_spark_is_told_when_there_is_one() -> None:
    driver = Driver()
    assert driver.carry_out("set-log-level", '{"level": "debug"}') is None
    driver.meet()
    assert driver.carry_out("set-log-level", '{"level": "debug"}').done
    assert driver.carry_out("clear-caches").done
    # The level as soon as there was a Spark, too.
    assert driver.spark.reported == [*["DEBUG", "executors: DEBUG"] * 2, "cleared"]


@pytest.mark.parametrize("kind", ["snapshot", "dump-state"])
def test_no_snapshot_is_taken_for_a_message_before_the_queries_of_a_process_have_started(kind: str) -> None:
    driver = Driver()
    for name in ("one", "other"):
        driver.progress.query_ended(name)
    assert driver.carry_out(kind) is None
    assert driver.office.orders == {}
    driver.progress.query_started("one")
    assert driver.carry_out(kind) is None
    driver.carry_out(kind, account=ACKNOWLEDGED)
    assert [order.exact for order in driver.office.orders.values()] == [{"one": 6}]


def test_a_level_from_before_is_set_again() -> None:
    driver = Driver()
    driver.operations.begin(State(log_level="WARN"))
    driver.meet()
    assert driver.spark.reported == ["WARN", "executors: WARN"]


def test_a_level_from_before_is_set_also_when_the_log_is_read_after_spark_has_started() -> None:
    driver = Driver()
    driver.meet()
    driver.operations.begin(State(log_level="WARN"))
    assert driver.spark.reported == ["WARN", "executors: WARN"]


def test_a_level_from_before_that_spark_refuses_keeps_nothing_else_from_being_in_force() -> None:
    driver = Driver()
    driver.meet()
    driver.spark.refuses = True
    driver.operations.begin(State(log_level="WARN"))
    assert driver.spark.reported == []


def test_executors_that_come_later_are_told_the_level_once() -> None:
    driver = Driver()
    driver.meet()
    driver.operations.log_level.notify_new_executors()
    assert driver.spark.reported == []
    driver.carry_out("set-log-level", '{"level": "debug"}')
    driver.operations.log_level.notify_new_executors()
    driver.spark.executors = ["driver", "2"]
    driver.operations.log_level.notify_new_executors()
    driver.operations.log_level.notify_new_executors()
    assert driver.spark.reported == ["DEBUG", "executors: DEBUG", "executors: DEBUG"]


def test_a_local_spark_is_not_asked_for_executors() -> None:
    driver = Driver()
    driver.spark.is_local = True
    driver.meet()
    assert driver.carry_out("set-log-level", '{"level": "info"}').done
    driver.operations.log_level.notify_new_executors()
    assert driver.spark.reported == ["INFO", "executors: INFO"]


def test_what_spark_refuses_is_told() -> None:
    driver = Driver()
    driver.spark.refuses = True
    driver.meet()
    done = driver.carry_out("clear-caches")
    assert (done.failed, done.reason, done.message) == (True, "SparkRefused", "ValueError: no")


def test_a_spark_that_hangs_is_given_up_in_its_time() -> None:
    driver = Driver(message_seconds=0.05)
    driver.spark.free = threading.Event()
    driver.meet()
    done = driver.carry_out("clear-caches")
    driver.spark.free.set()
    assert (done.done, done.failed, done.reason) == (True, True, "MessageTimedOut")
    assert done.message.startswith("Spark's part of clear-caches (message 3) took longer than 0.05 s")


def test_of_levels_that_were_given_up_the_newest_is_told_whichever_ends_last() -> None:
    """Also of one for which there was no place any more."""
    driver = Driver(message_seconds=0.05)
    driver.spark.free = threading.Event()
    driver.meet()
    levels = ("debug", "info", "warn", "error", "fatal")
    assert len(levels) > MOST_AT_WORK
    said = [driver.carry_out("set-log-level", f'{{"level": "{level}"}}') for level in levels]
    assert [account.reason for account in said] == ["MessageTimedOut"] * len(levels)
    driver.spark.free.set()
    await_work()
    # The first was on its way to Spark.
    assert driver.spark.reported == ["DEBUG", "executors: DEBUG", *["FATAL", "executors: FATAL"] * (MOST_AT_WORK - 1)]


def test_whoever_watches_the_driver_does_not_wait_for_a_level_that_hangs() -> None:
    driver = Driver(message_seconds=0.05)
    driver.meet()
    driver.spark.free = threading.Event()
    driver.carry_out("set-log-level", '{"level": "debug"}')
    driver.spark.executors = ["driver", "2"]
    driver.operations.log_level.notify_new_executors()
    assert driver.spark.reported == []
    driver.spark.free.set()
    await_work()


def test_a_level_from_before_that_hangs_is_given_up_in_its_time(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(message_seconds=0.05)
    driver.meet()
    driver.spark.free = threading.Event()
    driver.operations.begin(State(log_level="WARN"))
    assert "setting the log level from before in Spark took longer than 0.05 s" in caplog.text
    driver.spark.free.set()
    await_work()


def test_a_pause_is_done_when_every_query_is_held() -> None:
    driver = Driver()
    driver.operations.pause(wanted=True)
    assert driver.carry_out("pause", paused=True) is None
    driver.meet()
    assert driver.holder.wanted
    assert driver.carry_out("pause", paused=True) is None
    driver.holder.holds = ["one", "other"]
    driver.commit("one", 8)
    done = driver.carry_out("pause", paused=True)
    assert done.queries == {"one": QueryAcknowledgement(8, 1, 1), "other": QueryAcknowledgement(-1, 1, 1)}


def test_a_pause_fails_for_a_continuous_query_which_spark_cannot_hold() -> None:
    driver = Driver()
    driver.meet()
    driver.progress.query_triggers("other", continuous=True)
    driver.holder.holds = ["one"]
    done = driver.carry_out("pause", paused=True)
    assert (done.done, done.failed, done.reason) == (True, True, Reason.SPARK_REFUSED)
    assert "cannot hold a query with a continuous trigger: 'other'" in done.message


def test_a_pause_that_was_withdrawn_is_done() -> None:
    assert "later message" in Driver().carry_out("pause", paused=False).message


def test_a_snapshot_waits_for_the_batches_with_the_message_and_is_of_those() -> None:
    driver = Driver()
    assert driver.carry_out("snapshot") is None
    assert driver.office.orders == {}
    assert driver.carry_out("snapshot", account=ACKNOWLEDGED) is None
    assert driver.office.orders == {"control-uid-1": SnapshotOrder("control-uid-1", manual=True, exact={"one": 6})}
    driver.office.state = SnapshotState.READY
    done = driver.carry_out("snapshot", account=ACKNOWLEDGED)
    assert (done.done, done.results["snapshot"]) == (True, "control-uid-1")


def test_a_snapshot_of_a_paused_application_is_of_the_batches_at_which_it_is_held() -> None:
    driver = Driver()
    assert driver.carry_out("snapshot", paused=True) is None
    assert driver.office.orders["control-uid-1"].exact == {}


def test_a_pause_behind_a_snapshot_does_not_change_of_which_batches_it_is() -> None:
    driver = Driver()
    assert driver.carry_out("snapshot", account=ACKNOWLEDGED, paused=True) is None
    assert driver.office.orders["control-uid-1"].exact == {"one": 6}


@pytest.mark.parametrize(
    ("kind", "account", "paused", "awaited"),
    [
        ("ping", Account(3), False, True),
        ("ping", Account(3), True, True),
        ("ping", ACKNOWLEDGED, False, False),
        ("snapshot", Account(3), False, True),
        ("snapshot", Account(3), True, False),
        ("dump-state", Account(3), False, True),
        ("dump-state", ACKNOWLEDGED, False, False),
        ("clear-caches", Account(3), False, False),
        ("pause", Account(3), False, False),
        ("set-log-level", Account(3), False, False),
    ],
)
def test_what_comes_into_force_with_batches_awaits_those_of_all_queries_that_take_part(
    kind: str, account: Account, paused: bool, awaited: bool
) -> None:
    assert Driver().operations.awaits_batch(Entry(3, id="uid-1", type=kind), account, State(paused=paused)) is awaited


def test_where_no_query_takes_part_no_batch_is_awaited_once_the_queries_run() -> None:
    driver = Driver()
    driver.operations.asks_no_more("one")
    for kind in ("ping", "snapshot"):
        assert not driver.operations.awaits_batch(Entry(3, id="uid-1", type=kind), Account(3), State())
    driver.operations.is_open = lambda: False
    for kind in ("ping", "snapshot"):
        assert driver.operations.awaits_batch(Entry(3, id="uid-1", type=kind), Account(3), State())


def test_a_snapshot_that_cannot_be_had_fails_its_message() -> None:
    driver = Driver()
    driver.office.state = SnapshotState.FAILED
    done = driver.carry_out("snapshot", account=ACKNOWLEDGED)
    assert (done.failed, done.reason) == (True, "BatchLost")


def test_a_dump_is_such_a_snapshot_and_says_in_which_format() -> None:
    driver = Driver()
    driver.office.state = SnapshotState.READY
    assert driver.carry_out("dump-state", '{"format": "CSV"}', ACKNOWLEDGED).results["format"] == "CSV"
    assert driver.carry_out("dump-state", account=ACKNOWLEDGED).results["format"] == "JSONLines"


@pytest.mark.parametrize("name", ["uid-1", "0d4c7f1e-9a51-4d3f-8f07-0f3a2f6f0c11", "order 1/Ü", "x" * 200])
def test_a_messages_snapshot_has_an_id_of_its_own(name: str) -> None:
    made = snapshot_id(Entry(1, id=name))
    assert made == snapshot_id(replace(Entry(2), id=name))
    assert len(made) <= 63
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_an_event_that_is_sent_again_when_it_is_forgotten_has_a_snapshot_of_its_own() -> None:
    first = Entry(1, id="/test#1", origin="rabbitmq:control")
    assert snapshot_id(first) == snapshot_id(first) != snapshot_id(replace(first, sequence=9))
