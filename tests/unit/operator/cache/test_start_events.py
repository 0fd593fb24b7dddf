"""When a pod's events are read, and what is known of it then. Time is the test's own; the server is a list."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tidegate.cache.pods.start_events import FIRST_PAUSE, LONGEST_PAUSE, MOST_PODS, Delays, StartEvents
from tidegate.kube.failures import Failure, Forbidden, TooLong, Unavailable
from tidegate.pods.records.record import PodRecord
from tidegate.pods.records.start_delay import Obstacle, PodEvent, PodEvents, StartDelay, _Involved
from tidegate_testing.observations import NOW, app_with, driver_of, executor_of, launched

PATIENCE = 120.0
APP = launched(app_with())
MISSING = 'MountVolume.SetUp failed for volume "rules" : configmap "rules" not found'


def no_config_map(uid: str) -> PodEvent:
    return PodEvent("Warning", "FailedMount", MISSING, _Involved(uid))


class World:
    """A server with events, and the time."""

    def __init__(self) -> None:
        self.time, self.asked = 0.0, list[dict[str, str]]()
        self.answer: Callable[[str], PodEvents | Failure] = lambda uid: PodEvents([no_config_map(uid)])
        self.skew = 0.0
        client: Any = self
        self.starts = StartEvents(client, lambda: NOW + self.time + self.skew, lambda: self.time)

    async def read_once(self, path: str, kind: type[Any], *, patience: float, longest: int) -> Any:
        bare, _, query = path.partition("?")
        assert (bare, kind) == ("/api/v1/namespaces/shop/events", PodEvents)
        assert patience <= 5
        assert longest <= 4 * 2**20
        asked = dict(parse_qsl(query))
        self.asked.append(asked)
        return self.answer(asked["fieldSelector"].removeprefix("involvedObject.uid="))

    async def check(self, *pods: PodRecord, after: float = 0.0) -> Delays:
        self.time += after
        return await self.starts.check(pods, PATIENCE)

    def due_in(self, *pods: PodRecord) -> float | None:
        return self.starts.due_in(pods, PATIENCE)

    async def reads_within(self, pod: PodRecord, seconds: float) -> list[float]:
        """Return when the events of a pod were read, if it is looked at as soon as that is due."""
        end, times = self.time + seconds, list[float]()
        while self.time < end:
            before = len(self.asked)
            await self.check(pod)
            if len(self.asked) > before:
                times.append(self.time)
            due = self.due_in(pod)
            assert due is not None
            assert due > 0
            self.time += due
        return times


def silent(since: float = NOW, **fields: Any) -> PodRecord:
    return driver_of(APP, silent_since=since, node="node0", **fields)


async def test_nothing_is_read_before_the_patience_is_over_and_the_cause_is_known_right_after_it() -> None:
    world = World()
    assert world.due_in(silent()) == PATIENCE, "before anybody has looked at it"
    assert await world.check(silent(), after=119) == Delays()
    assert world.due_in(silent()) == 1.0
    assert world.asked == []
    found = await world.check(silent(), after=1)
    assert found.by_uid["pod-1"].name == "ConfigMap rules"
    assert world.asked == [{"fieldSelector": "involvedObject.uid=pod-1", "limit": "100"}]
    assert found.of(silent()).delay == found.by_uid["pod-1"]
    assert found.of(executor_of(APP, 1)).delay is None


async def test_events_are_read_again_after_growing_pauses_and_known_in_between() -> None:
    world = World()
    times = await world.reads_within(silent(), 2000)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == PATIENCE
    assert pauses[:5] == [FIRST_PAUSE, 30, 60, 120, 240]
    assert set(pauses[5:]) == {LONGEST_PAUSE}
    before = len(world.asked)
    assert (await world.check(silent(), after=-1)).by_uid
    assert len(world.asked) == before


@pytest.mark.parametrize("skew", [-86400.0, 0.0, 20.0])
async def test_a_clock_that_is_wrong_makes_nobody_wait_longer_than_the_patience(skew: float) -> None:
    world = World()
    world.skew = skew
    assert (await world.reads_within(silent(), 121))[0] <= PATIENCE


@pytest.mark.parametrize(
    "pod",
    [driver_of(APP), executor_of(APP, 1), silent(delete_by=NOW + 30)],
    ids=["it says why, or has ended", "it runs", "it is to go"],
)
async def test_nothing_is_ever_read_of_a_pod_that_does_not_wait(pod: PodRecord) -> None:
    world = World()
    assert await world.check(pod) == Delays()
    assert await world.check(pod, after=10**6) == Delays()
    assert world.due_in(pod) is None
    assert world.asked == []


async def test_of_an_application_only_so_many_pods_are_looked_up_and_the_first_ones_first() -> None:
    world = World()
    executors = [executor_of(APP, number, running=False, silent_since=NOW) for number in range(20)]
    await world.check(silent(), *executors)
    found = await world.check(silent(), *executors, after=PATIENCE)
    assert list(found.by_uid) == ["pod-1", *(pod.uid for pod in executors[: MOST_PODS - 1])]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Forbidden("events is forbidden"), "events is forbidden"),
        (TooLong("the answer is longer than 2097152 bytes"), "the answer is longer than 2097152 bytes"),
    ],
)
async def test_what_cannot_be_read_is_said_to_be_unread(answer: Failure, text: str) -> None:
    world = World()
    world.answer = lambda uid: answer
    found = await world.check(silent(NOW - PATIENCE))
    assert found.by_uid["pod-1"] == StartDelay(Obstacle.UNREAD, text)
    assert world.due_in(silent(NOW - PATIENCE)) == FIRST_PAUSE


async def test_what_was_known_stays_known_while_the_server_does_not_answer() -> None:
    world = World()
    known = (await world.check(silent(NOW - PATIENCE))).by_uid
    world.answer = lambda uid: Unavailable("no connection")
    assert (await world.check(silent(NOW - PATIENCE), after=FIRST_PAUSE)).by_uid == known


async def test_events_of_another_pod_that_somebody_sends_are_not_believed() -> None:
    world = World()
    world.answer = lambda uid: PodEvents([no_config_map("another")])
    assert (await world.check(silent(NOW - PATIENCE))).by_uid["pod-1"] == StartDelay(Obstacle.UNNAMED)


async def test_a_pod_that_went_on_and_stands_still_again_has_its_whole_patience_anew() -> None:
    world = World()
    assert (await world.check(silent(NOW - PATIENCE))).by_uid
    went_on = silent(NOW + 300)
    assert await world.check(went_on, after=400) == Delays()
    assert world.due_in(went_on) == 20.0


async def test_pods_that_are_gone_are_forgotten() -> None:
    world = World()
    for number in range(50):
        await world.check(silent(NOW - PATIENCE, uid=f"pod-{number}"))
    await world.check(dataclasses.replace(silent(NOW - PATIENCE), uid="later"), after=10**5)
    assert list(world.starts._waits) == ["later"]


async def test_pods_that_begin_in_time_are_forgotten_too() -> None:
    """Nearly every pod waits for a moment, and mostly nothing is ever read."""
    world = World()
    for number in range(2000):
        await world.check(silent(NOW + world.time, uid=f"pod-{number}"), after=60)
    assert world.asked == []
    assert len(world.starts._waits) < 200
    assert world.due_in(silent(NOW + world.time, uid="pod-1999")) == PATIENCE, "one that waits is remembered"


async def test_one_that_may_wait_for_long_is_not_taken_for_gone_meanwhile() -> None:
    world = World()
    patience, ahead = 4 * 3600.0, silent(NOW + 10**6, uid="ahead")  # of a node whose clock is ahead
    assert world.starts.due_in([ahead], patience) == patience
    for number in range(200):
        await world.check(silent(NOW + world.time, uid=f"pod-{number}"), after=60)
    assert world.starts.due_in([ahead], patience) == patience - 200 * 60
