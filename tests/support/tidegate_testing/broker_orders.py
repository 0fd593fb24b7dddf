"""Brokers' messages that ask for snapshots and dumps, from the broker to the resources and back.

Nothing is faked but the broker, Spark, the object store and the API server. The driver is killed at any request to the
store, the operator at any to the API server; orders between the two get lost.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.poller import AgentPoller
from tidegate.api.control_message import ControlMessage
from tidegate.api.stream_snapshot import ExportPhase, SnapshotExport, SnapshotPhase, StreamSnapshot
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.process_state import TimedReport
from tidegate.control.act import ControlActionExecutor
from tidegate.control.index import ControlIndex
from tidegate.control.reconcile import ControlReconciler
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import ControlOrders, ControlReport
from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.intake import Broker, Intake
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import ChannelError, Delivery, Reply
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.driver.driver_operations import failed, snapshot_id
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import State
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.channels import MemoryBroker, MemoryChannel, event
from tidegate_testing.control_log import BUCKET, PREFIX, Clock
from tidegate_testing.control_observations import APP
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.observations import NOW, UID, running_driver
from tidegate_testing.store_actors import KilledError

KEY = ("shop", "orders")
KINDS = ("snapshot", "snapshot", "dump-state", "dump-state", "ping")
A_LONG_TIME = 90_000.0
"""Seconds after which resources of what has ended are removed."""
FAILING = 7
"""Of what a driver had to take each seventh comes to nothing."""


class CrashedError(BaseException):
    """The operator's process ended; no ``except Exception`` survives that."""


class UnreliableOperations(FakeOperations):
    """Takes snapshots at once, by the ids that the runtime gives them."""

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        if entry.sequence % FAILING == 0:
            return failed(account, "BatchLost", "It is gone.")
        results = {"snapshot": snapshot_id(entry)} if entry.type != "ping" else {}
        return replace(account, done=True, results=results)

    def oldest(self, repository: SnapshotRepository) -> int | None:
        return 0  # nothing is removed of the log: tests read all of it


class FragileServer(ApiServer):
    """Each write may be the last of an operator's process, before or after it is carried out; notes what was made."""

    def __init__(self, story: BrokerOrders) -> None:
        super().__init__()
        self._story = story
        self.made: list[tuple[str, str]] = []
        """Kind and name, as often as one was made."""

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any], *, strict: bool = False) -> Any:
        place = f"{path}/{manifest['metadata']['name']}"
        if place in self.objects or manifest["kind"] == "Event":
            return await super().create(path, manifest, kind)
        self._story.may_crash()
        await super().create(path, manifest, kind)
        self.made.append((manifest["kind"], manifest["metadata"]["name"]))
        time = datetime.datetime.fromtimestamp(int(self._story.clock.now), datetime.UTC).isoformat()
        known = self.objects[place]["metadata"]
        known |= {"uid": f"uid-{len(self.made)}", "creationTimestamp": time, "resourceVersion": str(len(self.made))}
        self._story.may_crash()
        return msgspec.convert(self.objects[place], kind)

    async def merge_patch(self, path: str, change: dict[str, Any], kind: type[Any]) -> Any:
        self._story.may_crash()
        answer = await super().merge_patch(path, change, kind)
        self._story.may_crash()
        return answer

    async def delete(self, path: str, uid: str = "", resource_version: str = "") -> Any:
        self._story.may_crash()
        answer = await super().delete(path, uid, resource_version)
        self._collect(uid)
        self._story.may_crash()
        return answer

    def _collect(self, uid: str) -> None:
        """Do what the garbage collector does."""
        owned = [
            path
            for path, body in self.objects.items()
            if any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences", ()))
        ]
        for path in owned:
            del self.objects[path]

    def all(self, plural: str, kind: type[Any]) -> list[Any]:
        """Return the resources of a kind."""
        return [msgspec.convert(body, kind) for path, body in self.objects.items() if f"/{plural}/" in path]


