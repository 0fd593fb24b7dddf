"""The inbox as a channel: few requests, nothing removed before it is in the log, and no message before one that the
same writer sent earlier, whatever a listing lacks.
"""

import json
from contextlib import closing
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import InboxSettings
from tidegate_spark.contract.object_paths import INBOX_PREFIX
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.ports import ChannelError, Delivery, Reply
from tidegate_spark.control.channels.transports import storage
from tidegate_spark.control.channels.transports.inbox import LARGEST_OBJECT, BatchName, body_of
from tidegate_spark.control.channels.transports.storage import StorageChannel
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.channels import event
from tidegate_testing.control_log import BUCKET, PREFIX
from tidegate_testing.inbox_scene import PLACE, QUICK, MemoryInbox, refused
from tidegate_testing.memory_store import Call, MemoryStore

ONE, OTHER = "1" * 16, "2" * 16
AT_ONCE = InboxSettings(poll_seconds=0.0, keep_replies_seconds=1e12)


def batch(first: int, count: int = 1, writer: str = ONE, at: int = 0) -> tuple[str, bytes]:
    """Return name and content of an object; ``at`` orders those of different writers."""
    name = BatchName(f"20261123T04{at:04d}.000Z", writer, first, count)
    return str(name), body_of([event(f"{writer[0]}-{number}") for number in range(first, first + count)])


def ids(delivery: Delivery) -> list[str]:
    return [json.loads(message.body)["id"] for message in delivery.messages]


def opened(inbox: MemoryInbox, consumed: dict[str, int] | None = None) -> StorageChannel:
    channel = inbox.channel()
    channel.open(consumed or {})
    return channel


def counted(inbox: MemoryInbox, settings: InboxSettings = QUICK) -> tuple[StorageChannel, list[str]]:
    """Return a channel, and the requests that it makes."""
    calls: list[str] = []

    def watch(call: Call) -> None:
        if not call.done:
            calls.append(call.verb)

    repository = SnapshotRepository(MemoryStore(inbox.buckets, BUCKET, watch), PREFIX)
    return StorageChannel(settings, lambda: repository, PLACE, wait=lambda seconds: None), calls


def test_an_empty_inbox_costs_one_listing_for_each_look_and_nothing_between_two() -> None:
    channel, calls = counted(MemoryInbox(), InboxSettings(poll_seconds=60.0))
    with closing(channel):
        channel.open({})
        for _ in range(5):
            assert channel.receive(1.0).messages == ()
    assert calls == ["list"]


def test_an_object_is_removed_when_it_was_taken_and_not_before() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    inbox.put(*batch(0, 3))
    with closing(opened(inbox)) as channel:
        delivery = channel.receive(0)
        assert (ids(delivery), delivery.positions) == (["1-0", "1-1", "1-2"], {f"storage:{ONE}": 3})
        assert len(inbox.unread()) == 1
        channel.taken(delivery)
        assert inbox.unread() == []


def test_a_backlog_is_read_in_pieces_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_OBJECTS", 3)
    monkeypatch.setattr(storage, "MOST_LISTED", 5)
    inbox = MemoryInbox(settings=InboxSettings(poll_seconds=0.0))
    for number in range(12):
        inbox.put(*batch(number, at=number))
    found = []
    with closing(opened(inbox)) as channel:
        waited = channel.waiting()
        while inbox.unread():
            delivery = channel.receive(0)
            found.append(ids(delivery))
            channel.taken(delivery)
    assert [len(each) for each in found] == [3, 2, 3, 2, 2]
    assert [name for each in found for name in each] == [f"1-{number}" for number in range(12)]
    assert waited == 5


def test_many_messages_and_many_bytes_are_no_one_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_MESSAGES", 5)
    inbox = MemoryInbox(settings=AT_ONCE)
    for number in range(3):
        inbox.put(*batch(3 * number, 3))
    with closing(opened(inbox)) as channel:
        assert [len(channel.receive(0).messages) for _ in range(3)] == [3, 3, 3]
    monkeypatch.setattr(storage, "MOST_BYTES", 10)
    with closing(opened(inbox)) as channel:
        assert len(channel.receive(0).messages) == 3


