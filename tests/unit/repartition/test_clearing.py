"""What repartitions have left is removed while the application runs, and nothing else is. The store is in memory."""

import threading
from collections.abc import Iterator

import pytest

from tidegate_spark import lineage_mark
from tidegate_spark.repartition import attempts
from tidegate_spark.repartition.clearing import Clearing, clear_left
from tidegate_spark.repartition_protocol import Repartition
from tidegate_testing import fake_checkpoint
from tidegate_testing.snapshot_scenes import Scene

LINEAGES = "apps/orders/lineages/"


class World:
    """An application that goes on in lineage 1 after attempts at lineages 2, 3 and 4, of which 3 became whole."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.own = self.scene.library()
        self.scene.batches(2)
        for lineage in (2, 3, 4):
            self.begin(lineage)
        lineage_mark.put(self.own, 3, {"snapshot": "up-1"})

    def begin(self, lineage: int) -> None:
        attempts.begin(self.own, Repartition(8, "up-1", 1, lineage))
        fake_checkpoint.write_batch(self.scene.store(), f"{LINEAGES}{lineage}/main")

    def lineages(self) -> set[int]:
        names = (entry.key.removeprefix(LINEAGES) for entry in self.scene.store().list(LINEAGES))
        return {int(name.split("/")[0]) for name in names if "/" in name}


@pytest.fixture
def world() -> World:
    return World()


def test_lineages_that_were_not_finished_go_and_those_that_are_whole_stay(world: World) -> None:
    clear_left(world.own, 1, lambda: True)
    assert (world.lineages(), attempts.begun(world.own)) == ({1, 3}, [])
    assert lineage_mark.is_there(world.own, 3)


def test_the_lineage_that_the_process_writes_in_stays_whatever_is_said_of_it(world: World) -> None:
    clear_left(world.own, 4, lambda: True)
    assert world.lineages() == {1, 3, 4}


def test_a_process_that_has_lost_the_fence_removes_nothing(world: World) -> None:
    clear_left(world.own, 1, lambda: False)
    assert world.lineages() == {1, 2, 3, 4}


def test_a_lineage_that_a_pod_begins_after_the_look_is_not_touched(world: World) -> None:
    """It takes the fence first."""
    answers: Iterator[bool] = iter([True, False])

    def is_held() -> bool:
        world.begin(5)
        return next(answers)

    clear_left(world.own, 1, is_held)
    assert world.lineages() == {1, 3, 4, 5}


def test_what_a_storage_does_not_let_be_done_is_done_again(world: World) -> None:
    answers = iter([ConnectionError("away"), None])

    def is_held() -> bool:
        trouble = next(answers, None)
        if trouble is not None:
            raise trouble
        return True

    clearing = Clearing(1, lambda: world.own, is_held, threading.Event(), first_pause=0.0)
    clearing.run()
    assert world.lineages() == {1, 3}


def test_a_process_that_ends_does_not_try_again(world: World) -> None:
    stopping = threading.Event()

    def is_held() -> bool:
        stopping.set()
        raise ConnectionError("away")

    Clearing(1, lambda: world.own, is_held, stopping).run()
    assert world.lineages() == {1, 2, 3, 4}
