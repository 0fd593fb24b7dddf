"""Queries that Spark cannot continue: which, and where each start has its checkpoint. The store is in memory."""

import json
from typing import Any

import pytest

from tidegate_spark.contract.object_paths import (
    EMPTY_START,
    checkpoint_directory,
    directory_of_query,
    of_queries_that_continue,
    start_directory,
)
from tidegate_spark.contract.protocol import Pin, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.queries.empty_starts import EmptyStarts, why_empty
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, MemoryStore
from tidegate_testing.snapshot_scenes import Scene

PLACE = Storage("s3://here/apps/orders")


@pytest.mark.parametrize(
    ("kind", "mode", "sources", "why"),
    [
        ("memory", "append", set(), "sink 'memory'"),
        ("memory", "update", set(), "sink 'memory'"),
        ("memory", "complete", set(), ""),
        ("memory", "complete", {"TextSocketTable"}, "source 'socket'"),
        ("parquet", "append", {"KafkaTable", "TextSocketTable"}, "source 'socket'"),
        ("parquet", "append", {"RateStreamTable", "KafkaTable"}, ""),
        ("console", "append", set(), ""),
        ("noop", "update", set(), ""),
    ],
)
def test_what_spark_cannot_continue_is_known_by_sink_mode_and_source(
    kind: str, mode: str, sources: set[str], why: str
) -> None:
    said = why_empty(kind, mode, sources)
    assert why in said
    assert bool(said) == bool(why)


class World:
    """An application's storage, and its driver."""

    def __init__(self, **config: Any) -> None:
        self.repository = SnapshotRepository(MemoryStore(Buckets(), "here"), "apps/orders")
        self.config = driver_config("app", "main.py", PLACE, **config)
        self.progress = Progress(self.config)

    def put(self, directory: str) -> None:
        for path in ("metadata", "commits/0"):
            self.repository.store.put(self.repository.lineage_key(1, directory, path), b"v1")

    def start(self, name: str = "newest") -> str:
        return EmptyStarts(self.config, lambda: self.repository, self.progress).start(name, "because")

    def go_on(self, name: str = "newest") -> str:
        return EmptyStarts(self.config, lambda: self.repository, self.progress).go_on(name)

    @property
    def directories(self) -> set[str]:
        root = self.repository.lineage_key(1) + "/"
        return {entry.key[len(root) :].partition("/")[0] for entry in self.repository.store.list(root)}


def test_each_start_has_a_checkpoint_of_its_own_and_is_announced() -> None:
    world = World()
    empty = EmptyStarts(world.config, lambda: world.repository, world.progress)
    first, second = empty.start("newest", "because"), empty.start("newest", "because")
    assert first != second
    assert {directory_of_query(each) for each in (first, second)} == {"newest"}
    [notice] = world.progress.report().notices
    assert (notice.reason, notice.warning) == (Reason.STARTS_EMPTY, True)
    assert "Query 'newest' starts without its state, at batch 0, whenever the driver starts: because." in notice.message


def test_checkpoints_of_earlier_starts_go_but_the_last_and_those_of_other_queries_stay() -> None:
    world = World()
    earlier, last, other = start_directory("newest", 9), start_directory("newest", 16), start_directory("newest-2", 7)
    for directory in (earlier, last, other, "newest", "main"):
        world.put(directory)
    world.start()
    assert world.directories == {last, other, "newest", "main"}


def test_a_checkpoint_that_an_upgrade_goes_back_to_stays_until_its_pin_is_disposed_of() -> None:
    world = World(pin=Pin("up-1", "v1"))
    pinned, between, last = (start_directory("newest", number) for number in (7, 8, 9))
    for directory in (pinned, between, last):
        world.put(directory)
    note = world.repository.key("upgrades", "up-1.json")
    world.repository.store.put(note, json.dumps({"lineage": 1, "batches": {pinned: 0}}).encode())
    world.start()
    assert world.directories == {pinned, last}
    world.repository.store.delete([note])
    world.start()
    assert world.directories == {last}


def test_a_store_that_does_not_answer_keeps_no_query_from_starting() -> None:
    world = World()

    def fail() -> SnapshotRepository:
        raise OSError("no answer")

    assert EmptyStarts(world.config, fail, world.progress).start("newest", "because").startswith(f"newest{EMPTY_START}")


def commit(batch: int) -> Commit:
    return Commit(batch, 5, 1.0, 1.0, 100, 0, 0, 1.0)


def test_batches_are_counted_from_the_first_again_when_a_query_is_started_again_in_one_process() -> None:
    world = World()
    world.progress.query_started("newest", -1)
    for batch in range(4):
        world.progress.query_committed("newest", commit(batch))
    world.start()
    world.progress.query_started("newest", -1)
    world.progress.query_committed("newest", commit(0))
    [query] = world.progress.report().queries
    assert (query.batch_id, query.committed, world.progress.commits) == (0, 5, 5)


def test_a_report_says_which_queries_start_empty() -> None:
    world = World()
    world.start()
    for name in ("newest", "main"):
        world.progress.query_started(name, -1)
    assert {query.name: query.starts_empty for query in world.progress.report().queries} == {
        "newest": True,
        "main": False,
    }
    world.progress.query_continues("newest")
    assert not any(query.starts_empty for query in world.progress.report().queries)


@pytest.mark.parametrize("name", ["main", "a" * 100, "not plain", "newest.1"])
def test_the_directory_of_a_start_is_taken_for_no_other_query(name: str) -> None:
    directory = start_directory(name, 1_764_000_000_000)
    assert checkpoint_directory(directory) == directory
    assert directory_of_query(directory) == checkpoint_directory(name)


def test_a_query_that_starts_empty_is_in_a_snapshot_only_where_there_is_no_other() -> None:
    earlier, empty = start_directory("newest", 7), start_directory("newest", 9)
    assert of_queries_that_continue({empty: 9, "main": 4}, {}) == {"main": 4}
    assert of_queries_that_continue({earlier: 3, empty: 9}, {}) == {empty: 9}


def batches_of(world: World) -> dict[str, int]:
    return upgrade_pin.order_of(world.repository, "up-1", 1).exact


def test_what_a_query_that_starts_empty_has_of_before_is_kept_beside_one_that_continues() -> None:
    """It may continue again, in a later lineage as well: a rollback has nothing but what is in the snapshot."""
    world = World()
    world.put("newest")
    world.put("main")
    world.start()
    assert batches_of(world) == {"main": 0, "newest": 0}


def test_where_no_other_query_continues_the_folder_of_before_makes_room_for_the_latest_start() -> None:
    world = World()
    world.put("newest")
    directory = world.start()
    world.put(directory)
    assert batches_of(world) == {directory: 0}


def test_a_query_that_continues_again_is_in_snapshots_again_with_all_that_it_had() -> None:
    world = World()
    world.put("newest")
    world.put(world.start())
    assert world.go_on() == "newest"
    assert batches_of(world) == {"newest": 0}


def test_a_note_that_could_not_be_removed_ends_with_the_next_batch() -> None:
    world = World()
    world.put("newest")
    world.put("main")
    world.start()
    world.repository.store.put(world.repository.lineage_key(1, "newest", "commits/1"), b"v1")
    assert batches_of(world) == {"main": 0, "newest": 1}


def test_a_snapshot_of_a_running_application_has_it_as_well() -> None:
    scene = Scene()
    for query in ("main", "newest"):
        scene.batches(3, query)
    scene.store().put("apps/orders/lineages/1/newest/left-after/2", b"")
    assert set(scene.take("a").queries) == {"main", "newest"}
