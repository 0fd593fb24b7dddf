"""A lineage with state of other partitions is made whole or not at all. The store is in memory, and Spark is played."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tidegate_spark.contract.object_paths import start_directory
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import Repartition, RepartitionedQuery
from tidegate_spark.driver.starting_point import left_to_fill
from tidegate_spark.exports import state_reader
from tidegate_spark.repartition import job
from tidegate_spark.repartition.cleanup import clear_left
from tidegate_spark.repartition.errors import RepartitionError
from tidegate_spark.repartition.fingerprints import Contents, Fingerprint, Store
from tidegate_spark.repartition.job import Repartitioner
from tidegate_spark.snapshots.lineages import attempts, lineage_mark
from tidegate_spark.storage.store import SnapshotError
from tidegate_testing import fake_checkpoint
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import CheckpointAt, FakeLayout
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

NEW = "apps/orders/lineages/2/main"
MARK = "apps/orders/lineages/2.json"
STORE = Store(0, "stateStoreSave", "default")
OPERATOR = {"id": 0, "name": "stateStoreSave", "stores": ["default"], "partitions": 4}
FACTS = {"provider": "RocksDB", "partitions": 4, "operators": [OPERATOR], "formatVersion": 2}


class StatefulLayout(FakeLayout):
    """Tells of state."""

    facts: Mapping[str, Any] = FACTS

    def needed_files(self, *arguments: Any) -> CheckpointAt:
        return dataclasses.replace(super().needed_files(*arguments), facts=self.facts)


class World:
    """An application whose lineage 1 has ended after three batches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scene, self.layout = Scene(), StatefulLayout()
        self.scene.batches(3)
        self.before = self.after = contents(7)
        self.spark_version = "4.2.1"
        self.watch = lambda call: None
        self.checked = 0
        self.trouble: Exception | None = None
        """What whoever looks after the storage finds."""
        monkeypatch.setattr(job, "session_for", lambda spark, at: object())
        monkeypatch.setattr(state_reader, "stores_of", lambda session, place: [])
        monkeypatch.setattr(job, "_repartition", self._repartition)
        monkeypatch.setattr(Repartitioner, "_read", self._read)

    def _repartition(self, session: object, place: str, partitions: int) -> None:
        assert partitions == 8
        fake_checkpoint.write_batch(self.scene.store(), place.removeprefix("s3a://here/"))

    def _read(self, *arguments: Any) -> Contents:
        *_, batch, _, _ = arguments
        return self.before if batch == 2 else self.after

    def make(self, lineage: int = 2) -> dict[str, RepartitionedQuery]:
        config = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))
        order = Repartition(8, "up-1", 1, lineage)
        own = self.scene.repository(self.watch)
        maker = Repartitioner(config, order, own, object, self.spark_version, self._check, layout=self.layout)  # type: ignore[arg-type] # Spark is played
        return maker.run()

    def _check(self) -> None:
        self.checked += 1
        if self.trouble is not None:
            raise self.trouble

    def stored(self, key: str) -> Any:
        found = self.scene.store().get(key)
        return json.loads(found[0]) if found else None

    def old(self) -> dict[str, bytes]:
        store = self.scene.store()
        found = {entry.key: store.get(entry.key) for entry in store.list("apps/orders/lineages/1/")}
        return {key: each[0] for key, each in found.items() if each is not None}


def contents(rows: int, keys: int = 1, pairs: int = 1, misplaced: int = 0) -> Contents:
    return Contents(
        {(STORE, "default"): Fingerprint(rows, (keys, 0), (pairs, 0))}, {STORE: misplaced} if misplaced else {}
    )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_number_in_which_somebody_ran_is_refused_and_nothing_of_it_is_ever_removed(
    world: World,
) -> None:
    for _ in range(3):
        fake_checkpoint.write_batch(world.scene.store(), "apps/orders/lineages/2/main")
    before = [entry.key for entry in world.scene.store().list("apps/orders/lineages/2/")]
    with pytest.raises(RepartitionError, match="Lineage 2 was to be made, and its folder has files already, such as"):
        world.make(2)
    clear_left(world.scene.repository(), 1, lambda: True)
    assert [entry.key for entry in world.scene.store().list("apps/orders/lineages/2/")] == before


