"""Which files make up a version of a RocksDB state store: formats 1 and 2, with and without changelogs. Pure."""

import json
import struct
from collections.abc import Callable

import pytest

from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.rocksdb_files import HEAD_BYTES, has_changelogs, store_files
from tidegate_testing.spark_checkpoint import SparkCheckpoint, lz4, utf, zipped

STORE = "state/0/1"


def files(world: SparkCheckpoint, version: int, unique_id: str | None = None) -> dict[str, bool]:
    """Return the names that ``version`` needs, and whether they are shared."""
    found = store_files(Checkpoint(world.listing, world.read), STORE, version, unique_id, ())
    return {file.path[len(STORE) + 1 :]: file.shared for file in found}


def test_a_snapshot_brings_the_files_that_its_metadata_names_and_no_others() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "2", "000008-aa.sst")
    world.snapshot(STORE, "3", "000008-aa.sst", "000012-bb.sst", logs=("000011-cc.log",))
    world.snapshot(STORE, "4", "000019-dd.sst")
    assert files(world, 3) == {
        "3.zip": False,
        "SSTs/000008-aa.sst": True,
        "SSTs/000012-bb.sst": True,
        "logs/000011-cc.log": False,
    }
    assert world.reads == [f"{STORE}/3.zip"]


def test_a_snapshot_of_an_empty_store_is_itself_alone() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "1")
    assert files(world, 1) == {"1.zip": False}


def test_with_changelogs_the_newest_snapshot_that_is_not_later_and_the_changelogs_after_it_are_needed() -> None:
    world = SparkCheckpoint()
    for version in range(1, 13):
        world.changelog(STORE, str(version))
    world.snapshot(STORE, "3", "1-aa.sst")
    world.snapshot(STORE, "9", "2-bb.sst")
    world.snapshot(STORE, "12", "3-cc.sst")
    assert set(files(world, 11)) == {"9.zip", "SSTs/2-bb.sst", "10.changelog", "11.changelog"}
    assert set(files(world, 12)) == {"12.zip", "SSTs/3-cc.sst"}
    assert set(files(world, 2)) == {"1.changelog", "2.changelog"}


def test_a_store_that_is_a_million_versions_old_takes_no_longer() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "1000000000", "2-bb.sst")
    world.changelog(STORE, "1000000001")
    assert set(files(world, 1000000001)) == {"1000000000.zip", "SSTs/2-bb.sst", "1000000001.changelog"}
    with pytest.raises(MissingFileError):
        files(world, 999999999)


@pytest.mark.parametrize("lost", ["9.zip", "SSTs/2-bb.sst", "10.changelog", "11.changelog"])
def test_a_missing_file_is_named_and_may_have_been_cleaned(lost: str) -> None:
    world = SparkCheckpoint()
    for version in (10, 11):
        world.changelog(STORE, str(version))
    world.snapshot(STORE, "9", "2-bb.sst")
    del world[f"{STORE}/{lost}"]
    with pytest.raises(MissingFileError) as raised:
        files(world, 11)
    # Without its snapshot the state would be made of all changelogs from the first on.
    assert raised.value.file == f"{STORE}/{'1.changelog' if lost == '9.zip' else lost}"


def test_in_format_2_the_snapshot_of_the_committed_attempt_is_needed() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "3_failed", "1-aa.sst")
    world.snapshot(STORE, "3_counted", "2-bb.sst")
    assert set(files(world, 3, "counted")) == {"3_counted.zip", "SSTs/2-bb.sst"}


def test_in_format_2_changelogs_are_those_of_the_lineage_not_of_the_range() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "2_a", "1-aa.sst")
    world.changelog(STORE, "3_failed", "2_a")
    world.changelog(STORE, "3_b", "2_a")
    world.snapshot(STORE, "3_failed", "2-bb.sst")
    world.changelog(STORE, "4_c", "2_a", "3_b")
    world.changelog(STORE, "5_zombie", "2_a", "3_failed", "4_dead")
    world.changelog(STORE, "5_d", "2_a", "3_b", "4_c")
    assert set(files(world, 5, "d")) == {
        "2_a.zip",
        "SSTs/1-aa.sst",
        "3_b.changelog",
        "4_c.changelog",
        "5_d.changelog",
    }


