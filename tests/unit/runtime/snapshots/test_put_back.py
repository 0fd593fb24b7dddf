"""What becomes of snapshots when a person puts the catalog back to an earlier version. The store is in memory."""

import pytest

from tidegate_spark.snapshots import catalog, collect, missing, reentry, restore
from tidegate_spark.snapshots.catalog_json import encode
from tidegate_spark.snapshots.manifest import DamagedError
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_testing.memory_store import Buckets
from tidegate_testing.snapshot_scenes import Scene, until
from tidegate_testing.store_actors import Actor

NOW = 2000.0
CATALOG = "apps/orders/snapshots/catalog.json"


def scene_with(*names: str) -> tuple[Scene, dict[str, bytes]]:
    """Return a scene with these snapshots, and the catalog as it was after each of them."""
    scene, versions = Scene(), dict[str, bytes]()
    for number, name in enumerate(names):
        scene.batches(2)
        scene.take(name, now=1000.0 + number)
        versions[name] = scene.content("snapshots/catalog.json")
    return scene, versions


def put_back(scene: Scene, body: bytes) -> None:
    scene.store().put(CATALOG, body)


def whole(scene: Scene, name: str) -> bool:
    return restore.damages(Origin(scene.repository(), name)) == []


def test_what_is_published_is_entered_again_and_loses_nothing_when_somebody_collects() -> None:
    scene, versions = scene_with("a", "b", "c")
    put_back(scene, versions["a"])
    before = set(scene.keys(""))
    collect.collect(scene.repository(), NOW)
    assert set(scene.keys("")) == before
    known = scene.repository().read()
    assert known.ready() == ["a", "b", "c"]
    assert [known.snapshots[name].parent for name in "abc"] == ["", "a", "b"]
    assert all(whole(scene, name) for name in "abc")


def test_it_is_entered_again_for_whoever_starts_from_it() -> None:
    scene, versions = scene_with("a", "b")
    put_back(scene, versions["a"])
    made = restore.restore(Origin(scene.repository(), "b"), Target(scene.repository(), 2), "fork")
    assert made.id == "b"
    assert scene.repository().read().snapshots["b"].holders == {"fork"}


def test_one_that_lacks_a_file_is_neither_entered_nor_condemned_and_is_when_that_is_restored() -> None:
    scene, versions = scene_with("a", "b")
    lost = next(key for key in scene.keys("objects/") if key.endswith(".b"))
    content = scene.content(lost)
    scene.store().delete([f"apps/orders/{lost}"])
    put_back(scene, versions["a"])
    before = set(scene.keys(""))
    collect.collect(scene.repository(), NOW)
    assert set(scene.keys("")) == before
    assert scene.repository().read().ready() == ["a"]
    with pytest.raises(DamagedError, match="snapshot b was complete before"):
        scene.take("b")
    scene.store().put(f"apps/orders/{lost}", content)
    collect.collect(scene.repository(), NOW)
    assert scene.repository().read().ready() == ["a", "b"]


def test_while_a_manifest_cannot_be_read_no_shared_object_goes() -> None:
    scene, versions = scene_with("a", "b")
    scene.store().put("apps/orders/snapshots/b/manifest.json", b"{}")
    put_back(scene, versions["a"])
    collect.dispose(scene.repository(), "a")
    before = set(scene.keys("objects/"))
    collect.collect(scene.repository(), NOW)
    assert set(scene.keys("objects/")) == before
    assert "snapshots/b/manifest.json" in scene.keys("snapshots/b/")


def test_what_it_shares_with_one_that_is_disposed_of_stays() -> None:
    scene, versions = scene_with("a", "b")
    put_back(scene, versions["a"])
    collect.dispose(scene.repository(), "a")
    collect.collect(scene.repository(), NOW)
    assert scene.repository().read().ready() == ["b"]
    assert whole(scene, "b")


