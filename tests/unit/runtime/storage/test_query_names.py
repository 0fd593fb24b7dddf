"""A query is called by its name, also where only its checkpoint's directory is known. The store is in memory."""

import pytest

from tidegate_spark.contract.object_paths import checkpoint_directory, start_directory
from tidegate_spark.snapshots.service.operations import pins_of
from tidegate_spark.snapshots.take import BatchLostError
from tidegate_spark.storage import query_names
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene

NAME = "dedup größe"
DIRECTORY = checkpoint_directory(NAME)


def objects(scene: Scene) -> AppObjects:
    return AppObjects(scene.store(), "apps/orders")


def test_a_snapshot_reports_the_query_by_its_name() -> None:
    scene = Scene()
    for query in ("main", DIRECTORY):
        scene.batches(2, query)
    query_names.note(objects(scene), NAME)
    made = scene.take("a")
    assert set(made.queries) == {"main", DIRECTORY}
    assert set(pins_of(made.queries)) == {"main", NAME}


def test_a_batch_that_is_gone_is_one_of_the_query_by_its_name() -> None:
    scene = Scene()
    scene.batches(3, DIRECTORY)
    query_names.note(objects(scene), NAME)
    scene.take("a")
    with pytest.raises(BatchLostError, match="not at batch 1 of query dedup größe"):
        scene.take("a", exact={DIRECTORY: 1})


def test_a_query_of_which_no_name_is_known_is_called_as_its_directory() -> None:
    scene = Scene()
    scene.batches(2, DIRECTORY)
    assert set(pins_of(scene.take("a").queries)) == {DIRECTORY}


@pytest.mark.parametrize("name", ["newest", NAME])
def test_a_query_that_starts_empty_is_called_as_any_other(name: str) -> None:
    scene = Scene()
    scene.batches(2, start_directory(name, 25))
    query_names.note(objects(scene), name)
    assert set(pins_of(scene.take("a").queries)) == {name}


def test_a_name_that_does_not_belong_to_the_directory_is_not_believed() -> None:
    scene = Scene()
    objects(scene).store.put(f"apps/orders/names/{DIRECTORY}", b"another")
    assert query_names.of_directory(objects(scene), DIRECTORY) == DIRECTORY


def test_plain_names_cost_no_request() -> None:
    buckets = Buckets()
    asked: list[Call] = []
    there = AppObjects(MemoryStore(buckets, "here", asked.append), "apps/orders")
    query_names.note(there, "word-count")
    assert query_names.of_directory(there, "word-count") == "word-count"
    assert asked == []


def test_a_store_that_does_not_answer_keeps_no_query_from_running() -> None:
    def unreachable() -> AppObjects:
        raise ConnectionError("no route")

    query_names.note_from(unreachable, NAME)
