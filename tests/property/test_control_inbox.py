"""However often writers and drivers are killed, between whichever two requests, and whoever wrote meanwhile: each
message is in the log once, in the order in which its writer sent it; nothing stays in the inbox; each is told of.

A producer whose writer was killed goes on with another one, and sends again what it does not know to be written.
"""

import json
import random
import time
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from tidegate_spark.contract.control_protocol import InboxSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.intake import Broker, Intake
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import ChannelError, Delivery, Reply
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.channels.transports import storage
from tidegate_spark.control.channels.transports.storage import StorageChannel
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log import dedup_window as memories
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_writer import ControlWriter, Pace
from tidegate_spark.control_writer import writer as writers
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.channels import event
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, opened
from tidegate_testing.examples import gate_share
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.inbox_scene import PLACE, MemoryInbox
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.store_actors import KilledError

AT_ONCE = InboxSettings(poll_seconds=0.0, keep_replies_seconds=1e12)
PACE = Pace(linger_seconds=0.0, most_in_batch=3)


class LostError(Exception):
    """An answer did not come."""


@dataclass
class Mortal:
    """What is killed at its n-th next request, before or behind it; now and then only an answer is lost."""

    random: random.Random
    until_death: int = -1
    loses: bool = False

    def watch(self, call: Call) -> None:
        if self.until_death == 0:
            self.until_death = -1
            if self.loses:
                raise LostError
            raise KilledError
        self.until_death -= self.until_death > 0

    def dare(self, requests: int) -> None:
        """Be killed soon, or not."""
        self.until_death = self.random.randrange(requests) if self.random.random() < 0.5 else -1
        self.loses = self.random.random() < 0.3


class DirectWriter(ControlWriter):
    """Writes when it is told to, and not in a thread of its own."""

    def _begin(self) -> None:
        pass

    def write(self) -> None:
        while self._outbox.since is not None:
            self._write_some()


@dataclass
class Producer:
    """Sends messages that are numbered, and remembers which it knows to be written."""

    name: str
    buckets: Buckets
    mortal: Mortal
    sent: int = 0
    known: int = 0
    writer: DirectWriter | None = None
    deaths: int = 0

    def act(self) -> None:
        try:
            if self.writer is None:
                time.sleep(0.002)  # names of one moment have no order between two writers
                store = MemoryStore(self.buckets, BUCKET, self.mortal.watch)
                self.writer = DirectWriter(f"s3://{BUCKET}/{PREFIX}", source=self.name, pace=PACE, store=store)
                again = range(self.known, self.sent)
            else:
                again = range(self.sent, self.sent + self.mortal.random.randrange(6))
            for number in again:
                self.writer.send("reload-config", {"a": number}, id=str(number))
            self.sent = max(self.sent, again.stop)
            self.writer.write()
            self.known = self.sent
        except KilledError:
            self.writer, self.deaths = None, self.deaths + 1


class Reader(StorageChannel):
    """Is closed after some deliveries."""

    def __init__(self, repository: SnapshotRepository, deliveries: int) -> None:
        super().__init__(AT_ONCE, lambda: repository, PLACE, wait=lambda seconds: None)
        self._left = deliveries

    def receive(self, seconds: float) -> Delivery:
        self._left -= 1
        if self._left < 0:
            raise ChannelError(Reason.CHANNEL_UNAVAILABLE, "that is enough")
        return super().receive(seconds)


@dataclass
class Driver:
    """One of two, of which the older one need not know that it is not the only one."""

    buckets: Buckets
    clock: Clock
    mortal: Mortal
    deaths: int = 0
    operations: FakeOperations = field(default_factory=lambda: FakeOperations({"main"}))
    service: MessageService | None = None
    batch: int = 0

    def repository(self) -> SnapshotRepository:
        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, self.mortal.watch), PREFIX, lambda seconds: None)

    def act(self, deliveries: int) -> None:
        try:
            if self.service is None:
                self.service = MessageService(self.repository, self.operations, Declared(), self.clock, answers=True)
            self.service.check()
            self.read(self.service, deliveries)
            self.service.check()
        except KilledError:
            self.service, self.deaths = None, self.deaths + 1
        except Exception as error:  # what was written by another process is loaded; another look does better
            if not isinstance(error, LostError) and "another process" not in str(error):
                raise

    def read(self, service: MessageService, deliveries: int) -> None:
        def reported(ended: Ended) -> Reply:
            return reply_of(ended, "shop", "orders")

        broker = Broker("Storage", lambda: Reader(self.repository(), deliveries), reported)
        with pytest.raises(ChannelError):
            Intake(broker, service, lambda *_: None, self.clock).attend()

    def commit(self) -> None:
        """Commit a batch with everything."""
        assert self.service is not None
        position = self.service.position()
        self.batch += 1
        self.operations.batches.update((("main", number), self.batch) for number in range(1, position + 1))
        self.service.committed("main", self.batch, position)