def test_a_snapshot_inside_the_lineage_shortens_it() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "2_a", "1-aa.sst")
    world.snapshot(STORE, "4_c", "2-bb.sst")
    world.changelog(STORE, "5_d", "2_a", "3_b", "4_c", kind="v4")
    assert set(files(world, 5, "d")) == {"4_c.zip", "SSTs/2-bb.sst", "5_d.changelog"}


def test_a_snapshot_of_the_version_itself_saves_reading_its_changelog() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "5_d", "2-bb.sst")
    world.changelog(STORE, "5_d", "4_c")
    assert set(files(world, 5, "d")) == {"5_d.zip", "SSTs/2-bb.sst"}
    assert world.reads == [f"{STORE}/5_d.zip"]


def test_the_first_versions_have_no_snapshot() -> None:
    world = SparkCheckpoint()
    world.changelog(STORE, "1_a")
    world.changelog(STORE, "2_b", "1_a")
    assert set(files(world, 1, "a")) == {"1_a.changelog"}
    assert set(files(world, 2, "b")) == {"1_a.changelog", "2_b.changelog"}


@pytest.mark.parametrize(("version", "unique_id", "name"), [(4, None, "4.zip"), (4, "d", "4_d.zip")])
def test_without_changelogs_it_is_the_snapshot_that_is_missing(version: int, unique_id: str | None, name: str) -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "3")
    world.snapshot(STORE, "4_other")
    with pytest.raises(MissingFileError) as raised:
        files(world, version, unique_id)
    assert raised.value.file == f"{STORE}/{name}"


@pytest.mark.parametrize("lost", ["2_a.zip", "3_b.changelog", "4_c.changelog", "SSTs/1-aa.sst"])
def test_a_missing_file_of_the_lineage_may_have_been_cleaned(lost: str) -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "2_a", "1-aa.sst")
    world.changelog(STORE, "3_b", "2_a")
    world.changelog(STORE, "4_c", "2_a", "3_b")
    del world[f"{STORE}/{lost}"]
    with pytest.raises(MissingFileError) as raised:
        files(world, 4, "c")
    assert raised.value.file == f"{STORE}/{lost}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"PK nonsense", "no whole zip"),
        (zipped(CURRENT="x"), "no entry `metadata`"),
        (zipped(metadata="{}"), "not with a version"),
        (zipped(metadata='v2\n{"sstFiles":[]}'), "version 2"),
        (zipped(metadata="v1\n[]"), "JSON object"),
        (zipped(metadata='v1\n{"numKeys":1}'), "no list `sstFiles`"),
        (zipped(metadata='v1\n{"sstFiles":[{"dfsSstFileName":"../1-a.sst","sizeBytes":1}]}'), "lists"),
        (zipped(metadata='v1\n{"sstFiles":[{"dfsSstFileName":"1-a.blob","sizeBytes":1}]}'), "lists 1-a.blob"),
    ],
)
def test_a_snapshot_that_is_not_understood_is_refused(body: bytes, reason: str) -> None:
    world = SparkCheckpoint()
    world[f"{STORE}/1.zip"] = body
    with pytest.raises(UnreadableCheckpointError, match=reason) as raised:
        files(world, 1)
    assert raised.value.file == f"{STORE}/1.zip"


def test_an_immutable_file_of_another_size_than_recorded_is_refused() -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "1", "1-aa.sst")
    world[f"{STORE}/SSTs/1-aa.sst"] += b"more"
    with pytest.raises(UnreadableCheckpointError, match="12 bytes where"):
        files(world, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not compressed"),
        (lz4(utf("v2") + b"\x01"), "version 2, which has no lineage"),
        (lz4(utf("v5") + utf("[]")), "version 5"),
        (lz4(utf("v3")), "no lineage at its head"),
        (lz4(utf("v3") + utf("nonsense")), "no lineage at its head"),
        (lz4(utf("v3") + utf('[{"version":1}]')), "no lineage at its head"),
        (lz4(utf("v3") + utf('[{"version":2,"checkpointUniqueId":"a"}]')), "itself or a later version"),
    ],
)
def test_a_changelog_whose_lineage_is_not_understood_is_refused(body: bytes, reason: str) -> None:
    world = SparkCheckpoint()
    world[f"{STORE}/2_b.changelog"] = body
    with pytest.raises(UnreadableCheckpointError, match=reason) as raised:
        files(world, 2, "b")
    assert raised.value.file == f"{STORE}/2_b.changelog"


