"""The resource of a message from a channel says where that came from, and nothing that its sender may not say."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.api.control_message import ControlMessage, MessageOrigin, decode_message, payload_text
from tidegate.control.builders.channel_message import build_channel_message
from tidegate.control.builders.message_snapshot import build_message_snapshot, message_snapshot_name, taken_id
from tidegate_spark.contract.control_protocol import AskedMessage, MessageReport, MessageState
from tidegate_testing.control_observations import ANOTHER, APP

ID = "0123456789abcdef" * 2
ASKED = AskedMessage(
    MessageReport(ID, MessageState.LOGGED, 12),
    "dump-state",
    '{"format":"CSV"}',
    "kafka:orders-control:0bXqk3bSQ0G4f8mEoZJ9xA/0",
    "/pricing/eu",
    "7f2c",
)


def stored(asked: AskedMessage = ASKED, **metadata: Any) -> ControlMessage:
    built = build_channel_message(asked, APP)
    return decode_message(msgspec.json.encode({**built, "metadata": {**built["metadata"], "uid": "uid-1", **metadata}}))


def test_it_is_known_again_and_says_where_it_came_from() -> None:
    of = stored()
    assert (of.is_from_channel, of.log_id, of.app_uid) == (True, ID, APP.metadata.uid)
    assert of.origin == MessageOrigin(channel="Kafka", source="/pricing/eu", id="7f2c")
    assert (of.spec.type, payload_text(of), of.spec.expiration_seconds) == ("dump-state", '{"format":"CSV"}', 0)
    assert of.metadata.labels["tidegate.dev/app"] == "orders"


def test_its_name_is_the_same_whenever_it_is_made_and_another_for_another_application() -> None:
    names = [build_channel_message(ASKED, app)["metadata"]["name"] for app in (APP, APP, ANOTHER)]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("orders-")


def test_its_snapshot_is_the_drivers_and_has_its_name_whichever_uid_it_has() -> None:
    of, again = stored(), stored(uid="uid-2")
    assert taken_id(of) == f"control-{ID}"
    assert message_snapshot_name(of) == message_snapshot_name(again) == of.metadata.name
    built = build_message_snapshot(of, APP)
    assert built["spec"]["export"] == {"format": "CSV"}
    assert [owner["name"] for owner in built["metadata"]["ownerReferences"]] == [of.metadata.name]


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "mine"},
        {"annotations": {"tidegate.dev/logged-as": "x", "tidegate.dev/app-uid": APP.metadata.uid}},
        {"annotations": {"tidegate.dev/logged-as": ID, "tidegate.dev/app-uid": "other"}},
        {"annotations": {}},
    ],
)
def test_what_somebody_notes_on_a_message_makes_it_none_of_a_channel(changed: dict[str, Any]) -> None:
    of = stored(**changed)
    assert (of.is_from_channel, of.log_id, of.app_uid, of.origin) == (False, "uid-1", "", None)


def test_a_message_of_another_type_is_never_taken_for_one_that_is_logged() -> None:
    of = stored()
    assert not msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, type="ping")).is_from_channel


@pytest.mark.parametrize(("text", "shown"), [("a\x1b[31mb", "a?[31mb"), ("x" * 600, "x" * 512), ("Ü/1", "Ü/1")])
def test_nothing_is_shown_that_a_terminal_might_obey(text: str, shown: str) -> None:
    origin = stored(replace(ASKED, source=text, event=text)).origin
    assert origin == MessageOrigin(channel="Kafka", source=shown, id=shown)


@pytest.mark.parametrize(
    ("kind", "payload"), [("snapshot", '{"format":"CSV"}'), ("dump-state", "null"), ("dump-state", "{")]
)
def test_what_says_nothing_of_use_is_left_out(kind: str, payload: str) -> None:
    assert "payload" not in build_channel_message(replace(ASKED, type=kind, payload=payload), APP)["spec"]


@pytest.mark.parametrize("origin", ["", "ein Thema:x", "kafka!"])
def test_a_channel_without_a_word_is_unknown(origin: str) -> None:
    assert (
        build_channel_message(replace(ASKED, origin=origin), APP)["metadata"]["labels"]["tidegate.dev/channel"]
        == "Unknown"
    )