class Reader(MemoryChannel):
    """Is closed after some deliveries; its driver may be killed around each."""

    def __init__(self, story: BrokerOrders, deliveries: int) -> None:
        super().__init__(story.broker, "right")
        self._story, self._left = story, deliveries

    def receive(self, seconds: float) -> Delivery:
        self._left -= 1
        if self._left < 0:
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, "that is enough")
        return super().receive(seconds)

    def taken(self, delivery: Delivery) -> None:
        self._story.count_down()
        super().taken(delivery)
        self._story.count_down()


@dataclass
class BrokerOrders:
    """A broker with producers, an application whose driver is killed, an operator that is, and what both made."""

    random: random.Random
    broker: MemoryBroker
    clock: Clock = field(default_factory=lambda: Clock(NOW))
    buckets: Buckets = field(default_factory=Buckets)
    operations: UnreliableOperations = field(default_factory=lambda: UnreliableOperations({"main"}))
    sent: int = 0
    batch: int = 0
    position: int = 0
    runs: bool = True
    restarts: int = 0
    until_death: int = -1
    deaths: int = 0
    crashes: int = 0
    calm: bool = False
    given: list[ControlOrders] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api = FragileServer(self)
        self.restart()
        self.lead()

    # --- the driver ---

    def restart(self) -> None:
        """Begin another process of the driver."""
        self.until_death = -1
        self.restarts += 1
        self.service = MessageService(self._repository, self.operations, Declared(), self.clock, answers=True)
        if self.batch:
            self.service.begins("main", self.position)
        self.operations.batches = {("main", number): self.batch for number in range(1, self.position + 1)}

    def _repository(self) -> SnapshotRepository:
        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, self._watch), PREFIX, lambda seconds: None)

    def _watch(self, call: Call) -> None:
        self.count_down()

    def count_down(self) -> None:
        """Come nearer to the end of the driver's process, if it is to end."""
        if self.until_death == 0:
            raise KilledError
        self.until_death -= self.until_death > 0

    def send(self) -> None:
        """Have a producer send a message, or one of before again."""
        again = self.sent and self.random.random() < 0.2
        number = self.random.randrange(self.sent) if again else self.sent
        self.sent += not again
        self.broker.send(event(str(number), KINDS[number % len(KINDS)]))

    def drive(self) -> None:
        """Have the driver read, commit a batch and look; it may be killed meanwhile."""
        self.until_death = self.random.randrange(30) if not self.calm and self.random.random() < 0.4 else -1
        try:
            self.service.check()
            self._read(self.random.randrange(1, 3))
            position = self.service.position()
            self.batch, self.position = self.batch + 1, position
            self.operations.batches.update((("main", number), self.batch) for number in range(1, position + 1))
            self.service.committed("main", self.batch, position)
            self.service.check()
        except KilledError:
            self.deaths += 1
            self.restart()
        self.until_death = -1

    def _read(self, deliveries: int) -> None:
        def reported(ended: Ended) -> Reply:
            return reply_of(ended, "shop", "orders")

        intake = Intake(
            Broker("Test", lambda: Reader(self, deliveries), reported), self.service, lambda *_: None, self.clock
        )
        try:
            intake.attend()
        except ChannelError:
            return

    # --- the operator ---

    def lead(self) -> None:
        """Begin another process of the operator: it lists everything, and remembers nothing."""
        self.index, metrics = Index(), OperatorMetrics()
        api: Any = self.api
        events = EventPublisher(api)
        poller = cast(AgentPoller, type("Poller", (), {"hurry": staticmethod(lambda key: None)}))
        actor = ControlActionExecutor(api, cast(AgentClient, self), self.index, events, metrics)
        reporter = InvalidResourceReporter(api, events)
        self.reconciler = ControlReconciler(
            self.index, actor, poller, metrics.control, reporter, clock=self.clock, steady=self.clock
        )
        self.reconciler.find_snapshot = self.index.of(SnapshotIndex).get
        self.index.put_app(APP)
        self.see()

    def may_crash(self) -> None:
        """Perhaps end the operator's process."""
        if not self.calm and self.random.random() < 0.06:
            raise CrashedError

    def see(self) -> None:
        """The watches tell everything."""
        for message in self.api.all("controlmessages", ControlMessage):
            self.index.of(ControlIndex).put(message)
        there = {snapshot.key: snapshot for snapshot in self.api.all("streamsnapshots", StreamSnapshot)}
        for snapshot in there.values():
            self.index.of(SnapshotIndex).put(snapshot)
        for known in self.index.of(SnapshotIndex).of_app(KEY):
            if known.key not in there:
                self.index.of(SnapshotIndex).remove(known.key, known.metadata.uid)

    async def order_control(self, key: Key, pod: PodRecord, orders: ControlOrders) -> Unanswered | None:
        """Give orders to the driver, as the client of agents does; they or the answer may be lost."""
        fate = 2 if self.calm else self.random.randrange(5)
        if fate == 0:
            return Unanswered("nobody answers")
        self.given.append(orders)
        self.service.give(from_json(ControlOrders, to_json(orders)))
        return Unanswered("the answer is lost") if fate == 1 else None

    def hear(self) -> None:
        """Ask the agent."""
        pod = running_driver(APP, uid="pod-1", restarts=self.restarts, resource_version=str(1000 + self.restarts))
        self.index.put_pod(pod)
        control = from_json(ControlReport, to_json(self.service.report()))
        report = AgentReport("orders", UID, APP.status.epoch, DriverState.RUNNING, ready=True, control=control)
        self.index.reports[KEY] = TimedReport(report, self.clock.now, pod.uid, pod.restarts)

    async def check(self) -> None:
        """Have the operator look at the messages, as often as it wants to at once; it may end in between."""
        again: float | None = 0.0
        try:
            while again == 0.0:
                again = await self.reconciler.reconcile(KEY)
        except CrashedError:
            self.crashes += 1
            self.lead()
        except RetryLaterError:
            pass

    def progress(self) -> None:
        """Something comes of a StreamSnapshot: it is ready, then exported if that is asked."""
        places = [path for path in self.api.objects if "/streamsnapshots/" in path]
        for path in places if self.calm else self.random.sample(places, min(1, len(places))):
            body = self.api.objects[path]
            status = body.setdefault("status", {})
            ready = status.get("phase") == SnapshotPhase.READY
            status["phase"] = SnapshotPhase.READY.value
            if ready and "export" in body["spec"]:
                export = SnapshotExport(nonce=1, phase=ExportPhase.COMPLETED, uri=f"s3://b/{body['metadata']['name']}")
                status["export"] = json.loads(msgspec.json.encode(export))
            body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1000)

    # --- what happens ---

    async def happen(self) -> None:
        """Let something happen."""
        self.clock.now += self.random.choice((0.5, 1, 6)) if self.random.random() < 0.97 else A_LONG_TIME
        what = self.random.randrange(12)
        if what <= 2:
            self.send()
        elif what <= 5:
            self.drive()
        elif what <= 7:
            self.hear()
            await self.check()
        elif what == 8:
            self.see()
            await self.check()
        elif what == 9:
            self.progress()
        elif what == 10:
            self.restart()
        else:
            self.lead()

    async def settle(self, rounds: int = 30) -> None:
        """Nothing is in the way any more."""
        self.calm = True
        for _ in range(rounds):
            self.clock.now += 6
            self.drive()
            self.progress()
            self.see()
            self.hear()
            await self.check()
            self.drive()

    def replies(self) -> Iterator[dict[str, Any]]:
        """Yield what was told to producers, each once."""
        known = {reply["id"]: reply["data"] for reply in self.broker.replies}
        yield from known.values()
