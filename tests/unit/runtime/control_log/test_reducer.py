"""What is in force follows from the entries up to a position, and from nothing else."""

import json
from typing import Any

import pytest

from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.reducer import OtherBranchError, State, Verdict, in_force, reduce_entries, verdicts


def config(sequence: int, payload: Any, expires: float = 0.0) -> Entry:
    return Entry(
        sequence, id=f"m{sequence}", type="reload-config", payload=json.dumps(payload), time=1.0, expires=expires
    )


def decided(sequence: int, kind: Kind, of: int) -> Entry:
    return Entry(sequence, kind, of=of)


def rolled_back(sequence: int, to: int, lineage: int) -> Entry:
    return Entry(sequence, Kind.ROLLED_BACK, of=to, lineage=lineage)


def test_settings_are_merged_and_null_removes_one() -> None:
    state = reduce_entries(State(), [config(1, {"a": 1, "b": {"c": 2, "d": 3}}), config(2, {"a": None, "b": {"c": 4}})])
    assert state.config == {"b": {"c": 4, "d": 3}}
    assert state.position == 2
    assert state.last["reload-config"].sequence == 2


def test_an_object_takes_the_place_of_a_plain_value() -> None:
    assert reduce_entries(State(), [config(1, {"a": 1}), config(2, {"a": {"b": 2}})]).config == {"a": {"b": 2}}


def test_a_message_that_can_expire_counts_if_the_log_says_so() -> None:
    entries = [config(1, {"a": 1}, 9.0), config(2, {"b": 2}, 9.0)]
    entries += [decided(3, Kind.ACCEPTED, 1), decided(4, Kind.VOID, 2)]
    assert reduce_entries(State(), entries).config == {"a": 1}


def test_the_first_decision_holds() -> None:
    entries = [config(1, {"a": 1}, 9.0), decided(2, Kind.VOID, 1), decided(3, Kind.ACCEPTED, 1)]
    assert reduce_entries(State(), entries).config == {}
    assert verdicts(entries) == {1: Verdict.EXPIRED}


def test_a_rejected_message_is_never_in_force() -> None:
    entries = [Entry(1, Kind.REJECTED, id="m1", type="reload-config", payload='{"a": 1}', reason="UnknownType")]
    assert reduce_entries(State(), entries) == State(position=1)
    assert in_force(entries) == ()


def test_a_rollback_rolls_back_what_came_after_its_position() -> None:
    entries = [config(1, {"a": 1}), config(2, {"a": 2}), rolled_back(3, 1, 2), config(4, {"b": 1})]
    state = reduce_entries(State(), entries)
    assert state.config == {"a": 1, "b": 1}
    assert state.lineage == 2
    assert [entry.sequence for entry in in_force(entries)] == [1, 4]


def test_a_rollback_to_before_what_is_folded_needs_an_earlier_base() -> None:
    with pytest.raises(OtherBranchError) as raised:
        reduce_entries(State(position=2), [rolled_back(3, 1, 2)])
    assert raised.value.position == 1


def test_a_rollback_of_an_older_lineage_comes_too_late() -> None:
    entries = [config(1, {"a": 1}), rolled_back(2, 1, 3), config(3, {"a": 3}), rolled_back(4, 0, 2)]
    assert reduce_entries(State(), entries).config == {"a": 3}
    assert reduce_entries(State(position=2, lineage=3), entries[2:]).config == {"a": 3}


def test_folding_in_two_steps_gives_what_one_step_gives() -> None:
    entries = [config(1, {"a": 1}), config(2, {"b": 2}, 9.0), decided(3, Kind.ACCEPTED, 2), config(4, {"a": None})]
    assert reduce_entries(reduce_entries(State(), entries[:1]), entries[1:]) == reduce_entries(State(), entries)


def test_a_state_survives_json() -> None:
    model = Entry(2, id="m2", type="reload-model", payload='{"name": "m", "uri": "s3://b/k", "sha256": "00"}')
    entries = [config(1, {"a": [1, {"b": None}]}), model, Entry(3, id="m3", type="pause")]
    state = reduce_entries(State(), entries)
    assert state.paused
    assert state.models["m"].uri == "s3://b/k"
    assert state.models_before["m"] == ()
    assert from_json(State, to_json(state)) == state


def test_of_each_type_some_messages_with_other_payloads_are_kept_beside_the_newest() -> None:
    payloads = ["1", "2", "2", "3", "4", "5", "5"]
    entries = [Entry(n, id=f"m{n}", type="table", payload=payload) for n, payload in enumerate(payloads, 1)]
    state = reduce_entries(State(), [*entries, Entry(8, id="m8", type="other", payload="1")])
    assert state.last["table"].sequence == 7
    assert [(entry.sequence, entry.payload) for entry in state.last_before["table"]] == [(5, "4"), (4, "3"), (3, "2")]
    assert state.last_before["other"] == ()
    assert from_json(State, to_json(state)) == state


@pytest.mark.parametrize("payload", ["null", "3", '"x"', "[1]", "no JSON"])
def test_a_payload_that_says_nothing_changes_nothing_and_raises_nothing(payload: str) -> None:
    for kind in ("reload-config", "reload-model", "set-log-level"):
        state = reduce_entries(State(), [Entry(1, id="m1", type=kind, payload=payload)])
        assert state.config == {}
        assert state.messages == 1
