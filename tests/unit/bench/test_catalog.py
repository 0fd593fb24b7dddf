"""What the bench of catalogs measures."""

import json

import pytest

from tests.bench import catalog as bench
from tidegate_spark.snapshots.catalog import violations
from tidegate_spark.snapshots.catalog_json import decode, encode


def test_snapshots_share_all_but_their_newest_objects() -> None:
    made = bench.catalog_of(3, objects=10, new=2)
    assert made.ready() == ["main-000000", "main-000001", "main-000002"]
    assert violations(made) == []
    assert [len(snapshot.objects) for snapshot in made.snapshots.values()] == [10, 10, 10]
    assert len(made.objects) == 14
    assert decode(encode(made)) == made


def test_more_objects_take_more_memory(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for objects in (100, 1000):
        assert bench.main(["--snapshots", "3", "--objects", str(objects), "--new", "10"]) == 0
        found.append(json.loads(capsys.readouterr().out)["figures"]["known_kib_per_snapshot"])
    assert 0 < found[0] < found[1]


@pytest.mark.parametrize("arguments", [["--snapshots", "0"], ["--new", "0"], ["--objects", "5", "--new", "6"]])
def test_what_cannot_be_made_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(arguments)
    assert "expected --snapshots of at least 1" in capsys.readouterr().err
