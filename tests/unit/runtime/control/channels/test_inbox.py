"""What an inbox looks like: names say which messages are in an object, and whatever is put there is something."""

import json
import random
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.transports.inbox import (
    LARGEST_OBJECT,
    MOST_IN_BATCH,
    BatchName,
    batch_of,
    body_of,
    messages_in,
    moment_of,
    origin_of,
    reply_in,
    reply_name,
    too_large,
    with_replies,
)
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_testing.channels import event

WRITER = "0123456789abcdef"
NAME = BatchName("20261123T043011.123Z", WRITER, 7, 2)


def entries(name: Any, body: bytes) -> list[Entry]:
    return [entry_of(message) for message in messages_in(str(name), body)]


def test_a_name_says_which_messages_of_which_writer_are_in_the_object() -> None:
    assert str(NAME) == "20261123T043011.123Z-0123456789abcdef-000000000007-0002.json"
    assert (batch_of(str(NAME)), NAME.following, origin_of(str(NAME))) == (NAME, 9, f"storage:{WRITER}")


@pytest.mark.parametrize("name", ["a.json", "", str(NAME).upper(), str(NAME).replace("0002", "0000"), f"x/{NAME}"])
def test_any_other_name_is_an_objects_own(name: str) -> None:
    assert (batch_of(name), origin_of(name)) == (None, f"storage:{name}")


def test_names_sort_by_time_and_those_of_one_moment_by_number() -> None:
    names = [BatchName(moment_of(1000 + at / 10), WRITER, 5 * at + n, 1) for at in range(30) for n in range(5)]
    assert sorted(map(str, names)) == [str(name) for name in names]


def test_events_of_a_batch_are_messages_with_their_numbers() -> None:
    body = body_of([event("a", data={"x": "ä"}), event("b", data=None)])
    found = entries(NAME, body)
    assert [(entry.id, entry.offset, entry.kind) for entry in found] == [
        ("/test#a", 7, Kind.MESSAGE),
        ("/test#b", 8, Kind.MESSAGE),
    ]
    assert json.loads(found[0].payload) == {"x": "ä"}
    assert {entry.origin for entry in found} == {f"storage:{WRITER}"}


@pytest.mark.parametrize("letter", ["x", "ä", "ж", "語", "🌊"])
def test_a_payload_in_a_batch_may_have_its_64_kib_in_whatever_script(letter: str) -> None:
    data = {"a": letter * ((LARGEST_PAYLOAD - 16) // len(letter.encode()))}
    alone = json.dumps(json.loads(event("a", data=data)), ensure_ascii=False).encode()
    for name, body in (("mine.json", alone), ("ours.json", body_of([alone]))):
        (found,) = entries(name, body)
        assert (found.reason, json.loads(found.payload) == data) == ("", True)


def test_an_event_that_is_none_costs_no_other() -> None:
    strange = b'{"specversion": "1.0", "id": "n", "source": "/test", "type": "t", "data": NaN}'
    body = body_of([event("a"), b"7", strange, b'"\\ud800"', event("b", data={"x": "x" * 200_000}), event("c")])
    found = entries(BatchName(NAME.moment, WRITER, 0, 6), body)
    assert [entry.reason for entry in found] == ["", *["InvalidEvent"] * 3, "EventTooLarge", ""]
    assert [entry.offset for entry in found] == list(range(6))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no batch"),
        (event(), "no batch"),
        (b"[", "cannot be read"),
        (b"[]", "no event"),
        (b"\xff", "no batch"),
        (b"[\xff]", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (body_of([event()] * 3), "it has 3 events, and 2 by its name"),
    ],
)
def test_an_object_that_is_none_is_one_rejected_message_at_its_place(body: bytes, message: str) -> None:
    (found,) = entries(NAME, body)
    assert (found.kind, found.reason, found.offset) == (Kind.REJECTED, "InvalidEvent", 7)
    assert message in found.message


def test_whoever_can_copy_a_file_can_send_a_message() -> None:
    assert [entry.id for entry in entries("mine.json", event("a"))] == ["/test#a"]
    found = entries("mine.json", b"\n" + body_of([event("a"), event("b")]))
    assert [(entry.id, entry.offset, entry.origin) for entry in found] == [
        ("/test#a", -1, "storage:mine.json"),
        ("/test#b", -1, "storage:mine.json"),
    ]


def test_a_batch_without_end_is_refused_as_a_whole() -> None:
    (found,) = entries("mine.json", body_of([b"1"] * (MOST_IN_BATCH + 1)))
    assert (found.reason, "at most 1000" in found.message) == ("InvalidEvent", True)
    large = entry_of(too_large("mine.json", LARGEST_OBJECT + 1))
    assert (large.kind, large.reason, "2097152" in large.message) == (Kind.REJECTED, "EventTooLarge", True)


def test_other_bytes_under_a_name_are_another_message_and_the_same_ones_are_the_same() -> None:
    ids = [entries("mine.json", body)[0].id for body in (b"[", b"[ ", b"[")]
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_there_something_comes_of_it(seed: int) -> None:
    draw = random.Random(seed)
    body = bytearray(body_of([event(str(number), data={"a": [number]}) for number in range(2)]))
    for _ in range(draw.randrange(1, 20)):
        body[draw.randrange(len(body))] = draw.randrange(256)
    for name in (str(NAME), "mine.json"):
        found = entries(name, bytes(body))
        assert found
        assert found == entries(name, bytes(body))


def test_replies_to_messages_of_a_writer_are_where_their_number_says() -> None:
    names = [reply_name(f"storage:{WRITER}", number) for number in (0, 127, 128)]
    assert names == [f"control/replies/{WRITER}/{page:010d}.json" for page in (0, 0, 1)]
    assert reply_name("storage:mine.json", -1) == "control/replies/mine.json"


def reply(sequence: int, name: str, state: str = "Done") -> bytes:
    reported = {"id": name, "source": "/test", "state": state}
    return json.dumps({"specversion": "1.0", "id": str(sequence), "data": reported}).encode()


def test_replies_are_added_to_those_that_are_there_and_one_that_is_told_again_replaces_itself() -> None:
    body = with_replies(with_replies(None, [reply(1, "a"), reply(2, "b")]), [reply(2, "b"), reply(3, "c", "Failed")])
    assert [each["id"] for each in json.loads(body)] == ["1", "2", "3"]
    assert reply_in(body, "/test", "c") == {"id": "c", "source": "/test", "state": "Failed"}
    assert reply_in(body, "/other", "c") is None
    assert json.loads(with_replies(b"nothing", [reply(1, "a")]))[0]["id"] == "1"
