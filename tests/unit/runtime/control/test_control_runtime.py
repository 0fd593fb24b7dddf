"""A query that starts is known to take part or not, and is refused where Spark would fail it. Without a JVM."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.contract.control_protocol import (
    LINE_VARIABLE,
    ChannelSettings,
    ControlReport,
    InboxSettings,
    MessageReport,
    MessageState,
    RabbitSettings,
)
from tidegate_spark.contract.protocol import DriverState, Storage
from tidegate_spark.contract.rehearsal_protocol import Rehearsal
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.driver import control_runtime
from tidegate_spark.control.driver.control_runtime import Control
from tidegate_spark.control.worker import models, program
from tidegate_spark.control.worker.driver_client import ADDRESS_PROPERTY, QUERY_PROPERTY, TOKEN_PROPERTY
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.process.environment import Environment, inherited_variables
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.queries.queries import Queries
from tidegate_spark.snapshots.service.service import SnapshotService
from tidegate_testing.channels import event
from tidegate_testing.control_log import BUCKET, PREFIX, message, repository_in
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets

OLD, NEW = 'v1\n{}\n{"data": 7}', 'v1\n{}\n{"data": 7}\n{"tidegate-control": 4}'


class Session:
    """A session that knows its sources, and the properties of the thread."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.properties: dict[str, str | None] = {}
        self.dataSource = self.sparkContext = self.streams = self

    def register(self, source: Any) -> None:
        self.sources.append(source.name())

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 - Spark's name
        return self.properties.get(key)

    def setLocalProperty(self, key: str, value: str | None) -> None:  # noqa: N802 - Spark's name
        self.properties[key] = value


class World:
    """A driver with a session, whose storage is in memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
        self.buckets, self.session = Buckets(), Session()
        config = driver_config("orders", "local:///main.py", Storage(f"s3://{BUCKET}/{PREFIX}"), **fields)
        environment = Environment.read({"TIDEGATE_WORK_DIRECTORY": str(folder), "TIDEGATE_BIND_ADDRESS": "127.0.0.1"})
        self.progress = Progress(config)
        queries = Queries("s3a://bucket", 2, self.progress)
        monkeypatch.setattr(control_runtime, "connector", lambda config, directory: lambda: repository_in(self.buckets))
        before = dict(os.environ)
        service = cast(SnapshotService, None)
        self.control = Control(config, environment, progress=self.progress, queries=queries, snapshots=service)
        self.control.meet(cast(Any, self.session))
        assert dict(os.environ) == before, "a JVM that was started ahead has not what is added now"

    def logged(self, text: str, batch: int = 3, query: str = "main") -> None:
        for log in ("offsets", "commits"):
            key = f"{PREFIX}/lineages/1/{query}/{log}/{batch}"
            self.buckets.write(BUCKET, key, text.encode() if log == "offsets" else b"v1\n{}")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(tmp_path, monkeypatch)
    program.hosted_by(None)


def writer(*sources: str, trigger: str = "ProcessingTimeTrigger") -> DataStreamWriter:
    """Return what starts a query with these sources."""

    class Leaves:
        """A plan."""

        def __getattr__(self, name: str) -> Any:
            return lambda: self

        def size(self) -> int:
            return len(sources)

        def apply(self, number: int) -> str:
            return f"StreamingRelationV2 {sources[number]}"

    class Frame:
        """A DataFrame."""

        _jdf = Leaves()

    made = DataStreamWriter.__new__(DataStreamWriter)
    made._df = cast(Any, Frame())
    kind = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: trigger))
    field = SimpleNamespace(setAccessible=lambda on: None, get=lambda of: kind)
    made._jwrite = cast(Any, SimpleNamespace(getClass=lambda: SimpleNamespace(getDeclaredField=lambda name: field)))
    return made


def test_a_check_that_is_repeated_has_the_time_of_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the last attempt ends with the message's time, when nobody waits for it any more."""
    given: list[float] = []

    def within(seconds: float) -> models.IsOver:
        given.append(seconds)
        return lambda: False

    monkeypatch.setattr(models, "within", within)
    check = world.control._inspection(message("reload-model", {"name": "a", "uri": "s3://other/a", "sha256": "0" * 64}))
    assert check is not None
    assert [check().reason for _ in range(2)] == ["ModelNotAllowed"] * 2
    assert given == [60.0]


