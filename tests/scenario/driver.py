"""The process in a driver pod. The fence and the claim are the runtime's own code.

A driver claims its storage, takes the fence, and then commits batches as files of a checkpoint; it looks at the fence
before each batch, ends at a boundary when asked to, and says how it ended with the runtime's exit codes and words.
"""

import asyncio
import functools
import random
from dataclasses import replace
from typing import Any, Protocol

from tests.scenario.api_server import PODS, ApiServer, Body
from tests.scenario.cluster import KILLED, Container, Ended
from tests.scenario.object_store import FencePort, ObjectStore, StoreClient
from tidegate_spark import fence, preflight, storage
from tidegate_spark.fence import Fenced, Held, Holder
from tidegate_spark.protocol import (
    CONFIG_VARIABLE,
    EXIT_CODES,
    AgentReport,
    DriverConfig,
    DriverState,
    Fault,
    Notice,
    QueryReport,
    Reason,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.storage import FaultError

QUERY = "main"


class Ledger(Protocol):
    """Is told what happens to storage."""

    def taken(self, prefix: str, holder: Holder) -> None:
        """A process took the fence."""

    def begun(self, prefix: str, holder: Holder) -> None:
        """A process begins a batch."""

    def committed(self, prefix: str, holder: Holder, batch: int) -> None:
        """The batch that it began is committed."""


class Surroundings(Protocol):
    """What processes need of the world around them."""

    api: ApiServer
    store: ObjectStore
    ledger: Ledger
    rng: random.Random
    input: bool
    """There is something to read, so that there are batches."""

    def drivers_may(self, namespace: str) -> bool:
        """Return whether drivers of a namespace have the rights they need."""

    def find_container(self, uid: str) -> Container | None:
        """Return the container of the pod with this uid."""

    def entered(self, driver: "DriverProcess") -> None:
        """A driver took the fence."""

    def purging(self, config: DriverConfig | None) -> None:
        """A purge begins, or has ended (None)."""

    def changed(self, container: Container) -> None:
        """A process is ready now, or not any more."""

    def trace(self, who: str, text: str) -> None:
        """Note what happened."""


def config_of(pod: Body) -> DriverConfig:
    """Return the configuration that the operator gave a pod."""
    env = pod["spec"]["containers"][0]["env"]
    return _read_config(next(each["value"] for each in env if each["name"] == CONFIG_VARIABLE))


@functools.lru_cache(64)
def _read_config(text: str) -> DriverConfig:
    # Each start of a container reads it, and so does whoever makes its executors.
    return from_json(DriverConfig, text)


class DriverProcess:
    """One driver process from start to end."""

    def __init__(self, world: Surroundings, container: Container, pod: Body) -> None:
        self.config = config_of(pod)
        self.ready = False
        self.state, self.fault = DriverState.STARTING, None  # type: DriverState, Fault | None
        self.wanted = self.config.executor.instances
        self.batch = -1
        self.finish_soon = False
        self.notices: tuple[Notice, ...] = ()
        self.end_with: Termination | None = None
        self._world, self._container, self._pod = world, container, pod
        self._client = StoreClient(world.store, lambda: container.node.storeless)
        place = self.config.storage
        self.prefix = f"{place.bucket}/{place.prefix}"
        self._port = FencePort(self._client, place)
        self.holder = Holder(
            self.config.uid,
            self.config.epoch,
            self.config.lineage,
            container.uid,
            f"{container.uid}/{container.restarts}",
        )
        self._executor_id = 0
        self._entered: Held | Termination | None = None
        self.entering = False
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # --- what the kubelet and the operator see ---

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._live(ended))

    def terminate(self) -> None:
        """Stop at the next batch boundary."""
        self._asked.set()

    def kill(self) -> None:
        """End at once, without a word."""
        assert self._task is not None
        self._task.cancel()
        self.ready = False
        self._abandon_executors()

    def crash(self, termination: Termination) -> None:
        """End in the middle of a batch, for this reason."""
        self.end_with = termination

    def report(self) -> AgentReport:
        """Return what the agent answers."""
        running = sum(1 for each in self._executors() if each["status"].get("phase") == "Running")
        config, wanted = self.config, self.wanted
        query = QueryReport(QUERY, batch_id=self.batch)
        told = (query,) if self.state is DriverState.RUNNING else ()
        return AgentReport(
            config.app,
            config.uid,
            config.epoch,
            self.state,
            self.fault,
            told,
            wanted,
            running,
            self.notices,
            ready=self.ready,
        )

    # --- its life ---

    async def _live(self, ended: Ended) -> None:
        try:
            termination = await self._run()
        except FaultError as error:
            termination = self._last_words(error.fault.reason, error.fault.message)
        except Exception as error:
            fault = storage.fault_of(error, self.config.storage, "")
            if fault is None:
                raise
            termination = self._last_words(fault.reason, fault.message)
        self.state, self.ready = DriverState.ENDED, False
        code = EXIT_CODES[termination.reason]
        if self.end_with is not None and not self.end_with.message:
            self._abandon_executors()
            ended(KILLED, "OOMKilled", "")
            return
        await self._remove_executors()
        ended(code, "Completed" if code == 0 else "Error", to_json(termination))

    async def _run(self) -> Termination:
        await asyncio.sleep(self._some(0.5, 3.0))
        entered = await self._enter_when_possible()
        if isinstance(entered, Termination):
            return entered
        await self._remove_executors()
        await asyncio.sleep(self._some(0.5, 4.0))
        self.state, self.ready = DriverState.RUNNING, True
        self._world.changed(self._container)
        self.batch = self._last_batch()
        while True:
            self._keep_executors()
            end = await self._run_batch(entered)
            if end is not None:
                self.state = DriverState.STOPPING
                return end

    async def _enter_when_possible(self) -> Held | Termination:
        for delay in preflight.delays():
            if self._asked.is_set():
                break
            try:
                self.entering = True
                await asyncio.sleep(self._some(0.0, 0.3))
                entered = self._entered or self.enter()
            except Exception as error:
                self.fault = self._waitable(error)
                self.state = DriverState.WAITING
                await self._pause(delay)
                continue
            finally:
                self.entering = False
            self.state, self.fault = DriverState.STARTING, None
            return entered
        return self._last_words(Reason.STOPPED, "Stopped while starting.")

    def _waitable(self, error: Exception) -> Fault:
        fault = error.fault if isinstance(error, FaultError) else storage.fault_of(error, self.config.storage, "")
        if fault is None or EXIT_CODES[fault.reason] == 0:
            raise error
        return fault

    def enter(self) -> Held | Termination:
        """Claim the storage and take the fence, in one go; what comes in between is the store's ``meanwhile``."""
        client: Any = self._client
        preflight.claim(client, self.config)
        outcome = fence.take(self._port, self.holder)
        if isinstance(outcome, Fenced):
            told = self._fenced(outcome)
            self._entered = replace(told, adopt_epoch=outcome.epoch, adopt_lineage=outcome.lineage)
        else:
            self._world.trace(
                "driver", f"{self.holder.process} epoch {self.holder.epoch} takes the fence of {self.prefix}"
            )
            self._world.ledger.taken(self.prefix, self.holder)
            self._entered = outcome
            self._world.entered(self)
        return self._entered

    def has_fence(self) -> bool:
        """Return whether it took the fence."""
        return isinstance(self._entered, Held) and self.state is not DriverState.ENDED

    def may_enter(self) -> bool:
        """Return whether it is about to take the fence and may do so now."""
        return self.entering and self._entered is None and not self._container.node.storeless

    def enter_meanwhile(self) -> None:
        """Take the fence between two steps of another one that takes it."""
        try:
            self.enter()
        except Exception as error:
            self._world.trace("driver", f"{self.holder.process} does not enter: {error}")

    async def _run_batch(self, held: Held) -> Termination | None:
        """Run one batch, or idle for a moment; returns how the driver ends, if it does."""
        end = self._end_at_boundary(held)
        if end is not None:
            return end
        if not self._world.input and self.end_with is None:
            await self._pause(self._some(10.0, 40.0))
            return None
        self._world.ledger.begun(self.prefix, self.holder)
        number = self.batch + 1
        self._write("offsets", number)
        await asyncio.sleep(self._some(0.5, 25.0))
        if self.end_with is not None:
            return self.end_with
        if not self._write("commits", number):
            return self._last_words(Reason.APPLICATION_FAILED, f"batch {number} was committed by another query")
        self._world.ledger.committed(self.prefix, self.holder, number)
        self.batch = number
        await self._pause(self._some(0.0, 5.0))
        return None

    def _end_at_boundary(self, held: Held) -> Termination | None:
        if self._asked.is_set():
            return self._last_words(Reason.STOPPED, "Stopped at a batch boundary.")
        lost = fence.check(self._port, held)
        if lost is not None:
            return self._fenced(lost)
        return self._last_words(Reason.COMPLETED, "The script has ended.") if self.finish_soon else None

    def _write(self, log: str, number: int) -> bool:
        place, key = self.config.storage, f"lineages/{self.config.lineage}/{QUERY}/{log}/{number}"
        client: Any = self._client
        content = self.holder.process.encode()
        if log == "commits":
            return storage.create_object(client, place, place.key(key), content)
        client.put_object(Bucket=place.bucket, Key=place.key(key), Body=content)
        return True

    def _last_batch(self) -> int:
        place = self.config.storage
        where = place.key(f"lineages/{self.config.lineage}/{QUERY}/commits") + "/"
        listed = self._client.list_objects_v2(Bucket=place.bucket, Prefix=where).get("Contents", [])
        return max((int(each["Key"].removeprefix(where)) for each in listed), default=-1)

    def _fenced(self, by: Fenced) -> Termination:
        message = f"Epoch {by.epoch} writes this storage; this driver is epoch {self.config.epoch}."
        return self._last_words(Reason.FENCED, message)

    def _last_words(self, reason: Reason, message: str) -> Termination:
        return Termination(reason, message, self.config.epoch, batches={QUERY: self.batch})

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            pass

    def _some(self, low: float, high: float) -> float:
        return self._world.rng.uniform(low, high)

    # --- its executors ---

    def _executors(self) -> list[Body]:
        prefix = f"{self.config.executor.pod_name_prefix}-exec-"
        return [body for body in self._world.api.all(PODS) if body["metadata"]["name"].startswith(prefix)]

    def _executor_path(self, number: object) -> str:
        name = f"{self.config.executor.pod_name_prefix}-exec-{number}"
        return f"/api/v1/namespaces/{self.config.namespace}/pods/{name}"

    def _may_change_pods(self) -> bool:
        return self._container.node.reachable and self._world.drivers_may(self.config.namespace)

    def _keep_executors(self) -> None:
        """Have as many executors as wanted, as Spark does: ended ones are removed, and new ones have new numbers."""
        api, there = self._world.api, self._executors()
        ended = [body for body in there if body["status"].get("phase") in ("Failed", "Succeeded")]
        alive = [body for body in there if body not in ended and "deletionTimestamp" not in body["metadata"]]
        surplus = alive[self.wanted :]
        for body in surplus:
            self._end_executor(body)
        if not self._may_change_pods():
            return
        for body in [*ended, *surplus]:
            api.delete(self._path(body))
        for _ in range(self.wanted - len(alive)):
            self._executor_id += 1
            if api.find(self._executor_path(self._executor_id)) is None:
                api.create(self._executor_path("").rpartition("/")[0], self._executor(self._executor_id))

    def _end_executor(self, body: Body) -> None:
        container = self._world.find_container(body["metadata"]["uid"])
        if container is not None and container.process is not None:
            container.process.terminate()

    def _executor(self, number: int) -> Body:
        template = self.config.executor.template
        owner = {"apiVersion": "v1", "kind": "Pod", "name": self.config.pod_name, "uid": self._container.uid}
        metadata = {
            **template["metadata"],
            "name": self._executor_path(number).rpartition("/")[2],
            "namespace": self.config.namespace,
            "ownerReferences": [owner],
        }
        container = {"name": "executor", "image": self.config.executor.image}
        return {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}

    async def _remove_executors(self) -> None:
        if self._may_change_pods():
            for body in self._executors():
                self._world.api.delete(self._path(body), grace=5)
        self._abandon_executors()

    def _abandon_executors(self) -> None:
        for body in self._executors():
            self._end_executor(body)

    def _path(self, body: Body) -> str:
        return f"/api/v1/namespaces/{self.config.namespace}/pods/{body['metadata']['name']}"
