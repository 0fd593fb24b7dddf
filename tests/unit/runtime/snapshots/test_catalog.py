"""What may become of the catalog: each test states one, and asserts the next. No I/O."""

import dataclasses
import json
from collections.abc import Callable

import pytest

from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import (
    MEMORY_SECONDS,
    Catalog,
    DisposedError,
    HeldError,
    NotBeingTakenError,
    NotReadyError,
    Snapshot,
    State,
    UnknownSnapshotError,
    violations,
)
from tidegate_spark.snapshots.catalog_json import UnreadableCatalogError, decode, encode
from tidegate_spark.storage.store import NewerStorageError, SnapshotError

NOW = 1000.0
WANTED = Snapshot(State.TAKING, NOW)


def taking(known: Catalog, name: str, **files: int) -> Catalog:
    """Return the catalog with a snapshot that needs shared files, name -> size."""
    return catalog.reserve(catalog.begin(known, name, WANTED), name, files)[0]


def ready(known: Catalog, name: str, *needed: str, **files: int) -> Catalog:
    """Return the catalog with a complete snapshot; of ``files`` it needs ``needed``, all if none are named."""
    known, names = catalog.reserve(catalog.begin(known, name, WANTED), name, files)
    objects = frozenset(names[file] for file in needed or files)
    return catalog.finish(known, name, Snapshot(State.READY, 0, objects=objects, digest=f"digest of {name}"))


def complete(known: Catalog, name: str, wanted: Snapshot) -> Catalog:
    """Return the catalog with a complete snapshot that was begun as ``wanted`` and needs no shared file."""
    begun = catalog.begin(known, name, wanted)
    return catalog.finish(begun, name, Snapshot(State.READY, 0, digest=f"digest of {name}"))


# --- taking ---


def test_a_snapshot_is_begun_once() -> None:
    begun = catalog.begin(Catalog(), "a", WANTED)
    assert begun.snapshots == {"a": WANTED}
    assert catalog.begin(begun, "a", dataclasses.replace(WANTED, created=NOW + 1)) is begun


@pytest.mark.parametrize("name", ["", "A", "a.b", "a/b", "-a", "a-", "a" * 64, "catalog.json"])
def test_an_id_is_of_plain_characters(name: str) -> None:
    with pytest.raises(SnapshotError, match="is no id"):
        catalog.begin(Catalog(), name, WANTED)


def test_the_parent_is_the_newest_of_the_lineage() -> None:
    known = ready(ready(Catalog(), "a"), "b")
    assert catalog.begin(known, "c", WANTED).snapshots["c"].parent == "b"
    assert catalog.begin(known, "c", dataclasses.replace(WANTED, lineage=2)).snapshots["c"].parent == ""


def test_the_first_of_a_lineage_has_what_that_started_from_for_its_parent() -> None:
    known = ready(ready(Catalog(), "a"), "b")
    wanted = dataclasses.replace(WANTED, lineage=2, parent="a")
    first = complete(known, "c", wanted)
    assert first.snapshots["c"].parent == "a"
    assert catalog.begin(first, "d", wanted).snapshots["d"].parent == "c"


def test_one_that_is_begun_when_its_application_is_rolled_back_is_of_the_lineage_that_it_is_then_taken_of() -> None:
    known = taking(ready(ready(Catalog(), "a"), "b"), "c", x=1)
    wanted = dataclasses.replace(WANTED, created=NOW + 1, lineage=2, parent="a")
    again = catalog.begin(known, "c", wanted)
    assert again.snapshots["c"] == dataclasses.replace(known.snapshots["c"], lineage=2, parent="a")
    assert catalog.begin(again, "c", wanted) is again
    assert catalog.begin(complete(again, "d", wanted), "e", wanted).snapshots["e"].parent == "d"
    assert catalog.begin(again, "b", wanted).snapshots["b"] == known.snapshots["b"], "it is complete"


def test_what_an_upgrade_keeps_for_itself_is_nobodys_parent() -> None:
    pin = dataclasses.replace(WANTED, holders=frozenset({"up-1"}))
    known = complete(ready(Catalog(), "a"), "up-1", pin)
    assert known.snapshots["up-1"].parent == "a"
    assert catalog.begin(known, "b", WANTED).snapshots["b"].parent == "a"
    # Held by others as well: somebody asked for it.
    known = catalog.hold(ready(known, "b"), "b", "fork-1")
    assert catalog.begin(known, "c", WANTED).snapshots["c"].parent == "b"


