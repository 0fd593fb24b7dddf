"""Operator processes: the real queue, reconciler, actor, index, poller, watches and clients, on a simulated network.

Each request to the API server can be refused, get lost before or after it took effect, or be the last thing its process
ever does. A process can be stopped (as by SIGSTOP) between asking whether it may write and writing.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar, cast

from tests.scenario.api_server import ApiServer, Change, place_of
from tests.scenario.drivers_agent import Answered
from tests.scenario.faults import Crash, Fault, FaultInjection
from tests.scenario.wire import METRICS, Asked, SimulatedAgents, SimulatedClient
from tidegate.access.act import AccessManager
from tidegate.access.key_secret import find_keys
from tidegate.access.keys import KEY_BYTES, OperatorKeys
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.poller import AgentPoller
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.act import ActionExecutor
from tidegate.app.actions import Action, Plan
from tidegate.app.dry_runs.executor_dry_run import ExecutorDryRun
from tidegate.app.dry_runs.pod_dry_run import PodDryRun
from tidegate.app.dry_runs.reference_checks import ReferenceChecks
from tidegate.app.reconcile import Reconciler
from tidegate.autoscaling.controller import AutoscalingController
from tidegate.autoscaling.quotas import Quotas
from tidegate.autoscaling.reconcile import AutoscalingReconciler
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.pods.start_events import StartEvents
from tidegate.control.act import ControlActionExecutor
from tidegate.control.actions import ControlAction
from tidegate.control.controller import ControlController
from tidegate.control.index import ControlIndex
from tidegate.control.reconcile import ControlReconciler
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import Outcome
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError, WorkQueue
from tidegate.kube.leadership import NotLeadingError
from tidegate.pods.records.names import agent_secret_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.running_operator import Operator
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_testing.chart_rules import grant_for, grants, rules_of

T = TypeVar("T")

ACTION: ContextVar[str] = ContextVar("ACTION", default="")
"""The action that is being carried out."""
PROCESS: ContextVar[str] = ContextVar("PROCESS", default="")
"""The operator process that runs."""
PLATFORM = Platform("example/tidegate-operator:1")
_NO_KEYS = OperatorKeys(bytes(KEY_BYTES))
"""Until the operator's are found; nothing is asked or made before."""
WORKERS, POLLERS = 2, 2
LISTS = ("GET pods", "GET streamingapps", "GET controlmessages")
"""Reads whose answers may be old when they arrive."""
_REFUSALS = {Fault.CONFLICT: (409, "Conflict"), Fault.THROTTLED: (429, "TooManyRequests"), Fault.ERROR: (500, "Error")}


GRANTED, GRANTED_OF_KEY = grants(rules_of("tidegate.operatorRules")), grants(rules_of("tidegate.keyRules"))
"""What the chart lets the operator do; in its own namespace besides, to make Secrets and read the one of its key."""
SYSTEM, KEY_NAME = "tidegate-system", "tidegate-agent-key"


class World:
    """What operators need of the world around them."""

    api: ApiServer
    faults: FaultInjection

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        raise NotImplementedError

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Return what is done after some seconds."""
        return asyncio.sleep(seconds)

    def grants(self, method: str, path: str) -> bool:
        """Return whether the operator may send such a request."""
        grant, place = grant_for(method, path), place_of(path.partition("?")[0])
        its = place.namespace == SYSTEM and (method == "POST" or place.name == KEY_NAME)
        return grant in GRANTED or (its and grant in GRANTED_OF_KEY)

    def leads(self, process: "OperatorProcess") -> bool:
        """Return whether the Lease is this process's."""
        raise NotImplementedError

    def crash(self, process: "OperatorProcess", why: str) -> None:
        """End a process at once."""
        raise NotImplementedError

    def violated(self, text: str) -> None:
        """Note that something happened that never may."""
        raise NotImplementedError

    def ask_agent(self, pod: PodRecord, asked: Asked) -> Answered:
        """Return an agent's answer.

        Raises:
            OSError: it is not reached.
        """
        raise NotImplementedError