def test_the_new_lineage_goes_on_behind_the_extra_batch_and_the_old_one_stays_as_it_was(world: World) -> None:
    before = world.old()
    assert world.make() == {"main": RepartitionedQuery(2, 7, 4)}
    assert world.old() == before
    mark = world.stored(MARK)
    assert (mark["batches"], mark["withoutOutput"]) == ({"main": 3}, {"main": 3})
    assert mark["snapshot"] == "up-1"
    assert world.scene.repository().read().snapshots["up-1"].holders == frozenset({"up-1"})
    assert world.checked >= 3
    own = world.scene.repository()
    assert attempts.begun(own) == [2], "until a driver runs in it, it is nobody's"
    assert left_to_fill(own, 2) is None
    assert (attempts.begun(own), attempts.clear(own, 2), world.stored(MARK)) == ([], False, mark)


def test_only_what_the_new_batch_needs_of_the_state_is_left(world: World) -> None:
    world.make()
    names = {entry.key[len(NEW) + 1 :] for entry in world.scene.store().list(NEW + "/")}
    assert "state/3.zip" in names
    assert "state/2.zip" not in names
    assert {"metadata", "offsets/2", "offsets/3", "commits/3"} <= names


def test_queries_keep_their_ids(world: World) -> None:
    world.make()
    assert world.stored(f"{NEW}/metadata") == {"id": world.scene.root()}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (contents(6), "had 7 rows before and has 6 after"),
        (contents(7, keys=2), "other keys"),
        (contents(7, pairs=2), "other values"),
        (contents(7, misplaced=3), "does not look"),
    ],
)
def test_state_that_is_not_the_same_makes_no_lineage(world: World, after: Contents, message: str) -> None:
    world.after = after
    with pytest.raises(RepartitionError, match=message) as caught:
        world.make()
    assert caught.value.what is Reason.STATE_DIFFERS
    assert world.stored(MARK) is None
    with pytest.raises(SnapshotError, match="was not finished"):
        left_to_fill(world.scene.repository(), 2)


def test_rows_that_are_not_where_their_hash_says_are_not_repartitioned_further(world: World) -> None:
    world.before = contents(7, misplaced=1)
    with pytest.raises(RepartitionError) as caught:
        world.make()
    assert caught.value.what is Reason.STATE_IN_ONE_PLACE


def test_a_batch_that_was_begun_and_not_committed_is_run_again_under_its_own_number_first(world: World) -> None:
    world.scene.store().put(f"{world.scene.root()}/offsets/3", b"offsets 3")
    with pytest.raises(RepartitionError) as caught:
        world.make()
    assert caught.value.what is Reason.BATCH_UNCOMMITTED
    assert world.stored("apps/orders/repartitions/2.json") is None
    # Of a query that the previous version has no more, that batch would be in the way for ever.
    assert f"delete s3://here/{world.scene.root()}/offsets/3, and change spec.restartNonce" in str(caught.value)


def test_the_first_batch_of_a_query_that_has_committed_none_is_run_first_too(world: World) -> None:
    """What it was to read is said in the old lineage alone, and its sink may have a part of it."""
    world.scene.store().put(f"{world.scene.root('newest')}/offsets/0", b"offsets 0")
    with pytest.raises(RepartitionError) as caught:
        world.make()
    assert caught.value.what is Reason.BATCH_UNCOMMITTED
    assert "batch 0" in str(caught.value)


def test_the_first_batch_of_a_query_that_starts_empty_by_now_is_waited_for_by_nobody(world: World) -> None:
    world.scene.store().put(f"{world.scene.root('newest')}/offsets/0", b"offsets 0")
    world.scene.store().put(f"{world.scene.root(start_directory('newest', 7))}/offsets/0", b"offsets 0")
    assert set(world.make()) == {"main"}


