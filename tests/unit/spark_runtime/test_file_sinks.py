"""What a file sink remembers of batches that are run again. Pure."""

import pytest

from tidegate_spark.file_sinks import Sink, SinkRefusedError, sink_of, to_remove


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
def test_the_batches_after_the_last_one_are_taken_back_the_newest_first(
    names: list[str], last: int, going: list[str]
) -> None:
    assert to_remove(names, last) == going


@pytest.mark.parametrize(
    ("names", "last", "words"),
    [
        (log("9.compact", 10), 7, "batch 0 is not in it"),
        (log("9.compact", 10, "19.compact", 20), 12, "batch 11 is not in it"),
        (log(0, 1, 2), -1, "another lineage"),
    ],
)
def test_a_log_that_would_not_be_whole_without_them_is_left_as_it_is(names: list[str], last: int, words: str) -> None:
    with pytest.raises(SinkRefusedError, match=words):
        to_remove(names, last)


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
