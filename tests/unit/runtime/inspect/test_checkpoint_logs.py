"""What the logs of a batch say, for a look. Pure."""

import json

import pytest

from tidegate_spark.inspect.checkpoint_logs import At, at_of
from tidegate_spark.snapshots.checkpoint.checkpoint import Checkpoint, MissingFileError
from tidegate_spark.storage.store import Entry


def log(commit: dict[str, object], **planned: object) -> Checkpoint:
    head = {"batchWatermarkMs": 0, "batchTimestampMs": 5000, "conf": {"spark.sql.streaming.x": "1"}, **planned}
    files = {
        "offsets/7": f'v1\n{json.dumps(head)}\n{{"words":{{"0":8}}}}\n-',
        "commits/7": f"v1\n{json.dumps(commit)}",
    }
    return Checkpoint({path: Entry(path, 1, "") for path in files}, lambda path: files[path].encode())


def test_the_watermark_is_that_of_the_next_batch() -> None:
    assert at_of(7, log({"nextBatchWatermarkMs": 9000}, batchWatermarkMs=4000)) == At(
        batch=7,
        began_ms=5000,
        watermark_ms=9000,
        offsets={"0": '{"words":{"0":8}}', "1": "-"},
        settings={"spark.sql.streaming.x": "1"},
        format_version=1,
    )
    assert at_of(7, log({}, batchWatermarkMs=4000)).watermark_ms == 4000
    assert at_of(7, log({})).watermark_ms == 0


def test_the_format_of_the_state_is_told_by_the_commit() -> None:
    assert at_of(7, log({"stateUniqueIds": {"0": [["a"]]}})).format_version == 2


def test_a_batch_that_was_cleaned_up_is_missing() -> None:
    with pytest.raises(MissingFileError):
        at_of(8, log({}))
