"""What a run came to is kept once, with its remark. Writes files."""

import json
from pathlib import Path

import pytest

from tests.gate import record


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))


def test_each_run_is_a_line_and_none_is_kept_twice(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    record.note({"run": "gate", "minutes": 29.5})
    record.record("cold", runs)
    with pytest.raises(ValueError, match="already"):
        record.record("cold", runs)
    record.note({"run": "gate", "minutes": 30.5})
    record.record("", runs)
    assert [json.loads(line) for line in runs.read_text().splitlines()] == [
        {"run": "gate", "minutes": 29.5, "remark": "cold"},
        {"run": "gate", "minutes": 30.5},
    ]


def test_without_a_run_nothing_is_written_and_the_remedy_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main([]) == 2
    assert "first: make test" in capsys.readouterr().err
