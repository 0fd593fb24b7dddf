"""Whatever a producer writes, an entry of the log comes of it: what it asks for, or why it is rejected."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_spark.control.channels.envelope import entry_of, event_id
from tidegate_spark.control.channels.ports import LARGEST_EVENT, Received
from tidegate_spark.control.messages.validation import Vocabulary, checked
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_testing.channels import event
from tidegate_testing.cloudevents import CloudEvent

PROTOBUF = "application/cloudevents+protobuf"


def read(body: bytes, content_type: str = "", **more: Any) -> Entry:
    return entry_of(Received("kafka:control/0", body, content_type, **{"offset": 7, **more}))


def test_an_event_in_json_is_a_message() -> None:
    entry = read(event("1", "reload-config", {"limit": 3, "ä": "ö"}))
    assert entry == Entry(
        0,
        id="/test#1",
        type="reload-config",
        payload='{"limit":3,"ä":"ö"}',
        source="/test",
        origin="kafka:control/0",
        offset=7,
    )
    assert event_id(entry) == "1"


@pytest.mark.parametrize("content_type", ["", "application/json", "application/cloudevents+json; charset=utf-8"])
def test_json_is_known_by_its_content_type_or_by_itself(content_type: str) -> None:
    assert read(event(), content_type).kind is Kind.MESSAGE


def test_an_event_without_data_has_none() -> None:
    assert read(event(data=None)).payload == "null"


def test_data_in_base64_is_json_too() -> None:
    reported = base64.b64encode(b'{"limit": 3}').decode()
    assert read(event(data_base64=reported)).payload == '{"limit":3}'


def test_ids_of_two_sources_are_apart() -> None:
    ids = {read(event(name, source=source)).id for name, source in [("b#c", "a"), ("c", "a#b"), ("c", "a%23b")]}
    assert len(ids) == 3


def test_an_event_that_comes_again_from_another_place_is_the_same() -> None:
    assert read(event("1"), offset=7).id == read(event("1"), offset=8).id


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T01:01:00.5+01:00", 60.5),
        ("1970-01-01t00:00:00-00:01", 60.0),
        ("1970-01-01T00:00:00Z", 0.001),
    ],
)
def test_an_event_may_say_until_when_it_is_worth_something(moment: str, seconds: float) -> None:
    assert read(event(expirytime=moment)).expires == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (b"", "InvalidEvent", "no 'specversion'"),
        (b"hello", "InvalidEvent", "it is neither JSON (Expecting value: line 1 column 1 (char 0)) nor an event"),
        (b"\xff\xfe", "InvalidEvent", "it is neither JSON ("),
        (b'{"id": 1, }', "InvalidEvent", "cannot be read: Expecting property name"),
        (b"[1]", "InvalidEvent", "not an object"),
        (b'{"a": NaN}', "InvalidEvent", "NaN is not JSON"),
        (event(specversion="0.3"), "InvalidEvent", "'specversion' '0.3'"),
        (event(id=""), "InvalidEvent", "no 'id'"),
        (event(source=5), "InvalidEvent", "no 'source'"),
        (event(kind="x" * 200), "InvalidEvent", "'type' of the event has 200 characters"),
        (event(id="\ud800"), "InvalidEvent", "cannot be read"),
        (event(data={"a": "\ud800"}), "InvalidEvent", "cannot be read"),
        (event(expirytime="tomorrow"), "InvalidEvent", "'expirytime'"),
        (event(expirytime=5.0), "InvalidEvent", "'expirytime'"),
        (event(expirytime="2026-02-30T00:00:00Z"), "InvalidEvent", "cannot be read"),
        (event(datacontenttype="text/xml", data="<a/>"), "UnsupportedContentType", "text/xml"),
        (event(data_base64="no!"), "InvalidPayload", "not base64"),
        (event(data_base64=base64.b64encode(b"no json").decode()), "InvalidPayload", "not JSON"),
        (event(data=1, data_base64="MQ=="), "InvalidEvent", "'data' and 'data_base64'"),
        (b'{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": 1e400}', "InvalidEvent", "read"),
        (b"[" * 100_000, "InvalidEvent", "cannot be read"),
        (b'{"a":' * 100_000, "InvalidEvent", "cannot be read"),
    ],
    ids=range(22),
)
def test_what_is_no_event_is_rejected_and_it_is_said_why(body: bytes, reason: str, message: str) -> None:
    entry = read(body)
    assert (entry.kind, entry.reason, entry.payload) == (Kind.REJECTED, reason, "null")
    assert message in entry.message


def test_another_content_type_is_rejected() -> None:
    assert read(event(), "text/plain").reason == "UnsupportedContentType"


@pytest.mark.parametrize("kind", ["snapshot", "dump-state"])
def test_a_snapshot_and_a_dump_are_asked_for_as_everything_else(kind: str) -> None:
    assert (read(event(kind=kind)).kind, read(event(kind=kind)).type) == (Kind.MESSAGE, kind)


def test_what_is_too_large_is_not_looked_into() -> None:
    entry = read(b"", size=LARGEST_EVENT + 1)
    assert (entry.reason, entry.id) == ("EventTooLarge", "kafka:control/0@7")


def test_a_payload_within_payloads_without_end_is_rejected_before_anybody_else_reads_it() -> None:
    data: Any = 1
    for _ in range(100):
        data = {"a": data}
    entry = read(event(kind="reload-config", data=data))
    assert checked(entry, Vocabulary({})).reason == "InvalidPayload"


def test_of_what_is_rejected_its_sender_is_known_if_it_says_so() -> None:
    entry = read(event("1", specversion="2.0"))
    assert (entry.id, entry.source, entry.type) == ("/test#1", "/test", "reload-config")


def test_what_has_no_id_is_known_by_its_place_or_by_its_content() -> None:
    assert read(b"hello").id == "kafka:control/0@7"
    queued = [entry_of(Received("rabbitmq:q#1", body)).id for body in (b"hello", b"hello", b"other")]
    assert queued[0] == queued[1] != queued[2]
    assert "#" not in queued[0]


def test_a_rejected_one_stays_as_it_is_whatever_the_application_understands() -> None:
    entry = read(b"hello")
    assert checked(entry, Vocabulary({}, any_type=True)) == entry


# --- protobuf ---


def test_an_event_in_protobuf_is_the_same_message() -> None:
    made = CloudEvent(id="1", source="/test", spec_version="1.0", type="reload-config", text_data='{"limit": 3}')
    assert read(made.SerializeToString(), PROTOBUF) == read(event("1", data={"limit": 3}))
    assert read(made.SerializeToString()) == read(event("1", data={"limit": 3}))


def test_its_data_may_be_bytes_and_it_may_expire() -> None:
    made = CloudEvent(id="1", source="/test", spec_version="1.0", type="t", binary_data=b"[1]")
    made.attributes["expirytime"].ce_timestamp.seconds = 60
    made.attributes["expirytime"].ce_timestamp.nanos = 500_000_000
    made.attributes["id"].ce_string = "another"
    entry = read(made.SerializeToString(), PROTOBUF)
    assert (entry.payload, entry.expires, entry.id) == ("[1]", 60.5, "/test#1")


def test_data_that_is_a_message_of_its_own_is_rejected() -> None:
    made = CloudEvent(id="1", source="/test", spec_version="1.0", type="t")
    made.proto_data.type_url = "x"
    assert "proto_data" in read(made.SerializeToString(), PROTOBUF).message


def test_an_id_that_begins_like_json_is_none() -> None:
    made = CloudEvent(id="{" * 10, source="/test", spec_version="1.0", type="t")
    assert read(made.SerializeToString()).kind is Kind.MESSAGE


TEXT = st.text(min_size=1, max_size=20)


@given(name=TEXT, source=TEXT, kind=TEXT, data=st.dictionaries(TEXT, st.integers() | TEXT | st.none(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_both_forms_say_the_same_whatever_is_said(name: str, source: str, kind: str, data: dict[str, Any]) -> None:
    made = CloudEvent(id=name, source=source, spec_version="1.0", type=kind, text_data=json.dumps(data))
    assert read(made.SerializeToString(), PROTOBUF) == read(event(name, kind, data, source=source))


@given(body=st.binary(max_size=300), content_type=st.sampled_from(["", PROTOBUF, "application/json"]))
@settings(max_examples=200, deadline=None)
def test_no_bytes_are_too_strange(body: bytes, content_type: str) -> None:
    entry = checked(read(body, content_type), Vocabulary({}))
    assert entry == checked(read(body, content_type), Vocabulary({}))
    json.dumps(vars(entry)).encode()


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_event_that_was_cut_or_spoiled_is_rejected_or_another_one(data: st.DataObject) -> None:
    made = CloudEvent(id="1", source="/test", spec_version="1.0", type="ping", text_data="{}")
    made.attributes["expirytime"].ce_string = "2026-01-01T00:00:00Z"
    content = bytearray(made.SerializeToString())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    assert read(bytes(content[: data.draw(st.integers(at, len(content)))]), PROTOBUF).kind in Kind
