"""ControlMessages as the API server stores them, read."""

import json
from typing import Any

import pytest

from tidegate.api.control_message import (
    ControlMessageStatus,
    MessagePhase,
    decode_message,
    encode_message_status,
    is_too_large,
    payload_text,
    without_payload,
)
from tidegate.api.values.errors import UnreadableAppError

STORED: dict[str, Any] = {
    "metadata": {"name": "faster", "namespace": "shop", "uid": "u-9", "creationTimestamp": "2026-01-01T00:00:10Z"},
    "spec": {"appRef": {"name": "orders"}, "type": "reload-config"},
}


def stored(**spec: Any) -> bytes:
    return json.dumps({**STORED, "spec": {**STORED["spec"], **spec}}).encode()


def test_the_smallest_message_is_for_an_application_and_never_expires() -> None:
    message = decode_message(stored())
    assert (message.key, message.app_key) == (("shop", "faster"), ("shop", "orders"))
    assert (message.is_final, message.expires, payload_text(message)) == (False, 0.0, "null")


def test_a_message_expires_so_many_seconds_after_its_creation() -> None:
    message = decode_message(stored(expirationSeconds=600))
    assert message.expires == message.created + 600


@pytest.mark.parametrize("payload", [{"threshold": 3.5, "on": [True, None]}, [1, 2], "text", 7, "ü"])
def test_a_payload_is_any_json_and_stays_what_it_is(payload: Any) -> None:
    assert json.loads(payload_text(decode_message(stored(payload=payload)))) == payload


@pytest.mark.parametrize(("letters", "too_large"), [("x" * (64 * 1024 - 2), False), ("x" * (64 * 1024 - 1), True)])
def test_a_payload_of_more_than_64_kib_is_too_large(letters: str, too_large: bool) -> None:
    assert is_too_large(decode_message(stored(payload=letters))) is too_large


def test_bytes_count_and_not_letters() -> None:
    assert is_too_large(decode_message(stored(payload="ü" * (32 * 1024))))


def test_a_message_without_a_type_can_not_be_read() -> None:
    body = json.dumps({**STORED, "spec": {"appRef": {"name": "orders"}}}).encode()
    with pytest.raises(UnreadableAppError, match="type"):
        decode_message(body)


def test_what_is_remembered_of_a_message_that_has_ended_has_no_payload() -> None:
    assert payload_text(without_payload(decode_message(stored(payload={"a": 1})))) == "null"


def test_a_status_is_stored_without_what_has_its_default() -> None:
    status = ControlMessageStatus(phase=MessagePhase.PUBLISHED, sequence=4)
    assert encode_message_status(status) == {"phase": "Published", "sequence": 4}
