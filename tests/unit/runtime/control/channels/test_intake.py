"""Whatever the broker or the log does, messages get into the log once, and it is said what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.intake import FIRST_PAUSE_SECONDS, Broker, Intake
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import ChannelError, Delivery, Reply
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_testing.channels import QUEUE, TOPIC, MemoryBroker, MemoryChannel, event
from tidegate_testing.control_log import Clock


@dataclass
class FakeService:
    """Takes everything, unless it is out of order."""

    taken: list[Entry] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    is_out_of_order: bool = False

    def takes_in(self) -> bool:
        return True

    def consumed(self) -> dict[str, int]:
        return {entry.origin: entry.offset for entry in self.taken if entry.kind is Kind.CONSUMED}

    def take_in(self, drafts: Sequence[Entry]) -> None:
        if self.is_out_of_order:
            raise OSError("no storage")
        self.taken += drafts

    def answers(self) -> tuple[Ended, ...]:
        return tuple(self.ended)

    def answered(self, sequences: Sequence[int]) -> None:
        self.ended = [each for each in self.ended if each.entry.sequence not in sequences]

    def counted(self) -> tuple[int, dict[str, int]]:
        return len(self.taken), {}


class OnceChannel(MemoryChannel):
    """Stops its reader when there is nothing more."""

    def __init__(self, broker: MemoryBroker, stop: Callable[[], None]) -> None:
        super().__init__(broker, "right")
        self._stop = stop

    def receive(self, seconds: float) -> Delivery:
        found = super().receive(seconds)
        if not found.messages:
            self._stop()
        return found


class RepairedChannel(MemoryChannel):
    """The broker takes replies, and the clock is set back by an hour, when it is read for the second time."""

    def __init__(self, scene: "Scene", stop: Callable[[], None]) -> None:
        super().__init__(scene.broker, "right")
        self._scene, self._stop, self._first = scene, stop, True

    def receive(self, seconds: float) -> Delivery:
        if not self._first:
            self._scene.broker.takes_replies = True
            self._scene.clock.now -= 3600
            self._stop()
        self._first = False
        return super().receive(seconds)


class TickingChannel(MemoryChannel):
    """Time goes on by as much as the first pause while it is read, and its reader stops after so many times."""

    def __init__(self, scene: "Scene", times: int, stop: Callable[[], None]) -> None:
        super().__init__(scene.broker, "right")
        self._scene, self._left, self._stop = scene, times, stop

    def receive(self, seconds: float) -> Delivery:
        self._scene.clock.now += FIRST_PAUSE_SECONDS
        self._left -= 1
        if not self._left:
            self._stop()
        return super().receive(seconds)


@dataclass
class Scene:
    broker: MemoryBroker
    service: FakeService = field(default_factory=FakeService)
    clock: Clock = field(default_factory=Clock)
    notices: list[tuple[str, str]] = field(default_factory=list)
    types: tuple[str, ...] = ()

    def attend(self, times: int = 0) -> Intake:
        """Read until nothing more comes, or so many times."""

        def make(stop: Callable[[], None]) -> MemoryChannel:
            return TickingChannel(self, times, stop) if times else OnceChannel(self.broker, stop)

        intake = self.intake_of(make)
        intake.attend()
        return intake

    def intake_of(self, make: Callable[[Callable[[], None]], MemoryChannel]) -> Intake:
        """Return what reads a channel, which is made with what stops it."""

        def reported(ended: Ended) -> Reply:
            return reply_of(ended, "shop", "orders")

        def notice(reason: str, message: str, warning: bool) -> None:
            self.notices.append((reason, message))

        broker = Broker("Kafka", lambda: make(intake.stop), reported, self.types)
        intake = Intake(broker, self.service, notice, self.clock)
        return intake


def ended(sequence: int = 3, **more: Any) -> Ended:
    entry = Entry(sequence, id="/test#1", type="snapshot", source="/test", origin="kafka:control/0", offset=9)
    return Ended(entry, MessageReport("/test#1", MessageState.DONE, sequence, **more))


def test_messages_are_taken_with_the_place_up_to_which_they_were_read() -> None:
    scene = Scene(MemoryBroker(TOPIC))
    for number in range(6):
        scene.broker.send(event(str(number)))
    scene.attend()
    ids = [entry.id for entry in scene.service.taken if entry.kind is Kind.MESSAGE]
    assert ids == [f"/test#{number}" for number in range(6)]
    assert scene.service.consumed() == {"kafka:control/0": 6}


def test_what_may_not_be_sent_is_logged_as_rejected_and_what_is_read_goes_on() -> None:
    scene = Scene(MemoryBroker(TOPIC), types=("ping",))
    for number, kind in enumerate(("pause", "ping")):
        scene.broker.send(event(str(number), kind))
    scene.attend()
    logged = [(entry.kind, entry.reason) for entry in scene.service.taken if entry.id]
    assert logged == [(Kind.REJECTED, "TypeNotAllowed"), (Kind.MESSAGE, "")]


def test_a_queue_keeps_what_could_not_be_logged() -> None:
    scene = Scene(MemoryBroker(QUEUE), FakeService(is_out_of_order=True))
    scene.broker.send(event())
    with pytest.raises(ChannelError, match="no storage") as raised:
        scene.attend()
    assert raised.value.reason == Reason.CONTROL_LOG_UNAVAILABLE
    assert len(scene.broker.messages) == 1
    scene.service.is_out_of_order = False
    scene.attend()
    assert (len(scene.service.taken), scene.broker.messages) == (1, [])


def test_what_a_topic_has_removed_is_told_of_and_the_rest_is_read() -> None:
    scene = Scene(MemoryBroker(TOPIC))
    for number in range(2):
        scene.broker.send(event(str(number)))
    scene.attend()
    for number in range(2, 6):
        scene.broker.send(event(str(number)))
    scene.broker.remove_oldest(4)
    scene.attend()
    assert scene.notices == [("ControlMessagesLost", "2 are gone")]
    ids = [entry.id for entry in scene.service.taken if entry.kind is Kind.MESSAGE]
    assert ids == ["/test#0", "/test#1", "/test#4", "/test#5"]


def test_a_reply_says_what_came_of_a_message_and_is_the_same_event_whenever_it_is_told() -> None:
    scene = Scene(MemoryBroker(TOPIC))
    acknowledged = QueryAcknowledgement(7, 2, 5, ("1/10: ValueError: no",), 1, ("2/20: it ended",))
    scene.service.ended = [ended(queries={"main": acknowledged}, results={"snapshot": "s1"}, reason="", message="")]
    scene.attend()
    (reply,) = scene.broker.replies
    assert reply == {
        "specversion": "1.0",
        "id": "3",
        "source": "/tidegate/shop/orders",
        "type": "dev.tidegate.control.acknowledgement",
        "subject": "1",
        "datacontenttype": "application/json",
        "data": {
            "id": "1",
            "source": "/test",
            "type": "snapshot",
            "sequence": 3,
            "state": "Done",
            "reason": "",
            "message": "",
            "queries": {
                "main": {
                    "batch": 7,
                    "applied": 2,
                    "ran": 5,
                    "errors": ["1/10: ValueError: no"],
                    "moreErrors": 1,
                    "missing": ["2/20: it ended"],
                }
            },
            "results": {"snapshot": "s1"},
            "origin": "kafka:control/0",
            "offset": 9,
        },
    }
    assert scene.service.ended == []


def test_messages_are_taken_also_while_nobody_takes_replies() -> None:
    scene = Scene(MemoryBroker(TOPIC, takes_replies=False))
    scene.broker.send(event())
    scene.service.ended = [ended()]
    report = scene.attend().report()
    assert (report.connected, report.reason) == (True, Reason.CONTROL_REPLIES_REFUSED)
    assert [reason for reason, _ in scene.notices] == [Reason.CONTROL_REPLIES_REFUSED]
    assert [entry.kind for entry in scene.service.taken][:2] == [Kind.CONSUMED, Kind.MESSAGE]
    scene.broker.takes_replies = True
    scene.attend()
    assert (len(scene.broker.replies), scene.service.ended) == (1, [])


def test_replies_that_a_slow_broker_takes_one_by_one_do_not_wait_longer_each_time() -> None:
    scene = Scene(MemoryBroker(QUEUE, replies_at_once=1))
    scene.service.ended = [ended(sequence) for sequence in range(8)]
    scene.attend(times=8)
    assert (len(scene.broker.replies), scene.service.ended) == (8, [])


def test_replies_do_not_wait_until_a_clock_that_was_set_back_is_where_it_was() -> None:
    scene = Scene(MemoryBroker(TOPIC, takes_replies=False))
    scene.service.ended = [ended()]
    intake = scene.intake_of(lambda stop: RepairedChannel(scene, stop))
    intake.attend()
    assert (len(scene.broker.replies), scene.service.ended) == (1, [])
