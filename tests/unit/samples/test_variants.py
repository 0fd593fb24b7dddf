"""Two variants of the sample: what the second one must decide, and how their decisions are compared."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from devcluster.demo.application import VARIANTS, build_application
from devcluster.demo.oracle import Variant, expected_decisions
from devcluster.demo.scenario import HOUR, Reading, Record, Scenario, Setting
from devcluster.demo.snapshot_cut import ends_of, first_positions, is_before
from devcluster.demo.variants import Row, build_table, compare_variants, draw, most_different
from samples import temperature_control as sample

START = datetime(2010, 7, 1, tzinfo=UTC)
SCENARIO = Scenario(readings=600, shifts=3)
NAMES = "as it is", "calm"


def reading(hour: int, temperature: float) -> Reading:
    return Reading("seattle+0", START + hour * HOUR, temperature)


def setting(hour: float, desired: float) -> Setting:
    return Setting("seattle+0", START + hour * HOUR, desired, up_delta=2.0, down_delta=3.0)


def decision(sensor: str, hour: int, value: int) -> dict[str, Any]:
    time = (START + hour * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"id": f"{sensor}@{time}", "sensor": sensor, "time": time, "decision": value, "temperature": 60.0 + hour}


# --- what a variant must decide ---------------------------------------------------------------------------------------


def test_a_variant_goes_on_from_the_originals_last_decision_with_its_own_margin() -> None:
    records: list[Record] = [
        setting(0, 60.0),
        reading(1, 63.0),  # before the snapshot: too warm, said by the original
        reading(2, 56.0),  # after it: too cold without a margin, and right with one
        reading(3, 64.5),  # still too warm, as was said: not said again
        reading(4, 55.5),  # too cold now
    ]
    variant = Variant(1.0, lambda found: found.time <= START + HOUR)
    assert [(d["time"], d["decision"]) for d in expected_decisions(records, variant).values()] == [
        ("2010-07-01T04:00:00Z", 0)
    ]


def test_without_a_margin_a_variant_decides_what_the_original_does_after_the_snapshot() -> None:
    records = list(SCENARIO.records())
    middle = [record for record in records if isinstance(record, Reading)][300].time
    expected = expected_decisions(records)
    same = expected_decisions(records, Variant(0.0, lambda found: found.time < middle))
    assert same == {i: d for i, d in expected.items() if datetime.fromisoformat(d["time"]) >= middle}
    assert 0 < len(same) < len(expected)


@given(st.integers(0, 599), st.sampled_from([0.0, 0.5, 2.0]))
def test_a_variant_of_the_sample_decides_what_the_oracle_says(cut: int, margin: float) -> None:
    records = list(SCENARIO.records())
    before = {id(record) for record in [r for r in records if isinstance(r, Reading)][:cut]}
    decided: dict[str, dict[str, Any]] = {}
    for sensor in SCENARIO.sensors():
        memory, of_sensor = sample.Memory(), [record for record in records if record.sensor == sensor]
        settings = [_setting(record) for record in of_sensor if isinstance(record, Setting)]
        readings = [record for record in of_sensor if isinstance(record, Reading)]
        first = [_reading(record) for record in readings if id(record) in before]
        then = [_reading(record) for record in readings if id(record) not in before]
        memory, _ = sample.judge(memory, settings, first)
        _, decisions = sample.judge(memory, (), then, margin)
        decided |= {row["id"]: row.asDict() for row in (sample.row(sensor, each) for each in decisions)}
    assert decided == expected_decisions(records, Variant(margin, lambda found: id(found) in before))


def _setting(record: Setting) -> sample.Setting:
    return sample.Setting(_micros(record.time), record.desired, record.up_delta, record.down_delta)


def _reading(record: Reading) -> sample.Reading:
    return sample.Reading(_micros(record.time), record.temperature)


def _micros(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000


# --- where the snapshot ends ------------------------------------------------------------------------------------------


def test_the_snapshots_end_in_a_topic_is_in_its_status() -> None:
    offsets = 'v1\n{"batchWatermarkMs":0}\n{"readings":{"0":7,"1":3}}\n{"settings":{"0":1}}'
    status = {"queries": [{"name": "decisions", "batchId": 4, "offsets": offsets}]}
    assert ends_of(status, "readings") == {0: 7, 1: 3}
    with pytest.raises(ValueError, match="no query of the snapshot reads another"):
        ends_of(status, "another")


def test_a_reading_that_was_sent_twice_is_where_it_was_first() -> None:
    one, two = reading(1, 60.0), reading(2, 60.0)
    positions = first_positions([((0, 6), one.fields()), ((0, 7), two.fields()), ((0, 8), one.fields())])
    ends = {0: 7}
    assert is_before(one, positions, ends)
    assert not is_before(two, positions, ends)
    assert not is_before(reading(3, 60.0), positions, ends)


# --- the comparison ---------------------------------------------------------------------------------------------------

FIRST = [
    decision("seattle+1", 1, 1),
    decision("seattle+1", 2, 0),
    decision("seattle+1", 2, 0),
    decision("seattle+2", 1, 1),
    decision("san-francisco+1", 5, 1),
]
SECOND = [decision("seattle+1", 1, 1), decision("seattle+2", 1, 0), decision("seattle+3", 4, 1)]


def test_each_city_has_a_row_and_repeats_count_once() -> None:
    assert compare_variants(FIRST, SECOND) == [
        Row("san-francisco", sensors=1, first=1, second=0, both=0),
        Row("seattle", sensors=3, first=3, second=3, both=1),
        Row("together", sensors=4, first=4, second=3, both=1),
    ]


def test_two_variants_that_decided_nothing_can_be_compared(tmp_path: Path) -> None:
    rows = compare_variants([], [])
    assert rows == [Row("together", 0, 0, 0, 0)]
    assert most_different([], []) == ""
    draw(tmp_path / "empty.png", [], [], NAMES)
    assert (tmp_path / "empty.png").stat().st_size > 0


def test_the_sensor_that_is_shown_is_the_one_with_the_greatest_difference() -> None:
    assert most_different(FIRST, SECOND) == "san-francisco+1"
    assert most_different([*FIRST, decision("seattle+9", 1, 1), decision("seattle+9", 2, 0)], SECOND) == "seattle+9"


def test_the_table_says_what_each_had_alone() -> None:
    console = Console(file=io.StringIO(), width=160)
    console.print(build_table(compare_variants(FIRST, SECOND), NAMES))
    assert isinstance(console.file, io.StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if "together" in line]
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["together", "4", "4", "3", "1", "3", "2", "1.0 / 0.8"]


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    draw(tmp_path / "variants.png", FIRST, SECOND, NAMES)
    assert (tmp_path / "variants.png").read_bytes().startswith(b"\x89PNG")


# --- the manifests ----------------------------------------------------------------------------------------------------


def test_the_variants_differ_from_the_sample_in_name_beginning_topic_and_margin_alone() -> None:
    original = build_application(image="i", endpoint="e", options={})
    margins, topics = [], []
    for file in VARIANTS:
        built = build_application(image="i", endpoint="e", options={}, file=file)
        assert built.name == file.stem
        args = sample.parse(built.manifest["spec"]["application"]["args"])
        margins.append(args.margin)
        topics.append(args.decisions)
        spec = dict(built.manifest["spec"])
        assert spec.pop("startFrom") == {"snapshotRef": {"name": "before-variants"}}
        spec["application"] = {**spec["application"], "args": original.manifest["spec"]["application"]["args"]}
        for role in ("driver", "executor"):
            # So small that a node that has room for the demo has room for them, too.
            spec[role]["resources"]["requests"]["cpu"] = "500m"
        assert spec == original.manifest["spec"]
    assert margins == [0.0, 2.0]
    assert len({*topics, original.option("decisions")}) == 3
