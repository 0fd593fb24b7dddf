"""A checkpoint file that cannot be written fails its query, and of two writers of one file the second does."""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.store_front import Request, Rule, StoreFront
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

LEFT = re.compile(
    r"metadata|sources/0/0|(offsets|commits)/\d+"
    r"|state/0/_metadata/metadata|state/0/\d+/(_metadata/schema|[\w.-]+\.(zip|changelog)(\.crc)?|SSTs/[\w-]+\.sst)"
)
"""Everything that a checkpoint with state has: no directory's object, nothing temporary."""


@pytest.fixture
def front(object_store: ObjectStore) -> Iterator[StoreFront]:
    """What the driver takes for the S3 server."""
    with StoreFront(object_store.endpoint) as store_front:
        yield store_front


def start_behind(front: StoreFront, start_driver: StartDriver, place: Storage, app: str, **how: Any) -> DriverProcess:
    uri = place.uri.rpartition("/")[0] + f"/{app}"
    behind = dataclasses.replace(place, uri=uri, endpoint=front.endpoint)
    return start_driver(app, "counting.py", storage=behind, **how)


def put_of(log: str, batch: Callable[[int], bool] = lambda batch: True) -> Callable[[Request], bool]:
    """Pick the puts of a log's files."""

    def picks(request: Request) -> bool:
        parts = request.key.split("/")
        named = request.method == "PUT" and parts[-2:-1] == [log] and parts[-1].isdigit()
        return named and batch(int(parts[-1]))

    return picks


def newest(store: ObjectStore, place: Storage, log: str) -> int:
    keys = store.keys(place.bucket, place.key("lineages", "1", "main", log) + "/")
    return max(int(key.rpartition("/")[2]) for key in keys)


