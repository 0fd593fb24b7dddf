"""What the driver tells of its executors: since when there are too few, and who does not go. No JVM."""

import time

import pytest

from tidegate_spark.contract.protocol import AgentReport, Storage
from tidegate_spark.process.progress import COUNT_SECONDS, Ends, Leaving, Progress
from tidegate_testing.driver_process import driver_config


class World:
    """A driver that is to have two executors, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        self.progress = Progress(driver_config("app", "main.py", Storage("s3://bucket/app")))
        self.progress.executors(wanted=2)

    def sees(self, running: int, after: float = 1.0, leaving: Leaving | None = None) -> AgentReport:
        self.now += after
        self.progress.executors(running=running, leaving=leaving or Leaving(0))
        return self.progress.report()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_shortage_is_as_old_as_the_first_look_that_found_it_until_more_are_wanted(world: World) -> None:
    assert world.sees(1).executors_short_since == 1000.0
    assert world.sees(0, after=60.0).executors_short_since == 1000.0
    world.progress.executors(wanted=4)
    assert world.sees(1).executors_short_since == 1061.0
    assert world.sees(4).executors_short_since == 0.0


def test_who_goes_is_told_with_the_time_at_which_it_was_released(world: World) -> None:
    assert world.sees(2).executors_leaving_since == 0.0
    report = world.sees(2, leaving=Leaving(2, "7", 30.0))
    assert (report.executors_leaving, report.executor_leaving_longest) == (2, "7")
    assert report.executors_leaving_since == world.now - 30.0


def test_that_time_stays_the_same_with_each_look_and_goes_with_the_executor(world: World) -> None:
    first = world.sees(2, leaving=Leaving(2, "7", 30.0)).executors_leaving_since
    assert world.sees(2, after=5.0, leaving=Leaving(2, "7", 35.25)).executors_leaving_since == first
    assert world.sees(2, leaving=Leaving(1, "8", 10.0)).executors_leaving_since == world.now - 10.0
    gone = world.sees(2)
    assert (gone.executors_leaving, gone.executor_leaving_longest, gone.executors_leaving_since) == (0, "", 0.0)


def test_executors_that_nobody_counts_may_be_there(world: World) -> None:
    assert world.progress.has_executors()
    world.sees(0)
    assert not world.progress.has_executors()
    assert world.progress.has_executors(time.monotonic() + 2 * COUNT_SECONDS)
    world.sees(1)
    assert world.progress.has_executors()


def test_the_end_of_a_pause_is_the_same_time_with_each_look_and_goes_with_it(world: World) -> None:
    world.progress.executors(ends=Ends(2, 20.0))
    until = world.sees(0).executors_held_until
    assert until == 1020.0
    world.progress.executors(ends=Ends(2, 18.75))
    report = world.sees(0)
    assert (report.executors_ended, report.executors_held_until) == (2, until)
    world.progress.executors(ends=Ends(3, 40.0))
    assert world.sees(0).executors_held_until == world.now + 39.0
    world.progress.executors(ends=Ends(3))
    assert world.sees(0).executors_held_until == 0.0
