"""A version is followed by another one, which is taken back: state and outputs; real S3 server, real Spark.

The three launches are those that the operator makes: the old version, the new one with its pin, the old one again.
"""

import json
from pathlib import Path
from typing import Any

from tidegate_spark.protocol import EXIT_OK, Pin, Reason, StartFrom, Storage
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

PIN = "up-uid-1-1"


def below(store: ObjectStore, place: Storage, *parts: str) -> list[str]:
    keys = store.keys(place.bucket, place.key(*parts) + "/")
    return [key.removeprefix(place.prefix + "/") for key in keys if not key.endswith("/")]


def told(driver: DriverProcess) -> dict[int, dict[str, int]]:
    """Return what ``telling.py`` said of each batch."""
    lines = [line.partition(" ")[2] for line in driver.output.splitlines() if line.startswith("told ")]
    return dict(map(json.loads, lines))


def stopped_after(driver: DriverProcess) -> int:
    """Stop a driver at a batch boundary; return its last batch."""
    driver.terminate()
    driver.exit_code()
    return driver.termination.batches["main"]


def take_back(start: StartDriver, place: Storage, **fields: Any) -> DriverProcess:
    """Start the old version again, as a rollback does."""
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    return start("app", epoch=3, lineage=2, start_from=start_from, **fields)


def test_a_rollback_goes_on_exactly_where_the_old_version_ended(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    old = start_driver("app", "telling.py", epoch=1)
    old.await_batch(3)
    last = stopped_after(old)
    # It keeps two batches and commits more than that: what the pin needs would be gone.
    new = start_driver("app", "telling.py", epoch=2, pin=Pin(PIN, "v1"), min_batches_to_retain=2)
    new.await_batch(last + 6)
    noted = json.loads(object_store.text(place.bucket, place.key(f"upgrades/{PIN}.json")))
    assert noted == {"lineage": 1, "batches": {"main": last}}
    wait_for("the pin", lambda: f"snapshots/{PIN}/manifest.json" in below(object_store, place, "snapshots"), 60)
    new.kill()

    back = take_back(start_driver, place, script="telling.py")
    back.await_batch(last + 3)
    assert min(told(back)) == last + 1
    wrong = {n: counts for n, counts in told(back).items() if counts != {str(key): 4 * (n + 1) for key in range(5)}}
    assert wrong == {}


def test_a_rollback_completes_the_pin_that_the_new_version_had_no_time_for(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    old = start_driver("app", "telling.py", epoch=1)
    old.await_batch(2)
    last = stopped_after(old)
    new = start_driver("app", "raising.py", epoch=2, pin=Pin(PIN, "v1"))
    new.exit_code()
    back = take_back(start_driver, place, script="telling.py")
    back.await_batch(last + 1)
    assert min(told(back)) == last + 1
    assert f"snapshots/{PIN}/manifest.json" in below(object_store, place, "snapshots")


def test_an_upgrade_without_state_starts_nothing(
    start_process: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    driver = start_process("app", "telling.py", epoch=2, pin=Pin(PIN))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.STATE_MISSING
    assert below(object_store, place, "upgrades") == []


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


def test_a_file_sink_leaves_no_batch_out_that_comes_again(
    start_driver: StartDriver, place: Storage, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    arguments = {"script": "writing.py", "args": (str(output),)}
    old = start_driver("app", epoch=1, **arguments)
    old.await_batch(2)
    last = stopped_after(old)
    new = start_driver("app", epoch=2, pin=Pin(PIN), **arguments)
    new.await_batch(last + 3)
    new.kill()
    before = set(output.glob("*.json"))

    back = take_back(start_driver, place, **arguments)
    back.await_batch(last + 2)
    seen = back.report()
    assert seen is not None
    assert "FileSinkTakenBack" in {notice.reason for notice in seen.notices}
    end = stopped_after(back)
    assert back.termination.committed == end - last
    values = values_by_the_log(output)
    # The sink may have a batch more than is committed, if the stop came inside of one.
    assert values == list(range(len(values)))
    assert len(values) >= 20 * (end + 1)
    # The files of the version that was taken back stay, and nobody sees them who reads by the log.
    assert before <= set(output.glob("*.json"))


def test_a_file_sink_of_another_lineage_is_refused_by_a_stateless_version(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    arguments = {"script": "writing.py", "args": (str(output),)}
    old = start_driver("app", epoch=1, **arguments)
    old.await_batch(2)
    old.kill()
    anew = start_driver("app", epoch=2, lineage=2, **arguments)
    assert anew.exit_code() == EXIT_OK, anew.output[-3000:]
    assert anew.termination.reason is Reason.QUERY_REFUSED
    assert "Write to another path" in anew.termination.message


def test_foreach_batch_keyed_by_lineage_and_batch_has_every_batch_and_by_the_batch_alone_has_not(
    start_driver: StartDriver, place: Storage, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()

    def variables(version: str) -> dict[str, str]:
        return {"KEPT": str(kept), "VERSION": version}

    old = start_driver("app", "keyed.py", epoch=1, variables=variables("old"))
    old.await_batch(2)
    last = stopped_after(old)
    new = start_driver("app", "keyed.py", epoch=2, pin=Pin(PIN), variables=variables("new"))
    new.await_batch(last + 2)
    new.kill()
    back = take_back(start_driver, place, script="keyed.py", variables=variables("back"))
    back.await_batch(last + 2)
    first = last + 1
    assert json.loads((kept / f"2-{first}").read_text()) == ["back", 20 * first]
    assert json.loads((kept / f"{first}").read_text()) == ["new", 20 * first]


def test_a_sink_that_remembers_nothing_just_goes_on(start_driver: StartDriver, place: Storage) -> None:
    old = start_driver("app", "counting.py", epoch=1)
    old.await_batch(2)
    last = stopped_after(old)
    new = start_driver("app", "counting.py", epoch=2, pin=Pin(PIN))
    new.await_batch(last + 2)
    new.kill()
    back = take_back(start_driver, place, script="counting.py")
    back.await_batch(last + 3)