def kept_commands(driver: DriverProcess) -> dict[str, int]:
    """Return the commands of JVMs that lie ready for the next process, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (driver.folder / "work").glob("launch*")}


def asked_too_often(requests: list[Request]) -> dict[str, tuple[int, int]]:
    """Return the files of logs that were looked for more often than they were read, and how often, if they were."""
    logged = [request for request in requests if re.search(r"/main/(metadata|.*[a-z0-9]/\d+)$", request.key)]
    checks = Counter(request.key for request in logged if request.method == "HEAD")
    reads = Counter(request.key for request in logged if request.method == "GET")
    return {key: (checks[key], reads[key]) for key in reads if checks[key] > reads[key]}


def test_a_commit_that_cannot_be_written_fails_the_query_and_the_next_driver_does_the_batch_again(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    driver = start_behind(front, start_driver, place, "refused", own_jvm=True)
    driver.await_batch(1)
    refused = front.add(Rule(put_of("commits"), refuse=True))
    assert driver.exit_code() != EXIT_OK
    assert refused.hits >= 1, driver.output[-3000:]
    assert "refused by the test" in driver.termination.message or "AccessDenied" in driver.termination.message
    where = driver.config.storage
    offsets, commits = newest(object_store, where, "offsets"), newest(object_store, where, "commits")
    assert offsets == commits + 1
    assert driver.termination.batches == {"main": commits}
    front.clear()
    before, commands = len(front.requests), kept_commands(driver)
    driver.start()
    driver.await_batch(offsets + 1)
    assert len(commands) == 1
    assert kept_commands(driver) == commands, "the JVM was not started by the command of the one before"
    assert "a JVM was started" in driver.output, "the JVM was not started ahead"
    asked = asked_too_often(front.requests[before:])
    assert asked == {}, "looked for more often than they were read"
    driver.terminate()
    driver.exit_code()
    prefix = where.key("lineages", "1", "main") + "/"
    keys = [key.removeprefix(prefix) for key in object_store.keys(where.bucket, prefix)]
    assert [key for key in keys if not LEFT.fullmatch(key)] == []
    assert any(key.startswith("state/0/1/") for key in keys)


def test_a_lost_answer_is_not_taken_for_another_writer_and_another_writer_is_noticed(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    lost = front.add(Rule(put_of("offsets", lambda batch: batch >= 1), lose_answer=True, times=1))
    driver = start_behind(front, start_driver, place, "rivals")
    driver.await_batch(2)
    assert lost.hits == 1
    assert not driver.ended()

    def write_first(request: Request) -> None:
        object_store.client.put_object(Bucket=place.bucket, Key=request.key, Body=b"the other's")

    rival = front.add(Rule(put_of("offsets"), first=write_first, times=1))
    wait_for("another writer", lambda: rival.hits == 1, 300, 0.1)
    assert driver.exit_code() != EXIT_OK
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert "is another writer's" in driver.termination.message, driver.output[-3000:]
    assert "Multiple streaming queries are concurrently using" in driver.output
    where = driver.config.storage
    batch = newest(object_store, where, "offsets")
    key = where.key("lineages", "1", "main", "offsets", str(batch))
    assert object_store.text(where.bucket, key) == "the other's"
    assert newest(object_store, where, "commits") == batch - 1
    logs = [request for request in front.requests if put_of("offsets")(request) or put_of("commits")(request)]
    assert {request.headers.get("if-none-match") for request in logs} == {"*"}


def test_the_first_of_two_writers_wins_with_files_of_any_size_and_what_is_cancelled_leaves_nothing(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    driver = start_driver(
        "files",
        "files_of_two_writers.py",
        args=(f"s3a://{place.bucket}/folder",),
        spark_conf={"spark.hadoop.fs.s3a.multipart.size": "5M"},
    )
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert "files at first: 0" in driver.output
    exists = "org.apache.hadoop.fs.FileAlreadyExistsException"
    assert f"small: written, then {exists}" in driver.output
    assert f"large: written, then {exists}" in driver.output
    assert object_store.keys(place.bucket, "folder/") == ["folder/large", "folder/overwritten", "folder/small"]
    assert object_store.text(place.bucket, "folder/small") == "one"
    assert set(object_store.text(place.bucket, "folder/large")) == {"x"}
    assert object_store.text(place.bucket, "folder/overwritten") == "after"
    assert "Uploads" not in object_store.client.list_multipart_uploads(Bucket=place.bucket)
    # What was seen of a file is never taken for another file of the same name.
    missing, changed = "java.io.FileNotFoundException", "org.apache.hadoop.fs.s3a.RemoteFileChangedException"
    assert f"there: True True False {missing}" in driver.output
    assert "listed: first" in driver.output
    assert "listed, then written here: second" in driver.output
    assert f"seen, then written elsewhere: {changed} third" in driver.output
    assert f"deleted: False {missing}" in driver.output


@pytest.mark.long
def test_state_that_is_pinned_is_cleaned_up_when_the_pin_is_gone(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    quick = {"maintenanceInterval": "100ms", "rocksdb.changelogCheckpointing.enabled": "false"}
    settings = {f"spark.sql.streaming.stateStore.{name}": value for name, value in quick.items()}
    settings["spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint"] = "0"
    driver = start_driver("app", "counting.py", min_batches_to_retain=2, spark_conf=settings)
    pin = place.key("lineages", "1.pin")

    def state() -> set[str]:
        keys = object_store.keys(place.bucket, place.key("lineages", "1", "main", "state", "0") + "/")
        return {key for key in keys if key.endswith((".zip", ".sst"))}

    def stays() -> set[str]:
        """Return the state's files if all of them are still there some batches later."""
        before = state()
        driver.await_batch(driver.batch() + 6)
        return before if before <= state() else set()

    driver.await_batch(3)
    object_store.client.put_object(Bucket=place.bucket, Key=pin, Body=b"{}")
    # Twice: for once, Spark may just have been slow to clean up.
    pinned = wait_for("the pin's being seen", lambda: stays() and stays(), 600, 0)
    object_store.client.delete_object(Bucket=place.bucket, Key=pin)
    # Not the SST files: some of them may be of use for long.
    zips = {key for key in pinned if key.endswith(".zip")}
    assert zips
    wait_for("Spark's cleaning", lambda: not zips & state(), 300, 0.5)
