"""Messages to a running application: what comes of them, when, and again after a crash; real S3 server, real Spark.

One application does all of it; a process of it is killed, one is stopped while it is paused, one is killed in a batch,
and another application starts from a snapshot of it.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import (
    CONTROL_COMMAND,
    ControlOrder,
    ControlOrders,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_spark.contract.protocol import EXIT_OK, AgentReport, StartFrom, Storage, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

ASKING = {"main", "windows", "records", "files"}
STARTS = PATIENCE = 600
"""Seconds: limits that tell of something that will not happen, and no promise."""


def send(driver: DriverProcess, name: str, kind: str, payload: Any = None, **fields: Any) -> None:
    order = ControlOrder(name, kind, json.dumps(payload), created=time.time(), source="tests/it", **fields)
    answer = driver.command("POST", CONTROL_COMMAND, json.loads(to_json(ControlOrders((order,)))))
    assert answer == (202, "{}")


def await_message(driver: DriverProcess, name: str, state: MessageState) -> MessageReport:
    def probe() -> MessageReport | None:
        found = next((each for each in report(driver).control.messages if each.id == name), None)
        assert found is not None
        assert found.state is state, found
        return found

    found = wait_for(f"message {name} {state.value}", probe, PATIENCE, 0.1)
    assert found is not None
    return found


def report(driver: DriverProcess) -> AgentReport:
    found = driver.report()
    assert found is not None, driver.output[-3000:]
    return found


def lines(driver: DriverProcess, word: str) -> list[Any]:
    """Return what the script said of one of its queries."""
    # The last one may still be on its way.
    said = [line.partition(" ") for line in driver.output.rpartition("\n")[0].splitlines()]
    return [json.loads(rest) for first, _, rest in said if first == word]


def in_force(driver: DriverProcess) -> dict[int, Any]:
    """Return what was in force in each batch of ``main``: position, and what each of its workers said."""
    return {number: (position, said) for number, position, said in lines(driver, "main")}


def batches(driver: DriverProcess) -> dict[str, int]:
    return {query.name: query.batch_id for query in report(driver).queries}


def await_all(driver: DriverProcess, batch: int = 1) -> None:
    names = (*ASKING - {"records", "files"}, "late")
    wait_for(f"batch {batch}", lambda: all(batches(driver).get(name, -1) >= batch for name in names), STARTS, 0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``files`` reads."""
    return tmp_path_factory.mktemp("read")


@pytest.fixture(scope="module")
def app(start_shared: StartDriver, folder: Path) -> DriverProcess:
    """The application, which runs."""
    driver = start_shared("app", "controlled.py", args=(str(folder),))
    await_all(driver)
    return driver


def test_a_message_is_in_force_from_one_batch_on_in_every_worker(app: DriverProcess) -> None:
    send(app, "limit-1", "reload-config", {"limit": 2.5})
    said = await_message(app, "limit-1", MessageState.DONE)
    assert said.queries.keys() == ASKING
    batch = said.queries["main"].batch
    # In the batch that is told nobody saw it before, and everybody from then on.
    seen = in_force(app)
    assert {limit for _, _, limit, _ in seen[batch][1]} == {2.5}
    assert {limit for _, _, limit, _ in seen[batch - 1][1]} == {1.0}
    assert seen[batch][0] >= said.sequence > seen[batch - 1][0]
    reported = said.queries["main"]
    assert (reported.applied, reported.errors) == (reported.ran, ())
    assert said.queries["records"] == QueryAcknowledgement(said.queries["records"].batch, 1, 1)


def test_what_the_driver_is_told_of_a_batch_is_what_its_workers_are_told(app: DriverProcess) -> None:
    app.await_batch(batches(app)["main"] + 2)
    wrong = {number: seen for number, seen in in_force(app).items() if {at for _, at, _, _ in seen[1]} != {seen[0]}}
    assert wrong == {}


def test_handlers_are_called_where_they_are_for(app: DriverProcess) -> None:
    send(app, "table-1", "table", {"rows": 7})
    send(app, "tell-1", "tell", {"a": 1})
    batch = await_message(app, "table-1", MessageState.DONE).queries["main"].batch
    await_message(app, "tell-1", MessageState.DONE)
    assert {made for _, _, _, made in in_force(app)[batch][1]} == {7}
    assert lines(app, "driver") == [{"a": 1}]


