"""Which files of a whole checkpoint make up a batch. Pure; the parts have their own tests."""

import json
from collections.abc import Callable

import pytest

from tidegate_spark.contract.object_paths import LEFT_AFTER
from tidegate_spark.snapshots.checkpoint.checkpoint import MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.layout import CheckpointAt, needed_files, newest_committed
from tidegate_spark.storage.store import VanishedError
from tidegate_testing.spark_checkpoint import AN_ID, HDFS, JOIN_STORES, ROCKSDB, SparkCheckpoint


def at(world: SparkCheckpoint, batch: int) -> CheckpointAt:
    """Return what a batch needs, which is all that it needs: the same is found among these files alone."""
    found = needed_files(world.listing, world.read, batch)
    alone = {file.path: world.listing[file.path] for file in found.files}
    assert needed_files(alone, world.read, batch) == found
    return found


def paths(found: CheckpointAt) -> list[str]:
    return [file.path for file in found.files]


def hdfs(batches: int = 4) -> SparkCheckpoint:
    """An aggregation in an HDFS-backed store, two partitions."""
    world = SparkCheckpoint(HDFS)
    world.batches(batches - 1)
    world.operator()
    for partition in range(2):
        world.update({f"state/0/{partition}/{version}.delta": b"" for version in range(1, batches + 1)})
    return world


def format_2(batches: int = 4) -> SparkCheckpoint:
    """An aggregation in RocksDB with unique ids, two partitions."""
    world = SparkCheckpoint()
    world.operator()
    for batch in range(batches):
        world.offsets(batch)
        world.commit(batch, {0: [[f"a{batch}"], [f"b{batch}"]]})
        for partition, name in enumerate("ab"):
            world.snapshot(f"state/0/{partition}", f"{batch + 1}_{name}{batch}", f"{batch}-{name}.sst")
    return world


LOGS = ["commits/3", "metadata", "offsets/2", "offsets/3"]
OPERATOR = ["state/0/0/_metadata/schema", "state/0/_metadata/metadata"]


def test_a_stateless_query_needs_its_logs_alone() -> None:
    world = SparkCheckpoint()
    world.batches(5)
    found = at(world, 3)
    assert paths(found) == LOGS
    assert found.stateless
    assert found.facts == {
        "queryId": AN_ID,
        "formatVersion": 1,
        "stateless": True,
        "provider": "",
        "changelog": False,
        "partitions": 0,
        "operators": [],
        "sinks": [],
    }


def test_the_note_that_a_query_was_left_is_no_part_of_a_batch() -> None:
    world = SparkCheckpoint()
    world.batches(5)
    world.update({f"{LEFT_AFTER}/3": b""})
    assert paths(at(world, 3)) == LOGS


def test_the_first_batch_needs_no_offsets_before_it() -> None:
    world = SparkCheckpoint()
    world.batches(1)
    assert paths(at(world, 0)) == ["commits/0", "metadata", "offsets/0"]


def test_offsets_are_handed_on_as_they_are() -> None:
    world = SparkCheckpoint()
    world.batches(3)
    world.offsets(2, '{"topic":{"0":17}}', "-")
    assert at(world, 2).offsets.encode() == world["offsets/2"]


def test_state_of_an_hdfs_backed_store() -> None:
    found = at(hdfs(), 3)
    deltas = [f"state/0/{partition}/{version}.delta" for partition in range(2) for version in range(1, 5)]
    assert paths(found) == sorted([*LOGS, *OPERATOR, *deltas])
    assert not found.stateless
    facts = found.facts
    assert (facts["provider"], facts["formatVersion"], facts["changelog"], facts["partitions"]) == ("HDFS", 1, False, 2)
    assert facts["operators"] == [{"id": 0, "name": "stateStoreSave", "stores": ["default"], "partitions": 2}]
    assert json.loads(json.dumps(facts)) == facts


def test_state_of_rocksdb_in_format_2_is_that_of_the_ids_in_the_commit() -> None:
    world = format_2()
    world.snapshot("state/0/1", "4_zombie", "9-z.sst")
    found = at(world, 3)
    state = ["state/0/0/4_a3.zip", "state/0/0/SSTs/3-a.sst", "state/0/1/4_b3.zip", "state/0/1/SSTs/3-b.sst"]
    assert paths(found) == sorted([*LOGS, *OPERATOR, *state])
    assert [file.path for file in found.files if file.shared] == [path for path in state if path.endswith(".sst")]
    assert (found.facts["provider"], found.facts["formatVersion"], found.facts["changelog"]) == ("RocksDB", 2, False)


