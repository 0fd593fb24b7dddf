"""Starts the operator's parts, supervises them, and ends them in order. Does I/O."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from tidegate import messages as texts
from tidegate.agent.poller import AgentPoller
from tidegate.cache.app_watch import watch_apps
from tidegate.cache.index import Index
from tidegate.cache.pods.pod_watch import watch_pods
from tidegate.engine.controller import Controller, Running
from tidegate.engine.events import EventPublisher
from tidegate.engine.supervision import keep_running
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import Connection
from tidegate.kube.history import RestoredError
from tidegate.kube.leadership import NotLeadingError
from tidegate.kube.lease import Leadership
from tidegate.settings import Settings
from tidegate.wiring.loop_delay import measure_delay
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.served_namespaces import wait_until_readable

DRAIN_SECONDS = 10.0
log = structlog.get_logger()


@dataclass(slots=True)
class Operator:
    """The parts of one running operator."""

    settings: Settings
    connection: Connection
    client: KubeClient
    metrics: OperatorMetrics
    index: Index
    queue: WorkQueue
    poller: AgentPoller
    leads: asyncio.Event
    """Set once this process leads; until then it only looks."""
    leadership: Leadership | None = None
    """None: it leads because its settings say that it is the only one."""
    parts: tuple[Controller, ...] = ()
    """What looks after the resources beside the applications; none in tests of everything else."""
    events: EventPublisher | None = None
    """None: no events wait to be published."""
    kopf: asyncio.Task[None] | None = None
    failed: bool = False

    def missing(self) -> str:
        """Return what is missing before decisions can be made, or an empty string; a standby misses nothing."""
        if self.index.initial_sync.missing:
            return self.index.initial_sync.missing
        for part in self.parts:
            if part.missing:
                return part.missing
        problem = self.leadership.missing if self.leadership is not None else ""
        return texts.lease_unusable(problem) if problem else ""

    @property
    def knows_all(self) -> bool:
        """Whether the first lists of all kinds are complete; before that no worker has begun."""
        return self.index.initial_sync.complete.is_set() and all(part.complete.is_set() for part in self.parts)

    async def watch_pods(self, namespace: str) -> None:
        """Keep the index's pods up to date, for ever."""
        await watch_pods(self.client, self.metrics, self.index, self.queue.wake, namespace)

    async def watch_apps(self, namespace: str) -> None:
        """Keep the index's applications up to date, for ever."""
        await watch_apps(self.client, self.metrics, self.index, self.queue.wake, namespace)

    async def lead(self, part: Callable[[], Awaitable[None]]) -> None:
        """Do what only the leader does; not before everything is known that was there at the start."""
        await self.index.initial_sync.complete.wait()
        for other in self.parts:
            await other.complete.wait()
        await self.leads.wait()
        self.index.deciding_since = self.index.deciding_since or time.time()
        await part()

    async def stand(self, leadership: Leadership) -> None:
        """Stand for election, for ever.

        Raises:
            NotLeadingError: this process will never lead again.
        """
        raise NotLeadingError(await leadership.run())

    def note_leading(self, leads: bool) -> None:
        """Start the queue if the process leads, and show in the metrics whether it does."""
        self.metrics.show_leader(leads)
        if leads:
            self.queue.begin()
            for part in self.parts:
                part.queue.begin()
            self.leads.set()

    def supervise(self, run: Callable[[], Awaitable[None]], name: str) -> asyncio.Task[None]:
        """Run a part, again after a pause if it fails; if it keeps failing, the process ends."""
        task = asyncio.create_task(keep_running(run, name), name=name)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            if isinstance(error, NotLeadingError):
                log.warning("part ended without leadership", part=task.get_name(), reason=str(error))
            elif isinstance(error, RestoredError):
                log.warning("ending, so that the next process reads everything", reason=str(error))
            else:
                log.error("part ended", part=task.get_name(), exc_info=error)
            self.end()

    def end(self) -> None:
        """Have the process end in order; its pod starts another one."""
        # Once: cancelled again while it ends, kopf leaves tasks behind that never end, and the process with them.
        if self.kopf is not None and not self.failed:
            self.kopf.cancel()
        self.failed = True

    async def begin_anew(self, left_out: Sequence[str]) -> None:
        """End once a namespace can be read that could not when this process began."""
        namespace = await wait_until_readable(self.client, left_out)
        log.warning("namespace can be read now; ending, so that the next process serves it", namespace=namespace)
        self.end()


def start_parts(operator: Operator) -> list[asyncio.Task[None]]:
    """Start all parts, and return their tasks."""
    # Before kopf: at its end kopf cancels every task that was begun after it.
    settings, supervise = operator.settings, operator.supervise
    namespaces = settings.watch_namespaces or ("",)
    tasks = [supervise(partial(operator.watch_pods, ns), f"pods/{ns or 'all'}") for ns in namespaces]
    tasks += [supervise(partial(operator.watch_apps, ns), f"applications/{ns or 'all'}") for ns in namespaces]
    for part in operator.parts:
        tasks += [supervise(partial(part.watch, ns), f"{part.name}/{ns or 'all'}") for ns in namespaces]
    running: list[Running] = [
        (settings.concurrency, "worker", operator.queue.run_worker),
        (operator.poller.workers, "agents", operator.poller.run_worker),
        (1, "timers", operator.queue.run_timers),
        *(each for part in operator.parts for each in part.running(settings.concurrency)),
    ]
    for number, name, run_it in running:
        tasks += [supervise(partial(operator.lead, run_it), f"{name} {n}") for n in range(number)]
    if operator.events is not None:
        tasks.append(supervise(partial(operator.lead, operator.events.run_worker), "events worker"))
    if operator.leadership is not None:
        tasks.append(supervise(partial(operator.stand, operator.leadership), "leadership"))
    tasks.append(supervise(operator.connection.renew_tokens, "tokens"))
    tasks.append(supervise(partial(measure_delay, operator.metrics), "loop delay"))
    return tasks


async def drain(operator: Operator, tasks: list[asyncio.Task[None]]) -> None:
    """Let what has been begun finish, end everything else, and only then let another one lead."""
    operator.queue.stop()
    for part in operator.parts:
        part.queue.stop()
    if operator.events is not None:
        operator.events.stop()
    leadership = operator.leadership
    leads = leadership is None or leadership.holds()  # who does not lead cannot finish what it has begun
    if leads and operator.knows_all:
        # All that end by themselves once their queue is stopped, whatever they work on: applications, events …
        workers = [task for task in tasks if "worker" in task.get_name().split()]
        await asyncio.wait(workers, timeout=DRAIN_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if leadership is not None:
        await leadership.resign()
