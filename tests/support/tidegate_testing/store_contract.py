"""What snapshots rely on in an object store. A test class with a fixture ``stores`` inherits from it.

Each test starts with two empty buckets of one store; objects of 5 MiB and more are copied in parts there.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate_spark.storage.store import ObjectStore, Place, VanishedError, agree

ODD_KEYS = ("a b", "a+b", "a%20b", "ä/ö", "k=v/part-0", "q'\"&?#", "x" * 200)
Stores = tuple[ObjectStore, ObjectStore]


def etag_of(store: ObjectStore, key: str) -> str:
    """Return the ETag of an object that is there."""
    found = store.head(key)
    assert found is not None
    return found.etag


def copied(store: ObjectStore, source: str, key: str) -> None:
    """Copy an object that is there."""
    found = store.head(source)
    assert found is not None
    store.copy(Place(store.bucket, source), key, found.size, found.etag)


class StoreContract:
    def test_an_object_that_is_not_there_is_none(self, stores: Stores) -> None:
        assert (stores[0].get("a"), stores[0].head("a")) == (None, None)

    def test_what_was_put_is_read_found_and_listed_as_the_same(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a/b", b"body")
        got, found, (entry,) = store.get("a/b"), store.head("a/b"), list(store.list(""))
        assert got is not None
        assert found is not None
        assert got[0] == b"body"
        assert got[1] == found.etag == entry.etag
        assert (entry.key, entry.size, found.size) == ("a/b", 4, 4)
        assert entry.modified > 0

    def test_an_object_is_read_to_its_end(self, stores: Stores) -> None:
        store, _ = stores
        body = bytes(range(256)) * 5000
        store.put("a", body)
        found = store.digest("a")
        assert found is not None
        assert (found.size, found.md5) == (len(body), hashlib.md5(body, usedforsecurity=False).hexdigest())
        assert store.digest("b") is None

    def test_an_object_is_written_into_a_file_as_it_is(self, stores: Stores, tmp_path: Path) -> None:
        store, _ = stores
        body = bytes(range(256)) * 5000
        for content in (body, b"", b"abc"):
            store.put("a", content)
            assert store.get_file("a", tmp_path / "file") == len(content)
            assert (tmp_path / "file").read_bytes() == content
        assert store.get_file("b", tmp_path / "none") is None

    def test_the_head_of_an_object_is_read_and_all_of_a_short_one(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", bytes(range(100)))
        store.put("empty", b"")
        heads = [store.get_head("a", size) for size in (1, 10, 100, 1000)]
        assert heads == [bytes(range(100))[:size] for size in (1, 10, 100, 1000)]
        assert (store.get_head("empty", 10), store.get_head("b", 10)) == (b"", None)

    def test_a_file_is_put_as_it_is_whatever_its_size(self, stores: Stores, tmp_path: Path) -> None:
        store, _ = stores
        for size in (0, 3, 6 << 20):
            body = bytes(size % 251 for size in range(size))
            (tmp_path / "file").write_bytes(body)
            store.put_file("a/b", tmp_path / "file")
            got = store.get("a/b")
            assert got is not None
            assert got[0] == body

    def test_put_replaces(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", b"1")
        before = etag_of(store, "a")
        store.put("a", b"2")
        assert store.get("a") == (b"2", etag_of(store, "a"))
        assert etag_of(store, "a") != before

    def test_buckets_are_apart(self, stores: Stores) -> None:
        stores[0].put("a", b"1")
        assert stores[1].get("a") is None
        assert stores[0].bucket != stores[1].bucket
        assert stores[0].service == stores[1].service

    # --- conditions ---

    def test_an_object_is_created_once(self, stores: Stores) -> None:
        store, _ = stores
        etag = store.put_if("a", b"1", None)
        assert store.put_if("a", b"2", None) is None
        assert store.get("a") == (b"1", etag)

    def test_an_object_is_replaced_as_long_as_it_is_the_same(self, stores: Stores) -> None:
        store, _ = stores
        first = store.put_if("a", b"1", None)
        second = store.put_if("a", b"2", first)
        assert second is not None
        assert store.put_if("a", b"3", first) is None
        assert store.get("a") == (b"2", second)

    def test_an_object_that_is_gone_is_not_replaced(self, stores: Stores) -> None:
        store, _ = stores
        etag = store.put_if("a", b"1", None)
        store.delete(["a"])
        assert store.put_if("a", b"2", etag) is None
        assert store.get("a") is None

    @pytest.mark.parametrize("exists", [False, True])
    def test_of_many_conditional_writes_at_once_one_succeeds(self, stores: Stores, exists: bool) -> None:
        store, _ = stores
        etag = store.put_if("a", b"before", None) if exists else None
        with ThreadPoolExecutor(8) as pool:
            written = list(pool.map(lambda body: store.put_if("a", body, etag), [b"%d" % n for n in range(8)]))
        (winner,) = [n for n, new in enumerate(written) if new is not None]
        assert store.get("a") == (b"%d" % winner, written[winner])

    # --- listings ---

    def test_a_listing_has_what_starts_with_the_prefix(self, stores: Stores) -> None:
        store, _ = stores
        for key in ("a/1", "a/2/3", "ab/1", "b/1"):
            store.put(key, b"")
        assert [entry.key for entry in store.list("a/")] == ["a/1", "a/2/3"]
        assert list(store.list("c/")) == []

    def test_a_marker_of_a_directory_is_not_listed(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a/", b"")
        store.put("a/b/", b"")
        store.put("a/b/c", b"1")
        assert [entry.key for entry in store.list("a/")] == ["a/b/c"]

    def test_a_listing_of_many_pages_is_whole_and_all_of_it_can_be_deleted(self, stores: Stores) -> None:
        store, _ = stores
        keys = [f"many/{number:04}" for number in range(2001)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: store.put(key, b""), keys))
        assert [entry.key for entry in store.list("many/")] == keys
        store.delete(keys)
        assert list(store.list("many/")) == []

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_a_key_may_have_odd_characters(self, stores: Stores, key: str) -> None:
        store, _ = stores
        store.put(key, b"1")
        assert [entry.key for entry in store.list("")] == [key]
        copied(store, key, f"copies/{key}")
        assert store.get(f"copies/{key}") is not None
        store.delete([key, f"copies/{key}"])
        assert list(store.list("")) == []

    # --- copies ---

    @pytest.mark.parametrize("body", [b"", b"body"])
    def test_a_copy_is_the_same(self, stores: Stores, body: bytes) -> None:
        here, there = stores
        here.put("a", body)
        for store in stores:
            found = store.copy(Place(here.bucket, "a"), "copies/a", len(body), etag_of(here, "a"))
            got, listed = store.get("copies/a"), list(store.list("copies/"))
            assert got == (body, found.etag)
            assert [(entry.size, entry.etag) for entry in listed] == [(found.size, found.etag)] == [(len(body), got[1])]
        assert there.get("a") is None

    def test_a_copy_replaces_what_is_there(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", b"new")
        store.put("b", b"old")
        copied(store, "a", "b")
        assert store.get("b") == (b"new", etag_of(store, "b"))

    def test_what_is_gone_is_not_copied(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", b"1")
        etag = etag_of(store, "a")
        store.delete(["a"])
        with pytest.raises(VanishedError, match="a is gone"):
            store.copy(Place(store.bucket, "a"), "b", 1, etag)
        assert store.get("b") is None

    @pytest.mark.parametrize("size", [3, 6 << 20])
    def test_what_has_changed_is_not_copied(self, stores: Stores, size: int) -> None:
        store, _ = stores
        store.put("a", b"1" * size)
        etag = etag_of(store, "a")
        store.put("a", b"2" * size)
        with pytest.raises(VanishedError, match="a has changed"):
            store.copy(Place(store.bucket, "a"), "b", size, etag)
        assert store.get("b") is None

    def test_a_large_object_is_copied_whole(self, stores: Stores) -> None:
        here, there = stores
        body = bytes(range(256)) * (11 << 12)
        here.put("a", body)
        source = here.head("a")
        assert source is not None
        copy = there.copy(Place(here.bucket, "a"), "b", source.size, source.etag)
        assert there.get("b") == (body, copy.etag)
        assert agree(source, copy)

    def test_a_large_object_that_is_gone_is_not_copied(self, stores: Stores) -> None:
        store, _ = stores
        with pytest.raises(VanishedError, match="a is gone"):
            store.copy(Place(store.bucket, "a"), "b", 11 << 20, '"d41d8cd98f00b204e9800998ecf8427e"')

    def test_contents_that_differ_do_not_agree(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", b"1")
        store.put("b", b"2")
        one, other = store.head("a"), store.head("b")
        assert one is not None
        assert other is not None
        assert not agree(one, other)

    # --- deleting ---

    def test_deleting_what_is_not_there_is_fine(self, stores: Stores) -> None:
        store, _ = stores
        store.put("a", b"1")
        store.delete(["b", "a", "c/d"])
        store.delete([])
        assert list(store.list("")) == []
