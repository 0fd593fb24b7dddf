"""What a lineage holds after a restore, and what keeps the snapshot there meanwhile. The store is in memory."""

import json
from dataclasses import replace

import pytest

from tidegate_spark.snapshots import collect, copying, manifest, restore
from tidegate_spark.snapshots import take as taking
from tidegate_spark.snapshots.catalog import HeldError, NotReadyError, UnknownSnapshotError
from tidegate_spark.snapshots.checkpoint import layout
from tidegate_spark.snapshots.copying import Copiers, Progress, TooLargeToCarryError
from tidegate_spark.snapshots.manifest import UnreadableManifestError
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import LineageInUseError, Origin, Target
from tidegate_spark.storage.store import MismatchError, VanishedError
from tidegate_testing.fake_checkpoint import content_of
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene, until
from tidegate_testing.spark_checkpoint import SparkCheckpoint
from tidegate_testing.store_actors import Actor

IN_TURN = Copiers(1)


def scene_with_snapshot() -> Scene:
    scene = Scene()
    scene.batches(5)
    scene.take("a")
    return scene


def origin_of(scene: Scene) -> Origin:
    return Origin(scene.repository(), "a")


def elsewhere(buckets: Buckets) -> SnapshotRepository:
    return SnapshotRepository(MemoryStore(buckets, "there"), "apps/variant", lambda seconds: None)


def below(repository: SnapshotRepository, lineage: int) -> dict[str, bytes]:
    """Return what a lineage's query holds, path -> content."""
    root = repository.lineage_key(lineage, "main") + "/"
    found = {entry.key[len(root) :]: repository.store.get(entry.key) for entry in repository.store.list(root)}
    return {path: got[0] for path, got in found.items() if got}


def test_a_lineage_of_the_same_application_gets_exactly_the_files_of_the_batch() -> None:
    scene = scene_with_snapshot()
    scene.batches(3)
    made = restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    assert made.queries["main"].batch == 4
    assert below(scene.repository(), 2) == content_of(scene.store(), scene.root(), 4)


def test_a_fork_has_a_query_id_of_its_own() -> None:
    scene = scene_with_snapshot()
    repository = elsewhere(scene.buckets)
    restore.restore(origin_of(scene), Target(repository, 1, fork=True), "fork")
    forked, original = below(repository, 1), content_of(scene.store(), scene.root(), 4)
    ids = json.loads(forked.pop("metadata"))["id"], json.loads(original.pop("metadata"))["id"]
    assert ids[0] != ids[1]
    assert forked == original


def test_each_fork_has_another_query_id_and_each_attempt_at_one_the_same() -> None:
    scene = scene_with_snapshot()
    ids = []
    for lineage in (1, 2, 2):
        restore.restore(origin_of(scene), Target(elsewhere(scene.buckets), lineage, fork=True), f"fork {lineage}")
        ids.append(json.loads(below(elsewhere(scene.buckets), lineage)["metadata"])["id"])
    assert ids[0] != ids[1]
    assert ids[1] == ids[2]


def test_a_query_goes_on_from_a_restored_lineage_and_is_taken_again() -> None:
    scene = scene_with_snapshot()
    restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    rolled_back = Scene(scene.buckets, lineage=2)
    rolled_back.batches()
    made = rolled_back.take("b", parent="a")
    assert (made.queries["main"].batch, made.parent) == (5, "a")
    shared = {file.key.rpartition(".")[2] for file in made.files if file.shared}
    assert shared == {"a", "b"}  # state files that came back are recognised


@pytest.mark.parametrize("stored_as", ["elsewhere", "in another store"])
def test_it_goes_to_another_bucket_and_to_another_store(stored_as: str) -> None:
    scene = scene_with_snapshot()
    repository = elsewhere(scene.buckets if stored_as == "elsewhere" else Buckets())
    reported: list[Progress] = []
    made = restore.restore(origin_of(scene), Target(repository, 7), "import", Copiers(4, reported.append))
    assert below(repository, 7) == content_of(scene.store(), scene.root(), 4)
    assert reported[-1].files == len(made.files)


