"""The sample's core against the oracle: whatever the batches are, the decisions are the same."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devcluster.demo import scenario
from devcluster.demo.oracle import expected_decisions
from samples.temperature_control import MOST_SETTINGS, Memory, Reading, Setting, judge, row

START = datetime(2010, 3, 10, tzinfo=UTC)
MINUTE = 60_000_000
temperatures = st.integers(60, 80).map(lambda tenths: tenths / 10)
deltas = st.integers(0, 10).map(lambda tenths: tenths / 10)
minutes = st.integers(0, 30)


def setting_at(minute: int, desired: float = 7.0, up: float = 0.5, down: float = 0.5) -> Setting:
    return Setting(minute * MINUTE, desired, up, down)


def reading_at(minute: int, temperature: float) -> Reading:
    return Reading(minute * MINUTE, temperature)


settings = st.builds(setting_at, minutes, temperatures, deltas, deltas)
readings = st.builds(reading_at, minutes, temperatures)


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[list[Setting], list[Reading], list[tuple[int, int]]]:
    """Settings and readings as an obedient producer sends them, and where batches end in each topic.

    A batch may be any number of settings ahead, but never holds a reading before the settings that precede it.
    """
    sent_settings = sorted(draw(st.lists(settings, max_size=8)), key=lambda s: s.time)
    sent_readings = sorted(draw(st.lists(readings, max_size=30)), key=lambda r: r.time)
    ends = sorted({*draw(st.lists(st.integers(0, len(sent_readings)), max_size=6)), len(sent_readings)})
    cuts, position = [], 0
    for end in ends:
        needed = sum(s.time <= sent_readings[end - 1].time for s in sent_settings) if end else 0
        position = draw(st.integers(max(position, needed), len(sent_settings)))
        cuts.append((position, end))
    return sent_settings, sent_readings, cuts


def run(settings: list[Setting], readings: list[Reading], cuts: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """The decisions of one sensor, batch by batch."""
    memory, records = Memory(), []
    for (first_setting, first_reading), (last_setting, last_reading) in pairwise([(0, 0), *cuts]):
        memory, decisions = judge(memory, settings[first_setting:last_setting], readings[first_reading:last_reading])
        records += [row("s", decision).asDict() for decision in decisions]
    return records


def oracle(settings: list[Setting], readings: list[Reading]) -> dict[str, dict[str, Any]]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return expected_decisions(
        [scenario.Setting("s", epoch + timedelta(microseconds=s.time), *s[1:]) for s in settings]
        + [scenario.Reading("s", epoch + timedelta(microseconds=r.time), r.temperature) for r in readings]
    )


@given(cut_streams())
def test_decisions_are_those_of_the_oracle_however_the_input_is_cut(
    streams: tuple[list[Setting], list[Reading], list[tuple[int, int]]],
) -> None:
    sent_settings, sent_readings, cuts = streams
    decided = run(sent_settings, sent_readings, cuts)
    assert {d["id"]: d for d in decided} == oracle(sent_settings, sent_readings)
    assert len({d["id"] for d in decided}) == len(decided)


@given(cut_streams())
def test_a_sensor_never_hears_the_same_decision_twice_in_a_row(
    streams: tuple[list[Setting], list[Reading], list[tuple[int, int]]],
) -> None:
    values = [d["decision"] for d in run(*streams)]
    assert all(a != b for a, b in pairwise(values))


@given(cut_streams())
def test_no_more_settings_are_remembered_than_may_still_be_needed(
    streams: tuple[list[Setting], list[Reading], list[tuple[int, int]]],
) -> None:
    sent_settings, sent_readings, _ = streams
    memory, _ = judge(Memory(), sent_settings, sent_readings)
    assert sum(s.time <= (memory.judged if memory.judged is not None else -1) for s in memory.settings) <= 1


def test_a_sensor_without_readings_remembers_its_newest_settings_and_no_more() -> None:
    first, second = ([setting_at(minute) for minute in range(n * 900, (n + 1) * 900)] for n in (0, 1))
    memory, _ = judge(Memory(), first, [])
    memory, _ = judge(memory, second, [])
    assert memory.settings == tuple([*first, *second][-MOST_SETTINGS:])


def test_as_many_settings_as_are_remembered_may_be_ahead_of_the_readings_without_a_decision_changed() -> None:
    ahead = [setting_at(minute, desired=minute % 2 * 10.0) for minute in range(MOST_SETTINGS)]
    behind = [reading_at(minute, 5.0) for minute in range(MOST_SETTINGS)]
    decided = run(ahead, behind, [(MOST_SETTINGS, 0), (MOST_SETTINGS, MOST_SETTINGS)])
    assert {d["id"]: d for d in decided} == oracle(ahead, behind)
    assert len(decided) == MOST_SETTINGS


def values_of(memory: Memory, settings: list[Setting], readings: list[Reading]) -> list[int]:
    return [decision.value for decision in judge(memory, settings, readings)[1]]


def test_without_a_setting_there_is_no_control() -> None:
    assert values_of(Memory(), [], [reading_at(1, 99.0)]) == []


def test_a_setting_rules_the_reading_of_its_own_time() -> None:
    assert values_of(Memory(), [setting_at(1)], [reading_at(1, 9.0)]) == [1]


def test_a_setting_does_not_rule_readings_before_it() -> None:
    assert values_of(Memory(), [setting_at(2)], [reading_at(1, 9.0)]) == []


def test_the_limits_themselves_are_still_right() -> None:
    assert values_of(Memory(), [setting_at(0)], [reading_at(1, 7.5), reading_at(2, 6.5)]) == []


def test_a_right_temperature_in_between_does_not_make_a_decision_new() -> None:
    warm_right_warm = [reading_at(1, 9.0), reading_at(2, 7.0), reading_at(3, 9.0)]
    assert values_of(Memory(), [setting_at(0)], warm_right_warm) == [1]


def test_the_previous_decision_counts_across_batches() -> None:
    memory, _ = judge(Memory(), [setting_at(0)], [reading_at(1, 9.0)])
    assert values_of(memory, [], [reading_at(2, 9.0), reading_at(3, 1.0)]) == [0]


def test_of_two_settings_with_one_time_the_later_sent_counts() -> None:
    memory, _ = judge(Memory(), [setting_at(1, desired=7.0), setting_at(1, desired=70.0)], [])
    assert values_of(memory, [], [reading_at(1, 9.0)]) == [0]
    assert values_of(memory, [setting_at(1, desired=7.0)], [reading_at(1, 9.0)]) == [1]


def test_a_repeated_reading_is_ignored() -> None:
    memory, _ = judge(Memory(), [setting_at(0)], [reading_at(5, 9.0)])
    assert values_of(memory, [], [reading_at(5, 1.0), reading_at(4, 1.0)]) == []


def test_a_late_setting_takes_effect_from_the_next_reading_on() -> None:
    memory, _ = judge(Memory(), [setting_at(0)], [reading_at(5, 9.0)])
    late = setting_at(4, desired=90.0)
    assert values_of(memory, [late], [reading_at(6, 9.0)]) == [0]