def test_a_query_of_a_program_that_asks_for_nothing_is_not_looked_at(world: World) -> None:
    assert world.control.before_query(cast(DataStreamWriter, None), "main") == ""
    with world.control.around_start("main"):
        assert world.session.properties == {QUERY_PROPERTY: "main"}


def test_a_query_that_takes_part_tells_its_tasks_where_to_ask(world: World, tmp_path: Path) -> None:
    world.control.serve(cast(Any, world.session))
    assert world.session.sources == ["tidegate-control"]
    assert world.control.before_query(writer("kafka", "tidegate-control"), "main") == ""
    assert world.control.before_query(writer("kafka"), "other") == ""
    with world.control.around_start("main"):
        assert world.session.properties.keys() == {QUERY_PROPERTY, ADDRESS_PROPERTY, TOKEN_PROPERTY}
        reported = (tmp_path / "control-line.json").read_text()
        assert str(world.session.properties[TOKEN_PROPERTY]) in reported
    assert set(world.session.properties.values()) == {None}
    with world.control.around_start("other"):
        assert world.session.properties[ADDRESS_PROPERTY] is None
    assert (tmp_path / "control-line.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", ["s3a://tidegate-control/orders", "/data/tidegate-control", "tidegate-control"])
def test_a_query_of_files_in_a_folder_of_the_sources_name_does_not_take_part_for_that(world: World, path: str) -> None:
    """It would never acknowledge a message, or be refused for a checkpoint without a position."""
    world.control.serve(cast(Any, world.session))
    world.logged('v1\n{}\n{"logOffset": 3}')
    assert world.control.before_query(writer(f"FileSource[{path}]"), "main") == ""
    with world.control.around_start("main"):
        assert world.session.properties == {QUERY_PROPERTY: "main"}
    assert "listens to control messages" in world.control.before_query(writer("kafka", "tidegate-control"), "main")


def test_processes_beside_the_driver_are_told_of_the_file_before_there_is_a_driver(
    world: World, tmp_path: Path
) -> None:
    config = driver_config("orders", "local:///main.py", Storage(f"s3://{BUCKET}/{PREFIX}"))
    its = inherited_variables(config, {"TIDEGATE_WORK_DIRECTORY": str(tmp_path)}, "python3")
    world.control.serve(cast(Any, world.session))
    assert Path(its[LINE_VARIABLE]).exists()


def test_messages_are_not_logged_before_the_first_batch_of_each_query_that_takes_part(world: World) -> None:
    control = world.control
    control.serve(cast(Any, world.session))
    world.progress.enter(DriverState.RUNNING)
    assert not control._operations.is_open()
    for name, source in (("main", "tidegate-control"), ("other", "kafka")):
        assert control.before_query(writer(source), name) == ""
        world.progress.query_started(name, -1)
    assert not control._operations.is_open()
    world.progress.query_committed("main", Commit(0, 0, 0.0, 0.0, 10, 0, 0, 1000.0, control=0))
    assert control._operations.is_open()