def test_a_handler_that_fails_is_named_by_worker(app: DriverProcess) -> None:
    send(app, "table-2", "table", {"rows": -7})
    said = await_message(app, "table-2", MessageState.FAILED)
    reported = said.queries["main"]
    assert reported.applied < reported.ran
    assert "no table has less than nothing" in reported.errors[0]


def test_what_cannot_be_meant_is_rejected(app: DriverProcess) -> None:
    send(app, "limit-2", "reload-config", {"limit": "much"})
    said = await_message(app, "limit-2", MessageState.REJECTED)
    assert said.reason == "InvalidPayload"
    assert "'limit' of the payload must be float" in said.message


def test_a_message_whose_time_has_passed_is_never_in_force(app: DriverProcess) -> None:
    send(app, "limit-3", "reload-config", {"limit": 9.0}, expires=time.time() - 1)
    await_message(app, "limit-3", MessageState.EXPIRED)


def test_messages_are_records_of_the_batch_in_which_they_come_into_force(app: DriverProcess) -> None:
    said = await_message(app, "limit-1", MessageState.DONE)
    assert [said.queries["records"].batch, str(said.sequence), "reload-config", '{"limit": 2.5}'] in lines(
        app, "records"
    )
    kinds = [kind for _, _, kind, _ in lines(app, "records")]
    assert kinds == ["reload-config", "table", "tell", "table"]


def test_control_messages_hold_no_watermark_back(app: DriverProcess) -> None:
    wait_for("windows that are closed", lambda: len(lines(app, "windows")) >= 3, PATIENCE, 0.2)
    assert {count for _, count in lines(app, "windows")} == {"20"}


def test_rows_of_a_source_of_files_are_counted_without_messages_beside_them(app: DriverProcess, folder: Path) -> None:
    app.await_batch(0, "files")
    for number in range(20):  # some of them come into force with the rows
        send(app, f"beside-{number}", "ping")
    (folder / "one.json").write_text('{"value": 1}\n{"value": 2}\n')
    wait_for("the file", lambda: len(lines(app, "files")) == 2, PATIENCE, 0.2)

    def counted() -> bool:
        (query,) = [query for query in report(app).queries if query.name == "files"]
        return query.input_rows_total == 2

    wait_for("two rows", counted, PATIENCE, 0.2)


def test_levels_of_logs_and_caches_are_the_drivers(app: DriverProcess) -> None:
    send(app, "level-1", "set-log-level", {"level": "ERROR"})
    send(app, "caches-1", "clear-caches")
    send(app, "ping-1", "ping")
    for name in ("level-1", "caches-1", "ping-1"):
        await_message(app, name, MessageState.DONE)


def test_a_snapshot_is_of_exactly_the_batches_with_the_message(app: DriverProcess, object_store: ObjectStore) -> None:
    send(app, "snap-1", "snapshot")
    said = await_message(app, "snap-1", MessageState.DONE)
    place = app.config.storage
    made = json.loads(
        object_store.text(place.bucket, place.key("snapshots", said.results["snapshot"], "manifest.json"))
    )
    exact = {name: reported.batch for name, reported in said.queries.items()}
    assert {name: made["queries"][name]["batch"] for name in exact} == exact
    assert made["control"]["positions"].keys() == ASKING
    assert min(made["control"]["positions"].values()) >= said.sequence
    assert made["control"]["state"]["config"] == {"limit": 2.5}


# --- pause, crash, stop ---


def logged(store: ObjectStore, driver: DriverProcess, log: str) -> dict[str, int]:
    """Return each query's newest batch in its ``offsets`` or ``commits``: exact, while the report follows later."""
    place = driver.config.storage
    found: dict[str, int] = {}
    for key in store.keys(place.bucket, place.key("lineages", "1") + "/"):
        query, _, name = key.removeprefix(place.key("lineages", "1") + "/").partition(f"/{log}/")
        if name.isdigit():
            found[query] = max(found.get(query, -1), int(name))
    return found


@dataclass(frozen=True)
class Paused:
    """What came of a pause, through which a process was killed and another one stopped."""

    held: dict[str, int]
    """Each query's batch when the pause was done."""
    reported: dict[str, int]
    """The same, as the pause's report has it."""
    later: dict[str, int]
    """When the process was killed, which had logged another message meanwhile."""
    planned: dict[str, int]
    """The newest batch of each query that was begun by then."""
    ready: bool
    before: dict[int, Any]
    """What was in force, batch by batch, by the process that was killed."""
    began: dict[str, int]
    """Each query's batch in the next process, which began paused, and then was stopped."""
    resumed: DriverProcess
    """The one after that."""
    stopped: DriverProcess


