"""A version is followed by another one, which is taken back: state and outputs; real S3 server, real Spark.

The three launches are those that the operator makes: the old version, the new one with its pin, the old one again.
What it means for outputs and for control messages is seen in one rollback of one application, which has a query for
each of them.
"""

import json
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
)
from tidegate_spark.contract.protocol import EXIT_OK, Pin, StartFrom, Storage, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

PIN = "up-uid-1-1"
WAYS = ("named", "asking", "told", "files", "kept", "counted")
"""The first two have Python processes of Spark's."""


def below(store: ObjectStore, place: Storage, *parts: str) -> list[str]:
    keys = store.keys(place.bucket, place.key(*parts) + "/")
    return [key.removeprefix(place.prefix + "/") for key in keys if not key.endswith("/")]


def reported(driver: DriverProcess) -> dict[int, dict[str, int]]:
    """Return what ``reporting.py`` said of each batch."""
    # The last line may be half written.
    lines = [line.partition(" ")[2] for line in driver.output.split("\n")[:-1] if line.startswith("told ")]
    return dict(map(json.loads, lines))


def settings(driver: DriverProcess, query: str) -> dict[int, Any]:
    """Return what was in force in each batch of a query that says it."""
    lines = [line.partition(" ")[2] for line in driver.output.split("\n")[:-1] if line.startswith(f"{query} [")]
    return dict(map(json.loads, lines))


def send(driver: DriverProcess, name: str, setting: Any) -> None:
    """Send a setting, or ask what became of it."""
    orders = ControlOrders((ControlOrder(name, "reload-config", json.dumps(setting)),))
    assert driver.command("POST", CONTROL_COMMAND, json.loads(to_json(orders)))[0] == 202


def await_message(driver: DriverProcess, name: str, state: MessageState) -> MessageReport:
    def probe() -> MessageReport:
        driver.must_run()
        report = driver.report()
        assert report is not None
        found = next((each for each in report.control.messages if each.id == name), None)
        assert found is not None
        assert found.state is state, found
        return found

    return wait_for(f"message {name} {state.value}", probe, 600, 0.2)


def stopped_after(driver: DriverProcess) -> dict[str, int]:
    """Stop a driver at a batch boundary; return the last batch of each query."""
    driver.terminate()
    driver.exit_code()
    return dict(driver.termination.batches)


def roll_back(start: StartDriver, place: Storage, **fields: Any) -> DriverProcess:
    """Start the old version again, as a rollback does."""
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    return start("app", epoch=3, lineage=2, start_from=start_from, **fields)


@dataclass(frozen=True)
class Rollback:
    """What came of one rollback of an application with a query for each way to put something out."""

    folder: Path
    """Where its outputs are."""
    last: dict[str, int]
    """Each query's last batch of the old version."""
    noted: Any
    """What the new version's start noted of them."""
    files_before: frozenset[Path]
    """What the file sink had written when the new version was taken back."""
    back: DriverProcess
    """The old version again, which has ended."""
    notices: frozenset[str]
    end: dict[str, int]
    """Each query's last batch of it."""
    new: DriverProcess
    messages: dict[str, MessageReport]
    """What the old version again said of those that were sent: ``before`` the pin, ``after`` it, and ``next`` to it."""
    applied: MessageReport
    """What the new version said of the second."""


