"""A driver that lost the fence stops, and one that comes too late does not begin."""

import json

from tidegate_spark.fence import Holder, take
from tidegate_spark.fencing import FenceObject
from tidegate_spark.protocol import EXIT_OK, FENCE_FILE, Reason, Storage
from tidegate_testing.driver_process import ObjectStore

from .conftest import StartDriver


def latest(store: ObjectStore, place: Storage, log: str) -> int:
    """Return the newest batch in a log of the query."""
    keys = store.keys(place.bucket, place.key("lineages", "1", "main", log))
    return max(int(key.rpartition("/")[2]) for key in keys if key.rpartition("/")[2].isdigit())


def test_a_driver_whose_fence_was_taken_stops_at_a_boundary_and_is_not_started_again(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    driver = start_driver("fenced", "counting.py")
    driver.await_batch(2)
    place = driver.config.storage
    other = Holder(driver.config.uid, epoch=2, lineage=1, pod_uid="another pod", process="another process")
    take(FenceObject(object_store.client, place), other)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert ended.reason is Reason.FENCED
    assert "epoch 2" in ended.message
    assert ended.boundary
    assert (ended.adopt_epoch, ended.adopt_lineage) == (0, 0)
    assert latest(object_store, place, "offsets") == latest(object_store, place, "commits") == ended.batches["main"]


def test_a_driver_behind_the_storages_epoch_says_which_one_that_is_and_writes_nothing(
    start_process: StartDriver, object_store: ObjectStore
) -> None:
    driver = start_process("late", "counting.py", epoch=3, lineage=1)
    place = driver.config.storage
    known = {"uid": driver.config.uid, "epoch": 8, "lineage": 2}
    driver.kill()
    object_store.client.put_object(Bucket=place.bucket, Key=place.key("app.json"), Body=json.dumps(known).encode())
    driver.start()
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    ended = driver.termination
    assert (ended.reason, ended.adopt_epoch, ended.adopt_lineage) == (Reason.FENCED, 8, 2)


def test_the_fence_says_who_writes(start_driver: StartDriver, object_store: ObjectStore) -> None:
    driver = start_driver("holder", "counting.py", epoch=5)
    driver.await_batch(0)
    place = driver.config.storage
    holder = json.loads(object_store.text(place.bucket, place.key(FENCE_FILE)))
    assert (holder["uid"], holder["epoch"], holder["lineage"]) == (driver.config.uid, 5, 1)
