"""Who is asked when among many agents that cannot be reached. Virtual time; no I/O."""

import asyncio
import itertools
from collections import defaultdict
from typing import Any

from tidegate.agent.client import Unanswered
from tidegate.agent.poller import PACES, AgentPoller
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.pods.records.record import PodRecord
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_testing.observations import UID, app_with, launched, running_driver
from tidegate_testing.virtual_time import run_in_virtual_time

WORKERS, TIMEOUT, ANSWER = 16, 3.0, 0.005
MINUTE = 60.0


class Fleet:
    """Drivers by name: one that starts with ``lost`` cannot be reached. Notes who is asked when."""

    def __init__(self) -> None:
        self.index, self.asked = Index(), defaultdict[str, list[float]](list)
        queue = WorkQueue(self.never, OperatorMetrics())
        self.poller = AgentPoller(self.index, self, queue, OperatorMetrics(), WORKERS, self.now)  # type: ignore[arg-type] # no HTTP

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def never(self, key: Key) -> None:
        raise AssertionError("no worker runs")

    async def read_progress(self, key: Key, pod: PodRecord) -> AgentReport | Unanswered:
        self.asked[key[1]].append(self.now())
        lost = key[1].startswith("lost")
        await asyncio.sleep(TIMEOUT if lost else ANSWER)
        return Unanswered("timeout") if lost else AgentReport(key[1], UID, 1, DriverState.RUNNING)

    def start(self, *names: str) -> None:
        for name in names:
            driver = running_driver(launched(app_with(name=name)), uid=f"pod-{name}")
            self.index.put_pod(driver)
            self.poller.follow(("shop", name), driver)

    async def run(self, seconds: float, *later: tuple[float, str]) -> None:
        """Let the workers ask for so long; drivers in ``later`` start after so many seconds."""
        workers = [asyncio.create_task(self.poller.run_worker()) for _ in range(WORKERS)]
        began = self.now()
        for at, name in later:
            await asyncio.sleep(began + at - self.now())
            self.start(name)
        await asyncio.sleep(began + seconds - self.now())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def longest_pause(times: list[float]) -> float:
    return max(later - earlier for earlier, later in itertools.pairwise(times))


LOST = [f"lost-{n}" for n in range(1000)]
FOUND = [f"found-{n}" for n in range(20)]


def test_drivers_that_answer_are_asked_on_time_however_many_do_not() -> None:
    async def scenario() -> dict[str, list[float]]:
        fleet = Fleet()
        fleet.start(*(name for n in range(20) for name in (*LOST[50 * n : 50 * n + 50], FOUND[n])))
        await fleet.run(60 * MINUTE)
        return fleet.asked

    asked = run_in_virtual_time(scenario())
    longest = PACES["running"][1]
    assert max(longest_pause(asked[name]) for name in FOUND) <= longest + 1.0


def test_a_driver_that_starts_is_asked_before_those_that_never_answer() -> None:
    async def scenario() -> tuple[float, Any]:
        fleet = Fleet()
        fleet.start(*LOST)
        began = fleet.now()
        await fleet.run(41 * MINUTE, (40 * MINUTE, "found-0"))
        return began + 40 * MINUTE, fleet.asked["found-0"][0]

    started, asked = run_in_virtual_time(scenario())
    assert asked - started <= TIMEOUT


def test_those_that_never_answer_are_asked_again_and_again() -> None:
    async def scenario() -> dict[str, list[float]]:
        fleet = Fleet()
        fleet.start(*LOST, *FOUND)
        await fleet.run(60 * MINUTE)
        return fleet.asked

    asked = run_in_virtual_time(scenario())
    assert min(len(asked[name]) for name in LOST) >= 8