@dataclass
class Story:
    """Some producers, one of them by hand, and two drivers."""

    random: random.Random
    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    by_hand: int = 0

    def __post_init__(self) -> None:
        self.producers = [Producer(f"/{name}", self.buckets, Mortal(self.random)) for name in "ab"]
        self.drivers = [Driver(self.buckets, self.clock, Mortal(self.random)) for _ in range(2)]

    def happen(self) -> None:
        self.clock.now += 1
        what = self.random.randrange(8)
        if what == 0:
            self.put_by_hand()
        elif what <= 3:
            producer = self.random.choice(self.producers)
            producer.mortal.dare(8)
            producer.act()
        else:
            driver = self.random.choice(self.drivers)
            driver.mortal.dare(25)
            driver.act(self.random.randrange(1, 4))

    def put_by_hand(self) -> None:
        number, self.by_hand = self.by_hand, self.by_hand + 1
        body = event(str(number)) if number % 2 else b"nothing that anybody understands"
        MemoryInbox(self.buckets).put(f"hand-{number:04d}.json", body)

    def settle(self) -> None:
        """Let everything come to its end."""
        for mortal in [each.mortal for each in self.producers] + [each.mortal for each in self.drivers]:
            mortal.until_death = -1
        for producer in self.producers:
            producer.act()
        last = self.drivers[0]
        last.service = None
        for _ in range(60):
            last.act(3)
            last.commit()
        last.act(1)
        last.act(1)

    def entries(self) -> list[Entry]:
        log = opened(self.buckets)
        return [entry for entry in log.entries(0, log.last) if entry.kind in (Kind.MESSAGE, Kind.REJECTED)]


@pytest.fixture(autouse=True)
def narrowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few of everything, so that each bound is met."""
    monkeypatch.setattr(writers, "FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(storage, "MOST_OBJECTS", 3)
    monkeypatch.setattr(storage, "MOST_LISTED", 5)
    monkeypatch.setattr(storage, "AT_ONCE", 1)


@pytest.mark.parametrize("seed", range(gate_share(60)))
def test_each_message_is_in_the_log_once_in_its_writers_order_and_told_of(seed: int) -> None:
    story = Story(random.Random(seed))
    for _ in range(60):
        story.happen()
    story.settle()
    entries = story.entries()
    for producer in story.producers:
        mine = [entry.id for entry in entries if entry.source == producer.name]
        assert mine == [f"{producer.name}#{number}" for number in range(producer.sent)]
    assert len({entry.id for entry in entries}) == len(entries)
    assert len(entries) == sum(producer.sent for producer in story.producers) + story.by_hand
    inbox = MemoryInbox(story.buckets)
    assert inbox.unread() == []
    reported = [reply["data"]["sequence"] for reply in inbox.replies()]
    assert sorted(reported) == [entry.sequence for entry in entries]


@pytest.mark.parametrize("seed", range(gate_share(20)))
def test_numbers_alone_are_enough_where_ids_are_forgotten_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_KNOWN", 1)
    buckets, choice = Buckets(), random.Random(seed)
    producer, driver = Producer("/a", buckets, Mortal(choice)), Driver(buckets, Clock(), Mortal(choice))
    lost: dict[str, bytes] = {}
    for _ in range(40):
        producer.act()
        keys = buckets.keys(BUCKET, f"{PREFIX}/control/inbox/")
        lost |= {key: stored.body for key in keys if (stored := buckets.read(BUCKET, key)) is not None}
        driver.act(2)
        if driver.service is not None and choice.random() < 0.3:
            log = driver.service._opened()
            log.write_base()
            driver.service = None
        if lost and choice.random() < 0.5:
            # The writer heard nothing of a put, and does it again when all of it was taken and removed.
            key = choice.choice(sorted(lost))
            buckets.write(BUCKET, key, lost[key])
    driver.act(3)
    log = opened(buckets)
    ids = [entry.id for entry in log.entries(log.begin, log.last) if entry.kind is Kind.MESSAGE]
    assert len(set(ids)) == len(ids)
    numbers = [json.loads(entry.payload)["a"] for entry in log.entries(log.begin, log.last) if entry.id]
    assert numbers == sorted(numbers)
    assert log.state_at(log.last).messages == producer.sent
    with closing(MemoryInbox(buckets).channel()) as channel:
        channel.open({})
        assert channel.waiting() == 0


def test_the_stories_have_deaths_in_them() -> None:
    producers = drivers = 0
    for seed in range(10):
        story = Story(random.Random(seed))
        for _ in range(60):
            story.happen()
        producers += sum(each.deaths for each in story.producers)
        drivers += sum(each.deaths for each in story.drivers)
    assert producers >= 10
    assert drivers >= 10
