"""Which executors a driver takes for its own and alive, and how often it asks. No API server."""

from collections.abc import Callable
from typing import Any

from tidegate_spark.executors.living_executors import (
    LATER_SECONDS,
    SOON_FOR_SECONDS,
    SOON_SECONDS,
    LivingExecutors,
    living,
)


def pod(name: str, phase: str = "Running", owner: str = "d-1", **metadata: Any) -> dict[str, Any]:
    owners = [{"uid": owner, "controller": True}]
    return {"metadata": {"name": name, "ownerReferences": owners, **metadata}, "status": {"phase": phase}}


def test_only_executors_of_this_driver_that_have_not_ended_are_alive() -> None:
    pods = [
        pod("orders-e1-exec-1"),
        pod("orders-e1-exec-2", "Pending"),
        pod("orders-e1-exec-3", "Failed"),
        pod("orders-e1-exec-4", "Succeeded"),
        pod("orders-e1-exec-5", deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("orders-e1-exec-6", owner="another"),
        pod("orders-e1-exec-seven"),
        pod("orders-e12-exec-8"),
    ]
    assert living({"items": pods}, "orders-e1", "d-1") == {1, 2}


class Api:
    """Answers when a test says so, or at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.alive: frozenset[int] | None = frozenset()
        self.waiting: list[Callable[[], None]] = []
        self.slow = False

    def read(self) -> frozenset[int]:
        self.asked += 1
        if self.alive is None:
            raise OSError("no route to host")
        return self.alive

    def start(self, do: Callable[[], None]) -> None:
        self.waiting.append(do) if self.slow else do()


def test_what_changes_is_asked_for_often_and_what_does_not_seldom() -> None:
    api = Api()
    known = LivingExecutors(api.read, api.start)
    for second in range(600):
        api.alive = frozenset({second}) if second < 100 else frozenset({100})
        known.check(float(second))
    often, seldom = (100 + SOON_FOR_SECONDS) / SOON_SECONDS, (500 - SOON_FOR_SECONDS) / LATER_SECONDS
    assert abs(api.asked - often - seldom) <= 3


def test_an_answer_that_takes_long_keeps_nobody_waiting_and_is_not_asked_for_twice() -> None:
    api = Api()
    api.slow, api.alive = True, frozenset({1})
    known = LivingExecutors(api.read, api.start)
    assert [known.check(float(second)) for second in range(20)] == [None] * 20
    (ask,) = api.waiting
    ask()
    assert known.check(20.0) == frozenset({1})
    assert known.check(20.5) is None


def test_an_answer_that_nobody_has_looked_at_for_long_says_nothing_of_now() -> None:
    api = Api()
    api.alive = frozenset({1, 2})
    known = LivingExecutors(api.read, api.start)
    known.check(100.0)
    api.alive = frozenset({1, 2, 3})
    assert known.check(5000.0) is None
    assert known.check(5001.0) == frozenset({1, 2, 3})


def test_an_api_server_that_does_not_answer_is_asked_again() -> None:
    api = Api()
    api.alive = None
    known = LivingExecutors(api.read, api.start)
    assert known.check(0.0) is None
    api.alive = frozenset({3})
    known.check(SOON_SECONDS)
    assert known.check(SOON_SECONDS + 1.0) == frozenset({3})
