"""How the catalog is changed while others change it, and what keeps it from being lost. The store is in memory."""

import dataclasses
from collections.abc import Callable

import pytest

from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State
from tidegate_spark.snapshots.catalog_json import encode
from tidegate_spark.snapshots.repository import ATTEMPTS, CatalogContendedError, CatalogLostError, SnapshotRepository
from tidegate_testing.memory_store import Buckets, Call, MemoryStore

WANTED = Snapshot(State.TAKING, 0.0)


def begin(name: str) -> Callable[[Catalog], Catalog]:
    return lambda known: catalog.begin(known, name, WANTED)


def repository(buckets: Buckets, watch: Callable[[Call], None] = lambda call: None) -> SnapshotRepository:
    return SnapshotRepository(MemoryStore(buckets, "here", watch), "apps/orders", lambda seconds: None)


def on(verb: str, times: int, action: Callable[[], object], done: bool = False) -> Callable[[Call], None]:
    """Return what does something at the first requests of a kind, before or after they are carried out."""
    left = [times]

    def watch(call: Call) -> None:
        if (call.verb, call.done) == (verb, done) and left[0]:
            left[0] -= 1
            action()

    return watch


def test_where_there_is_no_catalog_it_is_empty() -> None:
    buckets = Buckets()
    assert repository(buckets).read() == Catalog()
    assert buckets.keys("here") == []


def test_a_change_is_there_for_the_next_one() -> None:
    buckets = Buckets()
    repository(buckets).change(begin("a"))
    changed = repository(buckets).change(begin("b"))
    assert list(changed.snapshots) == ["a", "b"]
    assert repository(buckets).read() == changed
    assert buckets.keys("here") == ["apps/orders/snapshots/catalog.json"]


def test_an_application_may_have_the_bucket_for_itself() -> None:
    alone = SnapshotRepository(MemoryStore(Buckets(), "here"), "")
    alone.change(begin("a"))
    assert list(alone.read().snapshots) == ["a"]
    assert alone.below(alone.key("objects", "x")) == "objects/x"


def test_what_changes_nothing_is_not_written() -> None:
    buckets = Buckets()
    repository(buckets).change(begin("a"))
    before = buckets.content["here"].copy()
    repository(buckets).change(begin("a"))
    assert buckets.content["here"] == before


def test_what_others_wrote_in_between_stays() -> None:
    buckets = Buckets()
    others = iter("bcd")
    mine = repository(buckets, on("put_if", 3, lambda: repository(buckets).change(begin(next(others)))))
    assert set(mine.change(begin("a")).snapshots) == {"a", "b", "c", "d"}


def test_a_content_does_not_come_twice() -> None:
    buckets = Buckets()
    repository(buckets).change(begin("a"))
    written = {repository(buckets).store.get(repository(buckets).catalog_key)}
    for _ in range(3):
        repository(buckets).change(
            lambda known: dataclasses.replace(known, condemned=known.condemned ^ frozenset({"1.sst.x"}))
        )
        written.add(repository(buckets).store.get(repository(buckets).catalog_key))
    assert len(written) == 4


def test_a_change_whose_answer_was_lost_is_found_when_it_is_made_again() -> None:
    buckets = Buckets()

    def lose() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        repository(buckets, on("put_if", 1, lose, done=True)).change(begin("a"))
    written = repository(buckets).read()
    assert repository(buckets).change(begin("a")) == written


@pytest.mark.parametrize("torn", [1, 3])
def test_a_content_with_the_etag_of_another_one_is_read_again(torn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = Buckets()
    repository(buckets).change(begin("a"))
    old = repository(buckets).store.get(repository(buckets).catalog_key)
    repository(buckets).change(begin("b"))
    mine = repository(buckets)
    get, left = mine.store.get, [torn]

    def torn_get(key: str) -> tuple[bytes, str] | None:
        found = get(key)
        if found is None or old is None or not left[0]:
            return found
        left[0] -= 1
        return old[0], found[1]

    monkeypatch.setattr(mine.store, "get", torn_get)
    assert set(mine.change(begin("c")).snapshots) == {"a", "b", "c"}


def test_where_etags_are_no_checksums_they_are_believed() -> None:
    buckets = Buckets(opaque=True)
    for name in "ab":
        repository(buckets).change(begin(name))
    assert set(repository(buckets).read().snapshots) == {"a", "b"}


def test_who_is_always_slower_gives_up() -> None:
    buckets = Buckets()
    numbers = iter(range(2 * ATTEMPTS))
    mine = repository(
        buckets, on("put_if", 2 * ATTEMPTS, lambda: repository(buckets).change(begin(f"x{next(numbers)}")))
    )
    with pytest.raises(CatalogContendedError, match="was changed 50 times by others"):
        mine.change(begin("a"))


def test_what_must_not_be_is_not_written() -> None:
    buckets = Buckets()
    with pytest.raises(AssertionError, match=r"object 1\.sst\.a is known and not referred to"):
        repository(buckets).change(lambda known: dataclasses.replace(known, objects={"1.sst.a": 1}))
    assert buckets.keys("here") == []


@pytest.mark.parametrize("left", ["snapshots/a/manifest.json", "objects/1.sst.a"])
def test_without_its_catalog_nothing_is_changed(left: str) -> None:
    buckets = Buckets()
    buckets.write("here", f"apps/orders/{left}", b"")
    with pytest.raises(CatalogLostError, match=r"apps/orders/snapshots/catalog\.json is gone, and there are snapshots"):
        repository(buckets).change(begin("b"))
    assert buckets.keys("here") == [f"apps/orders/{left}"]


def test_a_catalog_that_somebody_made_meanwhile_is_not_lost() -> None:
    buckets = Buckets()

    def somebody() -> None:
        repository(buckets).change(begin("b"))
        buckets.write("here", "apps/orders/snapshots/b/files/main/metadata", b"")

    mine = repository(buckets, on("list", 1, somebody))
    assert set(mine.change(begin("a")).snapshots) == {"a", "b"}


def test_the_catalog_of_another_application_is_its_own() -> None:
    buckets = Buckets()
    buckets.write("here", "apps/orders-2/snapshots/catalog.json", encode(Catalog(serial=1, condemned=frozenset("x"))))
    assert repository(buckets).read() == Catalog()
    repository(buckets).change(begin("a"))
