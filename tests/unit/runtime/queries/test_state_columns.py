"""Which columns of state Spark would read for one another in another version. Pure."""

import json
import struct
from typing import Any

import pytest

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries.state.state_columns import differences
from tidegate_spark.queries.state.state_guard import verdict
from tidegate_spark.snapshots.checkpoint.checkpoint import UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.operator_files import Columns, columns
from tidegate_spark.snapshots.checkpoint.state_schema import ONE_FAMILY, Family, families
from tidegate_testing.spark_checkpoint import utf

AGGREGATION, DEDUPLICATION = "stateStoreSave", "dedupe"


def column(name: str, kind: Any = "string") -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def of(*names: str) -> list[dict[str, Any]]:
    return [column(name) for name in names]


def nested(*names: str) -> dict[str, Any]:
    return {"type": "struct", "fields": of(*names)}


def state(key: list[dict[str, Any]], value: list[dict[str, Any]], name: str = AGGREGATION) -> Columns:
    return Columns(name, {("default", ONE_FAMILY): Family(key, value)})


def judged(before: Columns, now: Columns, **more: bool) -> tuple[str, list[str]]:
    """Return why the query must not start, and of what people are told."""
    reported: list[str] = []

    def notice(reason: str, message: str, warning: bool) -> None:
        assert (reason, warning) == (Reason.STATE_SCHEMA, True)
        reported.append(message)

    return verdict("sales", differences(0, before, now, **more), notice), reported


COUNT = of("count")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (state(of("shop", "item"), COUNT), state(of("item", "shop"), COUNT)),
        (state(of("shop", "item"), COUNT), state(of("Item", "Shop"), COUNT)),
        (state(of("shop", "item", "day"), COUNT), state(of("item", "day", "shop"), COUNT)),
        (state(of("shop", "item"), COUNT), state(of("item", "day"), COUNT)),
        (state(of("shop"), of("sum", "count")), state(of("shop"), of("count", "sum"))),
        (state(of("shop"), of("max")), state(of("shop"), of("min"))),
        (state([column("k", nested("a", "b"))], COUNT), state([column("k", nested("b", "a"))], COUNT)),
        (
            state(of("k"), [column("max", {"type": "array", "elementType": nested("a", "b")})]),
            state(of("k"), [column("max", {"type": "array", "elementType": nested("b", "a")})]),
        ),
        (
            state(of("k"), of("left", "right"), "symmetricHashJoin"),
            state(of("k"), of("right", "left"), "symmetricHashJoin"),
        ),
    ],
)
def test_columns_that_change_places_are_refused(before: Columns, now: Columns) -> None:
    why, reported = judged(before, now)
    assert "Spark would read one for another" in why
    assert reported == []


def test_both_orders_are_named() -> None:
    why, _ = judged(state(of("shop", "item"), COUNT), state(of("item", "shop"), COUNT))
    assert "its state has the key columns [shop, item], and this version [item, shop] (operator 0)" in why


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (state(of("shop", "item"), COUNT), state(of("store", "item"), COUNT)),
        (state([column("k", nested("a", "b"))], COUNT), state([column("k", nested("a", "c"))], COUNT)),
        (
            state(of("k"), of("a", "b"), "applyInPandasWithState"),
            state(of("k"), of("a", "c"), "applyInPandasWithState"),
        ),
    ],
)
def test_a_column_with_another_name_is_said_and_starts(before: Columns, now: Columns) -> None:
    why, reported = judged(before, now)
    assert why == ""
    assert len(reported) == 1
    assert "Query 'sales'" in reported[0]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (state(of("shop", "item"), COUNT), state(of("shop", "item"), COUNT)),
        (state(of("shop", "item"), COUNT), state(of("Shop", "ITEM"), COUNT)),
        # Spark says these itself.
        (state(of("shop", "item"), COUNT), state(of("item"), COUNT)),
        (state(of("shop"), COUNT), state(of("item"), COUNT, DEDUPLICATION)),
        (state(of("shop"), COUNT), Columns(AGGREGATION, {})),
    ],
)
def test_what_is_the_same_or_spark_refuses_itself_is_not_said(before: Columns, now: Columns) -> None:
    assert judged(before, now) == ("", [])