def test_a_batch_of_a_query_that_starts_empty_by_now_is_waited_for_by_nobody(world: World) -> None:
    """It began with the sink memory, say: its checkpoint of before is left, and the others' state is divided."""
    world.scene.batches(2, "newest")
    world.scene.store().put(f"{world.scene.root('newest')}/offsets/2", b"offsets 2")
    world.scene.store().put(f"{world.scene.root('newest')}/left-after/1", b"")
    assert set(world.make()) == {"main", "newest"}


def test_a_batch_that_a_query_has_begun_since_it_continues_again_is_run_first(world: World) -> None:
    world.scene.store().put(f"{world.scene.root()}/offsets/3", b"offsets 3")
    world.scene.store().put(f"{world.scene.root()}/left-after/1", b"")
    with pytest.raises(RepartitionError) as caught:
        world.make()
    assert caught.value.what is Reason.BATCH_UNCOMMITTED


@pytest.mark.parametrize(
    ("facts", "version", "what"),
    [
        ({**FACTS, "provider": "HDFS"}, "4.2.1", Reason.UNSUPPORTED_PROVIDER),
        ({**FACTS, "operators": [{**OPERATOR, "name": "globalLimit"}]}, "4.2.1", Reason.UNSUPPORTED_OPERATOR),
        ({**FACTS, "operators": [{**OPERATOR, "partitions": 1}]}, "4.2.1", Reason.STATE_IN_ONE_PLACE),
        ({**FACTS, "operators": [{**OPERATOR, "onePlace": True}]}, "4.2.1", Reason.STATE_IN_ONE_PLACE),
        (FACTS, "4.1.2", Reason.SPARK_TOO_OLD),
    ],
)
def test_what_spark_can_not_do_is_not_begun(world: World, facts: dict[str, Any], version: str, what: Reason) -> None:
    world.layout.facts, world.spark_version = facts, version
    with pytest.raises(RepartitionError) as caught:
        world.make()
    assert caught.value.what is what
    assert list(world.scene.store().list("apps/orders/lineages/2")) == []


@pytest.mark.parametrize(("operator", "named"), [("transformWithStateInPySparkExec", True), ("stateStoreSave", False)])
def test_where_spark_fails_the_second_way_is_named_if_there_is_one(
    world: World, monkeypatch: pytest.MonkeyPatch, operator: str, named: bool
) -> None:
    def refuse(session: object, place: str, partitions: int) -> None:
        raise PySparkException("UNSUPPORTED_VARIABLE_TYPE: no timers.")

    monkeypatch.setattr(job, "_repartition", refuse)
    world.layout.facts = {**FACTS, "operators": [{**OPERATOR, "name": operator}]}
    with pytest.raises(RepartitionError, match="cannot repartition the state") as raised:
        world.make()
    assert raised.value.what is Reason.SPARK_FAILED
    assert ("spec.startFrom.exportedState" in str(raised.value)) is named
    assert world.stored(MARK) is None


