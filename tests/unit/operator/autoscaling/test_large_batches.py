"""What is remembered of large batches, and what it is used for. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.autoscaling.algorithm.evaluate import evaluate, need
from tidegate.autoscaling.algorithm.large_batches import LargeBatches, remember, usable_rate
from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.past import Past
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import SETTINGS, Autoscaled, measured, situation

LARGE = LargeBatches(rate=100.0, rows=1000.0, shares=(1.0,))
FIXED, PER_ROW = 12.0, 0.01
"""Seconds of tasks: of each batch, and of each row. So the rate is 45 in batches of 1,000 rows."""


def batches(rows: float, rate: float, **fields: Any) -> Measured:
    """Return figures of a query that runs one batch after the other."""
    known: dict[str, Any] = {"busy": 1.0, "back_to_back": True, "rows_per_batch": rows, "shares": (1.0,)}
    return measured(fields.pop("arriving", 70.0), rate=rate, **{**known, **fields})


def batches_of(rows: float, executors: int, arriving: float) -> Measured:
    """Return figures of batches of so many rows, each with a fixed part."""
    rate = rows / (FIXED + PER_ROW * rows)
    return batches(rows, rate, executors=executors, arriving=arriving, arriving_lately=arriving)


def test_small_batches_one_after_the_other_are_judged_by_the_rate_of_large_ones() -> None:
    assert usable_rate(LARGE, batches(50.0, 5.0)) == 100.0
    assert need(SETTINGS, batches(50.0, 5.0), Past(large=LARGE)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "fields",
    [{"back_to_back": False, "busy": 0.5}, {"saturated": True}, {"throttled": True}],
    ids=lambda f: next(iter(f)),
)
def test_with_pauses_or_behind_or_limited_it_counts_what_is_measured(fields: dict[str, Any]) -> None:
    assert usable_rate(LARGE, batches(50.0, 5.0, **fields)) == 5.0


def test_batches_that_are_about_as_large_are_judged_by_their_own_rate() -> None:
    assert usable_rate(LARGE, batches(900.0, 50.0)) == 50.0


def test_a_rate_that_is_higher_than_the_remembered_one_is_used() -> None:
    assert usable_rate(LARGE, batches(50.0, 120.0)) == 120.0


def test_nothing_is_made_of_what_the_driver_does_not_tell() -> None:
    assert usable_rate(LARGE, batches(50.0, 0.0)) == 0.0
    assert remember(LARGE, batches(5000.0, 0.0)) == LARGE


def test_the_newest_of_batches_about_as_large_is_remembered_also_if_they_were_slower() -> None:
    assert remember(LARGE, batches(2000.0, 60.0)) == LargeBatches(60.0, 2000.0, (1.0,))
    assert remember(LARGE, batches(900.0, 60.0)).rate == 60.0
    assert remember(LARGE, batches(500.0, 60.0)) == LARGE


def test_small_batches_that_are_faster_are_remembered() -> None:
    assert remember(LARGE, batches(50.0, 120.0)) == LargeBatches(120.0, 50.0, (1.0,))


def test_what_is_measured_while_it_falls_behind_is_remembered_whatever_its_batches() -> None:
    assert remember(LARGE, batches(50.0, 20.0, saturated=True)) == LargeBatches(20.0, 50.0, (1.0,))


def test_a_load_that_goes_slowly_does_not_take_what_was_learned_with_it() -> None:
    known, rows = LargeBatches(), 10_000.0
    while rows > 1:
        # It wavers on its way, and each report is looked at twice.
        for now in (rows, rows * 1.05, rows * 1.05):
            known = remember(known, batches_of(now, 4, 5.0))
        rows *= 0.97
    assert known.rate >= 0.8 * 10_000 / (FIXED + PER_ROW * 10_000)


def test_the_rate_of_one_mixture_of_queries_says_nothing_of_another() -> None:
    mostly_first = LargeBatches(100.0, 1000.0, (0.9, 0.1))
    assert usable_rate(mostly_first, batches(50.0, 5.0, shares=(0.85, 0.15))) == 100.0
    for shares in ((0.5, 0.5), (0.0, 1.0), (1.0,)):
        assert usable_rate(mostly_first, batches(50.0, 5.0, shares=shares)) == 5.0
        assert remember(mostly_first, batches(50.0, 120.0, shares=shares)) == mostly_first
    assert remember(mostly_first, batches(900.0, 50.0, shares=(0.0, 1.0))).shares == (0.0, 1.0)


def test_it_is_forgotten_with_the_version() -> None:
    found = evaluate(SETTINGS, situation(None, version="w"), Past(large=LARGE, version="v"))
    assert found.past.large == LargeBatches()


def test_where_large_batches_were_never_seen_each_larger_one_is_learned_from() -> None:
    app = Autoscaled(executors=4)
    app.for_seconds(60, batches_of(300.0, 4, 5.0))
    assert app.past.large.rate == pytest.approx(20.0)
    app.for_seconds(60, batches_of(1200.0, 4, 5.0))
    assert app.past.large.rate == pytest.approx(50.0)
    assert app.for_seconds(60, batches_of(30.0, 4, 35.0)).needed == pytest.approx(1.0)


def test_a_new_process_that_knows_nothing_of_large_batches_needs_more_and_not_fewer() -> None:
    small = batches(50.0, 5.0, arriving=14.0, arriving_lately=14.0)
    knows, new = (
        evaluate(SETTINGS, situation(small), Past(large=each, version="v")) for each in (LARGE, LargeBatches())
    )
    assert (round(knows.needed, 1), round(new.needed, 1)) == (0.2, 4.0)
    assert new.step is Reason.STEADY


def test_rows_that_get_dearer_are_learned_when_it_falls_behind_and_not_forgotten_afterwards() -> None:
    app = Autoscaled(executors=1)
    app.past = dataclasses.replace(app.past, large=LARGE, version="v")
    behind = batches(400.0, 20.0, arriving=40.0, arriving_lately=40.0, saturated=True, processed=20.0)
    app.for_seconds(10, behind)
    assert app.executors == 3
    # It has caught up, with small batches again: they are judged by what it did last, and not by what it did before.
    app.for_seconds(3600, batches(60.0, 15.0, arriving=40.0, arriving_lately=40.0))
    assert app.changes == [(1, 3)]
