"""An application is looked at more often than its driver reports, by a clock that can be set. Pure."""

import dataclasses
import random
from collections.abc import Callable

import pytest

from tidegate.autoscaling.algorithm.effect import HELD_SECONDS
from tidegate.autoscaling.algorithm.evaluate import evaluate
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Sight, recommend
from tidegate.autoscaling.algorithm.samples import History
from tidegate.autoscaling.algorithm.situation import Obstacle
from tidegate.autoscaling.observe import see
from tidegate.cache.index import Index
from tidegate_spark.contract.protocol import AgentReport, QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import NOW, SETTINGS, STEADY, Autoscaled, measured, query, report, situation
from tidegate_testing.observations import app_with, launched, report_of, running_driver

Off = Callable[[float], float]
"""Seconds by which the clock that can be set is wrong, some seconds from now."""


def unsteady(by: float) -> Off:
    chance = random.Random(1)
    return lambda at: chance.uniform(-by, by)


def set_back(by: float, after: float) -> Off:
    return lambda at: -by if at >= after else 0.0


def decided(rows: int, lag: int = 0, checks: int = 1, off: Off = lambda at: 0.0) -> list[tuple[Reason, int, int]]:
    """Return what is decided after each report, for how many executors, and how many reports that was made of.

    There are 16 executors to start with, and a batch and a report every ten seconds for 35 minutes.
    """
    history, past, executors, found, work = History(), Past(), 16, list[tuple[Reason, int, int]](), 0.0
    for batch in range(210):
        at, work = 10.0 * (batch + 1), work + rows / 100
        one = query(batch, NOW + 10.0 * batch, 10.0, rows, lag_rows=lag * (batch + 1))
        reported = report((one,), executors, work)
        for number in range(checks):
            later = at + 0.1 * number
            sight = Sight(NOW + later + off(later), STEADY + later, executors, 1, "v", reported, STEADY + at, "p")
            history, advice = recommend(SETTINGS, history, past, sight)
            past = advice.evaluation.past
            if number == 0:
                found.append((advice.evaluation.step, advice.evaluation.recommended, len(history.samples)))
        executors = past.target
    return found


@pytest.mark.parametrize("off", [unsteady(1e-6), unsteady(1e-3), set_back(30.0, 320.0), set_back(86_400.0, 320.0)])
@pytest.mark.parametrize(("rows", "lag"), [(140, 0), (12_000, 5_000)], ids=["fewer", "more"])
def test_looks_at_the_same_report_change_nothing_whatever_the_clock_says(rows: int, lag: int, off: Off) -> None:
    once = decided(rows, lag)
    assert {recommended for _, recommended, _ in once} > {16}
    assert decided(rows, lag, checks=3, off=off) == once


def test_a_report_has_one_time_however_often_it_is_looked_at() -> None:
    app, index = launched(app_with({"autoscaling.mode": "Active", "autoscaling.maxExecutors": 8})), Index()
    driver = running_driver(app, ready=True)
    index.put_app(app)
    index.put_pod(driver)
    index.reports["shop", "orders"] = report_of(driver)
    sights = [see(index, ("shop", "orders"), NOW + off, NOW + 0.1 * off) for off in (0.1, 0.3, -20.0)]
    assert len({sight.taken_at for sight in sights if sight is not None and sight.report is not None}) == 1


@pytest.mark.parametrize(
    ("query", "obstacle"),
    [
        (QueryReport("events", active=True, continuous=True), Obstacle.CONTINUOUS),
        (QueryReport("events", active=False, continuous=True), None),
        (QueryReport("events", active=True, real_time=True), Obstacle.REAL_TIME),
        (QueryReport("events", active=False, real_time=True), None),
    ],
)
def test_a_query_without_measurements_that_runs_keeps_the_number_of_executors_as_it_is(
    query: QueryReport, obstacle: Obstacle | None
) -> None:
    app, index = launched(app_with({"autoscaling.mode": "Active", "autoscaling.maxExecutors": 8})), Index()
    driver = running_driver(app, ready=True)
    index.put_app(app)
    index.put_pod(driver)
    queries = (query, QueryReport("other"))
    index.reports["shop", "orders"] = report_of(driver, queries=queries)
    sight = see(index, ("shop", "orders"), NOW, NOW)
    assert sight is not None
    assert sight.obstacle is obstacle


def test_nothing_is_evaluated_of_a_driver_whose_status_was_lost_until_that_knows_its_number_again() -> None:
    app, index = app_with({"autoscaling.mode": "Active", "autoscaling.maxExecutors": 8}), Index()
    index.put_app(app)
    assert see(index, ("shop", "orders"), NOW, NOW) is not None
    index.put_pod(running_driver(launched(app), ready=True))
    assert see(index, ("shop", "orders"), NOW, NOW) is None


def test_a_report_that_comes_late_to_the_history_changes_nothing() -> None:
    history = History()
    for at in (10.0, 20.0, 15.0, 20.0):
        sight = Sight(NOW, STEADY + 20, 4, 1, "v", report((query(1, NOW, 4.0, 140),)), STEADY + at, "p")
        history, _ = recommend(SETTINGS, history, Past(), sight)
    assert [sample.at - STEADY for sample in history.samples] == [10.0, 20.0]
    assert history.since == STEADY + 10


def test_executors_that_were_of_no_use_are_not_forgotten_by_a_clock_that_is_set_back() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    app.for_seconds(300, measured(1400.0, saturated=True, processed=430.0))
    measures = measured(1400.0, saturated=True, processed=430.0, executors=10)
    # Of a time that lies further ahead nobody can say when it was.
    for back, step in (
        (0.001, Reason.INEFFECTIVE_SCALING),
        (600.0, Reason.INEFFECTIVE_SCALING),
        (2 * HELD_SECONDS, Reason.SCALE_UP),
    ):
        now = situation(measures, app.at, now=app.past.held_at - back, wanted=10)
        assert evaluate(SETTINGS, now, app.past).step is step


def test_between_two_steps_down_lies_the_interval_whatever_the_clock_says() -> None:
    steps = [number for number, (step, _, _) in enumerate(decided(140)) if step is Reason.SCALE_DOWN]
    for back in (30.0, 86_400.0):
        off = set_back(back, after=10.0 * steps[0] + 60.0)
        assert [
            number for number, (step, _, _) in enumerate(decided(140, off=off)) if step is Reason.SCALE_DOWN
        ] == steps


def of_older_runtime(executors_running: int) -> AgentReport:
    """A report that does not tell since when executors are missing."""
    return dataclasses.replace(report((query(0, NOW, 10.0, 100),), 4), executors_running=executors_running)


def test_of_an_older_runtime_a_shortage_is_as_old_as_what_was_seen_of_it() -> None:
    """By no clock but that which tells how long something has been so: it began with the machine, and means nothing."""
    history, past, reported = History(), Past(), of_older_runtime(3)
    for seconds in (0.0, 300.0):
        sight = Sight(NOW + seconds, STEADY + seconds, 4, 1, "v", reported, STEADY + seconds, "p")
        history, advice = recommend(SETTINGS, history, past, sight)
        past = advice.evaluation.past
    assert "there have been too few since 2027-01-15T08:00:00Z" in advice.message


def test_of_an_older_runtime_whose_queries_do_not_run_nothing_is_said_of_since_when() -> None:
    for seconds in (0.0, 300.0):
        now, steady = NOW + seconds, STEADY + seconds
        paused = Sight(now, steady, 4, 1, "v", of_older_runtime(3), steady, "p", Obstacle.PAUSED)
        _, advice = recommend(SETTINGS, History(), Past(), paused)
        assert "too few since" not in advice.message
