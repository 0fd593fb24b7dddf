"""What repartitions have left is removed while the application runs, and nothing else is. The store is in memory."""

import itertools
import threading
from collections.abc import Iterator

import pytest

from tidegate_spark.contract.repartition_protocol import Repartition
from tidegate_spark.repartition.cleanup import Clearing, clear_left
from tidegate_spark.snapshots.lineages import attempts, lineage_mark
from tidegate_testing import fake_checkpoint
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

LINEAGES = "apps/orders/lineages/"
FILES = 5
"""Of a lineage with one batch."""


class World:
    """An application that goes on in lineage 1 after attempts at lineages 2 to 5.

    3 and 5 were whole; in 5 a driver ran, and was taken back before its first batch.
    """

    def __init__(self) -> None:
        self.scene = Scene()
        self.own = self.scene.repository()
        self.scene.batches(2)
        for lineage in (2, 3, 4, 5):
            self.begin(lineage)
        for lineage in (3, 5):
            lineage_mark.put(self.own, lineage, {"snapshot": "up-1", "batches": {"main": 0}})
        assert attempts.take_over(self.own, 5)

    def begin(self, lineage: int) -> None:
        attempts.begin(self.own, Repartition(8, "up-1", 1, lineage))
        fake_checkpoint.write_batch(self.scene.store(), f"{LINEAGES}{lineage}/main")

    def lineages(self) -> set[int]:
        names = (entry.key.removeprefix(LINEAGES) for entry in self.scene.store().list(LINEAGES))
        return {int(name.split("/")[0]) for name in names if "/" in name}


@pytest.fixture
def world() -> World:
    return World()


def test_lineages_in_which_no_driver_came_to_run_go_whole_or_not_and_others_stay(world: World) -> None:
    clear_left(world.own, 1, lambda: True)
    assert (world.lineages(), attempts.begun(world.own)) == ({1, 5}, [])
    assert (lineage_mark.is_there(world.own, 3), lineage_mark.is_there(world.own, 5)) == (False, True)


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize("query", ["main", "later"])
def test_a_lineage_with_a_batch_of_its_own_stays_whatever_is_said_of_it(world: World, log: str, query: str) -> None:
    """The store has brought back what was deleted, say; a driver was launched in it."""
    world.own.store.put(f"{LINEAGES}3/{query}/{log}/1", b"v1\n{}")
    clear_left(world.own, 1, lambda: True)
    assert (world.lineages(), attempts.begun(world.own)) == ({1, 3, 5}, [])
    assert lineage_mark.is_there(world.own, 3)


@pytest.mark.parametrize(
    "mark", [b"?", b'{"snapshot": "up-1", "batches": {"main": null}}', b'{"snapshot": "x", "batches": 1}']
)
def test_a_lineage_whose_mark_says_nothing_stays(world: World, mark: bytes) -> None:
    world.own.store.put(f"{LINEAGES}3.json", mark)
    clear_left(world.own, 1, lambda: True)
    assert 3 in world.lineages()


def test_a_driver_does_not_run_in_a_lineage_that_is_not_whole(world: World) -> None:
    assert not attempts.take_over(world.own, 2)
    assert attempts.begun(world.own) == [2, 3, 4]


def test_who_is_killed_while_it_removes_a_lineage_leaves_none_that_looks_whole(world: World) -> None:
    class KilledError(Exception):
        pass

    calls: list[Call] = []
    clear_left(World().scene.repository(calls.append), 1, lambda: True)
    for dies_at in range(len(calls)):
        left, number = World(), itertools.count()

        def watch(call: Call, number: Iterator[int] = number, dies_at: int = dies_at) -> None:
            if next(number) == dies_at:
                raise KilledError

        with pytest.raises(KilledError):
            clear_left(left.scene.repository(watch), 1, lambda: True)
        whole = {entry.key for entry in left.scene.store().list(f"{LINEAGES}3/")}
        assert not lineage_mark.is_there(left.own, 3) or len(whole) == FILES
        clear_left(left.own, 1, lambda: True)
        assert (left.lineages(), attempts.begun(left.own)) == ({1, 5}, [])


def test_the_lineage_that_the_process_writes_in_stays_whatever_is_said_of_it(world: World) -> None:
    clear_left(world.own, 3, lambda: True)
    assert world.lineages() == {1, 3, 5}
    assert lineage_mark.is_there(world.own, 3)


def test_a_process_that_has_lost_the_fence_removes_nothing(world: World) -> None:
    clear_left(world.own, 1, lambda: False)
    assert world.lineages() == {1, 2, 3, 4, 5}


def test_a_lineage_that_a_pod_begins_after_the_look_is_not_touched(world: World) -> None:
    """It takes the fence first."""
    answers: Iterator[bool] = iter([True, False])

    def is_held() -> bool:
        world.begin(6)
        return next(answers)

    clear_left(world.own, 1, is_held)
    assert world.lineages() == {1, 3, 4, 5, 6}


def test_what_a_storage_does_not_let_be_done_is_done_again(world: World) -> None:
    answers = iter([ConnectionError("away"), None])

    def is_held() -> bool:
        trouble = next(answers, None)
        if trouble is not None:
            raise trouble
        return True

    clearing = Clearing(1, lambda: world.own, is_held, threading.Event(), first_pause=0.0)
    clearing.run()
    assert world.lineages() == {1, 5}


def test_a_process_that_ends_does_not_try_again(world: World) -> None:
    stopping = threading.Event()

    def is_held() -> bool:
        stopping.set()
        raise ConnectionError("away")

    Clearing(1, lambda: world.own, is_held, stopping).run()
    assert world.lineages() == {1, 2, 3, 4, 5}