def test_batches_begun_after_the_one_asked_for_leave_no_trace() -> None:
    world = format_2()
    before = paths(at(world, 3))
    world.offsets(4)
    world.snapshot("state/0/0", "5_begun", "9-n.sst")
    assert paths(at(world, 3)) == before
    assert newest_committed(world.listing) == 3


def test_the_stores_of_a_join_have_the_ids_in_the_order_of_its_metadata() -> None:
    world = SparkCheckpoint(partitions=1)
    world.operator(name="symmetricHashJoin", stores=JOIN_STORES)
    world.batches(0, {0: [["p", "q", "r", "s"]]})
    for store, unique_id in zip(JOIN_STORES, "pqrs", strict=True):
        world.changelog(f"state/0/0/{store}", f"1_{unique_id}")
    changelogs = [path for path in paths(at(world, 0)) if path.endswith(".changelog")]
    assert changelogs == sorted(path for path in world if path.endswith(".changelog"))
    assert at(world, 0).facts["changelog"]


def test_several_operators_are_all_needed() -> None:
    world = hdfs()
    world.operator(1, "dedupe")
    world.update({f"state/1/{partition}/{v}.delta": b"" for partition in range(2) for v in range(1, 5)})
    found = at(world, 3)
    assert {"state/1/1/4.delta", "state/1/_metadata/metadata"} <= set(paths(found))
    assert [operator.name for operator in found.state.operators] == ["stateStoreSave", "dedupe"]
    for path in [path for path in world if path.startswith("state/0/")]:
        del world[path]
    with pytest.raises(MissingFileError) as raised:
        at(world, 3)
    assert raised.value.file == "state/0"


@pytest.mark.parametrize(("name", "keys"), [("globalLimit", 1), ("stateStoreSave", 0)])
def test_an_operator_that_gets_all_rows_at_one_place_has_state_in_one_partition(name: str, keys: int) -> None:
    world = hdfs()
    world.operator(name=name, keys=keys)
    for version in range(1, 5):
        del world[f"state/0/1/{version}.delta"]
    assert at(world, 3).state.operators[0].partitions == 1
    in_format_2 = format_2(1)
    in_format_2.commit(0, {0: [["a0"]]})
    assert at(in_format_2, 0).state.operators[0].partitions == 1


def test_a_partition_of_any_other_operator_is_missed() -> None:
    world = hdfs()
    for version in range(1, 5):
        del world[f"state/0/1/{version}.delta"]
    with pytest.raises(MissingFileError) as raised:
        at(world, 3)
    assert raised.value.file == "state/0/1"


def test_partitions_from_before_a_repartitioning_are_left_out() -> None:
    world = hdfs()
    world["state/0/2/3.delta"] = b""
    assert not any(path.startswith("state/0/2/") for path in paths(at(world, 3)))


def test_checksums_are_taken_along_where_there_are_any() -> None:
    world = format_2()
    for name in ("4_a3.zip", "3_a2.zip"):
        world[f"state/0/0/{name}.crc"] = b"{}"
    world["offsets/.3.crc"] = b"hadoop's own"
    assert [path for path in paths(at(world, 3)) if path.endswith(".crc")] == ["state/0/0/4_a3.zip.crc"]


def test_stores_can_be_read_in_parallel() -> None:
    world = format_2()
    calls = []

    def each(function: Callable[[object], object], stores: object) -> list[object]:
        calls.append(len(list(stores)))  # type: ignore[call-overload]
        return [function(store) for store in stores]  # type: ignore[attr-defined]

    assert needed_files(world.listing, world.read, 3, each).files == at(world, 3).files
    assert calls == [2]


def test_no_more_is_read_than_logs_metadata_and_one_snapshot_of_each_store() -> None:
    world = format_2()
    needed_files(world.listing, world.read, 3)
    assert sorted(world.reads) == sorted(
        ["metadata", "commits/3", "offsets/3", "state/0/_metadata/metadata", "state/0/0/4_a3.zip", "state/0/1/4_b3.zip"]
    )


def test_a_stateless_query_may_leave_batches_out_of_its_logs() -> None:
    world = SparkCheckpoint()
    for batch in (0, 4, 9):
        world.offsets(batch)
        world.commit(batch)
    assert paths(at(world, 9)) == ["commits/9", "metadata", "offsets/4", "offsets/9"]


