"""A snapshot that is Ready has all files that its manifest names. Files in a temporary folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.snapshots import damaged


def snapshot(phase: str = "Ready", reason: str = "") -> dict[str, Any]:
    conditions = [{"type": "Stalled", "reason": reason, "message": "objects/a is gone"}] if reason else []
    return {"metadata": {"name": "s"}, "status": {"phase": phase, "snapshotId": "1-ab", "conditions": conditions}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application's, with one snapshot of two files."""
    own = tmp_path / "snapshots" / "1-ab"
    own.mkdir(parents=True)
    (own / "offsets").write_text("12345")
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "a").write_text("123")
    files = [{"key": "snapshots/1-ab/offsets", "size": 5}, {"key": "objects/a", "size": 3}]
    (own / "manifest.json").write_text(json.dumps({"files": files}))
    return tmp_path


def test_a_whole_snapshot_and_those_that_are_not_ready_are_no_problem(folder: Path) -> None:
    assert damaged([snapshot(), {"metadata": {"name": "new"}}], folder) == []
    (folder / "objects" / "a").unlink()
    assert damaged([snapshot("Copying"), snapshot("Failed", "CatalogLost")], folder) == []


@pytest.mark.parametrize("key", ["objects/a", "snapshots/1-ab/offsets", "snapshots/1-ab/manifest.json"])
def test_a_ready_snapshot_that_lacks_a_file_is_named_with_it(folder: Path, key: str) -> None:
    (folder / key).unlink()
    assert damaged([snapshot()], folder) == [f"snapshot s is Ready and lacks 1 files, such as {key}"]


def test_a_file_of_another_size_is_not_the_one_that_was_published(folder: Path) -> None:
    (folder / "objects" / "a").write_text("12")
    assert damaged([snapshot()], folder) == ["snapshot s is Ready and lacks 1 files, such as objects/a"]


def test_a_snapshot_that_was_found_to_be_damaged_is_a_problem(folder: Path) -> None:
    found = damaged([snapshot("Failed", "SnapshotDamaged")], folder)
    assert found == ["snapshot s was damaged: objects/a is gone"]
