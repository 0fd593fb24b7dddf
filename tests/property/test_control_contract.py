"""Operator and runtime of one message: its real resource, decisions and client on one side, over HTTP the real agent,
desk and log on the other. Either side is killed anywhere, requests get lost, the application rests and is rolled back.

Nothing is faked between the two but Spark, the API server and the object store, which are dictionaries.
"""

import itertools
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import msgspec
import pytest

import tidegate.agent.client
from devcluster.control import free_port
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.poller import AgentPoller
from tidegate.agent.session import launch_of
from tidegate.api.control_message import ControlMessage, MessagePhase, decode_message
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.process_state import TimedReport
from tidegate.control.act import ControlActionExecutor
from tidegate.control.index import ControlIndex
from tidegate.control.reconcile import ControlReconciler
from tidegate.engine.events import EventPublisher
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.paths import item
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import ControlOrders
from tidegate_spark.control_log.entries import Entry
from tidegate_testing.agent_commands import commands
from tidegate_testing.control_application import Application, Draw
from tidegate_testing.control_log import Clock, opened
from tidegate_testing.control_observations import APP, message
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.examples import gate_share
from tidegate_testing.observations import KEYS, NOW, running_driver
from tidegate_testing.signing_agent import signing_agent

KEY = ("shop", "orders")
PORT = free_port()
NOBODYS = "127.0.0.3"
"""Nothing listens there."""
SEEDS = gate_share(60)
KINDS = ("reload-config", "reload-config", "ping", "note", "set-log-level", "unknown")
PAYLOADS = {"set-log-level": {"level": "INFO"}, "reload-config": {"limit": 3}}


class CrashedError(BaseException):
    """The operator's process ended; no ``except Exception`` survives that."""


class FragileServer(ApiServer):
    """The API server: every request may be the last that an operator's process saw the beginning of."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self._draw, self.crashes = draw, True

    async def merge_patch(self, path: str, change: dict[str, Any], kind: type[Any]) -> Any:
        """Change a resource; the operator may end right before or after."""
        fate = self._draw(0, 30) if self.crashes else 2
        if fate == 0:
            raise CrashedError
        answer = await super().merge_patch(path, change, kind)
        if fate == 1:
            raise CrashedError
        return answer


@dataclass
class Office:
    """The operator's process that leads now; resources and everything else outlive it."""

    app: Application
    agents: AgentClient
    clock: Clock
    draw: Draw
    sent: list[str] = field(default_factory=list)
    version: int = 10_000

    def __post_init__(self) -> None:
        self.api = FragileServer(self.draw)
        self.begin_process()

    def begin_process(self) -> None:
        """Begin another process: it lists everything, and remembers nothing."""
        self.index, metrics = Index(), OperatorMetrics()
        nothing: Any = self.api
        events = EventPublisher(nothing)
        actor = ControlActionExecutor(nothing, self.agents, self.index, events, metrics)
        poller = cast(AgentPoller, type("Poller", (), {"hurry": staticmethod(lambda key: None)}))
        self.reconciler = ControlReconciler(
            self.index,
            actor,
            poller,
            metrics.control,
            InvalidResourceReporter(nothing, events),
            clock=self.clock,
            steady=self.clock,
        )
        self.index.put_app(APP)
        for each in self.stored():
            self.index.of(ControlIndex).put(each)

    def stored(self) -> list[ControlMessage]:
        """Return the resources."""
        return [
            decode_message(msgspec.json.encode(body)) for path, body in self.api.objects.items() if "controlm" in path
        ]

    def send(self) -> None:
        """Have somebody send a message; the watch tells of it at once."""
        kind = KINDS[self.draw(0, len(KINDS) - 1)]
        ttl = self.draw(1, 20) if self.draw(0, 3) == 0 else 0
        name = f"m{len(self.sent):03}"
        version = str(1000 + len(self.sent))
        sent = message(
            name, kind=kind, payload=PAYLOADS.get(kind), ttl=ttl, sent=self.clock.now, resource_version=version
        )
        self.sent.append(sent.metadata.uid)
        self.api.keep(item("ControlMessage", *sent.key), sent)
        self.index.of(ControlIndex).put(sent)

    async def hear(self, lost: bool = False) -> None:
        """Ask the agent."""
        self.index.reports.pop(KEY, None)
        pod = self.app.pod
        if not self.app.runs:
            self.index.remove_pod(pod)
            return
        self.version += 1
        self.index.put_pod(replace(pod, ip=NOBODYS if lost else pod.ip, resource_version=str(self.version)))
        # On a machine that is busy the client's few seconds may pass.
        for _ in range(5):
            answer = await self.agents.read_progress(KEY, pod)
            if not isinstance(answer, Unanswered):
                break
        assert not isinstance(answer, Unanswered), answer
        self.index.reports[KEY] = TimedReport(answer, self.clock.now, pod.uid, pod.restarts)

    async def check(self) -> None:
        """Look at the messages; the process may end in between."""
        try:
            await self.reconciler.reconcile(KEY)
        except CrashedError:
            self.begin_process()
        except RetryLaterError:
            pass


