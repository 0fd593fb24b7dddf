"""What a file sink remembers of batches that are run again. Pure."""

from typing import Any

import pytest

from tidegate_spark.contract.protocol import StartFrom, Storage
from tidegate_spark.contract.rehearsal_protocol import Rehearsal
from tidegate_spark.queries.sinks import file_sinks
from tidegate_spark.queries.sinks.file_sinks import (
    Sink,
    SinkRefusedError,
    check_begins_here,
    may_know_other_batches,
    refuse_another_log,
    sink_of,
    to_remove,
)
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://here/apps/orders")
BEGAN = StartFrom(Storage("s3://here/apps/original"), "nightly", "fork-u-1")


def log(*batches: int | str) -> list[str]:
    return [f"{batch}" for batch in batches] + [".0.crc", "_started"]


@pytest.mark.parametrize(
    ("names", "last", "going"),
    [
        ([], 4, []),
        (log(0, 1, 2), 2, []),
        (log(0, 1, 2), 5, []),
        (log(0, 1, 2, 3, 4), 2, ["4", "3"]),
        (log(0, 1, 2, 3, 4, 5, 6, 7, 8, "9.compact", 10), 7, ["10", "9.compact", "8"]),
        (log("9.compact", 10, 11, 12), 10, ["12", "11"]),
        (log("9.compact", 10, 11), 9, ["11", "10"]),
        (log(0, 1, 2, 3, 4, 5, 6, 7, 8, "9.compact", 10, "19.compact"), 10, ["19.compact"]),
    ],
)
def test_the_batches_after_the_last_one_are_rolled_back_the_newest_first(
    names: list[str], last: int, going: list[str]
) -> None:
    assert to_remove(names, last) == going


@pytest.mark.parametrize(
    ("names", "last", "message"),
    [
        (log("9.compact", 10), 7, "batch 0 is not in it"),
        (log("9.compact", 10, "19.compact", 20), 12, "batch 11 is not in it"),
        (log(0, 1, 2), -1, "another lineage"),
    ],
)
def test_a_log_that_would_not_be_whole_without_them_is_left_as_it_is(names: list[str], last: int, message: str) -> None:
    with pytest.raises(SinkRefusedError, match=message):
        to_remove(names, last)


@pytest.mark.parametrize(
    ("entries", "offsets", "message"),
    [
        ([], [], ""),
        (log(0, 1, 2), ["0", "1", "2"], ""),
        (log("9.compact", 10), ["10", "11", ".11.tmp"], ""),
        ([".0.crc", "_started"], [], ""),
        (log(0, 1, 2), [], "leave out the batches 0 to 2"),
        (log("9.compact", 10), ["4", "5"], "leave out the batches 6 to 10"),
    ],
)
def test_a_log_with_batches_that_the_query_does_not_have_is_another_ones(
    entries: list[str], offsets: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {"s3a://out/_spark_metadata": entries, "s3a://ckpt/offsets": offsets}
    monkeypatch.setattr(file_sinks, "names_in", lambda _, folder: folders.get(folder))
    if not message:
        refuse_another_log(None, "s3a://ckpt", Sink("s3a://out/"))
        return
    with pytest.raises(SinkRefusedError, match=f"another query.*{message}.*write to another path"):
        refuse_another_log(None, "s3a://ckpt", Sink("s3a://out/"))


@pytest.mark.parametrize(
    ("path", "kind", "earlier", "default", "sink"),
    [
        ("s3a://out", None, {}, "parquet", Sink("s3a://out")),
        (None, "json", {"path": "/out"}, "parquet", Sink("/out")),
        (None, None, {"path": "/out"}, "CSV", Sink("/out")),
        (None, None, {}, "parquet", None),
        ("topic", "kafka", {}, "parquet", None),
        ("s3a://table", None, {}, "delta", None),
    ],
)
def test_which_queries_write_files(
    path: str | None, kind: str | None, earlier: dict[str, str], default: str, sink: Sink | None
) -> None:
    assert sink_of(path, kind, earlier, default) == sink


@pytest.mark.parametrize(
    ("fields", "checks"),
    [
        ({}, False),
        ({"lineage": 2}, True),
        ({"start_from": BEGAN, "apart": True}, False),
        ({"start_from": BEGAN, "apart": False}, True),
        ({"start_from": BEGAN, "apart": True, "lineage": 2}, True),
        ({"start_from": BEGAN, "rehearsal": Rehearsal(3, 60)}, False),
    ],
    ids=["first lineage", "rolled back", "fork", "fork that takes the other's place", "fork, rolled back", "rehearsal"],
)
def test_a_sinks_memory_is_looked_at_where_batch_numbers_may_come_again(fields: dict[str, Any], checks: bool) -> None:
    assert may_know_other_batches(driver_config("orders", "local:///main.py", PLACE, **fields), 1) is checks


def test_who_takes_anothers_place_long_after_it_began_does_not_touch_that_ones_batches() -> None:
    with pytest.raises(SinkRefusedError, match="has run since it began"):
        check_begins_here(["4", "3"], ["1", "2", ".2.crc"])


@pytest.mark.parametrize(
    ("going", "commits"), [(["4", "3"], ["2", ".2.crc"]), ([], ["1", "2"])], ids=["has just begun", "nothing is later"]
)
def test_who_takes_anothers_place_where_that_ended_goes_on_with_its_log(going: list[str], commits: list[str]) -> None:
    check_begins_here(going, commits)
