"""The process in a driver pod. The fence, the claim and the account of failures are the runtime's own code.

A driver claims its storage, takes the fence, and then commits batches as files of a checkpoint; it looks at the fence
before each batch, ends at a boundary when asked to, or inside a batch when its grace period is over, and says how it
ended with the runtime's exit codes and words.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.scenario.api_server import Body
from tests.scenario.cluster import KILLED, Container, Ended
from tests.scenario.drivers_agent import DriversAgent, nothing_to_see
from tests.scenario.drivers_control import DriversControl
from tests.scenario.drivers_executors import DriversExecutors
from tests.scenario.drivers_snapshots import QUERY, DriversSnapshots
from tests.scenario.object_store import FencePort, StoreClient, root_of
from tests.scenario.surroundings import Surroundings, given_config
from tidegate_spark.contract.control_protocol import ControlOrders
from tidegate_spark.contract.protocol import (
    ANNOTATION_SPEC_HASH,
    EXIT_CODES,
    AgentReport,
    DriverState,
    Fault,
    Notice,
    QueryReport,
    RestartSettings,
    Termination,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_spark.driver.agent.agent import Commands
from tidegate_spark.driver.ending import Budget
from tidegate_spark.driver.restart_budget import COUNTED, RestartBudget
from tidegate_spark.driver.script.script import outcome_of_behind
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.storage import readiness, s3_client
from tidegate_spark.storage.claim import claiming, fence
from tidegate_spark.storage.claim.fence import Fenced, Held, Holder
from tidegate_spark.storage.s3_client import FaultError


class DiskAccount(RestartBudget):
    """The runtime's account of failures, on a disk that is a dictionary."""

    def __init__(self, disk: dict[str, str], settings: RestartSettings, clock: Callable[[], float]) -> None:
        super().__init__("/", settings, clock, clock)
        self._disk = disk

    def _load(self, name: str) -> str | None:
        return self._disk.get(name)

    def _put(self, name: str, text: str) -> None:
        self._disk[name] = text

    def _remove(self, name: str) -> None:
        self._disk.pop(name, None)


