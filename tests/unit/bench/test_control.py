"""What a benchmark of control messages makes of what it measured."""

import json
from collections.abc import Mapping

import pytest

from tests.bench import control_results as figures
from tests.bench.control_results import KAFKA, LONG, SHORT, STORAGE, WITH, WITHOUT, Burst, InForce, Latency, Use, Window
from tests.bench.intervals import Median, median, percentile


def uses(*said: tuple[float, int, Mapping[str, int]]) -> list[Use]:
    return [Use(*each) for each in said]


# --- medians and percentiles ---


def test_of_ten_values_the_median_lies_between_the_second_and_the_ninth() -> None:
    assert median([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0, 10.0]) == Median(5.5, 2.0, 9.0)


def test_of_a_few_values_it_may_be_anywhere_between_them() -> None:
    assert median([3.0, 1.0, 2.0]) == Median(2.0, 1.0, 3.0)
    assert median([1.0]) == Median(1.0, 1.0, 1.0)


def test_more_values_are_surer() -> None:
    assert median([float(n) for n in range(1, 101)]) == Median(50.5, 40.0, 61.0)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(400, 0, -1)]
    assert (percentile(values, 99), percentile(values, 50), percentile([7.0], 99)) == (396.0, 200.0, 7.0)


# --- throughput and long logs ---


def test_windows_are_compared_with_the_one_of_the_same_round() -> None:
    windows = [Window(WITH, 11.0, 10), Window(WITHOUT, 10.0, 10), Window(WITHOUT, 20.0, 10), Window(WITH, 20.0, 10)]
    found = figures.throughput(windows, 1_000_000)
    assert found["throughput_ratio"] == pytest.approx((10 / 11 + 1) / 2)
    assert found["throughput_ratio_low"] == pytest.approx(10 / 11)
    assert found["throughput_ratio_high"] == 1.0
    assert found["rows_per_second_without"] == pytest.approx(750_000)


def test_a_pair_that_lacks_one_is_none() -> None:
    with pytest.raises(ValueError, match="zip"):
        figures.throughput([Window(WITH, 1.0, 1)], 1)


def test_a_long_log_is_compared_with_a_short_one() -> None:
    found = figures.long_log([Window(LONG, 10.5, 10), Window(SHORT, 10.0, 10)])
    assert (found["long_log_slowdown"], found["batch_seconds_short_log"]) == (1.05, 1.0)


# --- latency ---


def test_messages_are_sent_at_any_time_of_an_interval() -> None:
    found = figures.moments(400, 160.0, seed=1)
    phases = [sum(phase <= moment % 1 < phase + 0.25 for moment in found) for phase in (0.0, 0.25, 0.5, 0.75)]
    assert found == sorted(found) == figures.moments(400, 160.0, seed=1)
    assert min(phases) > 70
    assert found != figures.moments(400, 160.0, seed=2)


def test_a_message_is_in_force_when_the_last_task_of_the_first_batch_with_it_has_asked() -> None:
    seen = uses((1.0, 4, {}), (2.0, 5, {STORAGE: 2}), (2.3, 5, {STORAGE: 2}), (3.0, 6, {STORAGE: 2, KAFKA: 1}))
    assert figures.in_force(seen, STORAGE, 3) == {1: InForce(2.3, 5), 2: InForce(2.3, 5)}
    assert figures.in_force(seen, KAFKA, 1) == {1: InForce(3.0, 6)}


def test_what_a_task_has_not_written_down_wholly_is_not_read() -> None:
    line = json.dumps({"time": 1.0, "batch": 3, "settings": {"storage": 1}})
    assert figures.uses_in([line, line[:20]]) == [Use(1.0, 3, {"storage": 1})]


def test_latencies_are_told_in_intervals_by_channel() -> None:
    found = figures.latencies(STORAGE, {1: 10.0, 2: 10.5}, {1: InForce(12.0, 7), 2: InForce(12.0, 7)}, {7: 12.4})
    assert [each.used for each in found] == [2.0, 1.5]
    reported = figures.latency([*found, Latency(KAFKA, 1.0, 1.2)], 2.0, 0.5)
    assert (reported["latency_p99_intervals"], reported["latency_p50_intervals"]) == (1.0, 0.75)
    assert reported["latency_p99_intervals_committed"] == pytest.approx(1.2)
    assert (reported["latency_p99_intervals_kafka"], reported["latency_batch_intervals"]) == (0.5, 0.25)


def test_a_message_that_never_came_into_force_has_no_latency() -> None:
    with pytest.raises(KeyError):
        figures.latencies(STORAGE, {1: 10.0}, {}, {})


# --- bursts ---


@pytest.mark.parametrize(
    ("burst", "kept_up"),
    [
        (Burst(STORAGE, 30_000, 1000.0, 1000, 30_000, 1.2), 1.0),
        (Burst(STORAGE, 30_000, 1000.0, 1000, 30_000, 5.1), 0.0),
        (Burst(STORAGE, 30_000, 900.0, 1000, 30_000, 1.2), 0.0),
        (Burst(STORAGE, 30_000, 1000.0, 1000, 29_999, 1.2), 0.0),
        (Burst(STORAGE, 30_000, 1000.0, 1000, 30_001, 1.2), 0.0),
    ],
)
def test_a_burst_is_kept_up_with_if_all_of_it_was_sent_in_time_and_is_there_once_and_soon(
    burst: Burst, kept_up: float
) -> None:
    found = figures.bursts([Burst(KAFKA, 10, 1000.0, 1000, 10, 0.5), burst])
    assert (found["burst_kept_up"], found["burst_lag_seconds_kafka"]) == (kept_up, 0.5)


def test_samples_are_json() -> None:
    assert json.loads(json.dumps(figures.samples([Window(WITH, 1.23456, 8, 4)]))) == [
        {"kind": WITH, "seconds": 1.235, "batches": 8, "first": 4}
    ]
