"""The manifest of an export. Pure."""

import dataclasses

import pytest

from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.manifest import ExportedQuery, ExportedTable, ExportManifest, parse

TABLE = ExportedTable(
    "main", 0, "stateStoreSave", "default", "rows", "main/0-default.jsonl", 3, 90, "abc", '{"type":"struct"}'
)
MADE = ExportManifest(
    1,
    "JSONLines",
    "nightly-1",
    "shop/orders",
    2,
    "4.2.1",
    {"main": ExportedQuery(7, {"0": "{}"}, 5, 4)},
    (TABLE, TABLE),
)


def test_it_is_read_as_it_was_written() -> None:
    assert parse(MADE.body(), "there") == MADE
    assert (MADE.rows, MADE.bytes) == (6, 180)


def test_equal_ones_have_equal_bytes() -> None:
    queries = {"b": ExportedQuery(1, {"1": "x", "0": "y"}), "a": ExportedQuery(2, {})}
    one = dataclasses.replace(MADE, queries=queries)
    other = dataclasses.replace(MADE, queries=dict(reversed(queries.items())))
    assert one.body() == other.body()


@pytest.mark.parametrize("text", ["", "[]", "{}", "no json"])
def test_what_is_none_is_named(text: str) -> None:
    with pytest.raises(ExportError, match=r"there cannot be read as the manifest of an export"):
        parse(text, "there")


def test_a_later_version_asks_for_a_newer_tidegate() -> None:
    with pytest.raises(ExportError, match=r"there .*: its format is 2.*use a newer Tidegate"):
        parse(dataclasses.replace(MADE, version=2).body(), "there")


@pytest.mark.parametrize("file", ["../of-others/0-default.jsonl", "main/../../x", "./x", "main//x", "/x", "", ".."])
def test_a_file_that_leads_out_of_the_export_is_not_read(file: str) -> None:
    body = dataclasses.replace(MADE, tables=(TABLE, dataclasses.replace(TABLE, file=file))).body()
    with pytest.raises(ExportError, match=r"there .*: a file leads out of the export"):
        parse(body, "there")