@pytest.mark.parametrize("lineage", [("2_a", "4_c"), ("2_a", "3_b"), ("2_a", "3_b", "3_other", "4_c")])
def test_a_lineage_that_is_not_one_version_after_the_other_is_refused(lineage: tuple[str, ...]) -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "2_a", "1-aa.sst")
    world.changelog(STORE, "5_d", *lineage)
    with pytest.raises(UnreadableCheckpointError, match="gaps"):
        files(world, 5, "d")


def test_a_lineage_that_fills_more_than_a_block_is_read() -> None:
    world = SparkCheckpoint()
    lineage = [{"version": number, "checkpointUniqueId": f"id{number}"} for number in range(1, 1001)]
    for item in lineage:
        world[f"{STORE}/{item['version']}_{item['checkpointUniqueId']}.changelog"] = b"not read"
    head = utf("v4") + utf(json.dumps(lineage))
    world[f"{STORE}/1001_last.changelog"] = lz4(head[:32768], head[32768:] + struct.pack(">i", -1))
    assert len(files(world, 1001, "last")) == 1001
    assert world.reads == [f"{STORE}/1001_last.changelog"]


def large(world: SparkCheckpoint) -> None:
    """Have a changelog after a snapshot, with many records after its head."""
    world.snapshot(STORE, "2_b", "1-aa.sst")
    head = utf("v3") + utf('[{"version":2,"checkpointUniqueId":"b"}]')
    world[f"{STORE}/3_c.changelog"] = lz4(head) + b"\0" * (3 * HEAD_BYTES)


def test_of_a_large_changelog_the_head_is_read_alone() -> None:
    """With many partitions, several of them would be in a driver's memory at a time."""
    world, heads = SparkCheckpoint(), list[tuple[str, int]]()
    large(world)

    def read_head(path: str, size: int) -> bytes:
        heads.append((path, size))
        return world[path][:size]

    found = store_files(Checkpoint(world.listing, world.read, read_head), STORE, 3, "c", ())
    assert [file.path[len(STORE) + 1 :] for file in found] == ["2_b.zip", "SSTs/1-aa.sst", "3_c.changelog"]
    assert heads == [(f"{STORE}/3_c.changelog", HEAD_BYTES)]
    assert world.reads == [f"{STORE}/2_b.zip"]


def test_a_changelog_whose_first_block_is_longer_than_a_head_is_read_whole() -> None:
    world = SparkCheckpoint()
    large(world)
    checkpoint = Checkpoint(world.listing, world.read, lambda path, size: world[path][:20])
    assert len(store_files(checkpoint, STORE, 3, "c", ())) == 3
    assert f"{STORE}/3_c.changelog" in world.reads


@pytest.mark.parametrize("name", ["1.delta", "notes", "1_a_b.zip", "archive/000003.log"])
@pytest.mark.parametrize("unique_id", [None, "a"])
def test_a_file_of_another_kind_is_refused(name: str, unique_id: str | None) -> None:
    world = SparkCheckpoint()
    world.snapshot(STORE, "1" if unique_id is None else "1_a")
    world[f"{STORE}/{name}"] = b""
    with pytest.raises(UnreadableCheckpointError) as raised:
        files(world, 1, unique_id)
    assert raised.value.file == f"{STORE}/{name.partition('/')[0]}"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda world: world.snapshot(STORE, "1", "1-a.sst"), False),
        (lambda world: world.changelog(STORE, "1"), True),
        (lambda world: world.changelog(STORE, "1_a"), True),
    ],
)
def test_a_store_with_changelogs_is_known_by_them(make: Callable[[SparkCheckpoint], None], expected: bool) -> None:
    world = SparkCheckpoint()
    make(world)
    assert has_changelogs(Checkpoint(world.listing, world.read), STORE) is expected
