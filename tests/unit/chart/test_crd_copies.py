"""The chart's CRDs are the CRDs of this checkout. Reads files of the checkout; writes only below tmp_path."""

from pathlib import Path

from charts.sync_crds import COPY, SOURCE, describe_drift, read_folder, write_copies


def test_the_charts_copies_are_byte_for_byte_the_source() -> None:
    source = read_folder(SOURCE)
    assert source != {}
    assert describe_drift(source, read_folder(COPY)) == []


def test_each_kind_of_drift_is_named() -> None:
    source = {"new.yaml": b"a", "changed.yaml": b"b", "same.yaml": b"c"}
    copy = {"changed.yaml": b"B", "same.yaml": b"c", "gone.yaml": b"d"}
    assert describe_drift(source, copy) == [
        "changed.yaml: the chart's copy differs",
        "gone.yaml: in the chart, but not in crds/",
        "new.yaml: not in the chart",
    ]


def test_copying_leaves_no_drift_whatever_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_bytes(b"d")
    (tmp_path / "changed.yaml").write_bytes(b"B")
    source = {"new.yaml": b"a", "changed.yaml": b"b"}
    write_copies(source, read_folder(tmp_path), tmp_path)
    assert read_folder(tmp_path) == source