@dataclass
class Story:
    """What happens to both, by a seed."""

    agents: AgentClient
    host: "Host"
    seed: int

    def __post_init__(self) -> None:
        self.draw: Draw = random.Random(self.seed).randint
        self.clock = Clock(NOW)
        self.app = self.host.app = Application(self.draw, self.clock)
        self.office = Office(self.app, self.agents, self.clock, self.draw)

    async def happen(self) -> None:
        self.clock.now += self.draw(0, 4)
        what = self.draw(0, 11)
        if what <= 2:
            self.office.send()
        elif what <= 6:
            await self.office.hear(lost=what == 3)
            await self.office.check()
        elif what == 7:
            self.office.begin_process()
        elif what == 8 and self.draw(0, 5) == 0:
            self.app.roll_back()
        elif what == 9 and self.draw(0, 2) == 0:
            self.app.rest_or_run()
        elif self.app.runs:
            self.app.batch()

    async def settle(self) -> None:
        self.office.api.crashes = False
        if not self.app.runs:
            self.app.rest_or_run()
        for _ in range(8):
            self.clock.now += 16
            await self.office.hear()
            await self.office.check()
            self.app.batch(may_die=False)
            self.app.check(may_die=False)

    def wrong(self) -> Iterator[str]:
        """Yield what must not be."""
        log = opened(self.app.buckets, self.clock)
        written = [entry for entry in log.entries(0, log.last, whole=False) if entry.id]
        entries, logged = {entry.id: entry for entry in written}, [entry.id for entry in written]
        if logged != [uid for uid in self.office.sent if uid in entries]:
            yield f"the log has {logged}"
        in_force = [uid for batch in sorted(self.app.seen) for uid in self.app.seen[batch]]
        if len(in_force) != len(set(in_force)):
            yield f"messages are in force twice: {in_force}"
        for found in self.office.stored():
            yield from self._wrong_of(found, entries.get(found.metadata.uid), in_force)
        if self.app.service.report().messages:
            yield "the driver still tells of messages whose end is written down"

    def _wrong_of(self, found: ControlMessage, entry: Entry | None, in_force: list[str]) -> Iterator[str]:
        uid, status, name = found.metadata.uid, found.status, found.metadata.name
        ready = status.condition("Ready")
        reason = ready.reason if ready is not None else ""
        if not found.is_final:
            yield f"{name} is {status.phase} {reason}"
        if status.sequence != (entry.sequence if entry is not None else 0):
            yield f"{name} says number {status.sequence}"
        if found.spec.type == "unknown" and (status.phase, reason) not in (
            (MessagePhase.FAILED, "UnknownType"),
            (MessagePhase.EXPIRED, "Expired"),
        ):
            yield f"{name}, of an unknown type, is {status.phase} {reason}"
        if status.phase is MessagePhase.APPLIED and entry is not None and entry.sequence in self.app.faulty:
            yield f"{name} failed, and is Applied"
        if status.phase is MessagePhase.EXPIRED and uid in in_force:
            yield f"{name} is in force, and called expired"
        rolled_back = self.app.lineage > 1 and status.phase in (MessagePhase.APPLIED, MessagePhase.FAILED)
        if status.phase is MessagePhase.APPLIED and uid not in in_force and not rolled_back:
            yield f"{name} is Applied, and not in force"


class Host:
    """What the agent of the one port belongs to, one application after the other."""

    app: Application

    def give(self, orders: ControlOrders) -> None:
        """Pass messages on to the process that runs."""
        self.app.service.give(orders)

    def report(self) -> Any:
        """Return what that process tells."""
        return self.app.progress.report()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    made, launch = Host(), launch_of(running_driver(APP))
    given = commands(give_messages=made.give)
    # For its agent time passes with what is asked: a process is not asked as often as here in two minutes.
    clock = partial(next, itertools.count(0.0, 0.02))
    with signing_agent(tmp_path_factory.mktemp("agent"), launch, made, given, clock=clock, port=PORT):
        yield made


@pytest.fixture
async def agents(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AgentClient]:
    monkeypatch.setattr(tidegate.agent.client, "COMMAND_PORT", PORT)
    async with AgentClient(KEYS, 4) as client:
        yield client


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_message_is_in_force_once_and_its_resource_says_what_came_of_it(
    agents: AgentClient, host: Host, seed: int
) -> None:
    story = Story(agents, host, seed)
    for _ in range(20 + seed % 60):
        await story.happen()
    await story.settle()
    assert list(story.wrong()) == []