def test_too_large_an_object_is_not_carried_to_another_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "LARGEST_CARRIED_BYTES", 5)
    scene = scene_with_snapshot()
    with pytest.raises(TooLargeToCarryError, match=r"replicate the bucket"):
        restore.restore(origin_of(scene), Target(elsewhere(Buckets()), 1), "import", IN_TURN)


# --- while it goes on ---


def test_offsets_and_commits_come_first() -> None:
    scene, copied = scene_with_snapshot(), list[str]()
    repository = scene.repository(lambda call: copied.append(call.key) if call.verb == "copy" and call.done else None)
    restore.restore(origin_of(scene), Target(repository, 2), "rollback", IN_TURN)
    assert [key.rpartition("/main/")[2] for key in copied][:2] == ["commits/4", "offsets/4"]


def test_the_snapshot_is_held_until_it_is_released() -> None:
    scene = scene_with_snapshot()
    restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    with pytest.raises(HeldError, match="needed by rollback"):
        collect.dispose(scene.repository(), "a")
    restore.release(origin_of(scene), "rollback")
    collect.dispose(scene.repository(), "a")
    restore.release(origin_of(scene), "rollback")


def test_it_is_held_before_anything_is_copied() -> None:
    scene = scene_with_snapshot()
    actor = Actor(
        "restore",
        lambda it: restore.restore(
            Origin(scene.repository(it._watch), "a"), Target(scene.repository(it._watch), 2), "rollback", IN_TURN
        ),
    )
    until(actor, "put_if", "catalog.json")
    assert scene.keys("lineages/2/") == []
    with pytest.raises(HeldError):
        collect.dispose(scene.repository(), "a")
    actor.run()


def test_killed_anywhere_it_is_completed_by_the_next_attempt() -> None:
    steps = 0
    while True:
        scene = scene_with_snapshot()
        repository = elsewhere(scene.buckets)

        def attempt(it: Actor, scene: Scene = scene) -> None:
            target = SnapshotRepository(it.store(scene.buckets, "there"), "apps/variant")
            restore.restore(Origin(scene.repository(it._watch), "a"), Target(target, 1, fork=True), "fork", IN_TURN)

        killed = Actor("restore", attempt)
        for _ in range(steps):
            killed.step()
        ended = killed.ended
        killed.kill()
        restore.restore(origin_of(scene), Target(repository, 1, fork=True), "fork", IN_TURN)
        assert below(repository, 1).keys() == content_of(scene.store(), scene.root(), 4).keys()
        if ended:
            break
        steps += 1
    assert steps > 20


def test_what_is_there_from_an_earlier_attempt_is_not_copied_again() -> None:
    scene, copied = scene_with_snapshot(), list[str]()
    restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    scene.store().delete([f"apps/orders/{scene.keys('lineages/2/main/SSTs/')[0]}"])
    scene.store().put("apps/orders/lineages/2/main/offsets/4", b"offsets 5")
    repository = scene.repository(lambda call: copied.append(call.key) if call.verb == "copy" and call.done else None)
    restore.restore(origin_of(scene), Target(repository, 2), "rollback")
    assert len(copied) == 2
    assert below(repository, 2) == content_of(scene.store(), scene.root(), 4)


@pytest.mark.parametrize("path", ["offsets/4", "metadata"])
@pytest.mark.parametrize("body", [None, b""])
def test_what_is_not_as_it_was_put_when_it_is_looked_at_again_is_noticed(path: str, body: bytes | None) -> None:
    scene, listings = scene_with_snapshot(), list[str]()
    key = f"apps/variant/lineages/1/main/{path}"

    def watch(call: Call) -> None:
        if call.verb == "list" and not call.done:
            listings.append(call.key)
            if len(listings) == 2:
                scene.buckets.remove("there", key)
                if body is not None:
                    scene.buckets.write("there", key, body)

    repository = SnapshotRepository(MemoryStore(scene.buckets, "there", watch), "apps/variant")
    with pytest.raises(VanishedError if body is None else MismatchError):
        restore.restore(origin_of(scene), Target(repository, 1, fork=True), "fork", IN_TURN)


