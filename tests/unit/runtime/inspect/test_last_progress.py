"""What Spark's account of a batch says of operators and sources. Pure."""

from typing import Any

from tidegate_spark.inspect.last_progress import LastProgress, batch_of, operators_of, sources_of, watermark_of

EVENT: dict[str, Any] = {
    "batchId": 17,
    "timestamp": "2026-01-01T00:00:01.000Z",
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 40,
            "numRowsUpdated": 3,
            "memoryUsedBytes": 900,
            "numShufflePartitions": 4,
            "customMetrics": {"rocksdbSstFileSize": 5000},
        },
        {"operatorName": "dedupe", "numRowsTotal": 7, "memoryUsedBytes": 100},
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[words]]",
            "startOffset": {"words": {"0": 5}},
            "endOffset": {"words": {"0": 8, "1": 2}},
            "latestOffset": {"words": {"0": 10, "1": 2}},
            "numInputRows": 3,
        },
        {"description": "RatePerMicroBatchStream", "endOffset": {"offset": 20, "timestamp": 1}, "latestOffset": None},
    ],
}


def test_operators_have_their_number_their_rows_and_their_size() -> None:
    first, second = operators_of(EVENT)
    assert (first["operator"], first["operatorName"], first["rows"], first["bytes"]) == (0, "stateStoreSave", 40, 5000)
    assert (first["memoryBytes"], first["partitions"]) == (900, 4)
    assert (second["operator"], second["rows"], second["bytes"]) == (1, 7, 100)


def test_a_source_tells_how_far_behind_it_is_if_its_offsets_count_rows() -> None:
    kafka, rate = sources_of(EVENT)
    assert (kafka["lagRows"], kafka["end"]) == (2, {"words": {"0": 8, "1": 2}})
    assert (rate["source"], rate["lagRows"], rate["end"]) == (1, None, {"offset": 20, "timestamp": 1})


def test_a_query_without_a_watermark_has_none() -> None:
    assert watermark_of(EVENT) == "2026-01-01T00:00:00.000Z"
    assert watermark_of({**EVENT, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}) is None
    assert watermark_of({**EVENT, "eventTime": {}}) is None


def test_before_the_first_batch_there_is_nothing_to_tell() -> None:
    last = LastProgress()
    assert (operators_of(last.of("main")), sources_of(last.of("main")), watermark_of(last.of("main"))) == ([], [], None)
    assert batch_of(last.of("main")) == {"batch": None, "batchBegan": None}
    last.note("main", EVENT)
    assert batch_of(last.of("main")) == {"batch": 17, "batchBegan": "2026-01-01T00:00:01.000Z"}