@pytest.mark.parametrize(
    "trouble", [RepartitionError(Reason.FENCED, "Another one."), ConnectionError("The storage is away.")]
)
def test_where_spark_fails_because_of_the_storage_the_storage_is_named_and_not_the_state(
    world: World, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def fail(session: object, place: str, partitions: int) -> None:
        world.trouble = trouble
        raise PySparkException("Job aborted: s3a: connect timed out.")

    monkeypatch.setattr(job, "_repartition", fail)
    with pytest.raises(type(trouble)) as raised:
        world.make()
    assert raised.value is trouble


def test_a_query_without_state_is_taken_along_as_it_is(world: World) -> None:
    world.layout.facts = {"provider": "", "stateless": True, "operators": [], "partitions": 4}
    assert world.make() == {"main": RepartitionedQuery(2, partitions=4)}
    assert world.stored(MARK)["batches"] == {"main": 2}
    assert world.stored(MARK)["withoutOutput"] == {}


@pytest.mark.parametrize(
    ("committed", "repartitioned", "mark"),
    [
        (4, {"main": 5}, {"withoutOutput": {"main": 5}}),
        (3, {"main": 4}, {"withoutOutput": {"main": 4}, "withoutOutputSince": {"main": 3}}),
        (3, {}, {"withoutOutput": {"main": 3}}),
        (4, {}, {"withoutOutput": {}}),
    ],
)
def test_a_batch_without_output_after_which_nothing_ran_is_still_to_be_noted(
    committed: int, repartitioned: dict[str, int], mark: dict[str, Any]
) -> None:
    old = {"withoutOutput": {"main": 3}}
    assert lineage_mark.after_repartition(old, {"main": committed}, repartitioned) == mark


def test_three_repartitions_without_a_batch_between_them_are_noted_one_after_the_other() -> None:
    mark: dict[str, Any] = {}
    for batch in (3, 4, 5):
        mark = lineage_mark.after_repartition(mark, {"main": batch - 1}, {"main": batch})
    assert lineage_mark.without_output(mark) == {"main": range(3, 6)}


def test_what_earlier_attempts_left_is_removed_and_what_is_whole_stays(world: World) -> None:
    world.after = contents(6)
    with pytest.raises(RepartitionError):
        world.make()
    world.after = contents(7)
    store = world.scene.store()
    assert list(store.list("apps/orders/lineages/2/"))
    world.make(lineage=3)
    assert list(store.list("apps/orders/lineages/2/")) == []
    assert world.stored("apps/orders/lineages/3.json") is not None


def test_an_attempt_that_was_taken_for_lost_leaves_the_one_after_it_alone(world: World) -> None:
    world.after = contents(6)
    with pytest.raises(RepartitionError):
        world.make(lineage=3)
    left = [entry.key for entry in world.scene.store().list("apps/orders/lineages/3/")]
    with pytest.raises(RepartitionError):
        world.make(lineage=2)
    assert left
    assert [entry.key for entry in world.scene.store().list("apps/orders/lineages/3/")] == left


class DiedError(Exception):
    """The pod is gone."""


def writes(world: World) -> int:
    """Return how many writes a whole run takes."""
    seen: list[Call] = []
    world.watch = seen.append
    world.make()
    return len(seen)


def test_a_pod_that_dies_at_any_call_leaves_the_old_lineage_whole_and_the_next_one_finishes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = writes(World(monkeypatch))
    for dies_at in range(number):
        world = World(monkeypatch)
        before, calls = world.old(), iter(range(number))

        def watch(call: Call, calls: Any = calls, dies_at: int = dies_at) -> None:
            if next(calls) == dies_at:
                raise DiedError

        world.watch = watch
        with pytest.raises(DiedError):
            world.make()
        assert world.old() == before
        # Whoever removes what is left releases the pin for the one that died.
        attempts.clear_earlier(world.scene.repository(), Repartition(8, "up-1", 1, 3))
        pin = world.scene.repository().read().snapshots.get("up-1")
        assert pin is None or pin.holders == {"up-1"}
        left = [entry.key for entry in world.scene.store().list("apps/orders/lineages/2")]
        assert left == [], "its last words were never said"
        world.watch = lambda call: None
        assert world.make() == {"main": RepartitionedQuery(2, 7, 4)}


@pytest.mark.parametrize("of_lineage", [1, 2])
def test_a_pod_removes_what_the_one_before_it_has_left_with_a_mark_and_never_what_it_repartitions(
    world: World, of_lineage: int
) -> None:
    world.make()
    own = world.scene.repository()
    attempts.begin(own, Repartition(8, "up-1", 1, 2))
    attempts.clear_earlier(own, Repartition(16, "up-2", of_lineage, 3))
    assert (world.stored(MARK) is not None) is (of_lineage == 2)
    assert (own.store.get(f"{NEW}/commits/3") is not None) is (of_lineage == 2)