@pytest.mark.parametrize("body", [None, b"another"])
def test_what_changes_on_its_way_to_another_store_is_noticed(body: bytes | None) -> None:
    scene = scene_with_snapshot()
    key = next(key for key in scene.keys("snapshots/a/files/") if "/offsets/" in key)

    def watch(call: Call) -> None:
        if call.verb == "get" and call.key.endswith(key) and not call.done:
            scene.buckets.remove("here", call.key)
            if body is not None:
                scene.buckets.write("here", call.key, body)

    origin = Origin(scene.repository(watch), "a")
    with pytest.raises(VanishedError, match="is gone" if body is None else "has changed"):
        restore.restore(origin, Target(elsewhere(Buckets()), 1), "import", IN_TURN)


def test_after_a_failure_nothing_more_is_copied() -> None:
    scene = scene_with_snapshot()
    copied: list[int] = []

    def fail(progress: Progress) -> None:
        copied.append(progress.files)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback", Copiers(2, fail))
    there = len(scene.keys("lineages/2/"))
    assert copied == [1]
    assert there < 7
    assert len(scene.keys("lineages/2/")) == there


# --- what is refused ---


def test_a_lineage_that_is_in_use_is_not_written_to() -> None:
    scene = scene_with_snapshot()
    Scene(scene.buckets, lineage=2).batches()
    before = scene.keys("lineages/2/")
    with pytest.raises(LineageInUseError, match=r"lineage 2 is in use: it holds .*, which is not of a"):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    assert scene.keys("lineages/2/") == before


def test_only_a_complete_snapshot_is_restored() -> None:
    scene = Scene()
    scene.batches(3)
    actor = scene.actor("a")
    until(actor, "put_if", "manifest.json", done=False)
    with pytest.raises(NotReadyError, match="snapshot a is not complete yet"):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    actor.run()
    collect.dispose(scene.repository(), "a")
    with pytest.raises(UnknownSnapshotError, match="there is no snapshot a: it was deleted"):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    assert scene.keys("lineages/2/") == []


def test_a_manifest_that_was_changed_is_not_believed() -> None:
    scene = scene_with_snapshot()
    scene.store().put("apps/orders/snapshots/a/manifest.json", scene.content("snapshots/a/manifest.json") + b" ")
    with pytest.raises(UnreadableManifestError, match="is not the manifest that was published"):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ".."),
        ("query", "../../../of-others/lineages/1/main"),
        ("query", ""),
        ("path", "../other/offsets/4"),
        ("path", "state/../../../x"),
        ("path", "/offsets/4"),
        ("key", "objects/../../of-others/objects/x"),
    ],
)
def test_files_of_an_imported_manifest_go_nowhere_but_below_their_lineage(field: str, value: str) -> None:
    """Whoever writes there can publish any manifest, with the digest that the catalog then has."""
    scene = scene_with_snapshot()
    made = json.loads(scene.content("snapshots/a/manifest.json"))
    made["files"][-1][field] = value
    body = json.dumps(made).encode()
    scene.store().put("apps/orders/snapshots/a/manifest.json", body)
    published = replace(scene.repository().read().snapshots["a"], digest=manifest.digest(body))
    scene.repository().change(lambda it: replace(it, snapshots={**it.snapshots, "a": published}))
    repository = elsewhere(scene.buckets)
    with pytest.raises(UnreadableManifestError, match=f"a/manifest.json cannot be read as a manifest: .*{value!r}"):
        restore.restore(origin_of(scene), Target(repository, 1, fork=True), "fork")
    assert list(repository.store.list("")) == []


def test_a_damaged_snapshot_is_not_restored_in_part() -> None:
    scene = scene_with_snapshot()
    scene.store().delete(["apps/orders/" + scene.keys("objects/")[0]])
    with pytest.raises(VanishedError, match="a file of snapshot a, is gone"):
        restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    assert scene.keys("lineages/2/") == []


# --- whether it is whole ---


def test_a_whole_snapshot_has_no_damages() -> None:
    assert restore.damages(origin_of(scene_with_snapshot())) == []