def test_messages_wait_for_the_queries_that_took_part_in_the_process_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one would be done without the second query, while that one is on its way."""
    clock = [100.0]
    monkeypatch.setattr("tidegate_spark.control.driver.control_runtime.time.monotonic", lambda: clock[0])
    control = world.control
    control.serve(cast(Any, world.session))
    for query in ("main", "second"):
        world.logged(NEW, query=query)
    world.logged(OLD, query="plain")
    world.progress.enter(DriverState.RUNNING)
    assert control.before_query(writer("tidegate-control"), "main") == ""
    world.progress.query_started("main", 3)
    assert not control._operations.is_open()
    assert control.before_query(writer("tidegate-control"), "second") == ""
    world.progress.query_started("second", 3)
    assert control._operations.is_open()


def test_messages_do_not_wait_for_ever_for_a_query_that_the_program_has_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tidegate_spark.control.driver.control_runtime.time.monotonic", lambda: clock[0])
    world.control.serve(cast(Any, world.session))
    world.logged(NEW)
    world.logged(NEW, query="gone")
    world.progress.enter(DriverState.RUNNING)
    assert world.control.before_query(writer("tidegate-control"), "main") == ""
    world.progress.query_started("main", 3)
    assert not world.control._operations.is_open()
    clock[0] += control_runtime.OPEN_SECONDS
    assert world.control._operations.is_open()


def test_a_query_with_a_checkpoint_of_before_is_refused(world: World) -> None:
    world.control.serve(cast(Any, world.session))
    world.logged(OLD)
    assert "its checkpoint is older" in world.control.before_query(writer("tidegate-control"), "main")
    assert world.control.before_query(writer("kafka"), "main") == ""
    world.logged('v2\n{}\norders:{"0": 7}', query="named")
    assert world.control.before_query(writer("tidegate-control"), "named") == ""


def test_a_query_in_real_time_mode_cannot_take_part_and_is_told_what_to_do(world: World) -> None:
    world.control.serve(cast(Any, world.session))
    why = world.control.before_query(writer("kafka", "tidegate-control", trigger="RealTimeTrigger"), "main")
    assert "real-time mode" in why
    assert "trigger(processingTime=…)" in why
    assert world.control.before_query(writer("kafka", trigger="RealTimeTrigger"), "main") == ""


def test_a_query_that_goes_on_is_known_by_its_position(world: World) -> None:
    world.control.serve(cast(Any, world.session))
    world.logged(NEW)
    assert world.control.before_query(writer("tidegate-control"), "main") == ""
    assert world.control.service.report().positions == {"main": 4}
    world.progress.query_committed("main", Commit(4, 0, 0.0, 0.0, 1, 0, 0, 1.0, control=4))
    assert world.control.service.report().positions == {"main": 4}


def test_a_driver_is_ready_while_it_is_paused(world: World) -> None:
    world.progress.enter(DriverState.RUNNING)
    world.progress.query_started("main")
    assert not world.progress.ready
    world.progress.control = lambda: ControlReport(paused=True)
    assert world.progress.ready


def test_an_inbox_is_read_in_the_applications_own_storage_and_by_no_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ChannelSettings(storage=InboxSettings())
    world = World(tmp_path, monkeypatch, channel=settings)
    intake = world.control._intake
    assert intake is not None
    channel = intake._broker.make()
    world.buckets.write(BUCKET, f"{PREFIX}/control/inbox/mine.json", event("1"))
    channel.open({})
    assert ([message.body for message in channel.receive(0).messages], intake._broker.kind) == ([event("1")], "Storage")
    channel.close()
    rehearsal = Rehearsal(batches=1, timeout_seconds=1)
    assert World(tmp_path, monkeypatch, channel=settings, rehearsal=rehearsal).control._intake is None
    program.hosted_by(None)


def test_a_sender_is_told_of_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = ChannelSettings(rabbitmq=RabbitSettings("amqp://broker", "control", "replies"))
    control = World(tmp_path, monkeypatch, channel=channel).control
    control.notify(CollectorRegistry(), Secrets(["correct horse"]))
    failed = MessageReport("/me#1", MessageState.FAILED, 1, "HandlerFailed", "login with correct horse failed")
    assert control._intake is not None
    reported = control._intake._broker.reply_of(Ended(Entry(1, id="/me#1"), failed))
    assert b"login with" in reported.body
    assert b"horse" not in reported.body
    program.hosted_by(None)
