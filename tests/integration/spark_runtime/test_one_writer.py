"""A driver that lost the fence stops, and one that comes too late does not begin."""

import dataclasses
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_DEPENDENCY, EXIT_OK, FENCE_FILE, OPENS_NOTHING, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim.fence import Holder, take
from tidegate_spark.storage.claim.fencing import FenceObject
from tidegate_testing.driver_process import DriverProcess, ObjectStore, driver_config
from tidegate_testing.store_front import Request, Rule, StoreFront
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

IMPATIENT_S3A = {"spark.hadoop.fs.s3a.attempts.maximum": "1", "spark.hadoop.fs.s3a.retry.limit": "1"}


@pytest.fixture
def front(object_store: ObjectStore) -> Iterator[StoreFront]:
    """What the driver takes for the S3 server."""
    with StoreFront(object_store.endpoint) as store_front:
        yield store_front


def behind(front: StoreFront, place: Storage, app: str) -> Storage:
    return dataclasses.replace(place, uri=place.uri.rpartition("/")[0] + f"/{app}", endpoint=front.endpoint)


def take_over(store: ObjectStore, place: Storage, app: str, epoch: int = 2) -> None:
    """Be a driver of the next epoch in another pod."""
    uid = driver_config(app, "", place).uid
    other = Holder(uid, epoch=epoch, lineage=1, pod_uid="another pod", process="another process")
    take(FenceObject(store.client, place), other)


def put_of(log: str, batch: int) -> Callable[[Request], bool]:
    """Pick the put of a log's file."""
    return lambda request: request.method == "PUT" and request.key.endswith(f"/main/{log}/{batch}")


def check_before_a_batch(request: Request) -> bool:
    """Pick what the JVM asks about the fence; the thread reads the whole object."""
    return request.method == "HEAD" and request.key.endswith("/" + FENCE_FILE)


def read_by_the_thread(request: Request) -> bool:
    """Pick the reads of the whole fence."""
    return request.method == "GET" and request.key.endswith("/" + FENCE_FILE)


def lost_with(
    picks: Callable[[Request], bool], front: StoreFront, store: ObjectStore, place: Storage, app: str
) -> Rule:
    """Have the fence taken right before a request; the thread learns of it only after the JVM has asked."""
    asked = threading.Event()

    def hold(_: Request) -> None:
        asked.wait(300)

    def lose(_: Request) -> None:
        front.add(Rule(check_before_a_batch, first=lambda request: asked.set()))
        front.add(Rule(read_by_the_thread, first=hold))
        take_over(store, place, app)

    return front.add(Rule(picks, first=lose, times=1))


def batches_of(driver: DriverProcess) -> list[int]:
    """Return the batches that the script was given, in order."""
    return [int(number) for number in re.findall(r"^batch (\d+) of", driver.output, re.MULTILINE)]


def latest(store: ObjectStore, place: Storage, log: str) -> int:
    """Return the newest batch in a log of the query."""
    keys = store.keys(place.bucket, place.key("lineages", "1", "main", log))
    return max(int(key.rpartition("/")[2]) for key in keys if key.rpartition("/")[2].isdigit())


@pytest.fixture(scope="module")
def fenced(start_shared: StartDriver, object_store: ObjectStore) -> tuple[DriverProcess, dict[str, Any]]:
    """A driver of epoch 5 whose fence was taken, which has ended; what the fence said before."""
    driver = start_shared("fenced", "counting.py", epoch=5)
    driver.await_batch(2)
    place = driver.config.storage
    holder = json.loads(object_store.text(place.bucket, place.key(FENCE_FILE)))
    take_over(object_store, place, "fenced", epoch=6)
    driver.exit_code()
    return driver, holder


def test_a_driver_whose_fence_was_taken_stops_at_a_boundary_and_is_not_started_again(
    fenced: tuple[DriverProcess, dict[str, Any]], object_store: ObjectStore
) -> None:
    driver, _ = fenced
    place = driver.config.storage
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert ended.reason is Reason.FENCED
    assert "epoch 6" in ended.message
    assert ended.boundary
    assert (ended.adopt_epoch, ended.adopt_lineage) == (0, 0)
    assert latest(object_store, place, "offsets") == latest(object_store, place, "commits") == ended.batches["main"]


