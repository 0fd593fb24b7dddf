"""A message that cannot be meant is rejected before it can be in force anywhere."""

import json
from typing import Any

import pytest

from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD
from tidegate_spark.control.messages.validation import InForce, RejectedError, Vocabulary, check, checked
from tidegate_spark.control_log.entries import Entry, Kind
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
        ("clear-caches", None, "must be an object with names\\."),  # its own handler needs that
        ("treshold", {}, "no handler for type 'treshold'; it understands clear-caches"),
    ],
)
def test_what_cannot_be_meant_is_named(kind: str, payload: Any, text: str) -> None:
    vocabulary = Vocabulary({"threshold": {"value": float}, "clear-caches": {"names": list}}, config={"limit": float})
    with pytest.raises(RejectedError, match=text):
        check(message(kind, payload), vocabulary)


def test_a_program_that_reads_whatever_comes_is_not_sent_types_without_end() -> None:
    before = InForce(types=frozenset(f"type-{number}" for number in range(256)))
    known = Vocabulary({"mine": None}, any_type=True)
    for kind in ("type-7", "mine", "ping"):
        assert checked(message(kind, 1), known, before).kind is Kind.MESSAGE
    refused = checked(message("another", 1), known, before)
    assert (refused.kind, refused.reason) == (Kind.REJECTED, "UnknownType")
    assert "messages of 256 types" in refused.message


def test_settings_of_ever_new_names_are_refused_before_all_of_them_are_too_large_to_hand_out() -> None:
    before = InForce(config={f"name-{number}": "x" * 1000 for number in range(1040)})
    refused = checked(message("reload-config", {"more": "x" * 20_000}), Vocabulary({}), before)
    assert (refused.kind, refused.reason) == (Kind.REJECTED, "PayloadTooLarge")
    assert "remove settings that are no longer used" in refused.message
    for patch in ({"name-7": "y" * 1000}, {"more": "x" * 20_000, **{f"name-{number}": None for number in range(40)}}):
        assert checked(message("reload-config", patch), Vocabulary({}), before).kind is Kind.MESSAGE


def test_settings_that_are_too_large_already_may_get_smaller_and_no_larger() -> None:
    before = InForce(config={f"name-{number}": "x" * 1000 for number in range(1100)})
    assert checked(message("reload-config", {"name-7": None}), Vocabulary({}), before).kind is Kind.MESSAGE
    assert checked(message("reload-config", {"name-7": "xx"}), Vocabulary({}), before).kind is Kind.MESSAGE
    assert checked(message("reload-config", {"more": 1}), Vocabulary({}), before).kind is Kind.REJECTED


def test_models_of_ever_new_names_are_refused_and_those_there_are_may_change() -> None:
    before = InForce(models=frozenset(f"model-{number}" for number in range(256)))

    def sent(name: str) -> Entry:
        payload = {"name": name, "uri": "s3://models/m", "sha256": SHA}
        return checked(message("reload-model", payload), Vocabulary({}), before)

    assert sent("model-7").kind is Kind.MESSAGE
    refused = sent("model-256")
    assert (refused.kind, refused.reason) == (Kind.REJECTED, "InvalidPayload")
    assert "models by 256 names" in refused.message


def test_a_rejected_message_is_logged_without_its_payload() -> None:
    payload = "x" * LARGEST_PAYLOAD
    logged = checked(message("reload-config", {"a": payload}), Vocabulary({}))
    assert (logged.kind, logged.payload, logged.reason) == (Kind.REJECTED, "null", "PayloadTooLarge")
    assert str(len(json.dumps({"a": payload}))) in logged.message