def test_values_that_are_stored_by_name_may_have_any_order_and_keys_may_not() -> None:
    before, now = state(of("k"), of("a", "b"), "t"), state(of("k"), of("b", "a"), "t")
    assert judged(before, now, by_name=True) == ("", [])
    assert judged(before, now)[0]
    assert judged(state(of("a", "b"), COUNT), state(of("b", "a"), COUNT), by_name=True)[0]


def test_another_function_is_another_one_also_where_values_are_stored_by_name() -> None:
    before = state(of("k"), of("max", "sum"))
    assert judged(before, state(of("k"), of("sum", "min")), by_name=True)[0]
    assert judged(before, state(of("k"), of("sum", "max")), by_name=True) == ("", [])


def test_the_same_difference_in_each_store_of_a_join_is_said_once() -> None:
    before = Columns("j", {(store, ONE_FAMILY): Family(of("a"), of("v")) for store in ("left", "right")})
    now = Columns("j", {(store, ONE_FAMILY): Family(of("b"), of("v")) for store in ("left", "right")})
    assert len(judged(before, now)[1]) == 1


# --- the files -------------------------------------------------------------------------------------------------------


def chunks(*parts: str) -> bytes:
    return struct.pack(">i", len(parts)) + b"".join(map(utf, parts))


def text(*names: str) -> str:
    return json.dumps({"type": "struct", "fields": of(*names)})


def family(name: str, key: str, value: str) -> bytes:
    number = struct.pack(">h", 0)
    spec = chunks('{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}')
    return utf(name) + number + chunks(key) + number + chunks(value) + spec + chunks("{    }")


def test_all_three_versions_of_the_file_are_read() -> None:
    key, value, found = text("shop", "item"), text("n"), Family(of("shop", "item"), of("n"))
    assert families("f", utf("v1") + utf(key) + utf(value)) == {ONE_FAMILY: found}
    assert families("f", utf("v2") + chunks(key[:9], key[9:]) + chunks(value)) == {ONE_FAMILY: found}
    many = utf("v3") + struct.pack(">i", 2) + family("a", key, value) + family("b", value, key)
    assert families("f", many) == {"a": found, "b": Family(of("n"), of("shop", "item"))}


@pytest.mark.parametrize("body", [b"", utf("v4"), utf("v2") + chunks("{}"), utf("v2") + b"\0\0\0\2" + utf("{}")])
def test_another_file_is_not_understood(body: bytes) -> None:
    with pytest.raises(UnreadableCheckpointError):
        families("f", body)


class Files(dict[str, bytes]):
    """A checkpoint."""

    def read(self, path: str) -> bytes | None:
        return self.get(path)

    def names(self, directory: str) -> list[str]:
        return [path.removeprefix(f"{directory}/") for path in self if path.startswith(f"{directory}/")]


def metadata(version: int, store: dict[str, Any]) -> bytes:
    reported = {"operatorInfo": {"operatorId": 0, "operatorName": AGGREGATION}, "stateStoreInfo": [store]}
    return f"v{version}\n{json.dumps(reported)}".encode()


def test_a_schema_is_at_its_place_or_where_the_newest_metadata_names_the_newest() -> None:
    schema = utf("v2") + chunks(text("k")) + chunks(text("n"))
    fixed = Files({"state/0/_metadata/metadata": metadata(1, {"storeName": "left"})})
    fixed["state/0/0/left/_metadata/schema"] = schema
    assert columns(fixed, 0) == Columns(AGGREGATION, {("left", ONE_FAMILY): Family(of("k"), of("n"))})
    named = Files()
    for batch, schemas in ((9, ["9_b"]), (10, ["9_b", "10_a"])):
        paths = [f"s3a://b/elsewhere/state/0/_stateSchema/default/{name}" for name in schemas]
        store = {"storeName": "default", "stateSchemaFilePaths": paths}
        named[f"state/0/_metadata/v2/{batch}"] = metadata(2, store)
    named["state/0/_stateSchema/default/10_a"] = schema
    assert columns(named, 0) == Columns(AGGREGATION, {("default", ONE_FAMILY): Family(of("k"), of("n"))})
    assert columns(Files(), 0) is None