def test_a_shared_file_is_brought_in_once() -> None:
    first, names = catalog.reserve(catalog.begin(Catalog(), "a", WANTED), "a", {"1.sst": 10, "2.sst": 20})
    assert names == {"1.sst": "1.sst.a", "2.sst": "2.sst.a"}
    second, names = catalog.reserve(catalog.begin(first, "b", WANTED), "b", {"2.sst": 20, "3.sst": 30})
    assert names == {"2.sst": "2.sst.a", "3.sst": "3.sst.b"}
    assert second.objects == {"1.sst.a": 10, "2.sst.a": 20, "3.sst.b": 30}
    assert second.snapshots["b"].objects == {"2.sst.a", "3.sst.b"}
    assert violations(second) == []


def test_a_file_of_that_name_and_another_size_is_another_file() -> None:
    known = ready(Catalog(), "a", **{"1.sst": 10})
    _, names = catalog.reserve(catalog.begin(known, "b", WANTED), "b", {"1.sst": 11})
    assert names == {"1.sst": "1.sst.b"}


def test_a_file_does_not_change_its_size_while_it_is_taken() -> None:
    with pytest.raises(SnapshotError, match=r"1\.sst had 10 bytes before, and now it has 11"):
        catalog.reserve(taking(Catalog(), "a", **{"1.sst": 10}), "a", {"1.sst": 11})


def test_nothing_is_given_back_while_a_snapshot_is_taken() -> None:
    known, _ = catalog.reserve(taking(Catalog(), "a", **{"1.sst": 10}), "a", {"2.sst": 20})
    assert known.snapshots["a"].objects == {"1.sst.a", "2.sst.a"}
    assert known.condemned == frozenset()


def test_what_is_referred_to_already_changes_nothing() -> None:
    known = taking(Catalog(), "a", **{"1.sst": 10, "2.sst": 20})
    assert catalog.reserve(known, "a", {"1.sst": 10})[0] is known


def test_what_a_complete_snapshot_does_not_need_is_condemned() -> None:
    known = ready(Catalog(), "a", "1.sst", **{"1.sst": 10, "2.sst": 20})
    assert (known.objects, known.condemned) == ({"1.sst.a": 10}, frozenset({"2.sst.a"}))
    assert violations(known) == []


def test_what_another_one_refers_to_is_not_condemned() -> None:
    both = taking(taking(Catalog(), "a", **{"1.sst": 10}), "b", **{"1.sst": 10})
    assert catalog.dispose(both, "a").condemned == frozenset()
    assert catalog.dispose(catalog.dispose(both, "a"), "b").condemned == {"1.sst.a"}


def test_a_name_that_was_condemned_is_not_used_again() -> None:
    known = catalog.dispose(ready(Catalog(), "a", **{"1.sst": 10}), "a")
    assert known.condemned == {"1.sst.a"}
    assert catalog.reserve(catalog.begin(known, "b", WANTED), "b", {"1.sst": 10})[1] == {"1.sst": "1.sst.b"}


def test_a_snapshot_keeps_what_it_was_started_from() -> None:
    wanted = dataclasses.replace(WANTED, manual=True, holders=frozenset({"upgrade"}), lineage=7, parent="p")
    known = catalog.begin(Catalog(), "a", wanted)
    known = catalog.finish(known, "a", Snapshot(State.READY, 0, digest="d", queries={"main": 3}, files=4, bytes=5))
    expected = dataclasses.replace(
        wanted, state=State.READY, digest="d", queries={"main": 3}, files=4, bytes=5, sequence=1
    )
    assert known.snapshots["a"] == expected
    assert catalog.finish(known, "a", Snapshot(State.READY, 0, digest="other")) is known


def test_a_manifest_does_not_need_what_was_never_referred_to() -> None:
    known = taking(Catalog(), "a", **{"1.sst": 10})
    with pytest.raises(SnapshotError, match=r"needs 2\.sst\.a, not referred to"):
        catalog.finish(known, "a", Snapshot(State.READY, 0, objects=frozenset({"2.sst.a"}), digest="d"))


def test_nothing_more_is_brought_into_a_complete_snapshot() -> None:
    with pytest.raises(NotBeingTakenError):
        catalog.reserve(ready(Catalog(), "a"), "a", {"1.sst": 10})


