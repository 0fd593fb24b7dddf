"""A snapshot's figures are ratios of medians, its windows take turns, and its input says what it changes."""

import json
from pathlib import Path

import pytest

from tests.bench.batch_files import BatchFiles
from tests.bench.snapshot import FULL, KINDS, SNAPSHOTTING, WITHOUT, Snapshotting, Trial, Window, results, samples
from tests.bench.turns import turns

TRIALS = [
    Trial(raw=4.0, first=6.0, second=1.0, first_bytes=1000, second_bytes=60, compacted_files=0, compacted_bytes=0),
    Trial(raw=5.0, first=5.0, second=0.5, first_bytes=1000, second_bytes=400, compacted_files=3, compacted_bytes=350),
    Trial(raw=5.0, first=4.0, second=2.0, first_bytes=2000, second_bytes=100, compacted_files=0, compacted_bytes=0),
]
WINDOWS = [Window(WITHOUT, 100.0, 0), Window(SNAPSHOTTING, 98.0, 4), Window(FULL, 80.0, 1)]


def test_ratios_are_those_of_medians() -> None:
    found = results(TRIALS, WINDOWS)
    assert (found["time_ratio"], found["second_time_ratio"]) == (1.0, 0.2)
    assert (found["second_bytes_ratio"], found["compacted_bytes_ratio"], found["compacted_files"]) == (0.06, 0.0, 0)
    assert (found["throughput_ratio"], found["throughput_ratio_full_copies"]) == (0.98, 0.8)
    assert found["rows_per_second_without"] == 100.0


def test_without_windows_there_is_no_throughput() -> None:
    assert "throughput_ratio" not in results(TRIALS, [])


def test_samples_are_json() -> None:
    found = json.loads(json.dumps(samples(TRIALS, WINDOWS)))
    assert found["trials"][1]["compacted_files"] == 3
    assert found["windows"][2] == {"kind": FULL, "rows_per_second": 80, "snapshots": 1}


def test_windows_take_turns_and_none_is_always_first() -> None:
    assert turns(KINDS, 2) == [WITHOUT, SNAPSHOTTING, FULL, SNAPSHOTTING, FULL, WITHOUT]


def test_a_batch_names_each_key_that_it_changes_once(tmp_path: Path) -> None:
    files = BatchFiles(tmp_path / "input")
    assert [files.put(0, 24_999), files.put(3, 24_999, 20)] == [0, 1]
    found = sorted((tmp_path / "input").iterdir())
    keys = []
    for file in found:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        keys.append([key for row in rows for key in range(row["first"], row["last"] + 1, row["step"])])
    assert keys == [list(range(25_000)), list(range(3, 25_000, 20))]
    assert found[0].stat().st_mtime < found[1].stat().st_mtime


def test_what_fails_meanwhile_is_told() -> None:
    def fail() -> None:
        raise AssertionError("not ready")

    with pytest.raises(AssertionError, match="not ready"), Snapshotting(fail):
        pass


def test_nothing_is_done_where_nothing_is_to_be_done() -> None:
    with Snapshotting(None) as meanwhile:
        pass
    assert meanwhile.done == 0
