"""Executors that turn out to be of no use: what is learned of them, and for how long. Pure."""

import dataclasses
from itertools import pairwise
from typing import Any

import pytest

from tidegate.autoscaling.algorithm.effect import HELD_SECONDS, worth_up_to
from tidegate.autoscaling.algorithm.evaluate import evaluate
from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.messages import explain
from tidegate.autoscaling.algorithm.past import Past
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import NOW, SETTINGS, Autoscaled, measured, situation


def hot(arriving: float = 420.0, **fields: Any) -> Measured:
    """Return figures of an application that keeps up; a batch takes four fifths of the trigger's interval.

    Seven executors are needed at four, if rows were all that a batch takes time for.
    """
    return measured(arriving, **{"busy": 0.8, "utilization": 0.7, "batch_seconds": 48.0, **fields})


def tried(hours: float = 0.25) -> Autoscaled:
    """Return an application that got more executors, and whose batches are as long as before."""
    app = Autoscaled()
    app.for_seconds(hours * 3600, hot(), as_long=True)
    return app


def test_executors_that_make_no_batch_shorter_are_given_back() -> None:
    app = tried(0.5)
    assert app.changes == [(4, 7), (7, 4)]
    assert app.said[-1].step is Reason.INEFFECTIVE_SCALING


def test_until_they_are_it_is_said_why_fewer_are_right_though_more_are_needed() -> None:
    app = tried(0.1)
    said = app.said[-1]
    assert (said.step, said.recommended) == (Reason.SCALE_DOWN_SOON, 4)
    assert (
        "More hardly helped: 4 executors processed 525 rows for each second of a batch, and 7 process 525"
        in explain(SETTINGS, situation(hot(executors=7), app.at), said)
    )


def test_those_that_make_batches_shorter_are_kept_and_followed_by_more() -> None:
    app = Autoscaled()
    app.for_seconds(1800, hot())
    assert app.changes == [(4, 7)]
    app.for_seconds(1800, hot(500.0))
    assert app.executors == 9
    assert app.past.held == 0


def test_it_is_tried_again_after_an_hour_and_then_after_twice_as_long_each_time() -> None:
    app = tried(20)
    steps = [
        NOW + 10.0 * (place + 1) for place, each in enumerate(app.said) if each.due and each.step is Reason.SCALE_UP
    ]
    waits = [round((after - before) / HELD_SECONDS, 1) for before, after in pairwise(steps)]
    assert waits == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("more", [hot(560.0), hot(430.0, saturated=True)], ids=["more arrives", "it falls behind"])
def test_when_there_is_more_to_do_executors_are_added_as_ever(more: Measured) -> None:
    app = tried(0.5)
    assert app.executors == 4
    app.for_seconds(100, more)
    assert app.executors >= 7


def test_less_to_do_after_a_step_says_nothing_of_its_use() -> None:
    app = Autoscaled()
    app.for_seconds(70, hot())
    app.for_seconds(60, hot(200.0, rate=30.0), as_long=True)
    assert (app.past.held, app.past.capacity_before) == (0, 0.0)


def test_steps_that_are_small_by_themselves_are_judged_together() -> None:
    app = Autoscaled(executors=20, settings=dataclasses.replace(SETTINGS, most=64))
    app.for_seconds(70, hot(1_400.0, executors=20), as_long=True)
    assert (app.changes, app.past.held) == ([(20, 23)], 0)
    app.for_seconds(70, hot(1_400.0, executors=20), as_long=True)
    assert (app.changes, app.past.held) == ([(20, 23), (23, 27)], 0)
    app.for_seconds(10, hot(1_400.0, executors=20), as_long=True)
    assert (app.past.held_from, app.past.held) == (20, 27)


def test_of_short_batches_that_follow_one_another_nothing_is_learned() -> None:
    """Each takes what arrived during the one before: what is done in a second is what arrives, with any number."""
    app = Autoscaled()
    app.for_seconds(600, measured(420.0, busy=1.0, utilization=0.9, batch_seconds=4.0, back_to_back=True))
    assert app.executors == 6
    assert (app.past.held, app.past.capacity_before) == (0, 0.0)