@pytest.mark.parametrize(
    "lost",
    [
        "metadata",
        "offsets/2",
        "offsets/3",
        "commits/3",
        "state/0/0/4_a3.zip",
        "state/0/1/SSTs/3-b.sst",
        "state/0/0/_metadata/schema",
    ],
)
def test_a_missing_file_is_named_and_is_what_takers_call_vanished(lost: str) -> None:
    world = format_2()
    del world[lost]
    with pytest.raises(VanishedError, match=f"{lost} is missing") as raised:
        at(world, 3)
    assert isinstance(raised.value, MissingFileError)
    assert raised.value.file == lost


@pytest.mark.parametrize(
    ("path", "body", "file"),
    [
        ("metadata", b"nonsense", "metadata"),
        ("metadata", b"{}", "metadata"),
        ("metadata", b"\xff\xfe", "metadata"),
        ("commits/3", b"", "commits/3"),
        ("commits/3", b"v4\n{}", "commits/3"),
        ("commits/3", b'v2\n{"stateUniqueIds":[]}', "commits/3"),
        ("commits/3", b'v2\n{"stateUniqueIds":{"0":["a"]}}', "commits/3"),
        ("commits/3", b'v2\n{"stateUniqueIds":{"0":[]}}', "commits/3"),
        ("commits/3", b'v2\n{"stateUniqueIds":{"0":[["a3"],["b3"],["c3"]]}}', "state/0"),
        ("commits/3", b'v2\n{"stateUniqueIds":{"0":[["a3","x"],["b3","y"]]}}', "state/0/0"),
        ("commits/3", b'v2\n{"stateUniqueIds":{}}', "state/0"),
        ("offsets/3", b"v3\n{}\n1", "offsets/3"),
        ("offsets/3", b"v1\n\n1", "offsets/3"),
        ("offsets/3", b'v1\n{"conf":{"spark.sql.streaming.stateStore.providerClass":"x.Y"}}\n1', "offsets/3"),
        (
            "offsets/3",
            f'v1\n{{"conf":{{"spark.sql.streaming.stateStore.providerClass":"{ROCKSDB}"}}}}'.encode(),
            "offsets/3",
        ),
        ("offsets/3", b"v2\n{}\nno colon", "offsets/3"),
        ("strange", b"", "strange"),
        ("strange/deep", b"", "strange"),
        ("state/strange", b"", "state/strange"),
        ("state/strange/1", b"", "state/strange"),
        ("state/0/strange", b"", "state/0/strange"),
        ("state/0/0/strange", b"", "state/0/0/strange"),
        ("state/1/0/1_a.zip", b"", "state/1"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_name_of_the_file(path: str, body: bytes, file: str) -> None:
    world = format_2()
    world[path] = body
    with pytest.raises(UnreadableCheckpointError) as raised:
        at(world, 3)
    assert raised.value.file == file
    assert str(raised.value).startswith(f"{file}: ")


def test_named_sources_and_named_sinks_are_understood() -> None:
    world = SparkCheckpoint()
    world.batches(3)
    world["offsets/3"] = b'v2\n{"conf":{}}\nleft:{"logOffset":1}\nright:-'
    sinks = {"a": {"sinkName": "a", "commitOffset": "-", "providerName": "kafka", "apiVersion": "v2", "isActive": True}}
    sinks["b"] = {**sinks["a"], "providerName": "console", "isActive": False}
    world["commits/3"] = f"v3\n{json.dumps({'nextBatchWatermarkMs': 0, 'sinkMetadataMap': sinks})}".encode()
    world.update({f"sources/left/{entry}": b"" for entry in range(4)})
    found = at(world, 3)
    assert found.sinks == ("kafka",)
    assert [path for path in paths(found) if path.startswith("sources/")] == ["sources/left/0", "sources/left/1"]


def test_metadata_of_an_operator_that_never_ran_is_left_out() -> None:
    world = SparkCheckpoint()
    world.batches(3, {})
    world.evolving_operator(4, "4_a")
    found = at(world, 3)
    assert found.stateless
    assert paths(found) == LOGS
    assert found.format_version == 2


def test_the_newest_committed_batch_is_the_highest_number() -> None:
    world = SparkCheckpoint()
    assert newest_committed(world.listing) is None
    for batch in (2, 9, 10):
        world.commit(batch)
    world["commits/.11.tmp"] = world["commits/10.crc"] = world["offsets/11"] = b""
    assert newest_committed(world.listing) == 10
