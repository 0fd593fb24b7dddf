"""What a worker is told of a batch it is told once, and what it makes of it the driver comes to know."""

import hashlib
import json
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tidegate_spark import control
from tidegate_spark.contract.control_protocol import (
    LONGEST_ERROR,
    ControlOrder,
    ControlOrders,
    ControlSettings,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.driver.driver_server import Answers, Port
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.handlers import FAIL, Declared, Handler, Message
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control.worker import program
from tidegate_spark.control.worker.driver_client import APPLIED, STATE, Caller, ControlError, Line, StoreError
from tidegate_spark.control.worker.worker import Worker
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.offsets import Positions
from tidegate_spark.control_log.reducer import State
from tidegate_spark.process.faults.faults import Link, classify
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, repository_in
from tidegate_testing.fake_operations import BY_NAME, await_work, call_by_name
from tidegate_testing.memory_store import Buckets


class OneQuery:
    """A driver with query ``main``, and nothing that it has to do itself."""

    def is_open(self) -> bool:
        return True

    def inspection(self, entry: Entry) -> None:
        return None

    def asking(self) -> frozenset[str]:
        return frozenset({"main"})

    def pause(self, wanted: bool) -> None:
        """Nothing is to be held."""

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        return None

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        return False

    def begin(self, state: State) -> None:
        """Nothing is from before."""

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        return None

    def oldest(self, repository: SnapshotRepository) -> int | None:
        return None


@dataclass
class Application:
    """Query ``main``, whose offsets are written as Spark writes them."""

    directory: Path
    declared: Declared = field(default_factory=Declared)
    buckets: Buckets = field(default_factory=Buckets)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    batch: int = -1
    settings: ControlSettings = field(default_factory=ControlSettings)

    def __post_init__(self) -> None:
        self.service = MessageService(lambda: repository_in(self.buckets), OneQuery(), self.declared, Clock())
        self.service.check()
        place = Storage(f"s3://{BUCKET}/{PREFIX}")
        self.answers = Answers(
            self.service,
            self.declared,
            Positions(1),
            lambda: repository_in(self.buckets),
            place,
            settings=self.settings,
        )

    def worker(self, name: str = "host/1") -> Worker:
        def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
            self.asked.append((path, body))
            return self.answers.answer(path, body)

        return Worker(name, ask, self.directory)

    def short(self) -> None:
        """Give each message little time from now on."""
        self.answers._settings = to_json(ControlSettings(message_timeout_seconds=0.05))

    def send(self, name: str, kind: str, payload: str = "null") -> None:
        self.declared.types.setdefault(kind, None)
        self.service.give(ControlOrders((ControlOrder(name, kind, payload),)))
        self.service.check()

    def plan(self) -> int:
        self.batch += 1
        text = f'v1\n{{"batchWatermarkMs":0}}\n{{"data": 7}}\n{{"tidegate-control": {self.service.position()}}}'
        self.buckets.write(BUCKET, f"{PREFIX}/lineages/1/main/offsets/{self.batch}", text.encode())
        return self.batch

    def plan_of(self, query: str, batch: int, position: int) -> int:
        text = f'v1\n{{}}\n{{"tidegate-control": {position}}}'
        self.buckets.write(BUCKET, f"{PREFIX}/lineages/1/{query}/offsets/{batch}", text.encode())
        return batch

    def commit(self) -> None:
        self.service.committed("main", self.batch, self.service.position())
        self.service.check()

    def said(self, name: str) -> MessageReport:
        return next(report for report in self.service.report().messages if report.id == name)


@pytest.fixture
def app(tmp_path: Path) -> Application:
    return Application(tmp_path / "models")


def test_what_is_in_force_is_asked_for_once_a_batch(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": 4}')
    worker, batch = app.worker(), app.plan()
    assert [worker.current("main", batch).get("limit", 1.0, float) for _ in range(3)] == [4.0, 4.0, 4.0]
    assert [path for path, _ in app.asked] == [STATE, APPLIED]
    app.commit()
    said = app.said("x")
    assert (said.state, said.queries["main"].applied, said.queries["main"].ran) == (MessageState.DONE, 1, 1)


def test_every_worker_sees_the_same_in_one_batch_and_again_when_it_is_run_again(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": 4}')
    batch = app.plan()
    app.send("y", "reload-config", '{"limit": 5}')
    assert app.worker("a").current("main", batch).config == {"limit": 4}
    assert app.worker("b").current("main", batch).config == {"limit": 4}
    later = app.plan()
    assert app.worker("c").current("main", later).config == {"limit": 5}
    assert app.worker("d").current("main", batch).config == {"limit": 4}


def test_a_batch_at_the_same_position_needs_no_state_again(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": 4}')
    worker = app.worker()
    assert worker.current("main", app.plan()).get("limit") == 4
    assert worker.current("main", app.plan()).get("limit") == 4
    assert app.answers.answer(STATE, app.asked[2][1])["state"] is None


def test_a_worker_with_nothing_to_take_in_need_not_say_that_it_has(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": 4}')
    worker = app.worker()
    worker.current("main", app.plan())
    app.commit()
    batch = app.plan()
    assert worker.current("main", batch).get("limit") == 4
    assert [path for path, _ in app.asked] == [STATE, APPLIED, STATE]
    assert app.service.workers.close("main", batch).workers == {"host/1": {}}


def test_what_is_wrong_in_such_a_batch_is_told_of_all_the_same(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": "much"}')
    worker = app.worker()
    worker.current("main", app.plan())
    batch = app.plan()
    assert worker.current("main", batch).get("limit", 1.0, float) == 1.0
    (errors,) = app.service.workers.close("main", batch).workers.values()
    assert list(errors or {}) == [1]


def test_the_words_of_an_error_are_noted_without_the_secret_that_they_quote(app: Application) -> None:
    place = Storage(f"s3://{BUCKET}/{PREFIX}")
    clean = Secrets(["correct horse"]).clean
    positions = Positions(1, lambda query, batch: "")
    repository = lambda: repository_in(app.buckets)  # noqa: E731 - as the others give it
    answers = Answers(app.service, app.declared, positions, repository, place, settings=app.settings, clean=clean)
    message = "no answer from amqp://orders:hunter2@rabbit with correct horse"
    answers.answer(APPLIED, {"query": "main", "batch": 3, "worker": "host/1", "errors": {"1": message}})
    noted = "no answer from amqp://orders:[redacted]@rabbit with [redacted]"
    assert app.service.workers.close("main", 3).workers == {"host/1": {1: noted}}


def test_a_batch_that_spark_knows_the_offsets_of_is_not_looked_up_in_the_storage(app: Application) -> None:
    known = {("main", 4): '[0, {"tidegate-control": 1}]', ("plain", 4): "[0]"}
    positions = Positions(1, lambda query, batch: known.get((query, batch), ""))
    place = Storage(f"s3://{BUCKET}/{PREFIX}")
    app.answers = Answers(
        app.service, app.declared, positions, lambda: repository_in(app.buckets), place, settings=app.settings
    )
    app.send("x", "reload-config", '{"limit": 4}')
    assert app.worker().current("main", 4).get("limit") == 4
    app.plan_of("main", 5, 1)
    assert app.worker().current("main", 5).get("limit") == 4
    with pytest.raises(LookupError, match="query 'plain' has no batch 4"):
        app.worker().current("plain", 4)


def test_a_setting_of_another_type_is_as_none_and_is_told_of(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": "four", "deep": {"er": 2}}')
    current = app.worker().current("main", app.plan())
    assert current.get("limit", 1.0, float) == 1.0
    assert current.get("limit") == "four"
    assert current.get("deep.er", 0, int) == 2
    assert current.get("deep.est", 9) == 9
    app.commit()
    assert app.said("x").state is MessageState.FAILED
    assert "setting 'limit' is 'four', and float is asked for" in app.said("x").message


def test_a_whole_number_that_no_float_holds_is_as_none_and_the_batch_goes_on(app: Application) -> None:
    """JSON has numbers of any length. The batch would fail at each attempt: its messages are the same each time."""
    app.send("x", "reload-config", json.dumps({"limit": 10**400, "other": 10**300}))
    current = app.worker().current("main", app.plan())
    assert current.get("limit", 1.0, float) == 1.0
    assert current.get("other", 1.0, float) == 1e300
    app.commit()
    assert app.said("x").state is MessageState.FAILED


def test_trouble_of_one_query_is_not_told_as_another_ones_that_came_in_between(app: Application) -> None:
    app.send("x", "reload-config", '{"limit": "much"}')
    worker, batch = app.worker(), app.plan()
    first = worker.current("main", batch)
    worker.current("other", app.plan_of("other", 7, 1))
    assert first.get("limit", 1.0, float) == 1.0
    path, reported = app.asked[-1]
    assert (path, reported["query"], reported["batch"], list(reported["errors"])) == (APPLIED, "main", batch, ["1"])


def test_a_handler_is_called_once_in_each_worker_and_what_it_returns_is_kept(app: Application) -> None:
    app.declared.on_worker["table"] = Handler(lambda message: message.payload["rows"] * 2)
    app.declared.version = 1
    app.send("x", "table", '{"rows": 2}')
    worker = app.worker()
    assert worker.current("main", app.plan()).made("table") == 4
    app.send("y", "table", '{"rows": 3}')
    app.send("z", "table", '{"rows": 5}')
    assert worker.current("main", app.plan()).made("table") == 10
    assert app.worker("later").current("main", app.plan()).made("table") == 10


def test_what_a_handler_returns_is_that_of_the_querys_own_batch(app: Application, tmp_path: Path) -> None:
    store = tmp_path / "called"

    def table(message: Message) -> object:
        with store.open("a") as file:
            file.write(f"{message.sequence}\n")
        return message.payload

    app.declared.on_worker["table"] = Handler(table)
    app.declared.version = 1
    app.send("x", "table", "7")
    app.send("y", "table", "9")
    worker = app.worker()
    ahead, behind = worker.current("main", app.plan()), worker.current("other", app.plan_of("other", 0, 1))
    assert (ahead.made("table"), behind.made("table")) == (9, 7)
    assert worker.current("other", app.plan_of("other", 1, 2)).made("table") == 9
    # Whatever else it does was done for the newest message last; and once, where no query was behind.
    app.send("z", "table", "11")
    worker.current("main", app.plan())
    assert worker.current("other", app.plan_of("other", 2, 3)).made("table") == 11
    assert store.read_text().split() == ["2", "1", "2", "3"]


def test_what_fails_for_one_query_is_told_of_by_another_one_too(app: Application, tmp_path: Path) -> None:
    app.declared.on_worker["table"] = Handler(_raise)
    app.declared.version = 1
    app.send("x", "table")
    app.send("y", "reload-config", '{"limit": "much"}')
    file = tmp_path / "model"
    file.write_bytes(b"nothing")
    said = {"name": "m", "uri": f"file://{file}", "sha256": hashlib.sha256(b"nothing").hexdigest()}
    app.send("z", "reload-model", json.dumps(said))
    worker = app.worker()
    for query, batch in (("main", app.plan()), ("other", app.plan_of("other", 0, 3))):
        current = worker.current(query, batch)
        current.get("limit", 1.0, float)
        with pytest.raises(ControlError, match="cannot be had in any version"):
            current.load("m", _refuse)
        path, reported = app.asked[-1]
        assert (path, reported["query"], sorted(reported["errors"])) == (APPLIED, query, ["1", "2", "3"])


def _refuse(file: Path) -> None:
    raise ValueError("no model")


def test_a_handler_that_raises_is_told_of(app: Application) -> None:
    app.declared.on_worker["table"] = Handler(_raise)
    app.declared.version = 1
    app.send("x", "table")
    batch = app.plan()
    app.worker("good/1").current("main", batch)
    app.commit()
    assert app.said("x").queries["main"].errors == ("good/1: ValueError: no such table",)


def test_a_handler_or_a_loader_that_is_to_end_the_process_ends_no_task(app: Application, tmp_path: Path) -> None:
    """The message is in force in each attempt: the query would end, and so would the next driver's."""

    def leave(given: object) -> None:
        raise SystemExit(3)

    app.declared.on_worker["table"] = Handler(_exit)
    app.declared.version = 1
    app.send("x", "table")
    app.send("y", "reload-model", _model(tmp_path / "first.bin", b"weights"))
    current = app.worker("good/1").current("main", app.plan())
    with pytest.raises(ControlError, match="cannot be had"):
        current.load("m", leave)
    app.commit()
    assert app.said("x").queries["main"].errors == ("good/1: SystemExit: 3",)
    assert app.said("y").queries["main"].errors == ("good/1: model 'm': SystemExit: 3",)


def test_a_handler_that_hangs_is_given_up_and_what_was_made_before_stays(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it asks what is in force, which whoever waits for it is asking, too."""
    free = threading.Event()
    worker = app.worker("slow/1")

    def table(message: Message) -> object:
        assert worker.current("main", app.batch).get("limit", 1.0, float) == 1.0
        if message.payload == "hang":
            free.wait()
        return message.payload

    monkeypatch.setitem(BY_NAME, "table", table)
    app.declared.on_worker["table"] = Handler(call_by_name)
    app.declared.version = 1
    app.send("s", "reload-config", '{"limit": "much"}')
    app.send("x", "table", '"fine"')
    assert worker.current("main", app.plan()).made("table") == "fine"
    app.short()
    app.send("y", "table", '"hang"')
    assert worker.current("main", app.plan()).made("table") == "fine"
    app.commit()
    free.set()
    (error,) = app.said("y").queries["main"].errors
    assert error.startswith("slow/1: OverdueError: the handler for table (message 3) took longer than 0.05 s")

    # It has returned something now, which nobody uses.
    await_work()
    assert worker.current("main", app.plan()).made("table") == "fine"


def test_a_worker_that_starts_later_has_what_the_newest_good_message_makes(app: Application, tmp_path: Path) -> None:
    store = _declare_table(app, tmp_path)
    older = app.worker("older")
    app.send("x", "table", "7")
    older.current("main", app.plan())
    app.send("y", "table", "-1")
    assert older.current("main", app.plan()).made("table") == 7
    app.commit()
    app.send("z", "table", "-2")
    batch = app.plan()
    assert older.current("main", batch).made("table") == 7
    store.unlink()
    assert app.worker("later").current("main", batch).made("table") == 7
    assert store.read_text().split() == ["-2", "-1", "7"]
    app.commit()
    said = app.said("z").queries["main"]
    assert (said.applied, said.ran, len(said.errors)) == (0, 2, 2)


def test_what_fails_is_no_other_message_for_being_sent_often(app: Application, tmp_path: Path) -> None:
    store = _declare_table(app, tmp_path)
    app.send("x", "table", "7")
    for number in range(5):
        app.send(f"y{number}", "table", "-1")
    assert app.worker().current("main", app.plan()).made("table") == 7
    assert store.read_text().split() == ["-1", "7"]


def test_a_worker_that_starts_later_fails_the_query_as_others_do(app: Application, tmp_path: Path) -> None:
    store = _declare_table(app, tmp_path, raises="fail")
    app.send("x", "table", "7")
    app.send("y", "table", "-1")
    with pytest.raises(ControlError, match="no such table"):
        app.worker().current("main", app.plan())
    assert store.read_text().split() == ["-1"]


def test_what_a_worker_has_is_not_made_again_where_the_log_has_lost_what_came_since(
    app: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, worker = _declare_table(app, tmp_path), app.worker()
    app.send("x", "table", "7")
    app.send("y", "table", "9")
    worker.current("main", app.plan())
    store.unlink()

    def lost(after: int, upto: int) -> tuple[Entry, ...]:
        raise LostError("gone")

    monkeypatch.setattr(app.service, "messages", lost)
    app.send("z", "table", "-1")
    assert worker.current("main", app.plan()).made("table") == 9
    assert store.read_text().split() == ["-1"]


def _declare_table(app: Application, folder: Path, raises: str = "report") -> Path:
    """Have a handler that fails for less than nothing; return the file with what it was called for."""
    store = folder / "called"

    def table(message: Message) -> object:
        with store.open("a") as file:
            file.write(f"{message.payload}\n")
        if message.payload < 0:
            _raise(message)
        return message.payload

    app.declared.on_worker["table"] = Handler(table, raises)
    app.declared.version = 1
    return store


def test_a_handler_that_is_to_fail_the_query_does_so_at_each_attempt(app: Application) -> None:
    app.declared.on_worker["table"] = Handler(_raise, "fail")
    app.declared.version = 1
    app.send("x", "table")
    worker, batch = app.worker(), app.plan()
    for _ in range(2):
        with pytest.raises(ControlError, match="no such table"):
            worker.current("main", batch)


def _raise(message: Message) -> None:
    raise ValueError("no such table")


def _exit(message: Message) -> None:
    raise SystemExit(3)


def test_a_handler_can_ask_what_is_in_force(app: Application) -> None:
    worker = app.worker()
    app.declared.on_worker["table"] = Handler(str)
    app.declared.version = 1
    app.send("x", "reload-config", '{"a": 1}')
    app.send("y", "table")
    assert worker.current("main", app.plan()).config == {"a": 1}


def test_a_model_is_a_file_with_the_checksum_that_was_said(app: Application, tmp_path: Path) -> None:
    worker = app.worker()
    first = _model(tmp_path / "first.bin", b"weights")
    assert worker.current("main", app.plan()).model("m") is None
    app.send("x", "reload-model", first)
    current = worker.current("main", app.plan())
    file = current.model("m")
    assert file is not None
    assert file.read_bytes() == b"weights"
    assert current.load("m", lambda path: path.read_bytes().upper()) == b"WEIGHTS"
    app.commit()
    assert app.said("x").state is MessageState.DONE


def test_the_model_before_goes_on_until_the_new_one_can_be_had(app: Application, tmp_path: Path) -> None:
    worker = app.worker()
    app.send("x", "reload-model", _model(tmp_path / "first.bin", b"weights"))
    assert worker.current("main", app.plan()).load("m", Path.read_bytes) == b"weights"
    bad = _model(tmp_path / "second.bin", b"other").replace("file://", "file:///no-such")
    app.send("y", "reload-model", bad)
    current = worker.current("main", app.plan())
    assert current.load("m", Path.read_bytes) == b"weights"
    file = current.model("m")
    assert file is not None
    assert file.read_bytes() == b"weights"
    app.commit()
    assert app.said("y").state is MessageState.FAILED
    assert "model 'm': FileNotFoundError" in app.said("y").message


def test_a_model_with_another_checksum_is_not_used(app: Application, tmp_path: Path) -> None:
    text = _model(tmp_path / "first.bin", b"weights")
    (tmp_path / "first.bin").write_bytes(b"others")
    app.send("x", "reload-model", text)
    with pytest.raises(ControlError, match="cannot be had"):
        app.worker().current("main", app.plan()).model("m")
    app.commit()
    assert "was said" in app.said("x").message


def test_a_worker_that_starts_later_has_the_model_before_too(app: Application, tmp_path: Path) -> None:
    app.send("x", "reload-model", _model(tmp_path / "first.bin", b"weights"))
    app.plan()
    app.send("y", "reload-model", _model(tmp_path / "second.bin", b"broken"))
    calls: list[bytes] = []

    def loader(file: Path) -> str:
        calls.append(file.read_bytes())
        if calls[-1] == b"broken":
            raise ValueError("no model")
        return calls[-1].decode()

    worker = app.worker("later")
    assert worker.current("main", app.plan()).load("m", loader) == "weights"
    app.commit()
    assert worker.current("main", app.plan()).load("m", loader) == "weights"
    # What cannot be loaded is not tried again in each batch.
    assert calls == [b"broken", b"weights"]
    assert app.said("y").state is MessageState.FAILED
    assert "ValueError: no model" in app.said("y").message


def _model(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return f'{{"name": "m", "uri": "file://{file}", "sha256": "{hashlib.sha256(content).hexdigest()}"}}'


def test_a_query_that_does_not_take_part_has_no_position(app: Application) -> None:
    app.buckets.write(BUCKET, f"{PREFIX}/lineages/1/main/offsets/0", b'v1\n{}\n{"data": 7}')
    with pytest.raises(LookupError, match="has no position"):
        app.worker().current("main", 0)


def test_outside_of_tidegate_everything_has_its_default() -> None:
    program.hosted_by(None)
    current = control.current()
    assert (current.position, current.get("limit", 3.0, float), current.model("m"), current.last("x")) == (
        0,
        3.0,
        None,
        None,
    )


def test_workers_are_answered_over_the_wire_if_they_know_the_word(app: Application) -> None:
    port = Port(app.answers, "127.0.0.1", "127.0.0.1")
    caller = Caller(port.line)
    assert [caller.ask("/position", {})["position"] for _ in range(2)] == [0, 0]
    with pytest.raises(ControlError, match="KeyError"):
        caller.ask("/no-such", {})
    stranger = Caller(Line(port.line.address, "guess"))
    with pytest.raises(ControlError, match="own workers"):
        stranger.ask("/position", {})
    for each in (caller, stranger):
        each.close()
    assert port.line.token not in repr(port.line)


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        pytest.param(1, "\N{GRINNING FACE}" * 300_000, id="an exception that quotes a megabyte"),
        pytest.param(600, "x" * 1000, id="a burst of messages that all fail"),
    ],
)
def test_errors_are_told_however_long_and_many_they_are_and_the_query_goes_on(
    app: Application, messages: int, error: str
) -> None:
    """A task that could not tell its errors failed with each attempt, and its query with it."""

    def fail(message: Message) -> None:
        raise ValueError(error)

    caller = Caller(Port(app.answers, "127.0.0.1", "127.0.0.1").line)
    app.declared.on_worker["table"] = Handler(fail)
    app.declared.version = 1
    worker = Worker("host/1", caller.ask, app.directory)
    worker.current("main", app.plan())
    names = [f"m{number}" for number in range(messages)]
    app.declared.types["table"] = None
    app.service.give(ControlOrders(tuple(ControlOrder(name, "table") for name in names)))
    app.service.check()
    worker.current("main", app.plan())
    caller.close()
    app.commit()
    assert [app.said(name).state for name in names] == [MessageState.FAILED] * messages
    (said,) = app.said("m0").queries["main"].errors
    assert said == f"host/1: ValueError: {error}"[: len(said)]
    assert len(said) == LONGEST_ERROR


def test_what_failed_and_does_not_when_its_task_is_tried_again_is_told_no_more(app: Application) -> None:
    attempts = iter([ValueError("not yet"), None])

    def once(message: Message) -> None:
        if error := next(attempts):
            raise error

    app.declared.on_worker["table"] = Handler(once, FAIL)
    app.declared.version = 1
    app.send("x", "table")
    worker, batch = app.worker(), app.plan()
    with pytest.raises(ControlError, match="not yet"):
        worker.current("main", batch)
    worker.current("main", batch)
    app.commit()
    assert app.said("x").queries["main"].errors == ()


def test_an_answer_comes_in_one_piece_and_at_once(app: Application) -> None:
    port = Port(app.answers, "127.0.0.1", "127.0.0.1")
    host, _, number = port.line.address.rpartition(":")
    question = f"POST /position HTTP/1.1\r\nAuthorization: Bearer {port.line.token}\r\nContent-Length: 2\r\n\r\n{{}}"
    with socket.create_connection((host, int(number)), timeout=10) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(20):
            line.sendall(question.encode())
            assert line.recv(65536).endswith(b'{"position": 0}')


def test_a_store_that_does_not_answer_is_told_apart(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(path: str, body: dict[str, Any]) -> dict[str, Any]:
        raise EndpointConnectionError(endpoint_url="http://store")

    monkeypatch.setattr(app.answers, "answer", unreachable)
    port = Port(app.answers, "127.0.0.1", "127.0.0.1")
    caller = Caller(port.line)
    with pytest.raises(StoreError) as caught:
        caller.ask("/state", {})
    caller.close()
    text = f"Traceback (most recent call last):\n  …\n{type(caught.value).__module__}.StoreError: {caught.value}"
    chain = (Link(("org.apache.spark.api.python.PythonException", "java.lang.RuntimeException"), text),)
    assert classify(chain).reason is Reason.STORAGE_UNAVAILABLE


def test_a_driver_that_is_gone_is_named() -> None:
    with pytest.raises(ControlError, match=r"127\.0\.0\.1:1 does not answer"):
        Caller(Line("127.0.0.1:1", "x")).ask("/position", {})
