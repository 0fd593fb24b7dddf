"""Executors of one driver process that may end by themselves, replaced as by Spark and paced by the runtime's code.

Once a second Spark's allocator removes pods that have ended and makes as many as are missing to its target, and the
runtime looks. Batches need an executor.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.scenario.api_server import Body
from tests.scenario.cluster import Container
from tests.scenario.drivers_executors import DriversExecutors, Surroundings
from tests.scenario.small_processes import ExecutorProcess
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.executors.executors import Scale

REGISTERS_AFTER = 3.0


@dataclass(frozen=True)
class Illness:
    """How executors of an image end by themselves."""

    seconds: float
    """After their start."""
    code: int = 1
    word: str = "Error"
    lines: str = "Unrecognized VM option 'UseNoGC'"


class PacedExecutors(DriversExecutors):
    """Those of one driver process."""

    ill: Callable[[str], Illness | None] = staticmethod(lambda image: None)
    """How executors of an image end, None if they live; a test sets it."""
    made = 0
    """By all driver processes; a test sets it to zero."""

    def __init__(self, world: Surroundings, container: Container, config: DriverConfig) -> None:
        super().__init__(world, container, config)
        self._target = self.wanted
        self._scale = Scale(self, self, self.wanted)
        self._task: asyncio.Task[None] | None = None

    # --- what the driver's process calls ---

    def keep(self) -> None:
        """Have Spark and the runtime look, from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._live())

    def abandon(self) -> None:
        """The driver is gone: nobody looks any more, and they notice and end."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        super().abandon()

    def can_work(self) -> bool:
        """Return whether one is registered."""
        return bool(self.registered())

    # --- what the runtime asks of Spark and of the API server ---

    def registered(self) -> Sequence[str]:
        """Return the ids of those that run and have registered."""
        return [self._id(pod) for pod in self._alive() if self._age(pod) >= REGISTERS_AFTER]

    def request(self, wanted: int) -> None:
        """Set Spark's target."""
        self._target = wanted

    def release(self, ids: Sequence[str]) -> None:
        """End these."""
        for pod in self._alive():
            if self._id(pod) in ids:
                self._end(pod)

    def check(self, now: float) -> frozenset[int]:
        """Return the numbers of those that have not ended."""
        return frozenset(int(self._id(pod)) for pod in self._alive())

    def hurry(self) -> None:
        """Every look has an answer."""

    # --- time ---

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._fall_ill()
            if self._may_change_pods():
                self._allocate()
            now = asyncio.get_running_loop().time()
            count = self._scale.check(self.wanted, now)
            self._report(count.ended, count.held_until - now, count.running)

    def _report(self, ended: int, left: float, running: int) -> None:
        clock = self._world.api.clock()
        if left <= 0:
            self.held_until = 0.0
        elif ended != self.ended:
            self.held_until = clock + left
        self.ended = ended
        self.short_since = 0.0 if running >= self.wanted else self.short_since or clock

    def _fall_ill(self) -> None:
        illness = type(self).ill(self._config.executor.image)
        for pod in self._alive() if illness is not None else ():
            container = self._world.find_container(pod["metadata"]["uid"])
            process = container.process if container is not None else None
            if illness is not None and isinstance(process, ExecutorProcess) and self._age(pod) >= illness.seconds:
                process.fail(illness.code, illness.word, illness.lines)

    def _allocate(self) -> None:
        api = self._world.api
        alive = self._alive()
        names = {pod["metadata"]["name"] for pod in alive}
        for pod in self._all():
            if pod["metadata"]["name"] not in names and "deletionTimestamp" not in pod["metadata"]:
                api.delete(self._path(pod["metadata"]["name"]))
        for _ in range(self._target - len(alive)):
            self._number += 1
            PacedExecutors.made += 1
            name = f"{self._prefix}{self._number}"
            api.create(self._path(name).rpartition("/")[0], self._manifest(name))

    def _alive(self) -> list[Body]:
        return [
            pod
            for pod in self._all()
            if pod["status"].get("phase") not in ("Failed", "Succeeded") and "deletionTimestamp" not in pod["metadata"]
        ]

    def _id(self, pod: Body) -> str:
        return str(pod["metadata"]["name"]).removeprefix(self._prefix)

    def _age(self, pod: Body) -> float:
        container = self._world.find_container(pod["metadata"]["uid"])
        if container is None or container.process is None:
            return 0.0
        return self._world.api.clock() - container.start_time