@pytest.fixture(scope="module")
def rollback(
    start_shared: StartDriver, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Rollback:
    """One application lives through old version, new version and old version."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "kept").mkdir()
    application = {"script": "several_sinks.py", "args": (str(folder), *WAYS)}
    old = start_shared("app", epoch=1, variables={"VERSION": "old"}, **application)
    await_batches(old, dict.fromkeys(WAYS, 2))
    send(old, "before", {"limit": 1})
    await_message(old, "before", MessageState.DONE)
    last = stopped_after(old)
    # It keeps two batches and commits more than that: what the pin needs would be gone.
    new = start_shared(
        "app", epoch=2, pin=Pin(PIN, "v1"), min_batches_to_retain=2, variables={"VERSION": "new"}, **application
    )
    await_batches(new, {**{way: batch + 3 for way, batch in last.items()}, "told": last["told"] + 6})
    send(new, "after", {"limit": 2, "other": True})
    applied = await_message(new, "after", MessageState.DONE)
    place = old.config.storage
    noted = json.loads(object_store.text(place.bucket, place.key(f"upgrades/{PIN}.json")))
    wait_for("the pin", lambda: f"snapshots/{PIN}/manifest.json" in below(object_store, place, "snapshots"), 300, 0.2)
    new.kill()

    files_before = frozenset((folder / "files").glob("*.json"))
    back = roll_back(start_shared, place, variables={"VERSION": "back"}, **application)
    await_batches(back, {way: batch + 3 for way, batch in last.items()})
    for name, setting in (("before", {"limit": 1}), ("after", {"limit": 2, "other": True}), ("next", {"more": 3})):
        send(back, name, setting)
    states = {"before": MessageState.DONE, "after": MessageState.ROLLED_BACK, "next": MessageState.DONE}
    messages = {name: await_message(back, name, state) for name, state in states.items()}
    seen = back.report()
    assert seen is not None
    notices = frozenset(notice.reason for notice in seen.notices)
    end = stopped_after(back)
    return Rollback(folder, last, noted, files_before, back, notices, end, new, messages, applied)


def await_batches(driver: DriverProcess, batches: dict[str, int]) -> None:
    for query, batch in batches.items():
        driver.await_batch(batch, query)


def test_a_rollback_goes_on_exactly_where_the_old_version_ended(rollback: Rollback) -> None:
    assert rollback.noted == {"lineage": 1, "batches": rollback.last}
    seen, last = reported(rollback.back), rollback.last["told"]
    assert (min(seen), max(seen) >= last + 3) == (last + 1, True)
    wrong = {n: counts for n, counts in seen.items() if counts != {str(key): 4 * (n + 1) for key in range(5)}}
    assert wrong == {}


@pytest.mark.long
def test_a_rollback_completes_the_pin_that_the_new_version_had_no_time_for(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    old = start_driver("app", "reporting.py", epoch=1)
    old.await_batch(2)
    last = stopped_after(old)["main"]
    new = start_driver("app", "raising.py", epoch=2, pin=Pin(PIN, "v1"))
    new.exit_code()
    back = roll_back(start_driver, place, script="reporting.py")
    back.await_batch(last + 1)
    assert min(reported(back)) == last + 1
    assert f"snapshots/{PIN}/manifest.json" in below(object_store, place, "snapshots")


def test_an_upgrade_without_state_starts_nothing(
    start_process: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    driver = start_process("app", "reporting.py", epoch=2, pin=Pin(PIN))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.STATE_MISSING
    assert below(object_store, place, "upgrades") == []


# --- what it means for control messages ------------------------------------------------------------------------------


def test_what_came_into_force_before_the_pin_is_in_force_again_and_what_came_after_is_not(rollback: Rollback) -> None:
    new, back = settings(rollback.new, "asking"), settings(rollback.back, "asking")
    assert new[max(new)] == {"limit": 2, "other": True}
    begun = rollback.messages["next"].queries["asking"].batch
    assert min(back) == rollback.last["asking"] + 1 < begun
    wrong = {
        batch: said for batch, said in back.items() if said != {"limit": 1, **({"more": 3} if batch >= begun else {})}
    }
    assert wrong == {}


def test_a_message_that_was_rolled_back_is_reported_and_numbers_go_on(rollback: Rollback) -> None:
    said = rollback.messages
    assert (said["after"].state, said["after"].reason) == (MessageState.ROLLED_BACK, "RolledBack")
    assert said["before"].sequence < said["after"].sequence < said["next"].sequence
    assert said["after"].sequence == rollback.applied.sequence


def test_a_query_whose_sources_have_names_takes_part_on_the_checkpoint_that_it_has(rollback: Rollback) -> None:
    seen = settings(rollback.new, "named")
    assert min(seen) == rollback.last["named"] + 1
    batch = rollback.applied.queries["named"].batch
    assert {number: said["limit"] for number, said in seen.items()} == {n: 2 if n >= batch else 1 for n in seen}
    # In the version of before it takes no part, and goes on there as well.
    assert "named" not in rollback.messages["next"].queries
    assert rollback.end["named"] >= rollback.last["named"] + 3


# --- what it means for outputs: the lines of the guide's table -------------------------------------------------------


def values_by_the_log(place: Path) -> list[int]:
    """Return what a reader of the file sink sees, who goes by its log."""
    log = place / "_spark_metadata"
    newest = max(int(each.name.removesuffix(".compact")) for each in log.iterdir() if each.name[0].isdigit())
    files: dict[str, None] = {}
    for batch in range(newest + 1):
        text = next((log / name for name in (f"{batch}", f"{batch}.compact") if (log / name).exists()), None)
        lines = text.read_text().splitlines()[1:] if text is not None else []
        files.update(dict.fromkeys(json.loads(line)["path"].removeprefix("file://") for line in lines))
    return sorted(json.loads(line)["value"] for file in files for line in Path(file).read_text().splitlines())


def test_a_file_sink_leaves_no_batch_out_that_comes_again(rollback: Rollback) -> None:
    assert "FileSinkRolledBack" in rollback.notices
    ran = {way: rollback.end[way] - batch for way, batch in rollback.last.items()}
    assert rollback.back.termination.committed == sum(ran.values())
    values = values_by_the_log(rollback.folder / "files")
    # The sink may have a batch more than is committed, if the stop came inside of one.
    assert values == list(range(len(values)))
    assert len(values) >= 20 * (rollback.end["files"] + 1)
    # The files of the version that was taken back stay, and nobody sees them who reads by the log.
    assert rollback.files_before <= set((rollback.folder / "files").glob("*.json"))


def test_a_file_sink_of_another_lineage_is_refused_by_a_stateless_version(
    rollback: Rollback, start_shared: StartDriver
) -> None:
    anew = start_shared("app", "several_sinks.py", args=(str(rollback.folder), "files"), epoch=4, lineage=3)
    assert anew.exit_code() == EXIT_OK, anew.output[-3000:]
    assert anew.termination.reason is Reason.QUERY_REFUSED
    assert "write to another path" in anew.termination.message


def test_foreach_batch_keyed_by_lineage_and_batch_has_every_batch_and_by_the_batch_alone_has_not(
    rollback: Rollback,
) -> None:
    kept, first = rollback.folder / "kept", rollback.last["kept"] + 1
    assert json.loads((kept / f"2-{first}").read_text()) == ["back", 20 * first]
    assert json.loads((kept / f"{first}").read_text()) == ["new", 20 * first]


def test_a_sink_that_remembers_nothing_just_goes_on(rollback: Rollback) -> None:
    assert rollback.end["counted"] >= rollback.last["counted"] + 3
