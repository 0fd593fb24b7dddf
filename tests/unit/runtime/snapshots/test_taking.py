"""What a snapshot consists of, whatever Spark and others do while it is taken. The store is in memory."""

import hashlib
import json
from collections.abc import Callable, Iterator

import pytest

from tidegate_spark.snapshots import catalog, collect
from tidegate_spark.snapshots import take as taking
from tidegate_spark.snapshots.catalog import DisposedError, State
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.manifest import Application, Manifest, UnreadableManifestError
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.take import ATTEMPTS, BatchLostError, NothingCommittedError, TooFastError
from tidegate_spark.storage.store import SnapshotError, VanishedError
from tidegate_testing.fake_checkpoint import LAYOUT, UnreadableError, content_of
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene, until


def held(scene: Scene, made: Manifest, query: str = "main") -> dict[str, bytes]:
    """Return what a snapshot holds of a query, path -> content."""
    return {file.path: scene.content(file.key) for file in made.files if file.query == query}


def scene_with(batches: int = 5) -> Scene:
    scene = Scene()
    scene.batches(batches)
    return scene


# --- what it is ---


@pytest.mark.parametrize("copiers", [1, 4])
def test_it_has_the_files_of_the_newest_batch(copiers: int) -> None:
    scene = scene_with()
    made = scene.take("a", copiers=copiers)
    assert {name: (query.batch, query.offsets) for name, query in made.queries.items()} == {"main": (4, "offsets 4")}
    assert held(scene, made) == content_of(scene.store(), scene.root(), 4)


def test_it_says_what_it_is_of() -> None:
    scene = scene_with()
    made = scene.take("a", image="shop:1", spark_version="4.2.1", tidegate_version="0.1.0", parent="p", now=5.0)
    assert (made.id, made.created, made.parent) == ("a", 5.0, "p")
    assert made.application == Application("tests", "orders", "uid-1", 1, 3)
    assert (made.image, made.spark_version, made.tidegate_version) == ("shop:1", "4.2.1", "0.1.0")
    assert made.queries["main"].facts == {"provider": "fake"}


def test_the_manifest_names_every_file_with_size_and_etag() -> None:
    scene = scene_with()
    made = scene.take("a")
    for file in made.files:
        body = scene.content(file.key)
        assert (file.size, file.etag.strip('"')) == (len(body), hashlib.md5(body).hexdigest())
    assert [file.key for file in made.files if file.shared] == [f"objects/{name}" for name in sorted(referred(scene))]
    assert scene.content("snapshots/a/manifest.json") == made.body()


def referred(scene: Scene, name: str = "a") -> frozenset[str]:
    return scene.repository().read().snapshots[name].objects


def test_the_catalog_says_so_when_it_is_complete() -> None:
    scene = scene_with()
    made = scene.take("a", manual=True)
    known = scene.repository().read().snapshots["a"]
    assert (known.state, known.queries, known.manual) == (State.READY, {"main": 4}, True)
    assert known.digest == "sha256:" + hashlib.sha256(scene.content("snapshots/a/manifest.json")).hexdigest()
    assert known.files == len(scene.keys("snapshots/a/"))
    assert known.bytes == sum(file.size for file in made.files)


def test_each_query_is_at_its_own_batch() -> None:
    scene = scene_with(5)
    scene.batches(2, "other")
    made = scene.take("a")
    assert {name: query.batch for name, query in made.queries.items()} == {"main": 4, "other": 1}
    assert held(scene, made, "other") == content_of(scene.store(), scene.root("other"), 1)


def test_a_query_without_a_committed_batch_is_left_out() -> None:
    scene = scene_with()
    scene.store().put(f"{scene.root('other')}/offsets/0", b"")
    assert list(scene.take("a").queries) == ["main"]


def test_nothing_is_taken_of_nothing() -> None:
    scene = Scene()
    scene.store().put(f"{scene.root()}/offsets/0", b"")
    with pytest.raises(NothingCommittedError, match="no query of lineage 1 has committed a batch yet"):
        scene.take("a")


def test_other_lineages_are_not_looked_at() -> None:
    scene = scene_with()
    Scene(scene.buckets, lineage=10).batches(9)
    assert scene.take("a").queries["main"].batch == 4


# --- what it costs ---


def test_shared_files_are_copied_once() -> None:
    scene = scene_with()
    first = scene.take("a")
    scene.batches()
    copied: list[str] = []
    second = scene.take("b", watch=lambda call: copied.append(call.key) if call.verb == "copy" else None)
    ours = {file.key for file in second.files if file.shared}
    assert len(ours & {file.key for file in first.files}) == 2
    assert len([key for key in copied if "/objects/" in key]) == 2  # one object, before and after
    assert second.new_bytes() < sum(file.size for file in second.files)