def test_what_another_history_condemned_stays_if_a_published_one_needs_it() -> None:
    scene, _ = scene_with("a", "b")
    shared = scene.repository().read().snapshots["a"].objects
    going = catalog.Snapshot(catalog.State.DELETING, 1000.0)
    put_back(scene, encode(catalog.Catalog(9, {"a": going}, condemned=shared)))
    collect.collect(scene.repository(), NOW)
    collect.collect(scene.repository(), NOW)
    known = scene.repository().read()
    assert (known.ready(), list(known.gone)) == (["b"], ["a"])
    assert whole(scene, "b")


def test_what_is_needed_again_stays_though_requests_to_delete_it_were_to_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collect, "KEYS_OF_REQUEST", 1)
    scene = Scene()
    scene.batches(3)
    scene.take("a")
    before = scene.content("snapshots/catalog.json")
    collect.dispose(scene.repository(), "a")  # the query still uses what is condemned now
    collector = Actor("collector", lambda actor: collect.collect(scene.repository(actor._watch), NOW))
    until(collector, "delete", "objects/", done=True)
    put_back(scene, before)
    scene.take("b")
    collector.run()
    assert whole(scene, "b")


@pytest.mark.parametrize("own_files_are_gone", [False, True])
def test_files_of_a_snapshot_that_is_there_again_are_not_deleted(own_files_are_gone: bool) -> None:
    scene, versions = scene_with("a", "b")
    collect.dispose(scene.repository(), "b")
    collector = Actor("collector", lambda actor: collect.collect(scene.repository(actor._watch), NOW))
    if own_files_are_gone:
        until(collector, "delete", "snapshots/b/", done=True)
    else:
        until(collector, "list", "snapshots/b/")
    put_back(scene, versions["b"])
    collector.run()
    assert whole(scene, "b") is not own_files_are_gone
    assert "b" not in scene.repository().read().gone


def test_one_that_was_disposed_of_since_is_found_to_lack_its_files() -> None:
    scene, versions = scene_with("a", "b")
    collect.dispose(scene.repository(), "a")
    collect.collect(scene.repository(), NOW)
    assert missing.find(scene.repository()) == {}
    put_back(scene, versions["b"])
    found = missing.find(scene.repository())
    assert list(found) == ["a"]
    assert "snapshot a is not whole: apps/orders/snapshots/a/manifest.json is gone" in found["a"]


def test_the_next_snapshot_is_whole_though_the_newest_is_not() -> None:
    scene, _ = scene_with("a")
    scene.store().delete([f"apps/orders/{key}" for key in scene.keys("objects/")])
    scene.take("b")
    assert whole(scene, "b")
    assert missing.find(scene.repository()) == {}  # what they share was copied again


def test_an_id_whose_strays_were_condemned_is_not_begun_again() -> None:
    known = catalog.condemn_strays(catalog.Catalog(serial=3), [], ["1.sst.b"], NOW)
    with pytest.raises(catalog.DisposedError):
        catalog.begin(known, "b", catalog.Snapshot(catalog.State.TAKING, NOW))


def test_a_catalog_that_is_lost_as_a_whole_is_left_to_a_person() -> None:
    scene = Scene(Buckets())
    scene.batches(2)
    scene.take("a")
    scene.store().delete([CATALOG])
    assert reentry.enter_published(scene.repository()) == catalog.Catalog()
    assert "snapshots/catalog.json" not in scene.keys("snapshots/")


def test_a_file_that_is_lost_is_found_though_another_one_has_come_in_its_place() -> None:
    scene, _ = scene_with("a")
    assert missing.find(scene.repository()) == {}
    lost = next(key for key in scene.keys("snapshots/a/") if not key.endswith("manifest.json"))
    size = len(scene.content(lost))
    scene.store().delete([f"apps/orders/{lost}"])
    scene.store().put("apps/orders/snapshots/a/stray", bytes(size + 1))
    assert "a" in missing.find(scene.repository())


def test_where_nothing_is_missing_two_listings_say_so_and_no_manifest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, _ = scene_with("a", "b", "c")
    monkeypatch.setattr(missing, "damages", lambda origin: pytest.fail(f"{origin.id} was read"))
    assert missing.find(scene.repository()) == {}