def test_every_damage_is_told() -> None:
    scene = scene_with_snapshot()
    gone, changed, cut = scene.keys("snapshots/a/files/")[:3]
    scene.store().delete([f"apps/orders/{gone}"])
    scene.store().put(f"apps/orders/{changed}", b"x" * len(scene.content(changed)))
    scene.store().put(f"apps/orders/{cut}", scene.content(cut)[:-1])
    reported = "\n".join(restore.damages(origin_of(scene)))
    assert f"{gone}, a file of snapshot a, is gone" in reported
    assert f"{changed}, a file of snapshot a, is not what was published" in reported
    assert f"{cut}, a file of snapshot a, is not what was published" in reported
    assert reported.count("\n") == 2


def test_a_manifest_that_is_gone_is_told() -> None:
    scene = scene_with_snapshot()
    scene.store().delete(["apps/orders/snapshots/a/manifest.json"])
    assert restore.damages(origin_of(scene)) == ["apps/orders/snapshots/a/manifest.json is gone"]


def test_the_same_content_with_another_etag_is_no_damage() -> None:
    scene = Scene(Buckets(opaque=True))
    scene.batches(5)
    scene.take("a")
    key = scene.keys("snapshots/a/files/")[0]
    scene.store().put(f"apps/orders/{key}", scene.content(key))
    assert restore.damages(origin_of(scene)) == []
    restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    assert below(scene.repository(), 2) == content_of(scene.store(), scene.root(), 4)


def test_a_copy_that_is_not_what_was_copied_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_with_snapshot()
    repository = elsewhere(Buckets())
    put = repository.store.put
    monkeypatch.setattr(repository.store, "put", lambda key, body: put(key, body[::-1]))
    with pytest.raises(MismatchError):
        restore.restore(origin_of(scene), Target(repository, 1), "import")


# --- real checkpoints ---


def spark_scene(world: SparkCheckpoint) -> Scene:
    scene = Scene()
    for path, body in world.items():
        scene.store().put(f"{scene.root()}/{path}", body)
    taking.take(scene.repository(), layout, scene.request("a"), 1000.0)
    return scene


def spark_world() -> SparkCheckpoint:
    """A query with unique ids in its state files and a schema that may evolve."""
    world = SparkCheckpoint(partitions=1)
    world.evolving_operator(0, "0_schema", root="s3a://here/apps/orders/lineages/1/main")
    for batch in range(3):
        world.offsets(batch)
        world.commit(batch, {0: [[f"id{batch}"]]})
        world.snapshot("state/0/0", f"{batch + 1}_id{batch}", f"{batch}.sst")
    return world


def test_a_checkpoint_of_spark_is_taken_and_restored_with_the_files_of_its_batch() -> None:
    world = spark_world()
    needed = layout.needed_files(world.listing, world.read, 2).files
    scene = spark_scene(world)
    restore.restore(origin_of(scene), Target(scene.repository(), 2), "rollback")
    restored, places = below(scene.repository(), 2), "state/0/_metadata/v2/0"
    assert restored.keys() == {file.path for file in needed}
    assert all(restored[path] == world[path] for path in restored.keys() - {places})
    assert scene.keys("objects/") == ["objects/2.sst.a"]


def test_files_that_say_where_they_are_say_where_they_are_then() -> None:
    scene, repository = spark_scene(spark_world()), elsewhere(Buckets())
    for target in (Target(scene.repository(), 2), Target(repository, 1, fork=True)):
        restore.restore(origin_of(scene), target, f"holder {target.lineage}")
        root = f"{target.repository.store.bucket}/{target.repository.lineage_key(target.lineage, 'main')}"
        said = below(target.repository, target.lineage)["state/0/_metadata/v2/0"].decode()
        assert f"s3a://{root}/state/0/_stateSchema/default/0_schema" in said
        assert "lineages/1/" not in said or target.fork


def test_a_checksum_of_what_is_written_anew_is_left_out() -> None:
    world = spark_world()
    for path in ("metadata", "state/0/_metadata/v2/0", "offsets/2"):
        world[f"{path}.crc"] = b"checksum"
    scene, repository = spark_scene(world), elsewhere(Buckets())
    restore.restore(origin_of(scene), Target(repository, 1, fork=True), "fork")
    assert [path for path in below(repository, 1) if path.endswith(".crc")] == ["offsets/2.crc"]