def test_long_batches_that_follow_one_another_say_nothing_until_it_is_clear_that_they_get_longer() -> None:
    app, slow = Autoscaled(), {"rate": 40.0, "utilization": 0.9, "busy": 1.0, "batch_seconds": 80.0}
    app.for_seconds(10, measured(420.0, saturated=True, processed=400.0, **slow))
    assert app.executors == 15
    app.for_seconds(300, measured(390.0, processed=405.0, executors=15, **slow))
    assert (app.past.held, app.past.capacity_before) == (0, 400.0)
    app.for_seconds(10, measured(700.0, saturated=True, processed=410.0, **slow))
    assert (app.past.held_from, app.past.held, app.past.held_arriving) == (4, 15, 0.0)
    assert app.executors == 15, "it has fallen behind: what it has it keeps"


def behind(arriving: float, processed: float) -> Measured:
    return measured(arriving, saturated=True, processed=processed, busy=1.0, utilization=0.9)


def held_behind(times: int = 1) -> Autoscaled:
    """Return an application that fell behind, and got more executors in vain so many times in a row."""
    app = Autoscaled(settings=dataclasses.replace(SETTINGS, most=500))
    for time in range(times):
        while not app.past.held or app.past.held_times == time:
            app.for_seconds(60, behind(700.0 * 2**time, 400.0))
    return app


def test_who_falls_behind_and_does_clearly_more_than_before_has_lost_what_made_executors_useless() -> None:
    app = held_behind()
    before = app.executors
    app.for_seconds(300, behind(2_000.0, 480.0))
    assert app.executors == before
    app.for_seconds(10, behind(2_000.0, 600.0))
    assert (app.executors > before, app.past.held_times) == (True, 0)


def test_times_in_a_row_are_counted_only_in_a_row() -> None:
    app = held_behind(3)
    assert app.past.held_times == 3
    app.at += 24 * 3600
    app.past = dataclasses.replace(app.past, capacity_before=400.0, capacity_with=4, scaled_at=NOW + app.at)
    app.for_seconds(10, behind(99_000.0, 400.0))
    assert app.past.held_times == 1


def test_a_step_that_helped_ends_the_row() -> None:
    app = held_behind(2)
    steps = len(app.changes)
    while len(app.changes) == steps:
        app.for_seconds(10, behind(9_000.0, 400.0))
    assert app.past.held_times == 2
    app.for_seconds(10, measured(420.0))
    assert (app.past.held, app.past.held_times) == (0, 0)


@pytest.mark.parametrize(
    ("utilization", "saturated", "most"),
    [(0.4, False, 16), (0.4, True, 36), (0.16, False, 4), (0.08, True, 4), (0.8, False, None), (0.0, False, None)],
)
def test_executors_only_shorten_what_executors_work_at(utilization: float, saturated: bool, most: int | None) -> None:
    """Where four work for half of a batch, it takes as long as the work of four, and more than that at any number."""
    assert worth_up_to(measured(420.0, busy=0.8, utilization=utilization, saturated=saturated)) == most


def test_of_a_step_that_is_too_large_as_much_is_taken_as_is_of_use() -> None:
    app = Autoscaled()
    said = app.for_seconds(70, measured(2_800.0, busy=0.8, utilization=0.4))
    assert (said.step, app.changes) == (Reason.SCALE_UP, [(4, 16)])


def test_where_executors_wait_for_most_of_a_batch_no_more_are_even_tried() -> None:
    app, measures = Autoscaled(), measured(420.0, busy=0.8, utilization=0.12)
    said = app.for_seconds(600, measures)
    assert (app.executors, said.step) == (4, Reason.INEFFECTIVE_SCALING)
    message = explain(SETTINGS, situation(measures, app.at), said)
    assert "they would hardly help: executors work for 15% of a batch's time, and wait for the rest." in message
    assert "A hot key, the driver's part of a batch or a slow sink" in message


def test_what_was_of_no_use_once_is_not_named_where_it_is_not_what_keeps_them_away() -> None:
    app = tried(0.1)
    few = measured(420.0, busy=0.8, utilization=0.12, executors=1)
    past = dataclasses.replace(app.past, held_arriving=0.0, target=1)
    said = evaluate(SETTINGS, situation(few, app.at, wanted=1), past)
    assert (said.step, said.bounds.limit if said.bounds else None) == (
        Reason.INEFFECTIVE_SCALING,
        Reason.INEFFECTIVE_SCALING,
    )
    assert "the last ones" not in explain(SETTINGS, situation(few, app.at, wanted=1), said)


def test_executors_that_are_missing_are_not_called_useless() -> None:
    measures = measured(900.0, executors=1, busy=1.0, utilization=0.55, saturated=True)
    said = evaluate(SETTINGS, situation(measures, wanted=8), Past(version="v", target=8))
    assert said.step is Reason.EXECUTORS_MISSING