STEPS: dict[str, Callable[[Catalog], object]] = {
    "begin": lambda known: catalog.begin(known, "a", WANTED),
    "reserve": lambda known: catalog.reserve(known, "a", {"1.sst": 10}),
    "finish": lambda known: catalog.finish(known, "a", Snapshot(State.READY, 0, digest="d")),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("gone", [False, True])
def test_what_was_disposed_of_is_not_taken_any_further(step: str, gone: bool) -> None:
    known = catalog.dispose(taking(Catalog(), "a", **{"1.sst": 10}), "a")
    with pytest.raises(DisposedError, match="snapshot a was deleted"):
        STEPS[step](catalog.forget(known, ["a"], NOW) if gone else known)


def test_what_was_disposed_of_before_it_was_begun_is_not_begun() -> None:
    known = catalog.dispose(dataclasses.replace(ready(Catalog(), "a"), serial=1), "b")
    for later in (known, catalog.forget(known, ["b"], NOW)):
        with pytest.raises(DisposedError, match="snapshot b was deleted"):
            catalog.begin(later, "b", WANTED)
        assert catalog.dispose(later, "b") is later
        assert later.ready() == ["a"]


def test_where_there_never_was_a_snapshot_nothing_is_remembered() -> None:
    assert catalog.dispose(Catalog(), "a") == Catalog()


def test_an_id_is_remembered_for_a_while() -> None:
    known = catalog.forget(catalog.dispose(ready(Catalog(), "a"), "a"), ["a"], NOW)
    assert (known.snapshots, known.gone) == ({}, {"a": NOW})
    assert catalog.forget(known, [], NOW + MEMORY_SECONDS - 1) is known
    assert catalog.forget(known, [], NOW + MEMORY_SECONDS).gone == {}


# --- holding and disposing ---


def test_what_is_held_is_not_disposed_of() -> None:
    held = catalog.hold(catalog.hold(ready(Catalog(), "a"), "a", "fork"), "a", "export")
    with pytest.raises(HeldError, match="snapshot a is needed by export, fork"):
        catalog.dispose(held, "a")
    released = catalog.release(catalog.release(held, "a", "fork"), "a", "export")
    assert catalog.dispose(released, "a").snapshots["a"].state is State.DELETING


def test_what_is_held_from_the_first_is_not_disposed_of_while_it_is_taken() -> None:
    known = catalog.begin(Catalog(), "a", dataclasses.replace(WANTED, holders=frozenset({"upgrade"})))
    with pytest.raises(HeldError):
        catalog.dispose(known, "a")


def test_only_what_is_complete_is_held() -> None:
    known = catalog.dispose(taking(ready(Catalog(), "gone"), "taking"), "gone")
    with pytest.raises(NotReadyError):
        catalog.hold(known, "taking", "fork")
    for name in ("gone", "never"):
        with pytest.raises(UnknownSnapshotError, match=f"there is no snapshot {name}"):
            catalog.hold(known, name, "fork")


def test_what_is_done_changes_nothing_when_it_is_done_again() -> None:
    held = catalog.hold(ready(Catalog(), "a"), "a", "fork")
    assert catalog.hold(held, "a", "fork") == held
    assert catalog.release(held, "a", "other") is held
    assert catalog.release(held, "b", "fork") is held
    going = catalog.dispose(ready(Catalog(), "a"), "a")
    assert catalog.dispose(going, "a") is going
    assert catalog.dispose(going, "b") is going
    assert catalog.forget_objects(going, ["1.sst.a"]) is going


def test_only_what_is_being_deleted_is_forgotten() -> None:
    known = ready(Catalog(), "a")
    assert catalog.forget(known, ["a", "b"], NOW) is known


# --- strays ---


def test_what_the_catalog_does_not_know_is_condemned() -> None:
    known = ready(Catalog(), "a", **{"1.sst": 10})
    found = catalog.condemn_strays(known, ["a", "b"], ["1.sst.a", "1.sst.b"], NOW)
    assert found.condemned == {"1.sst.b"}
    assert found.snapshots["b"].state is State.DELETING
    assert found.snapshots["a"] == known.snapshots["a"]
    assert catalog.condemn_strays(found, ["a", "b"], ["1.sst.a", "1.sst.b"], NOW) is found


def test_strays_of_one_kind_are_condemned_too() -> None:
    known = ready(Catalog(), "a", **{"1.sst": 10})
    assert list(catalog.condemn_strays(known, ["a", "b"], ["1.sst.a"], NOW).snapshots) == ["a", "b"]
    assert catalog.condemn_strays(known, ["a"], ["1.sst.a", "1.sst.b"], NOW).condemned == {"1.sst.b"}


# --- the value ---


def test_the_order_of_complete_snapshots_is_that_in_which_they_became_so() -> None:
    known = taking(taking(Catalog(), "b"), "a")
    known = ready(ready(known, "b"), "a")
    assert known.ready() == ["b", "a"]


READY = Snapshot(State.READY, NOW, digest="d")


@pytest.mark.parametrize(
    "wrong",
    [
        Catalog(snapshots={"a": dataclasses.replace(READY, objects=frozenset({"1"}))}),
        Catalog(objects={"1": 10}),
        Catalog(
            snapshots={"a": dataclasses.replace(READY, objects=frozenset({"1"}))},
            objects={"1": 10},
            condemned=frozenset({"1"}),
        ),
        Catalog(snapshots={"a": Snapshot(State.DELETING, NOW, holders=frozenset({"fork"}))}),
        Catalog(snapshots={"a": Snapshot(State.DELETING, NOW, objects=frozenset({"1"}))}, objects={"1": 10}),
        Catalog(snapshots={"a": Snapshot(State.READY, NOW)}),
        Catalog(snapshots={"a": Snapshot(State.TAKING, NOW, digest="d")}),
    ],
)
def test_what_must_not_be_is_told(wrong: Catalog) -> None:
    assert violations(wrong) != []


# --- as it stands in the bucket ---


def test_a_catalog_is_read_as_it_was_written() -> None:
    known = ready(Catalog(serial=7), "a", "1.sst", "2.sst", **{"1.sst": 10, "2.sst": 20, "3.sst": 30})
    known = ready(known, "b", **{"2.sst": 20, "4.sst": 40})
    known = catalog.hold(taking(known, "c", **{"1.sst": 10, "5.sst": 50}), "b", "fork")
    known = catalog.forget(catalog.dispose(ready(known, "d"), "d"), ["d"], NOW)
    assert decode(encode(known)) == known
    assert encode(decode(encode(known))) == encode(known)


def test_references_grow_with_what_changes() -> None:
    known = ready(Catalog(), "first", **{f"{number}.sst": number for number in range(1000)})
    size = len(encode(known))
    for number in range(100):
        known = ready(known, f"s{number}", **{f"{number}.sst": number for number in range(number, 1000)})
    assert len(encode(known)) < 2 * size


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "cannot be read"),
        (b"[]", "expected an object"),
        (b'{"version": 0}', "expected the number of a format, got 0"),
        (b'{"version": 1, "objects": ["a"], "sizes": []}', "1 objects and 0 sizes"),
        (b'{"version": 1, "snapshots": {"a": {"state": "lost"}}}', "lost"),
    ],
)
def test_what_is_no_catalog_is_refused(document: bytes, reason: str) -> None:
    with pytest.raises(UnreadableCatalogError, match=reason):
        decode(document)