@pytest.fixture(scope="module")
def paused(app: DriverProcess, start_shared: StartDriver, folder: Path, object_store: ObjectStore) -> Paused:
    """The application, paused and resumed."""
    send(app, "ping-1", "ping")
    await_message(app, "ping-1", MessageState.DONE)
    send(app, "pause-1", "pause")
    said = await_message(app, "pause-1", MessageState.DONE)
    held = logged(object_store, app, "commits")
    reported = {name: reports.batch for name, reports in said.queries.items()}
    # What goes on while queries are held takes its time, and they would use it.
    send(app, "ping-2", "ping")
    wait_for("a message in the log", lambda: sequence(app, "ping-2") > said.sequence, PATIENCE, 0.2)
    wait_for("the report of the last batches", lambda: batches(app) == held, PATIENCE, 0.2)
    ready, before = report(app).ready, in_force(app)
    app.kill()
    later, planned = logged(object_store, app, "commits"), logged(object_store, app, "offsets")
    fields = {"script": "controlled.py", "args": (str(folder),)}
    stopped = start_shared("app", epoch=2, **fields)
    wait_for("a paused start", lambda: _is_paused_and_ready(stopped), STARTS, 0.2)
    # A query is there before its newest batch is reported.
    wait_for("each query's batch", lambda: min(batches(stopped).values()) >= 0, STARTS, 0.2)
    began = batches(stopped)
    stopped.terminate()
    stopped.exit_code()
    resumed = start_shared("app", epoch=3, **fields)
    wait_for("another paused start", lambda: _is_paused_and_ready(resumed), STARTS, 0.2)
    send(resumed, "resume-1", "resume")
    await_message(resumed, "resume-1", MessageState.DONE)
    resumed.await_batch(held["main"] + 2, "main")
    return Paused(held, reported, later, planned, ready, before, began, resumed, stopped)


def sequence(driver: DriverProcess, name: str) -> int:
    """Return the sequence of a message; 0 while the log does not have it."""
    return next((each.sequence for each in report(driver).control.messages if each.id == name), 0)


def _is_paused_and_ready(driver: DriverProcess) -> bool:
    driver.must_run()
    found = driver.report()
    return found is not None and found.control.paused and found.ready and len(found.queries) == len(ASKING) + 1


def test_a_pause_holds_every_query_after_a_batch_and_the_driver_stays_ready(paused: Paused) -> None:
    assert paused.held.keys() == {*ASKING, "late"}
    assert paused.reported == paused.held
    assert paused.later == paused.planned == paused.held
    assert paused.ready


def test_a_pause_outlives_the_process(paused: Paused) -> None:
    assert paused.began == paused.held


def test_a_paused_application_stops_without_another_batch(paused: Paused) -> None:
    assert paused.stopped.termination.batches == paused.held
    assert paused.stopped.termination.reason is Reason.STOPPED


def test_what_was_in_force_is_in_force_again_after_a_crash(paused: Paused) -> None:
    after = in_force(paused.resumed)
    assert min(after) == paused.held["main"] + 1
    last = paused.before[max(paused.before)]
    assert {limit for _, _, limit, _ in after[min(after)][1]} == {limit for _, _, limit, _ in last[1]} == {2.5}
    assert {made for _, _, _, made in after[min(after)][1]} <= {7, None}


def test_a_process_that_comes_later_says_what_came_of_a_message(app: DriverProcess, paused: Paused) -> None:
    send(paused.resumed, "limit-1", "reload-config", {"limit": 2.5})
    said = await_message(paused.resumed, "limit-1", MessageState.DONE)
    assert (said.sequence, set(said.queries)) == (1, ASKING)


# --- a batch that was begun ---


@dataclass(frozen=True)
class Cut:
    """A batch that one process began, and was killed in, and that the next one ran again."""

    batch: int
    planned: int
    """The newest batch that was begun at the kill."""
    committed: int
    before: Any
    after: DriverProcess
    hold: dict[str, Any]
    """The payload of the message that held the batch."""


