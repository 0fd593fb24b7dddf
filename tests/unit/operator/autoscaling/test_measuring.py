"""What is made of the reports of a while. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.autoscaling.algorithm.measured import Measured, measure
from tidegate.autoscaling.algorithm.samples import KEPT_SECONDS, History, take_sample
from tidegate_testing.autoscaling import NOW, history_of, measured, query, report


def measure_of(history: History, window: float = 60.0, cores: int = 1) -> Measured:
    found = measure(history, window, cores)
    assert found is not None
    return found


def test_the_true_rate_counts_the_time_of_tasks_and_not_that_of_waiting() -> None:
    # 1,000 rows in 8 s of tasks, every 10 s, on 4 executors.
    seen = measure_of(history_of())
    assert (seen.arriving, seen.processed, seen.rate) == (100.0, 100.0, 125.0)
    assert seen.utilization == pytest.approx(0.2)
    assert seen.busy == pytest.approx(0.4)
    assert not seen.saturated


def test_an_executor_with_more_cores_does_as_much_more() -> None:
    assert measure_of(history_of(), cores=4).rate == 500.0


def test_a_driver_that_does_not_tell_its_tasks_time_is_measured_by_its_batches() -> None:
    seen = measure_of(history_of(work=-1.0))
    assert seen.rate == pytest.approx(1000 / 4 / 4)
    assert seen.utilization == pytest.approx(0.4)


def test_of_batches_that_follow_one_another_without_tasks_times_nothing_is_known() -> None:
    assert measure_of(history_of(seconds=10.0, work=-1.0)).rate == 0.0


def test_of_batches_that_follow_one_another_tasks_times_still_tell_how_little_there_is_to_do() -> None:
    seen = measure_of(history_of(seconds=10.0, work=4.0))
    assert seen.busy == 1.0
    assert seen.utilization == pytest.approx(0.1)
    assert not seen.saturated


def without_rows(work: float, before: int = 0) -> Measured:
    """Return what is made of batches of 8 s without a row, after a batch with some."""
    history = History()
    for batch in range(24):
        begin = NOW + 10.0 * batch
        one = dataclasses.replace(query(batch, begin, 8.0, 0), input_rows_total=before)
        history = history.add(take_sample(report((one,), 4, work * (batch + 1)), "p", begin + 10.0))
    return measure_of(history)


def test_work_without_any_row_is_a_source_that_reports_none() -> None:
    assert without_rows(work=30.0).uncounted


def test_without_input_batches_take_little_or_there_was_some_before() -> None:
    assert not without_rows(work=1.0).uncounted
    assert not without_rows(work=30.0, before=1000).uncounted
    assert not measure_of(history_of()).uncounted


def test_rows_that_are_left_at_the_sources_have_arrived() -> None:
    history = History()
    for batch in range(24):
        begin = NOW + 10.0 * batch
        one = query(batch, begin, 10.0, 1000, lag_rows=500 * batch)
        history = history.add(take_sample(report((one,), 4, 36.0 * (batch + 1)), "p", begin + 10.0))
    seen = measure_of(history)
    assert seen.arriving == pytest.approx(150.0)
    assert seen.processed == pytest.approx(100.0)
    assert seen.saturated
    assert seen.packing == pytest.approx(36 / 40)
    # The lag, and what arrived while the last batch ran.
    assert seen.backlog == pytest.approx(500 * 23 + 1500)


def test_a_lag_that_the_next_batch_takes_is_no_sign_of_falling_behind() -> None:
    assert not measure_of(history_of(seconds=10.0, work=20.0, lag_rows=10)).saturated


def test_a_query_with_pauses_between_its_batches_has_no_backlog_but_its_lag() -> None:
    assert measure_of(history_of()).backlog == 0.0


def test_nothing_is_measured_before_half_of_the_window_and_the_warm_up_are_over() -> None:
    assert measure(history_of(batches=6), 60.0, 1) is None
    assert measure(history_of(batches=9), 60.0, 1) is not None


def test_a_window_is_as_long_as_it_takes_for_two_batches() -> None:
    assert measure_of(history_of(), window=5.0).batches >= 2


def test_one_batch_is_enough_if_it_is_as_long_as_the_window() -> None:
    """Of a query that falls behind and takes in all that waits each is longer than the one before."""
    history, at, work = History(), NOW, 0.0
    for batch, seconds in enumerate((10.0, 10.0, 24.0, 58.0)):
        one = query(batch, at, seconds, int(40 * seconds))
        at, work = at + seconds, work + 4 * seconds
        history = history.add(take_sample(report((one,), 4, work), "p", at))
    seen = measure_of(history, window=50.0)
    assert seen.batches == 1
    assert measure(history, 60.0, 1) is None


def test_the_longest_window_is_measured_as_long_as_samples_are_kept() -> None:
    assert measure_of(history_of(batches=300), window=KEPT_SECONDS).seconds == pytest.approx(KEPT_SECONDS, abs=30.0)


def test_another_number_of_executors_begins_a_new_history() -> None:
    history = history_of()
    later = take_sample(report((query(24, NOW + 240, 4.0, 1000),), 5, 200.0), "p", NOW + 244)
    assert history.add(later).samples == (later,)


def test_another_process_of_the_driver_begins_a_new_history() -> None:
    history = history_of()
    later = take_sample(report((query(0, NOW + 240, 4.0, 1000),), 4, 8.0), "another", NOW + 244)
    assert history.add(later).samples == (later,)


def test_the_batch_that_was_under_way_at_a_change_is_not_measured() -> None:
    # Each batch takes a minute, one after the other; the first one that is reported began before.
    history = History()
    for tick in range(18):
        batch = tick // 6
        one = query(batch, NOW + 60.0 * batch, 60.0, 6000)
        history = history.add(take_sample(report((one,), 4, 200.0 * (batch + 1)), "p", NOW + 60 + 10.0 * tick))
    assert measure(history, 60.0, 1) is None


def reported(batches: list[tuple[float, int]], begin: float = NOW) -> list[Measured | None]:
    """Return what is measured every ten seconds of batches, one after the other: seconds and rows of each.

    Four executors do 100 rows a second each.
    """
    history, found, at, work, rows, busy = History(), list[Measured | None](), begin, 0.0, 0, 0.0
    one = query(-1, begin - 1.0, 1.0, 1)
    for number, (seconds, more) in enumerate(batches):
        for tick in range(int(seconds // 10)):
            history = history.add(take_sample(report((one,), 4, work), "p", at + 10.0 * tick))
            found.append(measure(history, 60.0, 1))
        rows, work, busy, at = rows + more, work + more / 100, busy + seconds, at + seconds
        total: dict[str, Any] = {"input_rows_total": rows, "busy_ms_total": round(1000 * busy)}
        one = query(number, at - seconds, seconds, more, **total)
    history = history.add(take_sample(report((one,), 4, work), "p", at))
    return [*found, measure(history, 60.0, 1)]


@pytest.mark.parametrize("minutes", [10, 16, 29, 40])
def test_long_batches_are_measured_also_when_the_last_change_is_older_than_samples_are_kept(minutes: int) -> None:
    found = reported([(60.0 * minutes, 24_000 * minutes)] * (200 // minutes))
    last = found[-1]
    assert last is not None
    assert last.rate == pytest.approx(100.0)


def test_during_a_batch_that_takes_far_longer_than_usual_figures_of_those_before_say_nothing() -> None:
    found = reported([(10.0, 400)] * 30 + [(600.0, 240_000)])
    measured = [each is not None for each in found]
    silent = measured[300 // 10 :]
    assert silent[:8] == [True] * 8
    assert not any(silent[9:-1])
    assert silent[-1]


def test_one_batch_that_hung_does_not_say_what_batches_can_use() -> None:
    usual = [(10.0, 3200)] * 30
    hung = reported([*usual, (90.0, 3200)])[-1]
    again = reported([*usual, (90.0, 3200), (110.0, 3520)])[-1]
    assert hung is not None
    assert again is not None
    assert hung.saturated
    assert hung.packing == pytest.approx(0.8)
    # Of a program that uses little of its executors the next batch shows it, too.
    assert again.saturated
    assert again.packing == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("fields", "packed"),
    [
        ({"busy": 0.7, "utilization": 0.1}, True),
        ({"busy": 1.0, "utilization": 0.6}, True),
        ({"busy": 1.0, "utilization": 0.4}, False),
        ({"busy": 1.0, "utilization": 0.4, "saturated": True}, True),
    ],
)
def test_long_batches_that_follow_one_another_while_executors_rest_are_so_by_their_fixed_part(
    fields: dict[str, Any], packed: bool
) -> None:
    assert measured(100.0, batch_seconds=25.0, **fields).is_packed is packed


def test_tasks_at_a_time_are_those_while_there_is_a_batch() -> None:
    assert measure_of(history_of(seconds=4.0, work=8.0)).tasks_at_once == pytest.approx(2.0)
    assert measure_of(history_of(seconds=4.0, work=-1.0)).tasks_at_once == 0.0


def test_batches_are_told_with_how_many_rows_they_have_and_whether_one_follows_the_other() -> None:
    rested, full = measure_of(history_of()), measure_of(history_of(seconds=10.0))
    assert (rested.rows_per_batch, rested.shares, rested.back_to_back) == (1000.0, (1.0,), False)
    assert (full.rows_per_batch, full.shares, full.back_to_back) == (1000.0, (1.0,), True)


@pytest.mark.parametrize(("pause", "silent", "together"), [(0.0, False, True), (5.0, False, False), (5.0, True, True)])
def test_of_several_queries_all_that_read_have_to_run_one_batch_after_the_other(
    pause: float, silent: bool, together: bool
) -> None:
    history, nothing = History(), {"input_rows_per_second": 0.0, "processed_rows_per_second": 0.0}
    for batch in range(24):
        begin = NOW + 10.0 * batch
        one = query(batch, begin, 10.0, 300)
        fields: dict[str, Any] = {"name": "other", **(nothing if silent else {})}
        two = query(batch, begin, 10.0 - pause, 0 if silent else 100, **fields)
        history = history.add(take_sample(report((one, two), 4, 20.0 * (batch + 1)), "p", begin + 10.0))
    seen = measure_of(history)
    assert seen.back_to_back is together
    assert seen.shares == ((1.0, 0.0) if silent else (0.75, 0.25))


def test_the_same_answer_counts_once() -> None:
    history = history_of(batches=3)
    assert history.add(history.samples[-1]) is history
    assert history.add(history.samples[0]) is history


def test_an_idle_query_needs_nothing() -> None:
    last = query(3, NOW + 30, 4.0, 1000, input_rows_per_second=0.0, processed_rows_per_second=0.0)
    history = History()
    for tick in range(20):
        history = history.add(take_sample(report((last,), 4, 32.0), "p", NOW + 40 + 10.0 * tick))
    seen = measure_of(history)
    assert (seen.arriving, seen.processed, seen.backlog, seen.rate) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("at_batch", "known"), [(True, False), (False, True)], ids=["at a batch", "without input"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside a busy query", "alone"])
def test_of_a_query_that_has_begun_a_batch_after_a_lull_nobody_knows_how_much_there_is(
    beside: bool, at_batch: bool, known: bool
) -> None:
    """Spark tells of its batch when that ends, and it would lose executors in the midst of it."""
    history = History()
    for tick in range(60):
        # Fifty seconds of batches, a lull of four minutes, and a batch of five, of which its end is not seen.
        quiet, begun = tick > 5, tick > 30
        zero = {"input_rows_per_second": 0.0, "processed_rows_per_second": 0.0} if quiet else {}
        main = query(min(tick, 5), NOW + 10.0 * min(tick, 5), 4.0, 1000, at_batch=begun and at_batch, **zero)
        others = (query(tick, NOW + 10.0 * tick, 4.0, 1000, name="busy"),) if beside else ()
        work = 8.0 * (min(tick, 5) + 1 + (tick if beside else 0))
        history = history.add(take_sample(report((main, *others), 4, work), "p", NOW + 10.0 * tick + 5.0))
    assert (measure(history, 60.0, 1) is not None) is known


@pytest.mark.parametrize(("batches", "ended"), [(5, NOW - 36_000), (0, 0.0)], ids=["hours", "since the start"])
def test_what_arrives_after_a_lull_is_counted_from_its_end(batches: int, ended: float) -> None:
    silent = query(batches - 1, ended - 10.0, 10.0, 1000, input_rows_per_second=0.0, processed_rows_per_second=0.0)
    history = History()
    for tick in range(12):
        history = history.add(take_sample(report((silent,), 4, 36.0 * batches), "p", NOW + 10.0 * tick))
    for batch in range(batches, batches + 5):
        begin = NOW + 120.0 + 10.0 * (batch - batches)
        one = query(batch, begin, 10.0, 1000)
        history = history.add(take_sample(report((one,), 4, 36.0 * (batch + 1)), "p", begin + 10.0))
    seen = measure_of(history)
    assert 80.0 <= seen.arriving <= seen.arriving_lately <= 100.0
    assert seen.utilization >= 0.7


def test_the_first_batch_after_a_lull_is_no_batch_of_before() -> None:
    """Those that follow grow with what waits: the second one takes minutes."""
    silent = query(4, NOW - 36_000, 10.0, 1000, input_rows_per_second=0.0, processed_rows_per_second=0.0)
    history, work, rows = History(), 50.0, 5000
    for tick in range(12):
        history = history.add(take_sample(report((silent,), 1, work), "p", NOW + 10.0 * tick))
    begin = NOW + 120.0
    for batch, seconds in ((5, 50.0), (6, 250.0)):
        more = round(100 * seconds)
        rows, work = rows + more, work + seconds
        one = query(batch, begin, seconds, more, input_rows_total=rows, busy_ms_total=round(1000 * work))
        begin += seconds
        reports = (begin + 10.0 * tick for tick in range(5 if batch == 5 else 1))
        for at in (*reports, begin + 180.0) if batch == 5 else reports:
            history = history.add(take_sample(report((one,), 1, work), "p", at))
    seen = measure_of(history)
    assert seen.saturated
    assert seen.arriving == pytest.approx(500.0)


def test_partitions_are_those_of_all_queries_and_unknown_if_one_does_not_tell() -> None:
    assert measure_of(history_of()).source_partitions == 8
    assert measure_of(history_of(source_partitions=-1)).source_partitions == -1
