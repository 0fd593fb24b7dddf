"""Which files the sources of a query need. Pure."""

import pytest

from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.source_files import source_files
from tidegate_testing.spark_checkpoint import SparkCheckpoint


def files(names: list[str], *offsets: str, **named: str) -> set[str]:
    """Return the names below ``sources/`` that are needed, of those, at these offsets."""
    world = SparkCheckpoint()
    world.update({f"sources/{name}": b"" for name in names})
    by_source = {str(number): offset for number, offset in enumerate(offsets)} | named
    found = source_files(Checkpoint(world.listing, world.read), by_source)
    assert world.reads == []
    assert not any(file.shared for file in found)
    return {file.path[len("sources/") :] for file in found}


def log(source: str, first: int, last: int, *compact: int) -> list[str]:
    return [f"{source}/{n}.compact" if n in compact else f"{source}/{n}" for n in range(first, last + 1)]


def at(position: int) -> str:
    return f'{{"logOffset":{position}}}'


def test_a_query_whose_sources_keep_nothing_needs_nothing() -> None:
    assert files([], "12", '{"0":{"value":3,"runTimeMs":7}}') == set()


def test_what_kafka_was_started_with_is_taken_as_it_is() -> None:
    kafka = '{"events":{"0":12,"1":9}}'
    assert files(["0/0", "1/0"], kafka, kafka) == {"0/0", "1/0"}


def test_whatever_else_a_source_keeps_is_taken_as_it_is() -> None:
    assert files(["0/0", "0/deep/er/x", "0/.hidden.tmp"], "-") == {"0/0", "0/deep/er/x"}


def test_the_log_of_a_file_source_ends_at_the_offset_of_the_batch() -> None:
    assert files(log("0", 0, 6), at(4)) == set(log("0", 0, 4))
    assert files(log("0", 0, 6), at(0)) == {"0/0"}


def test_from_the_last_compact_entry_on_and_the_one_before_it_for_the_interval() -> None:
    whole = log("0", 0, 33, 9, 19, 29)
    assert files(whole, at(33)) == {"0/19.compact", *log("0", 29, 33, 29)}
    assert files(whole, at(29)) == {"0/19.compact", "0/29.compact"}
    assert files(whole, at(28)) == {"0/9.compact", *log("0", 19, 28, 19)}
    assert files(whole, at(9)) == {"0/9.compact"}
    assert files(whole, at(8)) == set(log("0", 0, 8))


def test_entries_that_spark_cleaned_away_below_a_compact_one_are_not_missed() -> None:
    assert files(log("0", 19, 23, 19), at(22)) == set(log("0", 19, 22, 19))


@pytest.mark.parametrize(
    ("there", "missing"),
    [(log("0", 0, 3), "0/4"), (log("0", 1, 4), "0/0"), (log("0", 9, 12, 9), "0/0")],
)
def test_an_entry_that_is_missing_is_named_and_may_have_been_cleaned(there: list[str], missing: str) -> None:
    with pytest.raises(MissingFileError) as raised:
        files(there, at(4))
    assert raised.value.file == f"sources/{missing}"


def test_each_file_source_has_its_own_position() -> None:
    names = [*log("0", 0, 9), *log("2", 0, 9), "1/0"]
    assert files(names, at(2), '{"t":{"0":3}}', at(5)) == {*log("0", 0, 2), "1/0", *log("2", 0, 5)}


def test_a_source_without_an_offset_yet_has_no_log() -> None:
    assert files(log("1", 0, 3), "-", at(2)) == set(log("1", 0, 2))


def test_named_sources_are_found_by_their_names() -> None:
    names = [*log("left", 0, 5), *log("right", 0, 5)]
    assert files(names, left=at(1), right=at(3)) == {*log("left", 0, 1), *log("right", 0, 3)}


def test_the_log_of_a_named_source_that_the_query_dropped_is_kept_whole() -> None:
    names = [*log("dropped", 0, 5), *log("left", 0, 5)]
    assert files(names, left=at(1)) == {*log("dropped", 0, 5), *log("left", 0, 1)}


def test_logs_are_taken_whole_if_a_source_occurs_twice_in_the_query() -> None:
    names = [*log("0", 0, 9, 4), *log("1", 0, 9)]
    assert files(names, at(2), at(2), at(7)) == set(names)


def test_a_file_that_belongs_to_no_source_is_refused() -> None:
    with pytest.raises(UnreadableCheckpointError) as raised:
        files(["stray"])
    assert raised.value.file == "sources/stray"
