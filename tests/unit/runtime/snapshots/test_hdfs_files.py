"""Which files make up a version of an HDFS-backed state store. Pure."""

import pytest

from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.hdfs_files import store_files
from tidegate_testing.spark_checkpoint import SparkCheckpoint

STORE = "state/0/1"


def files(version: int, *names: str) -> set[str]:
    """Return the names that ``version`` needs of a store with these files."""
    world = SparkCheckpoint()
    world.update({f"{STORE}/{name}": b"" for name in names})
    found = store_files(Checkpoint(world.listing, world.read), STORE, version, ())
    assert not any(file.shared for file in found)
    assert world.reads == []
    return {file.path[len(STORE) + 1 :] for file in found}


def deltas(first: int, last: int) -> set[str]:
    return {f"{version}.delta" for version in range(first, last + 1)}


def test_without_a_snapshot_every_delta_from_the_first_is_needed() -> None:
    assert files(3, *deltas(1, 5)) == deltas(1, 3)


def test_the_newest_snapshot_that_is_not_later_and_the_deltas_after_it_are_needed() -> None:
    assert files(9, *deltas(1, 12), "4.snapshot", "7.snapshot", "11.snapshot") == {"7.snapshot"} | deltas(8, 9)


def test_versions_are_compared_as_numbers() -> None:
    assert files(11, *deltas(1, 11), "9.snapshot", "10.snapshot") == {"10.snapshot", "11.delta"}


def test_a_snapshot_of_the_version_itself_is_enough() -> None:
    assert files(7, *deltas(1, 7), "7.snapshot") == {"7.snapshot"}


def test_what_was_cleaned_away_below_the_snapshot_is_not_missed() -> None:
    assert files(9, *deltas(7, 9), "7.snapshot") == {"7.snapshot"} | deltas(8, 9)


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((*deltas(1, 2), "4.delta"), "3.delta"),
        ((*deltas(2, 4),), "1.delta"),
        ((*deltas(1, 3),), "4.delta"),
        ((), "1.delta"),
    ],
)
def test_a_missing_delta_is_named_and_may_have_been_cleaned(there: tuple[str, ...], missing: str) -> None:
    with pytest.raises(MissingFileError) as raised:
        files(4, *there)
    assert raised.value.file == f"{STORE}/{missing}"


def test_files_that_spark_is_still_writing_are_not_looked_at() -> None:
    assert files(1, "1.delta", ".2.delta.5f6c.tmp", ".1.delta.crc", "1.delta.crc") == {"1.delta"}


@pytest.mark.parametrize("name", ["2.zip", "2_3f.delta", "notes.txt", "SSTs/1-a.sst"])
def test_a_file_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(UnreadableCheckpointError) as raised:
        files(1, "1.delta", name)
    assert raised.value.file == f"{STORE}/{name.partition('/')[0]}"


def test_stores_inside_the_store_are_not_its_files() -> None:
    world = SparkCheckpoint()
    world.update({f"{STORE}/1.delta": b"", f"{STORE}/inner/1.delta": b""})
    found = store_files(Checkpoint(world.listing, world.read), STORE, 1, ("inner",))
    assert [file.path for file in found] == [f"{STORE}/1.delta"]