def test_objects_are_listed_once_where_it_is_known_what_is_there() -> None:
    scene, listed = scene_with(), list[str]()
    for name in "ab":
        scene.batches()
        scene.take(name, watch=lambda call: listed.append(call.key) if call.verb == "list" and call.done else None)
    assert len([key for key in listed if key.endswith("/objects/")]) == 2 + 1  # before the first catalog, once more


def test_its_parent_is_the_one_before() -> None:
    scene = scene_with()
    assert [scene.take(name).parent for name in "abc"] == ["", "a", "b"]


def test_progress_is_told() -> None:
    scene, reported = scene_with(), list[Progress]()
    made = scene.take("a", report=reported.append)
    sizes = sum(file.size for file in made.files)
    assert [progress.files for progress in reported] == list(range(1, len(made.files) + 1))
    assert reported[-1] == Progress(len(made.files), sizes, len(made.files), sizes)


def test_whoever_is_told_may_end_it_and_it_is_taken_up_again() -> None:
    scene = scene_with()

    def stop(progress: Progress) -> None:
        if progress.files == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scene.take("a", report=stop)
    reported: list[Progress] = []
    made = scene.take("a", report=reported.append)
    assert reported[-1].of_files == len(made.files) - 6  # two of them shared
    assert held(scene, made) == content_of(scene.store(), scene.root(), 4)


# --- while Spark goes on ---


def once(verb: str, part: str, action: Callable[[], object], times: int = 1) -> Callable[[Call], None]:
    """Return what does something before the first requests of a kind."""
    left = [times]

    def watch(call: Call) -> None:
        if call.verb == verb and not call.done and part in call.key and left[0]:
            left[0] -= 1
            action()

    return watch


def go_on(scene: Scene, batches: int = 2) -> Callable[[], None]:
    def action() -> None:
        scene.batches(batches)
        scene.clean()

    return action


@pytest.mark.parametrize(("verb", "part"), [("get", "state/4.zip"), ("copy", "/metadata"), ("copy", "/objects/")])
def test_what_was_cleaned_up_meanwhile_makes_it_a_newer_batch(verb: str, part: str) -> None:
    scene = scene_with()
    made = scene.take("a", watch=once(verb, part, go_on(scene)))
    assert made.queries["main"].batch == 6
    assert held(scene, made) == content_of(scene.store(), scene.root(), 6)


def test_what_was_copied_and_is_still_needed_is_not_copied_again() -> None:
    scene = Scene(Buckets(opaque=True))
    scene.batches(5)
    copied: list[str] = []
    clean = once("copy", "state/4.zip", go_on(scene))

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            copied.append(call.key)
        clean(call)

    scene.take("a", watch=watch)
    assert any("/metadata." in key for key in copied)
    assert len(copied) == len(set(copied))


def test_what_it_needs_no_more_at_the_newer_batch_is_condemned() -> None:
    scene = scene_with()
    made = scene.take("a", watch=once("copy", "state/4.zip", go_on(scene, 4)))
    known = scene.repository().read()
    assert set(known.objects) == {file.key.rpartition("/")[2] for file in made.files if file.shared}
    assert len(known.condemned) == 3


def test_a_store_that_is_cleaned_up_faster_than_it_is_copied_is_given_up() -> None:
    scene = scene_with()
    with pytest.raises(TooFastError, match=r"Spark removed files under 10 attempts .* spec\.state\.minBatchesToRetain"):
        scene.take("a", watch=once("copy", "state/", go_on(scene), times=ATTEMPTS))
    assert scene.repository().read().snapshots["a"].state is State.TAKING
    assert scene.keys("snapshots/a/manifest.json") == []


def test_a_file_that_changed_meanwhile_is_taken_as_it_is_then() -> None:
    scene = scene_with()
    made = scene.take("a", watch=once("copy", "state/4.zip", scene.rewrite))
    assert held(scene, made) == content_of(scene.store(), scene.root(), 4)


def test_a_file_that_is_really_missing_is_named() -> None:
    scene = scene_with()
    scene.store().delete([f"{scene.root()}/state/4.zip"])
    with pytest.raises(VanishedError, match=r"state/4\.zip is gone"):
        scene.take("a")


def test_what_cannot_be_read_is_refused_at_once() -> None:
    scene, listed = scene_with(), list[str]()
    scene.store().put(f"{scene.root()}/state/4.zip", b"?")
    with pytest.raises(UnreadableError, match=r"state/4\.zip says nothing"):
        scene.take("a", watch=lambda call: listed.append(call.key) if call.verb == "list" else None)
    assert len([key for key in listed if "/lineages/" in key]) == 2  # one listing, before and after


