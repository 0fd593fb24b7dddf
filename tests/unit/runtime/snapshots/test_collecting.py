"""What is disposed of, and what is deleted and when. The store is in memory."""

import pytest

from tidegate_spark.snapshots import catalog, collect
from tidegate_spark.snapshots.catalog import HeldError
from tidegate_spark.snapshots.collect import Collected
from tidegate_spark.snapshots.repository import CatalogLostError
from tidegate_spark.storage.store import NotDeletedError
from tidegate_testing.snapshot_scenes import Scene, until
from tidegate_testing.store_actors import Actor

NOW = 1000.0

# --- disposing ---


def scene_with(*names: str) -> Scene:
    scene = Scene()
    for name in names:
        scene.batches(2)
        scene.take(name)
    return scene


def states(scene: Scene) -> dict[str, str]:
    return {name: known.state.value for name, known in scene.repository().read().snapshots.items()}


def test_what_is_held_meanwhile_is_not_disposed_of() -> None:
    scene = scene_with("a", "b")
    actor = Actor("dispose", lambda it: collect.dispose(scene.repository(it._watch), "a"))
    until(actor, "put_if", "catalog.json", done=False)
    scene.repository().change(lambda known: catalog.hold(known, "a", "fork"))
    actor.run()
    assert isinstance(actor.outcome, HeldError)
    assert states(scene) == {"a": "ready", "b": "ready"}


def test_a_person_disposes_of_any_but_a_held_one() -> None:
    scene = scene_with("a", "b")
    scene.repository().change(lambda known: catalog.hold(known, "a", "fork of tests/variant"))
    collect.dispose(scene.repository(), "b")
    with pytest.raises(HeldError, match="snapshot a is needed by fork of tests/variant"):
        collect.dispose(scene.repository(), "a")
    assert states(scene) == {"a": "ready", "b": "deleting"}


def test_what_was_given_up_half_taken_is_disposed_of() -> None:
    scene = scene_with("a")
    killed = scene.actor("b")
    until(killed, "copy", "/state/")
    killed.kill()
    collect.dispose(scene.repository(), "b")
    collect.collect(scene.repository(), NOW)
    assert states(scene) == {"a": "ready"}
    assert scene.keys("snapshots/b/") == []


# --- deleting ---


def test_what_only_the_disposed_ones_needed_is_deleted() -> None:
    scene = scene_with("a", "b")
    kept = {"snapshots/catalog.json", "snapshots/b/manifest.json"}
    kept |= {file.key for file in scene.take("b").files}
    collect.dispose(scene.repository(), "a")
    done = collect.collect(scene.repository(), NOW)
    assert set(scene.keys("snapshots/") + scene.keys("objects/")) == kept
    assert (done.snapshots, done.keys > 0) == (("a",), True)
    assert scene.repository().read().gone == {"a": NOW}
    assert collect.collect(scene.repository(), NOW) == Collected()


def test_where_nothing_was_ever_taken_nothing_is_done() -> None:
    scene = Scene()
    assert collect.collect(scene.repository(), NOW) == Collected()
    assert scene.keys("") == []


def test_the_manifest_goes_first() -> None:
    scene, deleted = scene_with("a"), list[str]()
    collect.dispose(scene.repository(), "a")
    collect.collect(scene.repository(lambda call: deleted.append(call.key) if call.verb == "delete" else None), NOW)
    assert deleted[0] == "apps/orders/snapshots/a/manifest.json"


def test_without_a_catalog_nothing_is_deleted() -> None:
    scene = scene_with("a")
    scene.store().delete(["apps/orders/snapshots/catalog.json"])
    before = scene.keys("")
    with pytest.raises(CatalogLostError):
        collect.collect(scene.repository(), NOW)
    assert scene.keys("") == before


def test_a_snapshot_whose_manifest_is_damaged_loses_nothing() -> None:
    scene = scene_with("a")
    scene.store().put("apps/orders/snapshots/a/manifest.json", b"{}")
    scene.store().put("apps/orders/snapshots/a/files/main/more", b"")
    before = scene.keys("")
    collect.collect(scene.repository(), NOW)
    assert scene.keys("") == before


def test_copies_that_a_newer_batch_made_needless_are_deleted() -> None:
    scene = scene_with("a")
    scene.store().put("apps/orders/snapshots/a/files/main/offsets/0.0123456789ab", b"")
    assert collect.collect(scene.repository(), NOW) == Collected((), 1)
    assert scene.keys("snapshots/a/files/main/offsets/0.") == []


def test_manifests_are_read_only_where_something_is_too_much() -> None:
    scene, read = scene_with("a", "b"), list[str]()
    collect.collect(scene.repository(lambda call: read.append(call.key) if call.verb == "get" else None), NOW)
    assert {key.rpartition("/")[2] for key in read} == {"catalog.json"}


def test_what_a_leftover_process_wrote_is_deleted() -> None:
    scene = scene_with("a")
    scene.store().put("apps/orders/snapshots/b/files/main/offsets/0.0123456789ab", b"")
    scene.store().put("apps/orders/objects/1.sst.b", b"")
    before = set(scene.keys("")) - {"snapshots/catalog.json"}
    collect.collect(scene.repository(), NOW)
    left = set(scene.keys("")) - {"snapshots/catalog.json"}
    assert before - left == {"snapshots/b/files/main/offsets/0.0123456789ab", "objects/1.sst.b"}


def test_what_is_being_taken_is_not_touched() -> None:
    scene = scene_with("a")
    actor = scene.actor("b")
    until(actor, "copy", "/state/")
    before = scene.keys("")
    collect.collect(scene.repository(), NOW)
    assert scene.keys("") == before
    actor.run()
    assert states(scene)["b"] == "ready"


def test_what_the_store_does_not_delete_stays_condemned(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_with("a")
    collect.dispose(scene.repository(), "a")
    repository = scene.repository()

    def refuse(keys: object) -> None:
        raise NotDeletedError("no")

    monkeypatch.setattr(repository.store, "delete", refuse)
    with pytest.raises(NotDeletedError):
        collect.collect(repository, NOW)
    assert states(scene) == {"a": "deleting"}
    collect.collect(scene.repository(), NOW)
    assert scene.keys("snapshots/") == ["snapshots/catalog.json"]


def test_the_catalog_of_before_a_listing_says_nothing_of_what_is_listed() -> None:
    scene = scene_with("a")
    collector = Actor("collect", lambda it: collect.collect(scene.repository(it._watch), NOW))
    collector.step()
    scene.batches()
    made = scene.take("b")
    collector.run()
    assert {file.key for file in made.files} <= set(scene.keys(""))
