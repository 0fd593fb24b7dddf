"""A message that cannot be meant is rejected before it can be in force anywhere."""

import json
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_spark.control.messages.validation import RejectedError, Vocabulary, check, checked
from tidegate_spark.control_log.entries import Kind
from tidegate_testing.control_log import message

SHA = "0" * 64


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("ping", None),
        ("reload-config", {}),
        ("reload-config", {"limit": 2, "other": "x"}),
        ("reload-config", {"limit": None}),
        ("reload-model", {"name": "m", "uri": "s3://b/k", "sha256": SHA}),
        ("set-log-level", {"level": "warn"}),
        ("dump-state", None),
        ("dump-state", {"format": "Parquet"}),
        ("threshold", {"value": 1}),
        ("threshold", {"value": 1.5, "more": []}),
    ],
)
def test_what_can_be_meant_is_taken(kind: str, payload: Any) -> None:
    check(message(kind, payload), Vocabulary({"threshold": {"value": float}}, config={"limit": float}))


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("reload-config", [], "must be an object\\."),
        ("reload-model", None, "must be an object with name, sha256, uri\\."),
        ("reload-config", {"limit": "2"}, "'limit' of the payload must be float"),
        ("reload-config", {"limit": True}, "must be float, not True"),
        ("reload-config", {"limit": 10**400}, "must be float, not 1000"),
        ("reload-model", {"name": "m", "uri": "s3://b/k"}, "has no 'sha256'"),
        ("reload-model", {"name": "m", "uri": "s3://b/k", "sha256": "abc"}, "64 hexadecimal digits"),
        ("set-log-level", {"level": "LOUD"}, "one of ALL, DEBUG"),
        ("dump-state", {"format": "XML"}, "one of JSONLines, CSV, Parquet"),
        ("threshold", {}, "has no 'value'"),
        ("treshold", {}, "no handler for type 'treshold'; it understands clear-caches"),
    ],
)
def test_what_cannot_be_meant_is_named(kind: str, payload: Any, text: str) -> None:
    vocabulary = Vocabulary({"threshold": {"value": float}}, config={"limit": float})
    with pytest.raises(RejectedError, match=text):
        check(message(kind, payload), vocabulary)


def test_a_program_that_reads_whatever_comes_has_no_unknown_type() -> None:
    check(message("whatever", 1), Vocabulary({}, any_type=True))


def test_a_program_that_reads_whatever_comes_is_not_sent_types_without_end() -> None:
    seen = frozenset(f"type-{number}" for number in range(256))
    check(message("type-7", 1), Vocabulary({}, any_type=True, seen=seen))
    check(message("mine", 1), Vocabulary({"mine": None}, any_type=True, seen=seen))
    check(message("ping"), Vocabulary({}, any_type=True, seen=seen))
    with pytest.raises(RejectedError, match="messages of 256 types"):
        check(message("another", 1), Vocabulary({}, any_type=True, seen=seen))


def test_a_rejected_message_is_logged_without_its_payload() -> None:
    payload = "x" * LARGEST_PAYLOAD
    logged = checked(message("reload-config", {"a": payload}), Vocabulary({}))
    assert (logged.kind, logged.payload, logged.reason) == (Kind.REJECTED, "null", "PayloadTooLarge")
    assert str(len(json.dumps({"a": payload}))) in logged.message
