"""What a checkpoint says of its stateful operators. Pure."""

import json

import pytest

from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError, UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.operator_files import (
    Described,
    describe,
    names_its_place,
    relocated,
    single_partition,
)
from tidegate_testing.spark_checkpoint import JOIN_STORES, ROOT, SparkCheckpoint, utf


def described(world: SparkCheckpoint, batch: int = 5, operator: int = 0) -> Described:
    return describe(Checkpoint(world.listing, world.read), operator, batch)


def paths(operator: Described) -> set[str]:
    return {file.path for file in operator.needed}


def test_an_operator_with_one_store_has_metadata_and_a_schema() -> None:
    world = SparkCheckpoint()
    world.operator(name="dedupe")
    found = described(world)
    assert (found.name, found.stores) == ("dedupe", ("default",))
    assert paths(found) == {"state/0/_metadata/metadata", "state/0/0/_metadata/schema"}


def test_each_store_of_a_join_has_a_schema() -> None:
    world = SparkCheckpoint()
    world.operator(name="symmetricHashJoin", stores=JOIN_STORES)
    found = described(world)
    assert found.stores == JOIN_STORES
    schemas = {f"state/0/0/{store}/_metadata/schema" for store in JOIN_STORES}
    assert paths(found) == {"state/0/_metadata/metadata", *schemas}


def test_an_operator_whose_schema_evolves_has_the_metadata_of_its_latest_start_and_every_schema_that_names() -> None:
    world = SparkCheckpoint()
    world.evolving_operator(0, "0_a")
    world.evolving_operator(4, "0_a", "4_b")
    world.evolving_operator(9, "0_a", "4_b", "9_c")
    assert paths(described(world, 3)) == {"state/0/_metadata/v2/0", "state/0/_stateSchema/default/0_a"}
    assert paths(described(world, 8)) == {
        "state/0/_metadata/v2/4",
        "state/0/_stateSchema/default/0_a",
        "state/0/_stateSchema/default/4_b",
    }


def test_metadata_of_later_starts_is_left_out_even_if_what_is_needed_is_gone() -> None:
    world = SparkCheckpoint()
    world.evolving_operator(4, "0_a")
    with pytest.raises(MissingFileError) as raised:
        described(world, 3)
    assert raised.value.file == "state/0/_metadata/v2/3"


def test_a_schema_that_is_in_another_checkpoint_is_not_ours() -> None:
    world = SparkCheckpoint()
    world.evolving_operator(0, "0_a", root="s3a://bucket/app/lineages/0/main")
    del world["state/0/_stateSchema/default/0_a"]
    with pytest.raises(UnreadableCheckpointError, match="lineages/0/main"):
        described(world)


def test_a_missing_schema_is_named() -> None:
    world = SparkCheckpoint()
    world.operator()
    del world["state/0/0/_metadata/schema"]
    with pytest.raises(MissingFileError) as raised:
        described(world)
    assert raised.value.file == "state/0/0/_metadata/schema"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not known"),
        ("{}", "not with a version"),
        ("v3\n{}", "version 3"),
        ("v2\n{}", "belongs elsewhere"),
        ("v1\nnonsense", "JSON"),
        ('v1\n{"stateStoreInfo":[{"storeName":"default"}]}', "operatorInfo"),
        ('v1\n{"operatorInfo":{"operatorId":1,"operatorName":"x"}}', "describes operator 1"),
        ('v1\n{"operatorInfo":{"operatorId":0,"operatorName":"x"}}', "stateStoreInfo"),
        ('v1\n{"operatorInfo":{"operatorId":0,"operatorName":"x"},"stateStoreInfo":[{"storeName":"a/b"}]}', "stores"),
    ],
)
def test_metadata_that_is_not_understood_is_refused(text: str | None, reason: str) -> None:
    world = SparkCheckpoint()
    world.operator()
    del world["state/0/_metadata/metadata"]
    if text is not None:
        world["state/0/_metadata/metadata"] = text.encode()
    with pytest.raises(UnreadableCheckpointError, match=reason) as raised:
        described(world)
    assert raised.value.file == "state/0/_metadata/metadata"


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        ("globalLimit", 1, True),
        ("stateStoreSave", 0, True),
        ("stateStoreSave", 1, False),
        ("dedupe", 0, False),
    ],
)
def test_operators_that_get_all_rows_at_one_place_are_known(name: str, keys: int, expected: bool) -> None:
    world = SparkCheckpoint()
    world.operator(name=name, keys=keys)
    assert single_partition(Checkpoint(world.listing, world.read), described(world)) is expected


@pytest.mark.parametrize("body", [b"", utf("v2"), utf("v9"), utf("v2") + b"\0\0\0\1\0\7{", utf("v1") + utf("[]")])
def test_a_schema_that_is_not_understood_is_refused(body: bytes) -> None:
    world = SparkCheckpoint()
    world.operator()
    world["state/0/0/_metadata/schema"] = body
    with pytest.raises(UnreadableCheckpointError) as raised:
        single_partition(Checkpoint(world.listing, world.read), described(world))
    assert raised.value.file == "state/0/0/_metadata/schema"


def test_metadata_that_names_its_place_is_made_to_name_another() -> None:
    world = SparkCheckpoint()
    world.evolving_operator(4, "0_a", "4_b")
    path = "state/0/_metadata/v2/4"
    assert [each for each in world if names_its_place(each)] == [path]
    moved = relocated(path, world[path], "s3a://other/fork/lineages/1/main/")
    assert moved.startswith(b"v2\n")
    before, after = (json.loads(body.partition(b"\n")[2]) for body in (world[path], moved))
    assert after["stateStoreInfo"][0].pop("stateSchemaFilePaths") == [
        "s3a://other/fork/lineages/1/main/state/0/_stateSchema/default/0_a",
        "s3a://other/fork/lineages/1/main/state/0/_stateSchema/default/4_b",
    ]
    del before["stateStoreInfo"][0]["stateSchemaFilePaths"]
    assert after == before
    assert relocated(path, moved, ROOT) == relocated(path, world[path], ROOT)


@pytest.mark.parametrize(
    "places", ["[]", "null", '["file:/somewhere/else"]', '["s3a://b/q/state/0/_stateSchema/x/y/z"]']
)
def test_metadata_with_unknown_places_is_refused(places: str) -> None:
    body = f'v2\n{{"stateStoreInfo":[{{"storeName":"default","stateSchemaFilePaths":{places}}}]}}'.encode()
    with pytest.raises(UnreadableCheckpointError):
        relocated("state/0/_metadata/v2/4", body, ROOT)