def test_a_catalog_of_a_newer_tidegate_is_not_taken_for_a_lost_one() -> None:
    with pytest.raises(NewerStorageError, match="its format is 2, and this Tidegate knows 1: use a newer"):
        decode(b'{"version": 2, "objects": "of another kind"}')


def test_a_reference_to_an_object_that_is_not_listed_is_refused() -> None:
    document = json.loads(encode(ready(Catalog(), "a", **{"1.sst": 10})))
    document["objects"], document["sizes"] = [], []
    with pytest.raises(UnreadableCatalogError):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize(
    "runs",
    [[0, 2_000] * 10_000, [1, 1, 0, 1], [0, 2, 1, 1], [0, 0], [-1, 1], [0, 2_001], [0], [2_000, 1], [0, 10**12]],
    ids=["hours of work", "backwards", "overlapping", "empty", "negative", "too long", "half", "beyond", "huge"],
)
def test_runs_that_do_not_stand_one_behind_the_other_are_refused(runs: list[int]) -> None:
    """Whoever may write there could have a reader go through all objects as often as there is room for numbers."""
    snapshot = {"state": "ready", "created": 1.0, "lineage": 1, "parent": "", "manual": False, "objects": runs}
    snapshot |= {"holders": [], "queries": {}, "sequence": 1, "digest": "", "files": 1, "bytes": 1}
    names = [f"o{number}" for number in range(2_000)]
    document = {"version": 1, "objects": names, "sizes": [1] * 2_000, "snapshots": dict.fromkeys("abc", snapshot)}
    with pytest.raises(UnreadableCatalogError, match="does not fit 2000 objects"):
        decode(json.dumps(document).encode())
    good = {**document, "snapshots": {"a": {**snapshot, "objects": [0, 5, 5, 1, 1_990, 10]}}}
    assert len(decode(json.dumps(good).encode()).snapshots["a"].objects) == 16