# --- an exact batch ---


def test_an_exact_batch_is_taken_though_there_are_newer_ones() -> None:
    scene = scene_with()
    made = scene.take("a", exact={"main": 2})
    assert made.queries["main"].batch == 2
    assert held(scene, made) == content_of(scene.store(), scene.root(), 2)


@pytest.mark.parametrize("batch", [1, 2])
def test_an_exact_batch_that_was_cleaned_up_is_not_replaced_by_a_newer_one(batch: int) -> None:
    scene = scene_with()
    scene.clean(2)
    with pytest.raises(
        BatchLostError, match=rf"batch {batch} of query main cannot be had any more: offsets/{batch}|is gone"
    ):
        scene.take("a", exact={"main": batch})


def test_an_exact_batch_that_is_cleaned_up_meanwhile_is_not_replaced_by_a_newer_one() -> None:
    scene = scene_with()
    with pytest.raises(BatchLostError, match="batch 4 of query main cannot be had any more"):
        scene.take("a", watch=once("copy", "state/4.zip", go_on(scene)), exact={"main": 4})
    assert scene.keys("snapshots/a/manifest.json") == []


@pytest.mark.parametrize(("query", "batch"), [("main", 5), ("other", 0)])
def test_a_batch_that_was_never_committed_is_not_there(query: str, batch: int) -> None:
    with pytest.raises(BatchLostError, match=f"query {query} has not committed batch {batch}"):
        scene_with().take("a", exact={query: batch})


def test_a_snapshot_that_is_complete_at_another_batch_is_not_the_exact_one() -> None:
    scene = scene_with()
    scene.take("a")
    with pytest.raises(BatchLostError, match="a was completed, and not at batch 3 of query main"):
        scene.take("a", exact={"main": 3})


# --- ended and begun again, and two at it ---


def stops(scene: Scene) -> Iterator[int]:
    """Yield how many requests may be made until somebody is killed, as long as there are any."""
    actor = scene.actor("probe")
    while not actor.ended:
        actor.step()
    yield from range(len(actor.calls))


def test_killed_anywhere_nothing_half_is_published_and_it_is_completed_by_the_next_attempt() -> None:
    for stop in stops(scene_with()):
        scene = scene_with()
        killed = scene.actor("a")
        for _ in range(stop):
            killed.step()
        killed.kill()
        for name in scene.repository().read().ready():
            assert scene.keys(f"snapshots/{name}/manifest.json") != []
        scene.batches()
        made = scene.take("a")
        assert held(scene, made) == content_of(scene.store(), scene.root(), made.queries["main"].batch)


def test_a_complete_snapshot_stays_as_it_is() -> None:
    scene = scene_with()
    first = scene.take("a")
    before = dict(scene.buckets.content["here"])
    scene.batches()
    now = set(scene.keys(""))
    assert scene.take("a") == first
    assert set(scene.keys("")) == now
    assert before.items() <= scene.buckets.content["here"].items()


def test_a_complete_snapshot_that_lost_its_manifest_is_not_taken_anew() -> None:
    scene = scene_with()
    scene.take("a")
    scene.store().delete(["apps/orders/snapshots/a/manifest.json"])
    with pytest.raises(UnreadableManifestError, match=r"a/manifest\.json is gone, of a complete snapshot"):
        scene.take("a")


def test_of_two_at_the_same_snapshot_one_publishes_and_both_return_that() -> None:
    scene = scene_with()
    slow = scene.actor("a")
    until(slow, "put_if", "manifest.json", done=False)
    scene.batches()
    quick = scene.take("a")
    assert slow.run() == quick
    assert quick.queries["main"].batch == 5


def test_what_another_one_completed_and_was_disposed_of_is_gone() -> None:
    scene = scene_with()
    slow = scene.actor("a")
    until(slow, "list", "/lineages/")
    scene.take("a")
    until(slow, "get", "catalog.json")
    collect.dispose(scene.repository(), "a")
    collect.collect(scene.repository(), 1000.0)
    assert isinstance(slow.run(), DisposedError)


def test_a_late_copy_does_not_replace_what_a_manifest_names() -> None:
    scene = scene_with()
    late, publisher = scene.actor("a"), scene.actor("a")
    until(late, "put_if", "catalog.json")
    until(late, "get", "manifest.json")
    until(publisher, "put_if", "manifest.json")
    scene.rewrite()
    until(late, "put_if", "manifest.json")
    made = publisher.run()
    for file in made.files:
        assert hashlib.md5(scene.content(file.key)).hexdigest() == file.etag.strip('"')
    assert late.run() == made