def test_what_is_larger_than_an_object_may_be_is_not_fetched() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    name, _ = batch(0, 1)
    inbox.put(name, b"[" + b" " * LARGEST_OBJECT)
    inbox.put("mine.json", b"x" * (LARGEST_OBJECT + 1))
    channel, calls = counted(inbox, AT_ONCE)
    with closing(channel):
        channel.open({})
        delivery = channel.receive(0)
    assert ([message.size > LARGEST_OBJECT for message in delivery.messages], "get" in calls) == ([True, True], False)


# --- listings that lack something ---


def test_a_later_object_of_a_writer_waits_for_the_earlier_one_that_a_listing_lacks() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    inbox.put(*batch(0, writer=OTHER))
    inbox.put(*batch(2, at=2))
    inbox.put(*batch(1, writer=OTHER, at=3))
    with closing(opened(inbox, {f"storage:{ONE}": 1})) as channel:
        first = channel.receive(0)
        assert ids(first) == ["2-0"]
        channel.taken(first)
        inbox.put(*batch(1, at=1))
        assert ids(channel.receive(0)) == ["1-1", "1-2", "2-1"]


def test_what_the_next_look_lacks_as_well_is_gone_and_not_waited_for() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    inbox.put(*batch(5))
    inbox.put(*batch(6))
    channel, calls = counted(inbox, AT_ONCE)
    with closing(channel):
        channel.open({})
        assert ids(channel.receive(0)) == ["1-5", "1-6"]
    assert [verb for verb in calls if verb == "list"] == ["list"] * 3  # one of them is for replies


def test_an_object_that_came_again_is_no_gap() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    inbox.put(*batch(3))
    with closing(opened(inbox, {f"storage:{ONE}": 9})) as channel:
        assert ids(channel.receive(0)) == ["1-3"]


def test_how_far_writers_were_listed_is_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_WRITERS", 2)
    inbox = MemoryInbox(settings=AT_ONCE)
    for number in range(4):
        inbox.put(*batch(0, writer=str(number) * 16))
    with closing(opened(inbox)) as channel:
        assert len(channel._following) == 2


def test_an_object_that_another_driver_took_meanwhile_is_left_out() -> None:
    inbox = MemoryInbox(settings=AT_ONCE)
    for number in range(3):
        inbox.put(*batch(number))
    with closing(opened(inbox)) as channel:
        inbox.buckets.remove(BUCKET, f"{PREFIX}/{INBOX_PREFIX}/{batch(1)[0]}")
        delivery = channel.receive(0)
        assert (ids(delivery), delivery.positions) == (["1-0", "1-2"], {f"storage:{ONE}": 3})


class Refusing(MemoryStore):
    """Answers like a store that gives out no object, and takes none, whose key has a word in it."""

    def __init__(self, inbox: MemoryInbox, word: str, code: str, status: int) -> None:
        super().__init__(inbox.buckets, BUCKET)
        self._word, self._error = word, refused(code, status)

    def get(self, key: str, most: int | None = None) -> tuple[bytes, str] | None:
        if self._word in key and INBOX_PREFIX in key:
            raise self._error
        return super().get(key, most)

    def put_if(self, key: str, body: bytes, etag: str | None) -> str | None:
        if self._word not in key:
            return super().put_if(key, body, etag)
        if self._error.response["ResponseMetadata"]["HTTPStatusCode"] == 409:
            return None
        raise self._error


def refusing(inbox: MemoryInbox, word: str, code: str, status: int) -> StorageChannel:
    repository = SnapshotRepository(Refusing(inbox, word, code, status), PREFIX)
    channel = StorageChannel(AT_ONCE, lambda: repository, PLACE)
    channel.open({})
    return channel


@pytest.mark.parametrize(("code", "status"), [("InvalidObjectState", 403), ("InvalidRequest", 400)])
def test_an_object_that_the_store_gives_nobody_is_a_rejected_message_and_holds_nothing_up(
    code: str, status: int
) -> None:
    """Whoever may put an object may put it into an archive, or encrypt it with a key that nobody else has."""
    inbox = MemoryInbox()
    inbox.put("00-archived.json", event("a"))
    inbox.put(*batch(0))
    inbox.put("30-other.json", event("b"))
    with closing(refusing(inbox, "archived", code, status)) as channel:
        delivery = channel.receive(0)
        entries = [entry_of(message) for message in delivery.messages]
        assert [entry.reason for entry in entries] == ["InvalidEvent", "", ""]
        assert code in entries[0].message
        channel.taken(delivery)
    assert inbox.unread() == []


