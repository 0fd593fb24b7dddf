"""The chart's CRDs are the CRDs of this checkout. Reads files of the checkout; writes only below tmp_path."""

import json
from pathlib import Path

import pytest

from charts.sync_crds import COPY, SOURCE, describe_drift, read_folder, write_copies
from tidegate_testing import plain_yaml

KIB = 1024


def test_the_charts_copies_are_byte_for_byte_the_source() -> None:
    source = read_folder(SOURCE)
    assert source != {}
    assert describe_drift(source, read_folder(COPY)) == [], "run `make -s generate`"


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.yaml")), ids=lambda path: path.name)
def test_a_crd_fits_into_the_annotation_of_a_client_side_apply(path: Path) -> None:
    """As Argo CD does it, unless annotations say otherwise: docs/gitops.md and docs/install.md say that it can."""
    crd = plain_yaml.load(path.read_text())
    applied = json.dumps(crd, separators=(",", ":"), ensure_ascii=False).encode()
    assert len(applied) + len(json.dumps(crd["metadata"].get("annotations", {}))) < 240 * KIB


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
