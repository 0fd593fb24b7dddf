"""One run at a time has a folder of reports. Files in a temporary folder."""

from pathlib import Path

import pytest

from tests.gate.reports import take


def test_the_folder_of_a_new_run_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "gate" / "reports"
    folder.mkdir(parents=True)
    (folder / "unit.xml").write_text("<of the run before/>")
    with take(folder):
        assert list(folder.iterdir()) == []


def test_the_reports_of_a_run_are_not_removed_by_another_one_that_begins_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    with take(folder):
        (folder / "unit.xml").write_text("<tests/>")
        with pytest.raises(ValueError, match=r"another run writes its reports to .*set TIDEGATE_REPORTS"):
            take(folder)
        assert (folder / "unit.xml").read_text() == "<tests/>"
    with take(folder):
        assert list(folder.iterdir()) == []
