"""The process that rehearses a new version: it works in a place of its own, and says how the version did."""

import asyncio
from typing import Any

from tests.scenario.api_server import Body
from tests.scenario.cluster import Container, Ended
from tests.scenario.object_store import StoreClient
from tests.scenario.surroundings import Surroundings, given_config
from tidegate_spark.contract.protocol import ANNOTATION_SPEC_HASH, EXIT_CODES, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalEnd, RehearsalResult
from tidegate_spark.storage import s3_client

PLACES = "/rehearsals/"
PASSED = (Reason.COMPLETED, RehearsalResult.PASSED, Reason.NONE)
FAILED = (Reason.APPLICATION_FAILED, RehearsalResult.FAILED, Reason.PLAN_INCOMPATIBLE)
UNFED = (Reason.STOPPED, RehearsalResult.INCONCLUSIVE, Reason.NO_INPUT)
STOPPED = (Reason.STOPPED, RehearsalResult.INCONCLUSIVE, Reason.STOPPED)
AWAY = (Reason.STORAGE_UNAVAILABLE, RehearsalResult.INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE)
End = tuple[Reason, RehearsalResult, Reason]


class RehearsalProcess:
    """One rehearsal from start to end."""

    ready = True

    def __init__(self, world: Surroundings, container: Container, pod: Body) -> None:
        self._world, self._config = world, given_config(container, pod)
        self._version: str = pod["metadata"]["annotations"][ANNOTATION_SPEC_HASH]
        self._client: Any = StoreClient(world.store, lambda: container.node.storeless, self._config.storage.endpoint)
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        """Where it writes: bucket and prefix."""
        return f"{self._config.storage.bucket}/{self._config.storage.prefix}"

    @property
    def alive(self) -> bool:
        """Whether it may still write."""
        return self._task is not None and not self._task.done()

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._live(ended))

    def terminate(self) -> None:
        """End soon."""
        self._asked.set()

    def kill(self) -> None:
        """End at once, without a word; what it has written stays."""
        assert self._task is not None
        self._task.cancel()

    async def _live(self, ended: Ended) -> None:
        try:
            self._empty()
            await self._pause(self._world.rng.uniform(0.5, 4.0))
            self._write()
            reason, result, what = await self._rehearse()
            self._empty()
        except Exception as error:
            if s3_client.fault_of(error, self._config.storage, "") is None:
                raise
            reason, result, what = AWAY
        self._world.count(f"rehearsal {result.value}")
        end = RehearsalEnd(result, what, {"main": 0})
        reported = Termination(reason, "the rehearsal is over", self._config.epoch, rehearsal=end)
        code = EXIT_CODES[reason]
        ended(code, "Completed" if code == 0 else "Error", to_json(reported))

    async def _rehearse(self) -> End:
        rehearsal = self._config.rehearsal
        assert rehearsal is not None
        if self._world.is_broken(self._config.uid, self._version):
            return STOPPED if self._asked.is_set() else FAILED
        await self._pause(self._world.rng.uniform(1.0, 20.0))
        if not self._world.input:
            await self._pause(rehearsal.timeout_seconds)
        if self._asked.is_set():
            return STOPPED
        return PASSED if self._world.input else UNFED

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            pass

    def _write(self) -> None:
        start, place = self._config.start_from, self._config.storage
        assert start is not None
        manifest = start.storage.key("snapshots", start.snapshot, "manifest.json")
        if s3_client.read_object(self._client, start.storage, manifest) is None:
            self._world.trace("rehearsal", f"{start.snapshot} is not there")
        self._client.put_object(Bucket=place.bucket, Key=place.key("fence.json"), Body=b"{}")

    def _empty(self) -> None:
        place = self._config.storage
        listed = self._client.list_objects_v2(Bucket=place.bucket, Prefix=place.prefix + "/").get("Contents", [])
        for each in listed:
            self._client.delete_object(Bucket=place.bucket, Key=each["Key"])
