"""Replies are published in their order, each once, and nobody waits for a broker that confirms nothing."""

import threading
from collections.abc import Iterator

import pytest

from tidegate_spark.control.channels.ports import Reply
from tidegate_spark.control.channels.transports.reply_publisher import ReplyPublisher, UnconfirmedError
from tidegate_testing.waiting import wait_for

ONE, TWO, THREE = (Reply(key, b"{}") for key in ("one", "two", "three"))
LONG = 60.0


class Queue:
    """A broker's queue, which may confirm nothing or be gone."""

    def __init__(self) -> None:
        self.there: list[str] = []
        self.connections = self.closed = 0
        self.confirms, self.waits = threading.Event(), threading.Event()
        self.confirms.set()
        self.error: Exception | None = None
        self.now = 0.0
        self.seconds_each = 0.0

    def connect(self) -> "Queue":
        self.connections += 1
        return self

    def publish(self, reply: Reply) -> None:
        self.waits.set()
        self.confirms.wait()
        if self.error is not None:
            raise self.error
        self.now += self.seconds_each
        self.there.append(reply.key)

    def keep_alive(self) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1


Opened = tuple[Queue, ReplyPublisher]


@pytest.fixture(params=[10.0])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """A queue and its publisher, which shows life so often; nothing of them is left."""
    queue = Queue()
    publisher = ReplyPublisher(queue.connect, request.param)
    yield queue, publisher
    queue.confirms.set()
    publisher.close()


def is_published(publisher: ReplyPublisher, *replies: Reply) -> bool:
    """Return whether it is known by now that the broker has all of some replies."""
    try:
        publisher.publish(replies, LONG)
    except UnconfirmedError:
        return False
    return True


def test_replies_are_published_in_their_order_on_one_connection(opened: Opened) -> None:
    queue, publisher = opened
    publisher.publish([ONE, TWO], LONG)
    publisher.publish([THREE], LONG)
    assert (queue.there, queue.connections) == (["one", "two", "three"], 1)


def test_a_broker_that_confirms_nothing_keeps_nobody_waiting_and_no_reply_is_published_twice(opened: Opened) -> None:
    queue = Queue()
    queue.confirms.clear()
    publisher = ReplyPublisher(queue.connect)
    for _ in range(3):
        with pytest.raises(UnconfirmedError):
            publisher.publish([ONE, TWO], 0.0)
    queue.waits.wait(LONG)
    queue.confirms.set()
    wait_for("the confirmation", lambda: is_published(publisher, ONE, TWO, THREE), LONG, 0.01)
    assert queue.there == ["one", "two", "three"]


def test_a_broker_that_is_slow_with_each_reply_has_one_deadline_for_all_that_are_given_at_a_time() -> None:
    queue = Queue()
    queue.seconds_each = LONG * 0.75
    publisher = ReplyPublisher(queue.connect, clock=lambda: queue.now)
    with pytest.raises(UnconfirmedError):
        publisher.publish([ONE, TWO, THREE], LONG)
    assert queue.there == ["one", "two"]
    publisher.publish([ONE, TWO, THREE], LONG)
    assert queue.there == ["one", "two", "three"]
    publisher.close()


def test_what_a_broker_confirmed_before_it_failed_is_not_published_again(opened: Opened) -> None:
    queue, publisher = opened
    publisher.publish([ONE], LONG)
    queue.error = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        publisher.publish([TWO, THREE], LONG)
    queue.error = None
    publisher.publish([TWO, THREE], LONG)
    assert (queue.there, queue.connections, queue.closed) == (["one", "two", "three"], 2, 1)


@pytest.mark.parametrize("opened", [0.01], indirect=True)
def test_a_connection_that_died_while_nothing_was_published_is_replaced(opened: Opened) -> None:
    queue, publisher = opened
    publisher.publish([ONE], LONG)
    queue.error = OSError("gone")
    wait_for("the loss of the connection", lambda: queue.closed == 1, LONG, 0.01)
    queue.error = None
    publisher.publish([TWO], LONG)
    assert (queue.there, queue.connections) == (["one", "two"], 2)


def test_a_publisher_that_is_closed_gives_its_connection_up(opened: Opened) -> None:
    queue, publisher = opened
    publisher.publish([ONE], LONG)
    publisher.close()
    wait_for("the end of the connection", lambda: queue.closed == 1, LONG, 0.01)
