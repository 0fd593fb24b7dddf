"""However often the driver's process is killed, and wherever: each message that the operator offers until it knows its
end is logged once and in order, does what it is for, and is acknowledged with the first batch that has it. One whose
check never ends is logged as rejected, and stays so, whenever that check ends after all."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders, MessageReport, MessageState
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.reducer import State
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, opened
from tidegate_testing.examples import gate_share
from tidegate_testing.fake_operations import at_work, await_work
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.store_actors import Actor, KilledError

Draw = Callable[[int, int], int]
KINDS = ("reload-config", "resume", "ping", "reload-model")
MODEL = json.dumps({"name": "it", "uri": "s3://silent/it", "sha256": "0" * 64})
"""Of a bucket that does not answer: the check of each `reload-model` here hangs."""
ENDS = (MessageState.DONE, MessageState.EXPIRED, MessageState.REJECTED)


@dataclass
class Story:
    """An operator, and an application with one query; it is also the driver around the desk."""

    draw: Draw
    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    orders: dict[str, ControlOrder] = field(default_factory=dict)
    ends: dict[str, MessageReport] = field(default_factory=dict)
    planned: list[int] = field(default_factory=list)
    """The position of each batch, as the offset log has it."""
    committed: int = 0
    carried: list[int] = field(default_factory=list)
    kills: int = 0
    free: threading.Event = field(default_factory=threading.Event)
    """Once set, the checks that hang end."""
    late: list[str] = field(default_factory=list)
    """Messages whose check has ended after all."""

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin another process, on the checkpoint as it is; a message has no time at all, so that none passes here."""
        self.service = MessageService(self.repository, self, Declared(), self.clock, message_seconds=0.0)
        if self.committed:
            self.service.begins("main", self.planned[self.committed - 1])
        self.actor: Actor | None = None

    def repository(self) -> SnapshotRepository:
        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, self.watch), PREFIX, lambda seconds: None)

    def watch(self, call: Call) -> None:
        """Have whoever acts now stop at a request."""
        assert self.actor is not None
        self.actor.store(self.buckets, BUCKET).watch(call)

    # --- the driver around the desk ---

    def is_open(self) -> bool:
        return True

    def inspection(self, entry: Entry) -> Callable[[], Entry] | None:
        if entry.type != "reload-model":
            return None
        free = self.free

        def check() -> Entry:
            free.wait()
            self.late.append(entry.id)
            return entry

        return check

    def let_end(self) -> None:
        """Have all checks end that hang; later ones hang again."""
        self.free.set()
        await_work()
        self.free = threading.Event()

    def asking(self) -> frozenset[str]:
        return frozenset({"main"})

    def pause(self, wanted: bool) -> None:
        """Nothing is held."""

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        self.carried.append(entry.sequence)
        return replace(account, done=True)

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        return False

    def begin(self, state: State) -> None:
        """Nothing is from before."""

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        batches = (batch for batch in range(self.committed) if self.planned[batch] >= sequence)
        return next(batches, None)

    def oldest(self, repository: SnapshotRepository) -> int | None:
        return self.planned[0] if self.planned else None

    # --- what happens ---

    def act(self, work: Callable[[], Any], may_die: bool = True) -> Any:
        """Let the process do something; it may be killed meanwhile, and another one begins: None then."""

        def run(actor: Actor) -> Any:
            return work()

        self.actor = Actor("driver", run)
        # A process of before may be in the middle of nothing: what it does, it does here.
        dies = may_die and self.draw(0, 5) == 0
        for _ in range(self.draw(0, 12)) if dies else ():
            self.actor.step()
        if dies and not self.actor.ended:
            self.actor.kill()
            self.kills += 1
            self.restart()
            return None
        outcome = self.actor.run()
        if isinstance(outcome, KilledError):
            raise outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def happen(self) -> None:
        self.clock.now += self.draw(0, 2)
        what = self.draw(0, 6)
        if what <= 1:
            self.send()
        elif what == 6:
            self.let_end()
        elif what == 2:
            self.offer()
        elif what == 3:
            self.act(self.service.check)
        else:
            self.batch()

    def send(self) -> None:
        name = f"m{len(self.orders)}"
        expires = self.clock.now + self.draw(0, 3) if self.draw(0, 3) == 0 else 0.0
        kind = KINDS[self.draw(0, len(KINDS) - 1)]
        self.orders[name] = ControlOrder(name, kind, MODEL if kind == "reload-model" else "{}", expires=expires)

    def offer(self) -> None:
        """Be the operator: take down what has ended, give what has not."""
        reported = {report.id: report for report in self.service.report().messages}
        self.ends.update((name, report) for name, report in reported.items() if report.state in ENDS)
        open_ones = tuple(order for name, order in self.orders.items() if name not in self.ends)
        self.service.give(ControlOrders(open_ones, tuple(self.ends)))

    def batch(self, may_die: bool = True) -> None:
        """Plan a batch, unless one is begun, and commit it."""
        if self.act(self.service.check, may_die) is None:
            return
        if len(self.planned) == self.committed:
            position = self.act(self.service.position, may_die)
            if position is None:
                return
            self.planned.append(position)
        if may_die and self.draw(0, 4) == 0:
            self.restart()
            return
        batch, position = self.committed, self.planned[self.committed]
        self.committed += 1
        self.service.committed("main", batch, position)

    def settle(self) -> list[str]:
        """Let everything come to its end; return what is wrong."""
        for _ in range(4):
            self.offer()
            self.batch(may_die=False)
            self.act(self.service.check, may_die=False)
        self.offer()
        wrong = [f"{name} has not ended" for name in self.orders if name not in self.ends]
        log = opened(self.buckets, self.clock)
        logged = [entry.id for entry in log.entries(log.begin, log.last) if entry.id]
        if len(logged) != len(set(logged)):
            wrong.append("a message is there twice")
        if logged != [name for name in self.orders if name in set(logged)]:
            wrong.append("messages are in another order")
        for name, end in self.ends.items():
            first = next((at for at, position in enumerate(self.planned) if position >= end.sequence), None)
            is_drivers = self.orders[name].type == "resume"
            if end.state is MessageState.DONE and not is_drivers and end.queries["main"].batch != first:
                wrong.append(f"{name} says batch {end.queries['main'].batch}, and it was {first}")
            if end.state is MessageState.DONE and is_drivers and end.sequence not in self.carried:
                wrong.append(f"{name} was not carried out")
        wrong += [f"{name}: {message}" for name in self.hanging() for message in self.wrong_with(name, log)]
        if any(self.carried.count(sequence) > 1 + self.kills for sequence in set(self.carried)):
            wrong.append("something was carried out again without a need")
        return wrong

    # --- messages whose check hangs ---

    def hanging(self) -> list[str]:
        return [name for name, order in self.orders.items() if order.type == "reload-model"]

    def wrong_with(self, name: str, log: ControlLog) -> Iterator[str]:
        """Say what is wrong with one, in the log and in what its sender was told."""
        end = self.ends.get(name)
        if end is not None and (end.state, end.reason) != (MessageState.REJECTED, "MessageTimedOut"):
            yield f"it has ended as {end.state} ({end.reason})"
        kinds = {entry.kind for entry in log.entries(log.begin, log.last) if entry.id == name}
        if kinds - {Kind.REJECTED}:
            yield f"it is in the log as {kinds}"
        if log.state_at(log.last).models:
            yield "its model is in force"

    def wrong_later(self) -> list[str]:
        """Have all checks end, and another process asked the same again; return what is wrong then."""
        before = {name: self.ends[name] for name in self.hanging() if name in self.ends}
        self.let_end()
        ended = len(self.late)
        self.restart()
        self.ends.clear()
        wrong = self.settle()
        wrong += [f"{name} has ended otherwise" for name, end in before.items() if self.ends.get(name) != end]
        return wrong + ["what was rejected is looked at again"] * (at_work() > 0 or len(self.late) > ended)


def story_of(seed: int) -> list[str]:
    story = Story(random.Random(seed).randint)
    try:
        for _ in range(10 + seed % 60):
            story.happen()
        return story.settle() + story.wrong_later()
    finally:
        story.free.set()


@pytest.mark.parametrize("seed", range(gate_share(150)))
def test_every_message_comes_to_its_end(seed: int) -> None:
    assert story_of(seed) == []
