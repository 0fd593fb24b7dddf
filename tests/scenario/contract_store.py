"""What the simulated and the real S3 server have in common. A test class with a fixture ``place`` inherits from it."""

import dataclasses
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.scenario.object_store import FencePort
from tidegate_spark.contract.protocol import FENCE_FILE, LOG_PREFIX, Storage
from tidegate_spark.process import logs
from tidegate_spark.storage.claim import fence
from tidegate_spark.storage.claim.fence import Fenced, Held, Holder
from tidegate_spark.storage.s3_client import create_object, read_object, replace_object, status_of, write_object_if

ME = Holder(uid="app-1", epoch=1, lineage=1, pod_uid="pod-1", process="a")
OTHER = dataclasses.replace(ME, epoch=2, pod_uid="pod-2", process="b")


@dataclasses.dataclass(frozen=True)
class Place:
    """A client and an empty place in a bucket."""

    client: Any
    storage: Storage

    def key(self, name: str) -> str:
        """Return a key."""
        return self.storage.key(name)


def level_of(place: Place, below: str, **more: Any) -> tuple[list[str], list[str]]:
    """Return the folders directly below a place, and the keys there."""
    prefix = place.key(below.rstrip("/")) + "/"
    found = place.client.list_objects_v2(Bucket=place.storage.bucket, Prefix=prefix, Delimiter="/", **more)
    folders, keys = found.get("CommonPrefixes", []), found.get("Contents", [])
    return [each["Prefix"] for each in folders], [each["Key"] for each in keys]


class ObjectStoreContract:
    """Each test starts with nothing below the place's prefix."""

    def test_an_object_that_is_not_there_is_none(self, place: Place) -> None:
        assert read_object(place.client, place.storage, place.key("a")) is None

    def test_what_was_written_is_read_with_the_same_etag(self, place: Place) -> None:
        etag = write_object_if(place.client, place.storage, place.key("a"), b"1", None)
        assert read_object(place.client, place.storage, place.key("a")) == (b"1", etag)

    def test_an_object_is_created_once(self, place: Place) -> None:
        assert create_object(place.client, place.storage, place.key("a"), b"1")
        assert not create_object(place.client, place.storage, place.key("a"), b"2")
        assert write_object_if(place.client, place.storage, place.key("a"), b"3", None) is None
        found = read_object(place.client, place.storage, place.key("a"))
        assert found is not None
        assert found[0] == b"1"

    def test_an_object_is_replaced_only_as_it_was_read(self, place: Place) -> None:
        first = write_object_if(place.client, place.storage, place.key("a"), b"1", None)
        second = write_object_if(place.client, place.storage, place.key("a"), b"2", first)
        assert second not in (None, first)
        assert write_object_if(place.client, place.storage, place.key("a"), b"3", first) is None
        assert not replace_object(place.client, place.storage, place.key("a"), b"3", str(first))
        assert read_object(place.client, place.storage, place.key("a")) == (b"2", second)

    def test_the_same_content_has_the_same_etag(self, place: Place) -> None:
        first = write_object_if(place.client, place.storage, place.key("a"), b"1", None)
        assert write_object_if(place.client, place.storage, place.key("b"), b"1", None) == first

    def test_an_object_that_is_gone_is_not_replaced(self, place: Place) -> None:
        etag = str(write_object_if(place.client, place.storage, place.key("a"), b"1", None))
        place.client.delete_object(Bucket=place.storage.bucket, Key=place.key("a"))
        with pytest.raises(ClientError) as refused:
            write_object_if(place.client, place.storage, place.key("a"), b"2", etag)
        assert status_of(refused.value) == 404
        assert read_object(place.client, place.storage, place.key("a")) is None

    def test_deleting_what_is_not_there_is_no_error(self, place: Place) -> None:
        place.client.delete_object(Bucket=place.storage.bucket, Key=place.key("a"))
        some = {"Objects": [{"Key": place.key("a")}, {"Key": place.key("b")}], "Quiet": True}
        assert not place.client.delete_objects(Bucket=place.storage.bucket, Delete=some).get("Errors")

    def test_keys_are_listed_by_prefix_and_in_order(self, place: Place) -> None:
        for name in ("b/2", "b/1", "c/1"):
            create_object(place.client, place.storage, place.key(name), b"1")
        pages = place.client.get_paginator("list_objects_v2").paginate(
            Bucket=place.storage.bucket, Prefix=place.key("b") + "/"
        )
        keys = [each["Key"] for page in pages for each in page.get("Contents", []) if not each["Key"].endswith("/")]
        assert keys == [place.key("b/1"), place.key("b/2")]
        assert place.client.list_objects_v2(Bucket=place.storage.bucket, Prefix=place.key("d")).get("Contents") is None

    def test_with_a_delimiter_what_is_at_the_level_is_listed_and_each_folder_once(self, place: Place) -> None:
        for name in ("logs/b/1", "logs/b/2", "logs/a/deep/1", "logs/c", "logs-of-others/1"):
            create_object(place.client, place.storage, place.key(name), b"1")
        assert level_of(place, "logs/") == ([place.key("logs/a/"), place.key("logs/b/")], [place.key("logs/c")])
        assert level_of(place, "logs/a/") == ([place.key("logs/a/deep/")], [])
        assert level_of(place, "d/") == ([], [])

    def test_folders_and_keys_together_are_as_many_as_are_asked_for_the_first_ones(self, place: Place) -> None:
        for name in ("logs/b", "logs/a/1", "logs/a/2", "logs/c/1"):
            create_object(place.client, place.storage, place.key(name), b"1")
        assert level_of(place, "logs/", MaxKeys=2) == ([place.key("logs/a/")], [place.key("logs/b")])

    def test_of_many_processes_the_logs_of_the_newest_stay(self, place: Place) -> None:
        names = [logs.process_name(1_700_000_000.0 + number, 3) for number in range(logs.KEPT_PROCESSES + 2)]
        for name in names:
            logs.put_driver_log(place.client, place.storage, name, b"line")
            logs.put_executor_log(place.client, place.storage, name, "1", b"line")
        assert logs.prune_logs(place.client, place.storage) == 4
        folders, _ = level_of(place, f"{LOG_PREFIX}/")
        assert folders == [place.key(f"{LOG_PREFIX}/{name}/") for name in names[2:]]
        assert logs.prune_logs(place.client, place.storage) == 0

    def test_the_fence_goes_from_one_epoch_to_the_next_and_not_back(self, place: Place) -> None:
        port = FencePort(place.client, place.storage)
        mine = fence.take(port, ME)
        assert isinstance(mine, Held)
        assert fence.check(port, mine) is None
        assert isinstance(fence.take(port, OTHER), Held)
        assert fence.check(port, mine) == Fenced(2, 1)
        assert fence.take(port, ME) == Fenced(2, 1)
        place.client.delete_object(Bucket=place.storage.bucket, Key=place.key(FENCE_FILE))
        assert fence.check(port, mine) == Fenced()
