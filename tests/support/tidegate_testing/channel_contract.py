"""What the intake relies on in a channel, whatever the broker is. A test class with a fixture ``scene`` inherits it.

The scene is a broker with an empty topic or queue, and an application's control desk behind it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.intake import Broker, Intake
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import (
    Channel,
    ChannelError,
    Delivery,
    Received,
    Reply,
)
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Entry
from tidegate_testing.channels import event
from tidegate_testing.control_log import repository_in
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.memory_store import Buckets

PATIENCE_SECONDS = 300.0


class Scene(Protocol):
    """One broker, as a producer and a person who runs it see it."""

    replays: bool
    """Whether it is read again from where one says."""
    has_content_types: bool
    """Whether messages say what they are."""

    def send(self, body: bytes, content_type: str = "") -> None:
        """Write a message, which the broker has when this returns."""

    def replies(self) -> list[dict[str, Any]]:
        """Return all replies that there are."""

    def channel(self, *, password: str = "", name: str = "") -> Channel:
        """Return a channel that is not open yet: with the right password, of the topic or queue that there is."""

    def stop(self) -> None:
        """Take the broker away, with what it has."""

    def start(self) -> None:
        """Bring it back."""


def received(channel: Channel, number: int) -> list[Delivery]:
    """Return deliveries with so many messages; fail if no more come."""
    deliveries: list[Delivery] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while sum(len(each.messages) for each in deliveries) < number:
        assert time.monotonic() < end, f"{deliveries} is all that came"
        deliveries.append(channel.receive(0.5))
    return deliveries


def messages(deliveries: Sequence[Delivery]) -> list[Received]:
    return [message for each in deliveries for message in each.messages]


@contextmanager
def opened(scene: Scene, consumed: Mapping[str, int] | None = None) -> Iterator[Channel]:
    """Open a channel, as soon as the broker has released one before it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        channel = scene.channel()
        try:
            channel.open(consumed or {})
        except ChannelError:
            channel.close()
            assert time.monotonic() < end
            time.sleep(0.2)
        else:
            break
    with closing(channel):
        yield channel


def until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"{what} did not come to be"
        time.sleep(0.05)


@dataclass
class Application:
    """An application with a control desk that takes messages in from a scene; ``restart`` has another process do so."""

    scene: Scene
    operations: FakeOperations = field(default_factory=FakeOperations)
    buckets: Buckets = field(default_factory=Buckets)
    notices: list[str] = field(default_factory=list)
    intake: Intake | None = None
    message_seconds: float = 60.0

    def start(self, *, password: str = "") -> Intake:
        seconds = self.message_seconds
        self.service = MessageService(
            lambda: repository_in(self.buckets),
            self.operations,
            Declared(),
            time.time,
            answers=True,
            message_seconds=seconds,
        )
        self.service.start()

        def make() -> Channel:
            return self.scene.channel(password=password)

        def reported(ended: Ended) -> Reply:
            return reply_of(ended, "shop", "orders")

        self.intake = Intake(
            Broker("Test", make, reported), self.service, lambda reason, *_: self.notices.append(reason)
        )
        self.intake.start()
        return self.intake

    def stop(self) -> None:
        if self.intake is not None:
            self.intake.stop()
            # A process that has ended takes nothing in; this one may be in the middle of it.
            assert self.intake.join(PATIENCE_SECONDS)
            self.service.stop()

    def logged(self) -> list[Entry]:
        """Return the messages that are in the log."""
        found = [entry for entry in self.service._opened().entries(0, self.service._opened().last) if entry.id]
        return sorted(found, key=lambda entry: entry.sequence)

    def commit(self, batch: int) -> None:
        """Commit a batch of the one query."""
        self.service.committed("main", batch, self.service.position())