class OperatorProcess:
    """One process: its memory ends with it."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.skew = 0.0
        """Seconds its wall clock is ahead."""
        self.alive, self.cut_off, self.watches_broken = True, False, False
        self.stalled_until: dict[str, float] = {}
        """Until when a kind's watch is dead without saying so."""
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.index, self.metrics = Index(), METRICS
        self.leading, self.has_keys = asyncio.Event(), asyncio.Event()
        self.client = SimulatedClient(self)
        steady = asyncio.get_running_loop().time
        self._agents = agents = SimulatedAgents(self, _NO_KEYS)
        events = EventPublisher(self.client)
        self.queue = WorkQueue(self._work, METRICS, steady)
        access = AccessManager(self.client, self.index, steady)
        self._secrets = LaunchSecrets(self.client, _NO_KEYS, PLATFORM)
        actor = WatchedExecutor(
            self.client, agents, self.index, access, self._secrets, events, METRICS, self.queue.wake
        )
        self.poller = AgentPoller(self.index, agents, self.queue, METRICS, POLLERS, steady, self.clock)
        reporter = InvalidResourceReporter(self.client, events)
        self.lines = WorkQueue(self._work_on_line, METRICS, steady)
        self._control = ControlController(self.client, METRICS, self.index, self.lines)
        self.scales = WorkQueue(self._work_on_scale, METRICS, steady)
        self._autoscaling = AutoscalingController(self.index, self.scales)
        quotas = Quotas(self.client, steady)
        self._scale = AutoscalingReconciler(
            self.index, quotas, METRICS.autoscaling, self.queue.wake, self.clock, steady
        )
        self._reconciler = Reconciler(
            self.index, PLATFORM, actor, self.poller, METRICS, reporter, self.clock, steady, self._wake_beside
        )
        self._reconciler.quotas, self._reconciler.pod_dry_run = quotas, PodDryRun(self.client, steady, self.index)
        self._reconciler.executor_dry_run = ExecutorDryRun(self.client, steady)
        self._reconciler.references = ReferenceChecks(self.client, steady)
        self._reconciler.starts = StartEvents(self.client, self.clock, steady)
        messages = WatchedControlExecutor(self.client, agents, self.index, events, METRICS)
        self._line_reconciler = ControlReconciler(
            self.index, messages, self.poller, METRICS.control, reporter, self._skew_of, self.clock, steady
        )
        self._line_reconciler.find_snapshot = self.index.of(SnapshotIndex).get
        self.began: dict[Key, int] = {}
        """Version of the API server's objects when the newest plan for an application was begun."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def api(self) -> ApiServer:
        """The API server."""
        return self.world.api

    def ask_agent(self, pod: PodRecord, asked: Asked) -> Answered:
        """Return an agent's answer."""
        return self.world.ask_agent(pod, asked)

    def clock(self) -> float:
        """Return what the process takes for the time."""
        return self.world.now() + self.skew

    def holds(self) -> bool:
        """Return whether it may change something."""
        return self.alive and self.world.leads(self)

    def start(self) -> None:
        """Begin to watch; work starts with :meth:`lead`, and once the operator's key is there."""
        self._spawn(self._find_keys())
        self._spawn(Operator.watch_pods(cast(Operator, self), ""))
        self._spawn(Operator.watch_apps(cast(Operator, self), ""))
        self._spawn(self._control.watch(""))
        for _ in range(WORKERS):
            self._spawn(self._lead(self.queue.run_worker))
        self._spawn(self._lead(self.queue.run_timers))
        self._spawn(self._lead(self.poller.run_worker))
        self._spawn(self._lead(self.lines.run_worker))
        self._spawn(self._lead(self.lines.run_timers))
        self._spawn(self._lead(self.scales.run_worker))
        self._spawn(self._lead(self.scales.run_timers))

    def take_origin(self, before: StreamSnapshot | None, now: StreamSnapshot | None) -> None:
        """Hear that a snapshot is there or gone, and look at the applications that start from it."""
        known = self.index.of(SnapshotIndex)
        if before is not None and now is None:
            known.remove(before.key, before.metadata.uid)
        if now is not None:
            known.put(now)
        reported = now or before
        self._take_in(set(known.forks(reported.key)) if reported is not None else set())

    def lead(self) -> None:
        """Begin to work."""
        self.leading.set()

    def end(self) -> None:
        """End at once; what was sent goes on its way."""
        self.alive = False
        for task in self._tasks:
            task.cancel()

    async def _find_keys(self) -> None:
        keys = await find_keys(self.client, SYSTEM, KEY_NAME)
        platform = dataclasses.replace(PLATFORM, key_id=keys.id)
        self._reconciler.platform = platform
        self._agents.take_keys(keys)
        self._secrets.__init__(self.client, keys, platform)  # type: ignore[misc] # the actor has this very one
        self.has_keys.set()

    def has_key_of(self, config: DriverConfig) -> bool:
        """Return whether a driver was launched with this process's key."""
        key_id = self._reconciler.platform.key_id
        return config.agent_secret == agent_secret_name(config.app, config.uid, config.epoch, key_id)

    async def _lead(self, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await self.has_keys.wait()
        await self.index.initial_sync.complete.wait()
        await self.index.of(ControlIndex).complete.wait()
        await self.leading.wait()
        await part()

    def _spawn(self, part: Coroutine[Any, Any, None]) -> None:
        context = copy_context()  # of whoever has it started: that may be the end of another process
        context.run(PROCESS.set, self.name)
        context.run(ACTION.set, "")
        task = asyncio.create_task(part, context=context)
        task.add_done_callback(self._note_end)
        self._tasks.append(task)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()  # asked for in any case: asyncio reports what nobody has looked at
        if not self.alive:
            return
        if isinstance(error, NotLeadingError):
            self.world.crash(self, "does not lead any more")
        elif error is not None:
            self.world.violated(f"a part of {self.name} ended: {error!r}")

    async def _work(self, key: Key) -> float | None:
        try:
            return await self._reconciler.reconcile(key)
        except (RetryLaterError, NotLeadingError):
            raise
        except Exception as error:
            self.world.violated(f"reconcile of {key} raised {error!r}")
            raise

    async def _work_on_line(self, key: Key) -> float | None:
        try:
            return await self._line_reconciler.reconcile(key)
        except (RetryLaterError, NotLeadingError):
            raise
        except Exception as error:
            self.world.violated(f"reconcile of the messages to {key} raised {error!r}")
            raise

    async def _work_on_scale(self, key: Key) -> float | None:
        try:
            return await self._scale.reconcile(key)
        except (RetryLaterError, NotLeadingError):
            raise
        except Exception as error:
            self.world.violated(f"a look at the executors of {key} raised {error!r}")
            raise

    def _wake_beside(self, key: Key) -> None:
        self._control.wake_for(key)
        self._autoscaling.wake_for(key)

    def is_granted(self, method: str, path: str) -> bool:
        """Return whether the chart's rules cover a request; one that they do not cover is noted."""
        granted = self.world.grants(method, path)
        if not granted:
            self.world.violated(f"{self.name} asks for what the chart does not grant: {method} {path}")
        return granted

    def _skew_of(self) -> float:
        return self.skew

    # --- the network ---

    async def exchange(self, what: str, write: bool, act: Callable[[], T], refuse: Callable[[int, str], T]) -> T:
        """Send a request and return its answer; anything may happen in between.

        Raises:
            OSError: no answer.
        """
        faults = self.world.faults
        await self.world.sleep(faults.latency())
        if not self.go_on.is_set():
            await self.go_on.wait()
        fault = faults.fault(write)
        if self.cut_off or fault in (Fault.DOWN, Fault.UNSENT):
            await asyncio.sleep(faults.some(0.1, 5.0))
            raise OSError("no connection")
        crash = faults.crash(self.name, ACTION.get(), what) if write and ACTION.get() else Crash.NONE
        if crash is Crash.LATE:
            asyncio.get_running_loop().call_later(faults.some(0.0, 15.0), _late, act)
            await self._die(f"before {ACTION.get()}: {what} takes effect")
        if fault in _REFUSALS:
            return refuse(*_REFUSALS[fault])
        answer = act()
        if crash is Crash.DONE:
            await self._die(f"after {ACTION.get()}: {what} took effect")
        if fault is Fault.LOST:
            raise OSError("the answer was lost")
        if write or what in LISTS:
            longer = 0.0 if write else faults.some(0.0, faults.slow_lists)
            await self.world.sleep(faults.latency() + longer)
        if not self.go_on.is_set():
            await self.go_on.wait()
        return answer

    async def _die(self, why: str) -> None:
        self.world.crash(self, why)
        await asyncio.Future()

    def _take_in(self, keys: set[Key]) -> None:
        for key in sorted(keys):
            self.queue.wake(key)

    async def stream(self, plural: str, since: int) -> AsyncIterator[Change]:
        """Yield changes, late; ends when the connection breaks.

        Raises:
            RefusedError: the version has expired.
            OSError: no connection.
        """
        if self.cut_off or self.world.faults.down:
            raise OSError("no connection")
        self.watches_broken = False
        api = self.world.api
        async for change in api.watch(plural, since, lambda: self.watches_broken or self.cut_off):
            due = max(change.at + self.world.faults.lag(), self.stalled_until.get(plural, 0.0))
            wait = due - self.world.now()
            if wait > 0:
                await self.world.sleep(wait)
            if not self.go_on.is_set():
                await self.go_on.wait()
            if self.watches_broken or self.cut_off:
                return
            yield change


def _late(act: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):  # whom it was for is gone by then
        act()


async def _watched(
    executor: ActionExecutor | ControlActionExecutor, action: object, act: Callable[[], Awaitable[Outcome]]
) -> Outcome:
    """Note which action is being carried out; the process may die before and after it."""
    process = cast(OperatorProcess, cast(SimulatedClient, executor._client).process)
    name, faults = type(action).__name__, process.world.faults
    ACTION.set(name)
    if faults.crash(process.name, name, "", Crash.BEFORE) is not Crash.NONE:
        await process._die(f"before {name}")
    try:
        outcome = await act()
    finally:
        ACTION.set("")
    if faults.crash(process.name, name, "", Crash.AFTER) is not Crash.NONE:
        await process._die(f"after {name}")
    return outcome


class WatchedExecutor(ActionExecutor):
    """Notes which action is being carried out, and may die before and after it."""

    __slots__ = ()

    async def carry_out(self, app: StreamingApp, plan: Plan, now: float) -> Outcome:
        process = cast(OperatorProcess, cast(SimulatedClient, self._client).process)
        process.began[app.metadata.namespace, app.metadata.name] = process.world.api.version
        return await super().carry_out(app, plan, now)

    async def _carry_out_one(self, run: Any, action: Action) -> Outcome:
        return await _watched(self, action, partial(super()._carry_out_one, run, action))


class WatchedControlExecutor(ControlActionExecutor):
    """Does so for messages."""

    __slots__ = ()

    async def _carry_out_one(self, app: Key, action: ControlAction, now: float) -> Outcome:
        return await _watched(self, action, partial(super()._carry_out_one, app, action, now))