@pytest.fixture(scope="module")
def cut(
    paused: Paused,
    start_shared: StartDriver,
    folder: Path,
    object_store: ObjectStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Cut:
    """A batch is planned with two messages, its tasks have run, and the process ends before it is committed."""
    driver, go = paused.resumed, tmp_path_factory.mktemp("held") / "go"
    hold = {"hold": str(go), "limit": 4.5}
    send(driver, "hold-1", "reload-config", hold)
    wait_for("a batch that is held", lambda: _batch_with(driver, 4.5) is not None, PATIENCE, 0.1)
    batch = _batch_with(driver, 4.5)
    assert batch is not None
    before = in_force(driver)[batch]
    driver.kill()
    planned, committed = (logged(object_store, driver, log)["main"] for log in ("offsets", "commits"))
    after = start_shared("app", "controlled.py", args=(str(folder),), epoch=4)
    wait_for("an agent", after.report, STARTS, 0.2)
    # It is in the log before the batch that is run again ends: it is for the next one.
    send(after, "limit-4", "reload-config", {"hold": "", "limit": 6.5})
    wait_for("the message in the log", lambda: sequence(after, "limit-4") > 0, STARTS, 0.2)
    wait_for("the batch again", lambda: batch in in_force(after), STARTS, 0.2)
    go.touch()
    return Cut(batch, planned, committed, before, after, hold)


def _batch_with(driver: DriverProcess, limit: float) -> int | None:
    found = (number for number, (_, said) in in_force(driver).items() if {each[2] for each in said} == {limit})
    return min(found, default=None)


def test_a_batch_that_is_run_again_has_the_messages_that_it_had(cut: Cut) -> None:
    position, said = in_force(cut.after)[cut.batch]
    assert (cut.planned, cut.committed) == (cut.batch, cut.batch - 1)
    assert position == cut.before[0]
    assert {limit for _, _, limit, _ in said} == {limit for _, _, limit, _ in cut.before[1]} == {4.5}


def test_a_message_that_came_meanwhile_is_in_force_in_the_next_batch(cut: Cut) -> None:
    send(cut.after, "hold-1", "reload-config", cut.hold)
    first = await_message(cut.after, "hold-1", MessageState.DONE)
    said = await_message(cut.after, "limit-4", MessageState.DONE)
    assert (first.queries["main"].batch, said.queries["main"].batch) == (cut.batch, cut.batch + 1)
    assert said.sequence > first.sequence
    assert {limit for _, _, limit, _ in in_force(cut.after)[cut.batch + 1][1]} == {6.5}


# --- what starts with it, and what cannot take part ---


@pytest.mark.long
def test_a_fork_starts_from_what_was_in_force(
    cut: Cut, start_shared: StartDriver, folder: Path, object_store: ObjectStore
) -> None:
    cut.after.terminate()
    cut.after.exit_code()
    origin = cut.after.config.storage
    start_from = StartFrom(origin, "control-snap-1", "fork-uid-2")
    fork = start_shared("fork", "controlled.py", args=(str(folder),), start_from=start_from, variables={"LATE": "1"})
    # One of its queries has a checkpoint of before it took part.
    assert fork.exit_code() == EXIT_OK, fork.output[-3000:]
    assert fork.termination.reason is Reason.QUERY_REFUSED
    assert "its checkpoint is older" in fork.termination.message
    begun = _newest_base(object_store, fork)
    assert (begun["state"]["config"], begun["state"]["paused"]) == ({"limit": 2.5}, False)


def _newest_base(store: ObjectStore, driver: DriverProcess) -> Any:
    place = driver.config.storage
    keys = store.keys(place.bucket, place.key("control", "bases") + "/")
    return json.loads(store.text(place.bucket, max(keys)))


def test_a_control_log_that_a_newer_tidegate_wrote_ends_a_driver_with_its_reason_and_stays_as_it_is(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    segment, newer = place.key("control", "segments", "000000000001.json"), b'{"version": 2, "lines": ["?"]}'
    object_store.client.put_object(Bucket=place.bucket, Key=segment, Body=newer)
    driver = start_driver("app", "controlled.py", args=(str(tmp_path),))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert ended.reason is Reason.NEWER_FORMAT
    assert f"{segment} cannot be read" in ended.message
    assert "its format is 2, and this Tidegate knows 1: use a newer Tidegate." in ended.message
    assert object_store.text(place.bucket, segment).encode() == newer
    assert object_store.keys(place.bucket, place.key("control") + "/") == [segment]
