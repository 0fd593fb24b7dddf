"""Executors that turn out to be of no use: what is learned of them, and for how long. Pure."""

import dataclasses
from itertools import pairwise
from typing import Any

import pytest

from tidegate.autoscaling.bounds import Limit
from tidegate.autoscaling.effect import HELD_SECONDS, is_worth_it
from tidegate.autoscaling.evaluate import Step
from tidegate.autoscaling.measured import Measured
from tidegate.autoscaling.words import explain
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
    assert app.said[-1].step is Limit.INEFFECTIVE


def test_until_they_are_it_is_said_why_fewer_are_right_though_more_are_needed() -> None:
    app = tried(0.1)
    said = app.said[-1]
    assert (said.step, said.recommended) == (Step.DOWN_SOON, 4)
    assert (
        "More brought next to nothing: from 4 to 7 executors it came from 525 to 525 rows for each second"
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
    steps = [NOW + 10.0 * (place + 1) for place, each in enumerate(app.said) if each.due and each.step is Step.UP]
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
    app.for_seconds(600, measured(420.0, busy=1.0, utilization=0.9, batch_seconds=4.0), as_long=True)
    assert app.executors == 6
    assert (app.past.held, app.past.capacity_before) == (0, 0.0)


def test_long_batches_that_follow_one_another_show_it_before_the_lag_does() -> None:
    app = Autoscaled()
    app.for_seconds(600, measured(420.0, busy=1.0, utilization=0.9, batch_seconds=80.0), as_long=True)
    assert (app.executors, app.past.held, app.past.held_arriving) == (7, 7, 0.0)
    assert app.said[-1].step is not Step.DOWN_SOON


@pytest.mark.parametrize(("utilization", "worth"), [(0.7, True), (0.3, True), (0.15, False), (0.05, False)])
def test_executors_only_shorten_what_executors_work_at(utilization: float, worth: bool) -> None:
    assert is_worth_it(measured(420.0, busy=0.8, utilization=utilization), 6) is worth


def test_where_executors_wait_for_most_of_a_batch_no_more_are_even_tried() -> None:
    app, figures = Autoscaled(), measured(420.0, busy=0.8, utilization=0.12)
    said = app.for_seconds(600, figures)
    assert (app.executors, said.step) == (4, Limit.INEFFECTIVE)
    words = explain(SETTINGS, situation(figures, app.at), said)
    assert "would bring next to nothing: executors work for 15% of a batch's time, and wait for the rest." in words
    assert "A hot key, the driver's part of a batch or a slow sink" in words