class DriverProcess:
    """One driver process from start to end."""

    def __init__(self, world: Surroundings, container: Container, pod: Body) -> None:
        self.config = given_config(container, pod)
        self.spec_hash: str = pod["metadata"]["annotations"][ANNOTATION_SPEC_HASH]
        self.ready = False
        self.stalled = ""
        """What the liveness probe is told, once a query is called stalled."""
        self.hangs = False
        """A batch does not go on."""
        self.state, self.fault = DriverState.STARTING, None  # type: DriverState, Fault | None
        self.batch = -1
        self._left = -1
        """The batch that was begun last by whoever ran before: if it was not committed, it is run again in any case."""
        self._partitions = 0
        """Of its state, as the checkpoint says; 0 if it is in as many as the lineage began with."""
        self.finish_soon = self.hang_soon = False
        self.notices: tuple[Notice, ...] = ()
        self.end_with: Outcome | None = None
        self._world, self._container = world, container
        self.executors = DriversExecutors(world, container, self.config)
        assert container.mounted is not None
        secret = container.mounted[self.config.agent_secret]
        commands = Commands(self.terminate, self._set_executors, self._order_snapshots, self._give, nothing_to_see)
        self.agent = DriversAgent(self.config, secret, self.report, commands, world.now, world.rng.randbytes)
        self._client = StoreClient(world.store, lambda: container.node.storeless, self.config.storage.endpoint)
        place = self.config.storage
        self.prefix = f"{root_of(place.endpoint)}{place.bucket}/{place.prefix}"
        self._port = FencePort(self._client, place)
        process = f"{container.uid}/{container.restarts}"
        self.holder = Holder(self.config.uid, self.config.epoch, self.config.lineage, container.uid, process)
        self.snapshots = DriversSnapshots(world, container, self.config, self.holder)
        self.control = DriversControl(world, container, self.config)
        self._account = DiskAccount(container.disk, self.config.restart, world.now)
        self._failures: tuple[float, ...] = ()
        self._began, self._commits, self._inside, self._counts = world.now(), 0, False, False
        self._proven = False
        """It ran and committed for long enough, and the account was told so: a kill comes after that."""
        self._entered: Held | Outcome | None = None
        self.entering = False
        self._asked, self._asked_at = asyncio.Event(), 0.0
        self._task: asyncio.Task[None] | None = None

    # --- what the operator orders ---

    def _set_executors(self, number: int) -> None:
        self.executors.wanted = number
        self._world.trace("driver", f"{self.holder.process} is to have {number} executors")

    def _order_snapshots(self, orders: SnapshotOrders) -> None:
        self._world.trace("driver", f"{self.holder.process} is told {orders}")
        self.snapshots.give(orders)

    def _give(self, messages: ControlOrders) -> None:
        self._world.trace("driver", f"{self.holder.process} is given {messages}")
        self.control.give(messages)

    # --- what the kubelet and the operator see ---

    def start(self, ended: Ended) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._live(ended))

    def terminate(self) -> None:
        """Stop at the next batch boundary."""
        if not self._asked.is_set():
            self._asked_at = self._world.now()
        self._asked.set()

    def kill(self) -> None:
        """End at once, without a word."""
        assert self._task is not None
        self._task.cancel()
        self.ready = False
        self._note_end(counted=self._counts, healthy=self._proven)
        self.executors.abandon()

    def crash(self, outcome: Outcome) -> None:
        """End in the middle of a batch, for this reason; without a word if it has no message."""
        self.end_with = outcome

    def report(self) -> AgentReport:
        """Return what the agent answers."""
        config = self.config
        partitions = self._partitions if self._commits else 0
        query = QueryReport(QUERY, batch_id=self.batch, committed=self._commits, state_partitions=partitions)
        reported = (query,) if self.state is DriverState.RUNNING else ()
        return AgentReport(
            config.app,
            config.uid,
            config.epoch,
            self.state,
            self.fault,
            reported,
            self.executors.wanted,
            self.executors.running(),
            self.notices,
            ready=self.ready,
            failures=self._failures,
            snapshots=self.snapshots.reports() if self.state is DriverState.RUNNING else (),
            control=self.control.report(),
            lineage=config.lineage if self.state is DriverState.RUNNING else 0,
            executors_ended=self.executors.ended,
            executors_held_until=self.executors.held_until,
            executors_short_since=self.executors.short_since,
        )

    # --- its life ---

    async def _live(self, ended: Ended) -> None:
        try:
            refused = self._account.begin()
            self._counts = refused is None
            outcome = refused or await self._run()
        except claiming.BehindError as error:
            outcome = outcome_of_behind(error)
        except FaultError as error:
            outcome = Outcome(error.fault.reason, error.fault.message)
        except Exception as error:
            fault = s3_client.fault_of(error, self.config.storage, "")
            if fault is None:
                raise
            outcome = Outcome(fault.reason, fault.message)
        self.state, self.ready = DriverState.ENDED, False
        if not outcome.message:
            self._note_end(counted=True, healthy=self._proven)
            self.executors.abandon()
            ended(KILLED, "OOMKilled", "")
            return
        self._note_end(counted=outcome.reason in COUNTED, healthy=self._is_healthy())
        outcome = self._account.end(outcome, committed=self._commits > 0)
        self.executors.remove()
        code = EXIT_CODES[outcome.reason]
        ended(code, "Completed" if code == 0 else "Error", to_json(self._termination(outcome)))

    def _is_healthy(self) -> bool:
        return self._commits > 0 and self._world.now() - self._began >= self.config.restart.healthy_seconds

    def _note_end(self, *, counted: bool, healthy: bool) -> None:
        self._world.ledger.ended(self.holder, self.config.restart, counted=counted, healthy=healthy)

    def _termination(self, outcome: Outcome) -> Termination:
        return Termination(
            outcome.reason,
            outcome.message,
            self.config.epoch,
            outcome.exception,
            batches={QUERY: self.batch},
            boundary=not self._inside,
            failures=self._account.times,
            committed=self._commits,
            adopt_epoch=outcome.adopt[0],
            adopt_lineage=outcome.adopt[1],
            adopt_opening=outcome.adopt_opening,
            adopted_from=outcome.adopted_from,
        )

    async def _run(self) -> Outcome:
        self._failures = self._account.times
        await asyncio.sleep(self._some(0.5, 3.0))
        entered = await self._enter_when_possible()
        if isinstance(entered, Outcome):
            return entered
        refused = self.snapshots.begin()
        if refused is not None:
            return refused
        self._partitions = self.snapshots.partitions(self.config.lineage)
        self.executors.remove()
        await asyncio.sleep(self._some(0.5, 4.0))
        if self._world.is_broken(self.config.uid, self.spec_hash):
            silent = self._some(0.0, 1.0) < 0.2
            return Outcome(Reason.APPLICATION_FAILED, "" if silent else "no column x", "AnalysisException")
        self.state = DriverState.RUNNING
        self._world.changed(self._container)
        self.batch = self.snapshots.last_batch(self.config.lineage)
        self._left = self.snapshots.last_batch(self.config.lineage, "offsets")
        while True:
            self.executors.keep()
            end = await self._run_batch(entered)
            if end is not None:
                self.state = DriverState.STOPPING
                return end

    async def _enter_when_possible(self) -> Held | Outcome:
        for delay in readiness.delays():
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
        return Outcome(Reason.STOPPED, "Stopped while starting.")

    def _waitable(self, error: Exception) -> Fault:
        fault = error.fault if isinstance(error, FaultError) else s3_client.fault_of(error, self.config.storage, "")
        if fault is None or EXIT_CODES[fault.reason] == 0:
            raise error
        return fault

    def enter(self) -> Held | Outcome:
        """Claim the storage and take the fence, in one go; what comes in between is the store's ``meanwhile``."""
        client: Any = self._client
        claiming.claim(client, self.config)
        outcome = fence.take(self._port, self.holder)
        if isinstance(outcome, Fenced):
            self._entered = replace(self._fenced(outcome), adopt=(outcome.epoch, outcome.lineage))
        else:
            self._world.trace(
                "driver", f"{self.holder.process} epoch {self.holder.epoch} takes the fence of {self.prefix}"
            )
            self._world.ledger.taken(self.prefix, self.holder, self.config.restart)
            self._entered = outcome
            self._world.entered(self.prefix, self.holder)
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

    # --- batches ---

    async def _run_batch(self, held: Held) -> Outcome | None:
        """Run one batch, or idle for a moment; returns how the driver ends, if it does."""
        end = self._end_at_boundary(held)
        if end is not None:
            return end
        if not self.executors.can_work():
            await self._pause(1.0)
            return None
        self.control.at_boundary()
        if not self._world.input and self.end_with is None and self._left <= self.batch:
            self._finish_trigger()
            await self._pause(self._some(10.0, 40.0))
            return None
        self._world.ledger.begun(self.prefix, self.holder)
        number = self.batch + 1
        self._write("offsets", number)
        end = await self._work(self._some(0.5, 25.0))
        if end is not None:
            return end
        if not self._write("commits", number):
            return Outcome(Reason.APPLICATION_FAILED, f"batch {number} was committed by another query")
        self._world.ledger.committed(self.prefix, self.holder, number)
        self.batch = number
        self._commits += 1
        self._finish_trigger()
        if self._is_healthy() and not self._proven:
            self._proven = True
            self._world.count("proven healthy")
        self._failures = self._account.check(committed=True)
        self.snapshots.clear_left(lambda: fence.check(self._port, held) is None)
        await self._pause(self._some(0.0, 5.0))
        return None

    def _finish_trigger(self) -> None:
        """Be ready: the query has committed a batch, or found no new data."""
        if not self.ready:
            self.ready = True
            self._world.changed(self._container)

    async def _work(self, seconds: float) -> Outcome | None:
        """Do what a batch does, for so long; returns how the driver ends, if it does so inside the batch."""
        timeout = self.config.restart.stall_timeout_seconds
        self.hangs, self.hang_soon = self.hang_soon, False
        if self.hangs:
            seconds = timeout or self._some(100.0, 400.0)
        ended = await self._sleep_for_batch(seconds)
        if ended is None and self.hangs and timeout:
            self.stalled = f"No task of query '{QUERY}' finished for {timeout} s."
            self._world.unhealthy(self._container)
            ended = await self._sleep_for_batch(float("inf"))
        self.hangs = False
        return ended or self.end_with

    async def _sleep_for_batch(self, seconds: float) -> Outcome | None:
        """Let a batch take its time, and end inside it if the grace period is over before."""
        done = self._world.now() + seconds
        if not self._asked.is_set():
            await self._pause(seconds)
        if not self._asked.is_set():
            return None
        limit = self._asked_at + Budget.of(self.config.stop_grace_seconds).batch
        await asyncio.sleep(max(0.0, min(done, limit) - self._world.now()))
        if done <= limit:
            return None
        self._inside = True
        self._world.count("ended inside a batch")
        reason = Reason.STALLED if self.stalled else Reason.STOPPED
        return Outcome(reason, self.stalled or "Stopped inside a batch.")

    def _end_at_boundary(self, held: Held) -> Outcome | None:
        if self._asked.is_set():
            return Outcome(Reason.STOPPED, "Stopped at a batch boundary.")
        lost = fence.check(self._port, held)
        if lost is not None:
            return self._fenced(lost)
        return Outcome(Reason.COMPLETED, "The script has ended.") if self.finish_soon else None

    def _write(self, log: str, number: int) -> bool:
        place, key = self.config.storage, f"lineages/{self.config.lineage}/{QUERY}/{log}/{number}"
        client: Any = self._client
        content = self.holder.process.encode()
        if log == "commits":
            state = place.key(f"lineages/{self.config.lineage}/{QUERY}/state/{number}")
            client.put_object(Bucket=place.bucket, Key=state, Body=content)
            return s3_client.create_object(client, place, place.key(key), content)
        client.put_object(Bucket=place.bucket, Key=place.key(key), Body=content)
        return True

    def _fenced(self, by: Fenced) -> Outcome:
        message = f"Epoch {by.epoch} writes this storage; this driver is epoch {self.config.epoch}."
        return Outcome(Reason.FENCED, message)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._asked.wait()
        except TimeoutError:
            pass

    def _some(self, low: float, high: float) -> float:
        return self._world.rng.uniform(low, high)
