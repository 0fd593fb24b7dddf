"""Where a new query's sources begin: the offsets of an export as Kafka's startingOffsets. Pure."""

import json

import pytest

from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.manifest import ExportedQuery
from tidegate_spark.exports.source_offsets import source_of, starting_offsets_of

LOGGED = '{"orders":{"10":7,"2":41,"0":0},"returns":{"0":12}}'


def test_the_end_of_the_batch_is_the_first_record_that_is_read() -> None:
    offsets = starting_offsets_of("main", LOGGED, {})
    assert json.loads(offsets) == json.loads(LOGGED)
    assert offsets == '{"orders":{"0":0,"2":41,"10":7},"returns":{"0":12}}'


def test_partitions_that_came_since_are_read_from_their_beginning() -> None:
    found = json.loads(starting_offsets_of("main", '{"orders":{"0":5,"1":6}}', {"orders": 4, "returns": 1}))
    assert found == {"orders": {"0": 5, "1": 6, "2": -2, "3": -2}, "returns": {"0": -2}}


def test_fewer_partitions_than_there_were_change_nothing() -> None:
    assert json.loads(starting_offsets_of("main", '{"orders":{"0":5,"1":6}}', {"orders": 1})) == {
        "orders": {"0": 5, "1": 6}
    }


@pytest.mark.parametrize(
    "logged", ["17", '{"offset":100,"timestamp":5000}', '{"logOffset":3}', "{}", "no json", '{"t":{"a":1}}', "[1]"]
)
def test_what_is_no_position_in_kafka_is_refused_and_shown(logged: str) -> None:
    with pytest.raises(ExportError, match=r"query 'main' was no Kafka source") as raised:
        starting_offsets_of("main", logged, {})
    assert logged in str(raised.value)


def test_a_source_that_had_given_nothing_is_said_to_begin_as_it_did() -> None:
    with pytest.raises(ExportError, match="start from the startingOffsets that it had"):
        starting_offsets_of("main", "-", {})


def test_the_only_source_need_not_be_named() -> None:
    one = ExportedQuery(3, {"0": LOGGED})
    assert source_of("main", one, None) == source_of("main", one, 0) == source_of("main", one, "0") == LOGGED


def test_the_only_one_of_kafkas_need_not_be_named_beside_the_source_of_control_messages() -> None:
    assert source_of("main", ExportedQuery(3, {"0": LOGGED, "1": '{"tidegate-control":7}'}), None) == LOGGED


def test_of_several_one_is_named_by_number_or_name() -> None:
    several = ExportedQuery(3, {"clicks": '{"clicks":{"0":1}}', "views": LOGGED})
    assert source_of("main", several, "views") == LOGGED
    with pytest.raises(ExportError, match=r"2 sources \('clicks', 'views'\).*source=…"):
        source_of("main", several, None)
    with pytest.raises(ExportError, match=r"no source 1 \(source=…\): it had 'clicks', 'views'"):
        source_of("main", several, 1)
