"""What may be sent through a channel, and of what asks the cluster for something how much at a time."""

from dataclasses import replace

import pytest

from tidegate_spark.contract.control_protocol import LONGEST_ASKED, MOST_ASKED
from tidegate_spark.control.channels.admission import of_allowed_types, within_limit
from tidegate_spark.control.channels.cluster_requests import asked_id, involves_cluster
from tidegate_spark.control_log.entries import Entry, Kind


def draft(name: str, kind: str = "snapshot", origin: str = "kafka:control/0", payload: str = "null") -> Entry:
    return Entry(0, id=f"/test#{name}", type=kind, origin=origin, payload=payload)


def reasons(entries: list[Entry]) -> list[str]:
    return [entry.reason for entry in entries]


def test_every_type_may_be_sent_if_none_is_named_and_no_other_if_some_are() -> None:
    drafts = [draft("1", "pause"), draft("2", "own"), Entry(0, Kind.CONSUMED, origin="kafka:control/0", offset=3)]
    assert of_allowed_types(drafts, ()) == drafts
    found = of_allowed_types(drafts, ("own",))
    assert reasons(found) == ["TypeNotAllowed", "", ""]
    assert found[1:] == drafts[1:]
    assert "spec.control.channel.allowedTypes" in found[0].message


def test_what_was_no_message_keeps_its_own_reason() -> None:
    none = Entry(0, Kind.REJECTED, id="kafka:control/0@4", reason="InvalidEvent")
    assert of_allowed_types([none], ("own",)) == [none]


@pytest.mark.parametrize(("kind", "expected"), [("dump-state", "PayloadTooLarge"), ("own", "")])
def test_what_the_operator_is_told_of_is_small(kind: str, expected: str) -> None:
    long = draft("1", kind, payload=f'"{"x" * LONGEST_ASKED}"')
    assert reasons(of_allowed_types([long], ())) == [expected]


def test_more_than_the_cluster_does_at_a_time_is_rejected_and_others_are_not() -> None:
    drafts = [draft(str(number)) for number in range(3)] + [draft("3", "pause"), draft("4", "dump-state")]
    assert reasons(within_limit(drafts, MOST_ASKED - 2, lambda name: False)) == [
        "",
        "",
        "TooManyOpen",
        "",
        "TooManyOpen",
    ]


def test_what_is_in_the_log_already_or_comes_twice_takes_no_place() -> None:
    drafts = [draft("1"), draft("2"), draft("2"), draft("3")]
    known = {"/test#1"}
    assert reasons(within_limit(drafts, MOST_ASKED - 1, known.__contains__)) == ["", "", "", "TooManyOpen"]


def test_a_message_that_is_a_resource_is_none_of_a_channels() -> None:
    assert involves_cluster(draft("1"))
    assert not involves_cluster(draft("1", origin=""))
    assert not involves_cluster(replace(draft("1"), kind=Kind.REJECTED))


def test_an_event_that_comes_again_when_it_is_forgotten_is_known_by_another_id() -> None:
    first, second = (asked_id(replace(draft("1"), sequence=sequence)) for sequence in (1, 2))
    assert first != second
    assert len(first) == 32
