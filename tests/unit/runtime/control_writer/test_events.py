"""A message that the application would reject is not sent, and it is said which part of it is wrong."""

import datetime
import json
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.ports import Received
from tidegate_spark.control_writer import InvalidMessageError
from tidegate_spark.control_writer.events import Expires, event_of

NOW = 1_700_000_000.0
SOON = datetime.datetime.fromtimestamp(NOW + 60, datetime.UTC)


def made(kind: str = "reload-config", payload: Any = None, expires: Expires = None, **more: str) -> bytes:
    reported = {"source": "/me", "name": "1", **more}
    return event_of(
        reported["source"], reported["name"], kind, {} if payload is None else payload, expires=expires, now=NOW
    )


def test_a_message_is_an_event_that_the_driver_reads() -> None:
    entry = entry_of(Received("x", made(payload={"limit": 3, "name": "ä"})))
    assert (entry.id, entry.type, json.loads(entry.payload)) == ("/me#1", "reload-config", {"limit": 3, "name": "ä"})
    assert json.loads(made())["time"] == "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize("letter", ["x", "ä", "ж", "語", "🌊"])
def test_a_payload_may_have_its_64_kib_in_whatever_script(letter: str) -> None:
    payload = {"a": letter * ((LARGEST_PAYLOAD - 16) // len(letter.encode()))}
    assert json.loads(entry_of(Received("x", made(payload=payload))).payload) == payload


@pytest.mark.parametrize("expires", [60, datetime.timedelta(minutes=1), SOON])
def test_a_time_until_which_it_holds_is_said_in_seconds_as_a_span_or_as_a_time(expires: Expires) -> None:
    assert entry_of(Received("x", made(expires=expires))).expires == NOW + 60


@pytest.mark.parametrize(
    ("message", "reason", "text"),
    [
        ({"kind": ""}, "InvalidEvent", "'type'"),
        ({"kind": "x" * 129}, "InvalidEvent", "'type'"),
        ({"name": "x" * 513}, "InvalidEvent", "'id'"),
        ({"source": ""}, "InvalidEvent", "'source'"),
        ({"payload": {"a": float("nan")}}, "InvalidPayload", "payload"),
        ({"payload": {"a": object()}}, "InvalidPayload", "payload"),
        ({"payload": {"a": "x" * 70_000}}, "PayloadTooLarge", "70008 bytes"),
        ({"payload": {"a": "x" * 200_000}}, "EventTooLarge", "at most 131072"),
        ({"payload": [1]}, "InvalidPayload", "must be an object"),
        ({"kind": "reload-model", "payload": {"name": "m"}}, "InvalidPayload", "'sha256'"),
        ({"kind": "set-log-level", "payload": {"level": "LOUD"}}, "InvalidPayload", "'level'"),
        ({"kind": "dump-state", "payload": {"format": "Xml"}}, "InvalidPayload", "'format'"),
        ({"expires": 0}, "InvalidExpires", "'expires'"),
        ({"expires": float("inf")}, "InvalidExpires", "'expires'"),
        ({"expires": 1e300}, "InvalidExpires", "'expires'"),
        ({"expires": True}, "InvalidExpires", "'expires'"),
        ({"expires": "soon"}, "InvalidExpires", "'expires'"),
        ({"expires": datetime.datetime(2030, 1, 1)}, "InvalidExpires", "zone"),
    ],
)
def test_what_is_wrong_is_named(message: dict[str, Any], reason: str, text: str) -> None:
    with pytest.raises(InvalidMessageError, match=text) as raised:
        made(**message)
    assert raised.value.reason == reason


def test_a_payload_without_end_is_refused() -> None:
    deep: Any = 0
    for _ in range(70):
        deep = [deep]
    with pytest.raises(InvalidMessageError, match="deeper than 64 levels"):
        made("mine", deep)
    deep.append(deep)
    with pytest.raises(InvalidMessageError, match="payload"):
        made("mine", deep)


def test_any_type_is_sent_since_the_program_alone_knows_which_there_are() -> None:
    assert json.loads(made("lookup-table", "anything"))["data"] == "anything"