@pytest.mark.parametrize("epoch", [3, 9], ids=["an earlier epoch", "an earlier lineage"])
def test_a_driver_behind_the_storages_epoch_or_lineage_says_which_one_that_is_and_writes_nothing(
    start_process: StartDriver, object_store: ObjectStore, epoch: int
) -> None:
    driver = start_process("late", "counting.py", epoch=epoch, lineage=1, opening=OPENS_NOTHING)
    place = driver.config.storage
    known = {"uid": driver.config.uid, "namespace": "tests", "app": "late", "epoch": 8, "lineage": 2}
    driver.kill()
    object_store.client.put_object(Bucket=place.bucket, Key=place.key("app.json"), Body=json.dumps(known).encode())
    driver.start()
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert (ended.reason, ended.adopt_epoch, ended.adopt_lineage) == (Reason.FENCED, 8, 2)


def test_the_fence_says_who_writes(fenced: tuple[DriverProcess, dict[str, Any]]) -> None:
    driver, holder = fenced
    assert (holder["uid"], holder["epoch"], holder["lineage"]) == (driver.config.uid, 5, 1)


def test_a_driver_that_lost_the_fence_does_not_begin_another_batch(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    storage = behind(front, place, "between")
    between = lost_with(put_of("commits", 2), front, object_store, storage, "between")
    driver = start_driver("between", "each_batch.py", storage=storage)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert between.hits == 1
    assert ended.reason is Reason.FENCED
    assert ended.message.startswith("A driver of epoch 2 took the storage ")
    assert ended.batches == {"main": 2}
    assert ended.boundary
    where = driver.config.storage
    assert latest(object_store, where, "offsets") == latest(object_store, where, "commits") == 2
    assert batches_of(driver) == [0, 1, 2]
    assert [request for request in front.requests if put_of("offsets", 3)(request)] == []
    assert "dev.tidegate.spark.FencedException" in driver.output


@pytest.mark.parametrize("where", ["in a bucket", "on a disk"])
def test_a_file_sink_takes_no_note_of_a_batch_after_the_fence_was_lost(  # noqa: PLR0917 - fixtures
    where: str, front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    app = where.replace(" ", "-")
    storage = behind(front, place, app)
    # The look before the batch was in time: it is put out, and would take its number in the sink's log.
    between = lost_with(put_of("offsets", 2), front, object_store, storage, app)
    folder = f"s3a://{place.bucket}/out" if where == "in a bucket" else str(tmp_path / "out")
    driver = start_driver(app, "writing_files.py", args=(folder,), storage=storage)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert (between.hits, driver.termination.reason) == (1, Reason.FENCED)
    in_bucket = (key.rpartition("/")[2] for key in object_store.keys(place.bucket, "out/_spark_metadata/"))
    on_disk = (path.name for path in tmp_path.glob("out/_spark_metadata/*"))
    assert {name for name in (*in_bucket, *on_disk) if name.isdigit()} == {"0", "1"}
    assert latest(object_store, driver.config.storage, "offsets") == 2
    assert latest(object_store, driver.config.storage, "commits") == 1


@pytest.mark.long
def test_a_query_that_is_started_again_without_the_fence_does_not_repeat_its_batch(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    storage = behind(front, place, "again")
    inside = lost_with(put_of("offsets", 2), front, object_store, storage, "again")
    driver = start_driver("again", "persistent.py", storage=storage)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert inside.hits == 1
    assert driver.termination.reason is Reason.FENCED
    assert batches_of(driver) == [0, 1, 2]


@pytest.mark.long
def test_a_store_that_does_not_say_whose_the_fence_is_is_no_loss_of_it(
    front: StoreFront, start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    storage = behind(front, place, "silent")
    driver = start_driver("silent", "each_batch.py", storage=storage, spark_conf=IMPATIENT_S3A)
    driver.await_batch(1)
    silent = front.add(Rule(check_before_a_batch, lose_answer=True, times=1))
    wait_for("a look without an answer", lambda: silent.hits == 1, 300, 0.1)
    driver.await_batch(driver.batch() + 2)

    silent = front.add(Rule(check_before_a_batch, lose_answer=True))
    assert driver.exit_code() == EXIT_DEPENDENCY, driver.output[-3000:]
    assert silent.hits >= 1
    ended = driver.termination
    assert ended.reason is Reason.STORAGE_UNAVAILABLE
    last = latest(object_store, driver.config.storage, "commits")
    assert latest(object_store, driver.config.storage, "offsets") == last
    assert batches_of(driver) == list(range(last + 1))
    front.clear()
    driver.start()
    driver.await_batch(last + 1)