class ChannelContract:
    """Needs a fixture ``scene``, fresh for each test."""

    @pytest.fixture
    def application(self, scene: Scene) -> Iterator[Application]:
        made = Application(scene, FakeOperations({"main"}))
        yield made
        made.stop()

    def test_messages_come_in_the_order_in_which_they_were_sent(self, scene: Scene) -> None:
        sent = [event(str(number)) for number in range(20)]
        for body in sent:
            scene.send(body)
        with opened(scene) as channel:
            assert [message.body for message in messages(received(channel, 20))] == sent

    def test_a_content_type_comes_with_its_message(self, scene: Scene) -> None:
        scene.send(event(), "application/cloudevents+json")
        scene.send(event())
        with opened(scene) as channel:
            found = [message.content_type for message in messages(received(channel, 2))]
        assert found == ["application/cloudevents+json" if scene.has_content_types else "", ""]

    def test_what_is_too_large_comes_as_its_size_and_what_follows_comes_too(self, scene: Scene) -> None:
        scene.send(b"x" * 200_000)
        scene.send(event())
        with opened(scene) as channel:
            large, other = messages(received(channel, 2))
        assert (large.size, large.body, other.size) == (200_000, b"", 0)

    def test_nothing_comes_if_nothing_was_sent(self, scene: Scene) -> None:
        with opened(scene) as channel:
            assert channel.receive(0.2).messages == ()

    def test_what_was_not_taken_comes_again_and_what_was_does_not(self, scene: Scene) -> None:
        for number in range(3):
            scene.send(event(str(number)))
        consumed: dict[str, int] = {}
        with opened(scene) as channel:
            received(channel, 3)
        with opened(scene) as channel:
            for delivery in received(channel, 3):
                channel.taken(delivery)
                consumed.update(delivery.positions)
        scene.send(event("3"))
        with opened(scene, consumed) as channel:
            (only,) = messages(received(channel, 1))
            assert only.body == event("3")
            assert channel.receive(0.3).messages == ()

    def test_a_message_is_the_same_one_when_it_comes_again(self, scene: Scene) -> None:
        for body in (event(), b"nothing that anybody understands"):
            scene.send(body)
        found = []
        for _ in range(2):
            with opened(scene) as channel:
                found.append([entry_of(message) for message in messages(received(channel, 2))])
        assert [entry.id for entry in found[0]] == [entry.id for entry in found[1]]

    def test_replies_are_there_when_they_have_been_told(self, scene: Scene) -> None:
        with opened(scene) as channel:
            channel.answer([Reply(str(number), json.dumps({"n": number}).encode()) for number in range(5)])
        until(lambda: [reply["n"] for reply in scene.replies()] == list(range(5)), "replies")

    def test_a_wrong_password_is_said_to_be_one(self, scene: Scene) -> None:
        channel = scene.channel(password="wrong")
        with closing(channel), pytest.raises(ChannelError) as raised:
            channel.open({})
        assert raised.value.reason == Reason.CHANNEL_CREDENTIALS_REJECTED

    def test_a_topic_or_queue_that_is_not_there_is_said_to_be_missing(self, scene: Scene) -> None:
        channel = scene.channel(name="of-nobody")
        with closing(channel), pytest.raises(ChannelError) as raised:
            channel.open({})
        assert raised.value.reason == Reason.CHANNEL_MISSING

    def test_a_broker_that_goes_away_is_noticed_and_found_again(self, scene: Scene) -> None:
        with opened(scene) as channel:
            scene.stop()
            try:
                with pytest.raises(ChannelError) as raised:
                    received(channel, 1)
                assert raised.value.reason == Reason.CHANNEL_UNAVAILABLE
            finally:
                scene.start()
        with opened(scene) as channel:
            scene.send(event("after"))
            assert messages(received(channel, 1))[0].body == event("after")

    # --- with the desk behind it ---

    def test_each_message_is_logged_once_and_told_of_whoever_reads(
        self, scene: Scene, application: Application
    ) -> None:
        for number in range(6):
            scene.send(event(str(number), data={"a": number}))
        scene.send(event("0", data={"a": 0}))
        scene.send(b"nothing")
        application.start()
        until(lambda: len(application.logged()) == 7, "the log")
        application.commit(1)
        until(lambda: len(scene.replies()) == 7, "replies")
        application.stop()
        again = Application(scene, application.operations, application.buckets)
        again.start()
        scene.send(event("6", data={"a": 6}))
        until(lambda: len(again.logged()) == 8, "the log")
        again.stop()
        assert [entry.id for entry in again.logged() if entry.source == "/test"] == [f"/test#{n}" for n in range(7)]
        reported = {reply["data"]["id"]: reply["data"]["state"] for reply in scene.replies()}
        assert reported == {**{str(number): "Done" for number in range(6)}, "": "Rejected"}

    def test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(
        self, scene: Scene, application: Application
    ) -> None:
        free = threading.Event()

        def check(entry: Entry) -> Entry:
            free.wait()
            return entry

        application.operations.checks["reload-model"] = check
        application.message_seconds = 0.1
        scene.send(event("stuck", "reload-model", {"name": "a", "uri": "s3://b/a", "sha256": "0" * 64}))
        scene.send(event("next", data={"a": 1}))
        application.start()
        until(lambda: len(application.logged()) == 2, "the log")
        application.commit(1)
        until(lambda: len(scene.replies()) == 2, "replies")
        free.set()
        reported = {reply["data"]["id"]: (reply["data"]["state"], reply["data"]["reason"]) for reply in scene.replies()}
        assert reported == {"stuck": ("Rejected", "MessageTimedOut"), "next": ("Done", "")}

    def test_an_application_waits_for_its_broker_and_says_so(self, scene: Scene, application: Application) -> None:
        intake = application.start()
        until(lambda: intake.report().connected, "a connection")
        scene.stop()
        until(lambda: not intake.report().connected, "a report")
        assert intake.report().reason == Reason.CHANNEL_UNAVAILABLE
        scene.start()
        scene.send(event("after"))
        until(lambda: bool(application.logged()), "the log")
        until(lambda: intake.report().connected, "a connection")
        assert (application.notices[0], application.notices[-1]) == (
            Reason.CHANNEL_UNAVAILABLE,
            "ControlChannelConnected",
        )

    def test_wrong_credentials_are_waited_for_too(self, scene: Scene, application: Application) -> None:
        intake = application.start(password="wrong")
        until(lambda: intake.report().reason == Reason.CHANNEL_CREDENTIALS_REJECTED, "a report")
        assert not intake.report().connected