def test_an_object_that_grew_since_it_was_listed_is_not_read_further_than_one_may_be_long() -> None:
    """Whoever may put it may replace it, with gigabytes."""
    inbox = MemoryInbox()
    inbox.put("a.json", event("a"))
    with closing(opened(inbox)) as channel:
        inbox.put("a.json", body_of([event(str(number), data="x" * 3000) for number in range(900)]))
        (found,) = channel.receive(0).messages
    assert (entry_of(found).reason, found.body) == ("EventTooLarge", b"")


def test_a_store_that_gives_out_nothing_is_no_rejected_message() -> None:
    inbox = MemoryInbox()
    inbox.put("00-a.json", event("a"))
    with closing(refusing(inbox, "a.json", "AccessDenied", 403)) as channel, pytest.raises(ChannelError):
        channel.receive(0)
    assert inbox.unread() == ["00-a.json"]


# --- replies ---


@pytest.mark.parametrize(
    ("code", "status"), [("KeyTooLongError", 400), ("XMinioParentIsObject", 400), ("ExistingObjectIsDirectory", 409)]
)
def test_a_reply_for_which_the_store_has_no_place_holds_up_no_other(code: str, status: int) -> None:
    """Its name is that of the object, whatever that is: it may be too long, or below that of another reply."""
    inbox = MemoryInbox()
    replies = [reply(1, origin="storage:a.json/strange.json"), reply(2, origin="storage:b.json")]
    with closing(refusing(inbox, "strange", code, status)) as channel:
        channel.answer(replies)
    assert [each["id"] for each in inbox.replies()] == ["2"]


@pytest.mark.parametrize(("code", "status"), [("SlowDown", 503), ("AccessDenied", 403), ("ExpiredToken", 400)])
def test_replies_that_the_store_does_not_take_now_are_to_be_given_again(code: str, status: int) -> None:
    with (
        closing(refusing(MemoryInbox(), "strange", code, status)) as channel,
        pytest.raises(ChannelError),
    ):
        channel.answer([reply(1, origin="storage:strange.json")])


def reply(sequence: int, **more: Any) -> Reply:
    return Reply("k", json.dumps({"id": str(sequence)}).encode(), **more)


def test_replies_of_a_burst_cost_few_requests() -> None:
    channel, calls = counted(MemoryInbox())
    with closing(channel):
        channel.open({})
        channel.answer([reply(number, origin=f"storage:{ONE}", offset=number) for number in range(300)])
    assert sorted(calls) == [*["get"] * 3, "list", *["put_if"] * 3]


def test_replies_of_two_drivers_are_both_there() -> None:
    inbox = MemoryInbox()
    calls = 0

    def watch(call: Call) -> None:
        nonlocal calls
        calls += 1
        if (call.verb, call.done, calls) == ("put_if", False, 5):
            with closing(opened(inbox)) as other:
                other.answer([reply(1, origin="storage:a.json")])

    repository = SnapshotRepository(MemoryStore(inbox.buckets, BUCKET, watch), PREFIX)
    channel = StorageChannel(QUICK, lambda: repository, PLACE)
    with closing(channel):
        channel.open({})
        channel.answer([reply(2, origin="storage:a.json")])
    assert sorted(each["id"] for each in inbox.replies()) == ["1", "2"]


@pytest.mark.parametrize(("keep", "left"), [(1e12, 3), (0.0, 0)])
def test_old_replies_are_removed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, keep: float, left: int) -> None:
    monkeypatch.setattr(storage, "SWEPT_AT_ONCE", 2)
    inbox = MemoryInbox(settings=InboxSettings(0.0, keep))
    with closing(opened(inbox)) as channel:
        channel.answer([reply(number, origin=f"storage:{number}.json") for number in range(3)])
        channel.receive(0)
        assert len(inbox.replies()) == (3 if keep else 1)
        channel.receive(0)
    assert len(inbox.replies()) == left
