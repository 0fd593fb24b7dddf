"""The store in memory keeps the contract, and does to its users what real ones do: fails, and lets others go first."""

from collections.abc import Callable

import pytest

from tidegate_spark.storage.store import ObjectStore, Place
from tidegate_testing.memory_store import Buckets, Call, KeyConflictError, MemoryStore
from tidegate_testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def stores(self) -> tuple[ObjectStore, ObjectStore]:
        buckets = Buckets()
        return MemoryStore(buckets, "here"), MemoryStore(buckets, "there")


def failing(verb: str, done: bool) -> Callable[[Call], None]:
    def watch(call: Call) -> None:
        if (call.verb, call.done) == (verb, done):
            raise ConnectionError("503")

    return watch


REQUESTS: dict[str, Callable[[ObjectStore], object]] = {
    "put": lambda store: store.put("b", b""),
    "put_if": lambda store: store.put_if("b", b"", None),
    "copy": lambda store: store.copy(Place("here", "a"), "b", 1, '"c4ca4238a0b923820dcc509a6f75849b"'),
    "delete": lambda store: store.delete(["a"]),
}


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_fails_before_it_is_carried_out_or_its_answer_is_lost(verb: str, done: bool) -> None:
    buckets = Buckets()
    buckets.write("here", "a", b"1")
    with pytest.raises(ConnectionError):
        REQUESTS[verb](MemoryStore(buckets, "here", failing(verb, done)))
    assert (buckets.keys("here") != ["a"]) == done


def test_a_listing_changes_between_its_pages() -> None:
    buckets = Buckets()
    for key in "abcd":
        buckets.write("here", key, b"")
    listing = MemoryStore(buckets, "here", page=2).list("")
    assert [next(listing).key, next(listing).key] == ["a", "b"]
    for key in "ac":
        buckets.remove("here", key)
    buckets.write("here", "e", b"")
    assert [entry.key for entry in listing] == ["d", "e"]


@pytest.mark.parametrize(("first", "second"), [("a", "a/b"), ("a/b", "a")])
def test_a_key_is_not_also_a_directory(first: str, second: str) -> None:
    store = MemoryStore(Buckets(), "here")
    store.put(first, b"")
    with pytest.raises(KeyConflictError):
        store.put(second, b"")


def test_a_store_that_encrypts_has_another_etag_for_each_write() -> None:
    store = MemoryStore(Buckets(opaque=True), "here")
    store.put("a", b"1")
    first = store.get("a")
    store.put("a", b"1")
    assert first is not None
    assert store.get("a") != first