def test_what_was_disposed_of_meanwhile_is_not_completed() -> None:
    for part, done in (("/lineages/", True), ("/objects/", False), ("manifest.json", True)):
        scene = scene_with()
        actor = scene.actor("a")
        until(actor, {"/lineages/": "list", "/objects/": "copy"}.get(part, "put_if"), part, done)
        collect.dispose(scene.repository(), "a")
        assert isinstance(actor.run(), DisposedError), part
        assert scene.repository().read().ready() == []


def test_a_file_is_referred_to_before_it_is_copied() -> None:
    scene, copied = scene_with(), list[str]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and "/objects/" in call.key:
            copied.append(call.key)
            assert call.key.rpartition("/")[2] in referred(scene)

    scene.take("a", watch=watch)
    assert copied != []


def test_an_object_whose_copy_never_came_is_copied_by_the_next_who_needs_it() -> None:
    scene = scene_with()
    killed = scene.actor("a")
    until(killed, "copy", "/objects/", done=False)
    killed.kill()
    made = scene.take("b")
    assert {file.key for file in made.files if file.shared} == {f"objects/{name}" for name in referred(scene, "a")}
    assert held(scene, made) == content_of(scene.store(), scene.root(), 4)


def test_two_files_of_one_name_and_different_sizes_are_refused() -> None:
    scene = scene_with(1)
    state = json.loads(scene.content("lineages/1/main/state/0.zip"))
    scene.store().put(f"{scene.root('other')}/SSTs/{state['ssts'][0]}", b"another one")
    for path in ("metadata", "offsets/0", "commits/0", "state/0.zip"):
        scene.store().put(f"{scene.root('other')}/{path}", scene.content(f"lineages/1/main/{path}"))
    with pytest.raises(SnapshotError, match="have different sizes"):
        scene.take("a")


def test_a_copy_that_is_gone_when_it_is_looked_at_again_is_made_again() -> None:
    scene, listings = scene_with(), list[str]()

    def watch(call: Call) -> None:
        if call.verb == "list" and not call.done and "/files/" in call.key:
            listings.append(call.key)
            if len(listings) == 2:
                scene.store().delete(scene.buckets.keys("here", "apps/orders/snapshots/a/files/"))

    made = scene.take("a", watch=watch)
    assert len(listings) == 4
    assert held(scene, made) == content_of(scene.store(), scene.root(), 4)


def test_what_somebody_needs_from_the_first_is_held_for_them() -> None:
    scene = scene_with()
    scene.take("a", holders=frozenset({"upgrade"}))
    with pytest.raises(catalog.HeldError, match="needed by upgrade"):
        collect.dispose(scene.repository(), "a")


# --- a store that is busy with another process's manifest, and says so (409) ---


class BusyStore(MemoryStore):
    """Refuses manifests so many times, without having one; ``meanwhile`` happens when it first does."""

    def __init__(self, scene: Scene, refusals: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(scene.buckets, "here")
        self.refusals, self.meanwhile = refusals, meanwhile

    def put_if(self, key: str, body: bytes, etag: str | None) -> str | None:
        if not key.endswith("/manifest.json") or self.refusals == 0:
            return super().put_if(key, body, etag)
        self.refusals -= 1
        return None

    def get(self, key: str, most: int | None = None) -> tuple[bytes, str] | None:
        found = super().get(key, most)
        if key.endswith("/manifest.json") and self.refusals > 0:
            self.meanwhile()
        return found


def take_in(scene: Scene, store: MemoryStore) -> Manifest:
    repository = SnapshotRepository(store, "apps/orders", lambda seconds: None)
    return taking.take(repository, LAYOUT, scene.request("a"), 1000.0, Copiers(1))


def test_a_manifest_that_a_busy_store_refused_is_published_all_the_same() -> None:
    scene = scene_with()
    made = take_in(scene, BusyStore(scene, 3))
    assert scene.content("snapshots/a/manifest.json") == made.body()


def test_one_that_another_process_published_just_then_is_taken_for_what_it_is() -> None:
    scene = scene_with()
    others: list[Manifest] = []

    def publish() -> None:
        if not others and "snapshots/a/manifest.json" not in scene.keys("snapshots/a/") and store.refusals < 1_000:
            others.append(scene.take("a"))

    store = BusyStore(scene, 1_000, publish)
    made = take_in(scene, store)
    assert others == [made]


def test_a_store_that_goes_on_refusing_is_named() -> None:
    scene = scene_with()
    with pytest.raises(SnapshotError, match=r"refuses apps/orders/snapshots/a/manifest\.json"):
        take_in(scene, BusyStore(scene, 1_000))
