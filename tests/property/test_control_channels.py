"""However often the driver's process is killed, and wherever: each message that was sent to a broker is logged once, in
the order in which it was sent; a queue keeps what is not in the log; each is counted once and told of."""

import random
from dataclasses import dataclass, field

import pytest

from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.intake import Broker, Intake
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import ChannelError, Delivery, Reply
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Kind
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.channels import QUEUE, TOPIC, MemoryBroker, MemoryChannel, event
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, opened
from tidegate_testing.examples import gate_share
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.store_actors import KilledError

BODIES = 3
"""Of four messages so many are events, and the fourth is nothing that anybody understands."""


class Reader(MemoryChannel):
    """Is closed after some deliveries."""

    def __init__(self, story: "Story", deliveries: int) -> None:
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
class Story:
    """A broker, producers, and an application whose driver is killed now and then."""

    random: random.Random
    broker: MemoryBroker
    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    operations: FakeOperations = field(default_factory=lambda: FakeOperations({"main"}))
    sent: list[bytes] = field(default_factory=list)
    offered: list[ControlOrder] = field(default_factory=list)
    batch: int = 0
    position: int = 0
    until_death: int = -1
    deaths: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.until_death = -1
        self.service = MessageService(self.repository, self.operations, Declared(), self.clock, answers=True)
        if self.batch:
            self.service.begins("main", self.position)
        self.operations.batches = {("main", number): self.batch for number in range(1, self.position + 1)}

    def repository(self) -> SnapshotRepository:
        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, self.watch), PREFIX, lambda seconds: None)

    def watch(self, call: Call) -> None:
        self.count_down()

    def count_down(self) -> None:
        """Come nearer to the end of the process, if it is to end."""
        if self.until_death == 0:
            raise KilledError
        self.until_death -= self.until_death > 0

    def happen(self) -> None:
        self.clock.now += 1
        what = self.random.randrange(6)
        if what <= 1:
            self.send()
        elif what == 2 and self.random.random() < 0.3:
            self.offered.append(ControlOrder(f"uid-{len(self.offered)}", "ping", "{}"))
        else:
            self.until_death = self.random.randrange(25) if self.random.random() < 0.4 else -1
            try:
                self.act(what)
            except KilledError:
                self.deaths += 1
                self.restart()
            self.until_death = -1

    def send(self) -> None:
        number = len(self.sent)
        body = event(str(number), data={"a": number}) if number % (BODIES + 1) < BODIES else f"no {number}".encode()
        if self.sent and self.random.random() < 0.2:
            body = self.random.choice(self.sent)
        else:
            self.sent.append(body)
        self.broker.send(body)

    def act(self, what: int) -> None:
        self.service.give(ControlOrders(tuple(self.offered)))
        self.service.check()
        if what == 3:
            self.read(self.random.randrange(1, 4))
        elif what == 4:
            self.commit()
        self.service.check()

    def read(self, deliveries: int) -> None:
        def reported(ended: Ended) -> Reply:
            return reply_of(ended, "shop", "orders")

        intake = Intake(
            Broker("Test", lambda: Reader(self, deliveries), reported), self.service, lambda *_: None, self.clock
        )
        with pytest.raises(ChannelError):
            intake.attend()

    def commit(self) -> None:
        position = self.service.position()
        self.batch, self.position = self.batch + 1, position
        self.operations.batches.update((("main", number), self.batch) for number in range(1, position + 1))
        self.service.committed("main", self.batch, position)

    def settle(self) -> None:
        """Let everything come to its end."""
        self.until_death = -1
        self.restart()
        for _ in range(4 + len(self.broker.messages)):
            self.act(3)
            self.act(4)


@pytest.mark.parametrize("kind", [TOPIC, QUEUE])
@pytest.mark.parametrize("seed", range(gate_share(60)))
def test_each_message_is_logged_once_in_order_and_told_of(kind: str, seed: int) -> None:
    story = Story(random.Random(seed), MemoryBroker(kind))
    for _ in range(60):
        story.happen()
    story.settle()
    log = opened(story.buckets)
    logged = [entry for entry in log.entries(0, log.last) if entry.origin and entry.kind is not Kind.CONSUMED]
    events = [entry.id for entry in logged if entry.kind is Kind.MESSAGE]
    assert events == [f"/test#{n}" for n, body in enumerate(story.sent) if body.startswith(b"{")]
    assert len({entry.id for entry in logged}) == len(logged)
    if kind == QUEUE:
        assert len(logged) == len(story.sent)
        assert story.broker.messages == []
    others = [entry.id for entry in log.entries(0, log.last) if entry.id.startswith("uid-")]
    assert others == [order.id for order in story.offered]
    received, ended = story.service.counted()
    rejected = len(logged) - len(events)
    assert received == len(logged)
    assert {state: number for state, number in ended.items() if number} == {
        state: number for state, number in (("Done", len(events)), ("Rejected", rejected)) if number
    }
    reported = {reply["id"] for reply in story.broker.replies}
    assert reported == {str(entry.sequence) for entry in logged}


def test_the_stories_have_deaths_in_them() -> None:
    deaths = 0
    for seed in range(10):
        story = Story(random.Random(seed), MemoryBroker(TOPIC))
        for _ in range(60):
            story.happen()
        deaths += story.deaths
    assert deaths >= 10
