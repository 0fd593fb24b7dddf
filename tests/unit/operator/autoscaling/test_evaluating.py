"""How many executors follow from figures, and when. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.autoscaling.algorithm.evaluate import evaluate, need
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.settings import Mode, Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Quota, Shortage
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import NOW, SETTINGS, Autoscaled, measured, situation


def test_the_need_is_what_arrives_by_what_an_executor_does_at_the_wanted_utilization() -> None:
    assert need(SETTINGS, measured(700.0), Past()) == pytest.approx(10.0)


def test_a_backlog_is_worked_off_in_the_time_for_catching_up() -> None:
    assert need(SETTINGS, measured(700.0, backlog=120_000.0), Past()) == pytest.approx(12.0)


def test_what_batches_cannot_use_of_executors_is_needed_more() -> None:
    assert need(SETTINGS, measured(700.0), Past(packing=0.5)) == pytest.approx(20.0)


def test_of_fewer_executors_batches_can_use_more() -> None:
    # With ten, half of their time; what goes by takes as long with five, so they are used for two thirds.
    past = Past(packing=0.5, packed_with=10)
    assert need(SETTINGS, measured(350.0), past) == pytest.approx(10.0)
    assert need(SETTINGS, measured(70.0 * 10 / 3), past) == pytest.approx(5.0)
    assert need(SETTINGS, measured(700.0), past) == pytest.approx(20.0)


def test_more_come_after_the_stabilization_and_all_at_once() -> None:
    app = Autoscaled()
    soon = app.for_seconds(60, measured(700.0))
    assert (soon.step, soon.recommended, soon.due, app.executors) == (Reason.SCALE_UP_SOON, 10, False, 4)
    assert (app.for_seconds(10, measured(700.0)).step, app.changes) == (Reason.SCALE_UP, [(4, 10)])


def test_a_passing_peak_changes_nothing() -> None:
    app = Autoscaled()
    for _ in range(5):
        app.for_seconds(40, measured(700.0))
        app.for_seconds(20, measured(280.0))
    assert app.changes == []


def test_an_application_that_has_fallen_behind_gets_more_at_once() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    assert app.executors == 10


def test_what_still_grows_is_answered_as_it_is_now() -> None:
    app = Autoscaled()
    app.for_seconds(70, measured(420.0, arriving_lately=700.0))
    assert app.changes == [(4, 10)]


def test_a_need_within_a_tenth_of_what_there_is_changes_nothing() -> None:
    app = Autoscaled()
    assert app.for_seconds(3600, measured(300.0)).step is Reason.STEADY
    assert app.changes == []


def test_fewer_come_when_fewer_were_enough_all_through_the_interval() -> None:
    app = Autoscaled()
    app.for_seconds(600, measured(140.0))
    assert app.changes == []
    app.for_seconds(10, measured(140.0))
    assert app.changes == [(4, 3)]


@pytest.mark.parametrize("every", [10.0, 10.02, 25.0])
@pytest.mark.parametrize("seconds", [1.0, 10.0])
def test_fewer_come_also_when_looks_are_further_apart_than_the_interval(every: float, seconds: float) -> None:
    app = Autoscaled(dataclasses.replace(SETTINGS, window=seconds, down_interval=seconds), every=every)
    app.for_seconds(5 * every, measured(140.0))
    assert app.changes == [(4, 3)]


def test_one_need_for_more_within_the_interval_keeps_them() -> None:
    app = Autoscaled()
    for _ in range(6):
        app.for_seconds(500, measured(140.0))
        app.for_seconds(20, measured(280.0))
    assert app.changes == []


def test_a_step_down_takes_no_more_than_its_share() -> None:
    app = Autoscaled(executors=16)
    app.for_seconds(3600, measured(10.0))
    assert app.changes == [(16, 8), (8, 4), (4, 2), (2, 1)]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.09, 0.1])
@pytest.mark.parametrize("executors", [11, 12, 19, 20])
def test_a_share_that_is_less_than_one_of_them_is_one(executors: int, share: float) -> None:
    app = Autoscaled(dataclasses.replace(SETTINGS, down_share=share), executors)
    app.for_seconds(12_600, measured(10.0))
    assert app.executors == 1
    assert {before - after for before, after in app.changes} <= {1, 2}


def test_without_input_the_fewest_are_left() -> None:
    app = Autoscaled(dataclasses.replace(SETTINGS, fewest=2))
    app.for_seconds(3600, measured(0.0, rate=0.0))
    assert app.executors == 2


def test_the_maximum_holds_and_is_named() -> None:
    app = Autoscaled(dataclasses.replace(SETTINGS, most=6))
    said = app.for_seconds(600, measured(7000.0))
    assert (app.executors, said.step) == (6, Reason.AT_MAXIMUM)


def test_bounds_that_somebody_narrows_are_followed_at_once() -> None:
    app = Autoscaled(executors=12)
    app.settings = dataclasses.replace(SETTINGS, most=6)
    assert app.for_seconds(10, None).step is Reason.OUT_OF_BOUNDS
    assert app.executors == 6


@pytest.mark.parametrize(("source", "state", "ceiling"), [(8, 0, 8), (4, 8, 8), (8, 4, 8), (6, 6, 6)])
def test_there_are_no_more_executors_than_tasks(source: int, state: int, ceiling: int) -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(7000.0, source_partitions=source, state_partitions=state))
    assert (app.executors, said.step) == (ceiling, Reason.PARTITIONS_CEILING)


def test_executors_beyond_the_ceiling_go_however_much_is_needed() -> None:
    app = Autoscaled(executors=12)
    busy = measured(7000.0, source_partitions=6, state_partitions=6)
    soon = app.for_seconds(300, busy)
    assert (soon.step, soon.recommended, app.executors) == (Reason.SCALE_DOWN_SOON, 6, 12)
    said = app.for_seconds(900, busy)
    assert (app.changes, said.step) == ([(12, 6)], Reason.PARTITIONS_CEILING)


def test_one_executor_beyond_the_ceiling_is_left_as_it_is() -> None:
    app = Autoscaled(executors=11)
    said = app.for_seconds(1800, measured(7000.0, source_partitions=10, state_partitions=10))
    assert (app.changes, said.step) == ([], Reason.PARTITIONS_CEILING)


def test_where_more_tasks_run_than_there_are_partitions_these_are_no_ceiling() -> None:
    app = Autoscaled(executors=12)
    busy = measured(7000.0, source_partitions=6, state_partitions=0, tasks_at_once=9.4)
    said = app.for_seconds(600, busy)
    assert (app.executors, said.step, app.past.tasks_at_once) == (20, Reason.AT_MAXIMUM, 10)
    # With fewer executors there is no sign of it, and it is not forgotten.
    few = measured(210.0, source_partitions=2, tasks_at_once=0.5)
    app.for_seconds(2400, few)
    assert app.executors == 4
    assert app.for_seconds(600, dataclasses.replace(few, arriving=560.0, arriving_lately=560.0)).step is Reason.STEADY
    assert app.executors == 8


def test_tasks_that_are_about_as_many_as_partitions_say_nothing() -> None:
    app = Autoscaled(executors=6)
    app.for_seconds(600, measured(7000.0, source_partitions=6, state_partitions=6, tasks_at_once=6.3))
    assert (app.executors, app.past.tasks_at_once) == (6, 0)


def test_executors_of_several_cores_reach_the_ceiling_sooner() -> None:
    app = Autoscaled()
    app.for_seconds(600, measured(7000.0, source_partitions=15, state_partitions=15), cores=2)
    assert app.executors == 8


def test_while_executors_have_nothing_to_do_an_application_that_is_behind_gets_no_more() -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(7000.0, saturated=True, processed=400.0, idle_executors=2))
    assert (app.executors, said.step) == (4, Reason.EXECUTORS_IDLE)


def test_where_batches_are_limited_more_executors_would_not_help() -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(7000.0, throttled=True))
    assert (app.executors, said.step) == (4, Reason.BATCHES_LIMITED)


def test_a_quota_bounds_what_is_asked_for() -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(7000.0), quota=Quota(7, "team"))
    assert (app.executors, said.step) == (7, Reason.QUOTA_REACHED)


def test_a_quota_of_which_nobody_knows_how_many_it_takes_bounds_nothing() -> None:
    bounded, free = Autoscaled(), Autoscaled()
    said = bounded.for_seconds(600, measured(7000.0), quota=Quota(2, "team", unsure=True))
    free.for_seconds(600, measured(7000.0))
    assert (bounded.executors, said.step is Reason.QUOTA_REACHED) == (free.executors, False)


def test_a_quota_that_is_used_up_takes_nothing_away() -> None:
    app = Autoscaled()
    app.for_seconds(600, measured(7000.0), quota=Quota(2, "team"))
    assert app.executors == 4


def test_nothing_more_is_asked_for_while_executors_are_missing() -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(7000.0, executors=3), executors=3)
    assert (app.executors, said.step) == (4, Reason.EXECUTORS_MISSING)


def test_where_no_executor_is_there_or_none_stays_that_is_the_reason_and_not_that_it_measures() -> None:
    for running in (0, 3):
        app = Autoscaled()
        short = Shortage(running, 0, NOW)
        assert app.for_seconds(50, None, shortage=short).step is Reason.MEASURING
        said = app.for_seconds(600, None, shortage=short)
        assert (said.step, said.recommended, app.changes) == (Reason.EXECUTORS_MISSING, 4, [])


def test_when_they_have_come_it_measures_and_decides_as_ever() -> None:
    app = Autoscaled()
    app.for_seconds(600, None, shortage=Shortage(0, 0, NOW))
    assert app.for_seconds(30, None).step is Reason.MEASURING
    app.for_seconds(70, measured(700.0))
    assert app.changes == [(4, 10)]


def test_executors_that_bring_next_to_nothing_are_not_followed_by_more() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    assert app.executors == 10
    said = app.for_seconds(3000, measured(1400.0, saturated=True, processed=430.0))
    assert (app.executors, said.step) == (10, Reason.INEFFECTIVE_SCALING)


def test_after_an_hour_more_executors_are_tried_again() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    app.for_seconds(3700, measured(1400.0, saturated=True, processed=430.0))
    assert app.executors > 10


def test_executors_that_helped_are_followed_by_more() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    app.for_seconds(600, measured(1400.0, saturated=True, processed=900.0))
    assert app.executors == 20


def test_executors_that_helped_once_are_followed_by_more_also_when_rows_have_got_dearer_since() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    app.for_seconds(24 * 3600, measured(690.0))
    dear = measured(690.0, rate=40.0, saturated=True, processed=400.0)
    said = app.for_seconds(10, dear)
    assert (said.step, app.changes) == (Reason.SCALE_UP, [(4, 10), (10, 20)])


def test_what_was_learned_of_one_version_says_nothing_of_another() -> None:
    learned = Past(target=10, packing=0.4, held=10, held_at=NOW, version="v")
    found = evaluate(SETTINGS, situation(measured(700.0), version="w"), learned)
    assert (found.past.target, found.past.packing, found.past.held) == (10, 1.0, 0)


def test_in_an_excluded_period_nothing_is_done_and_it_is_said_what_would_be() -> None:
    app = Autoscaled()
    said = app.for_seconds(600, measured(700.0), excluded_until=NOW + 600)
    assert (said.step, said.recommended, app.executors) == (Reason.SCALE_UP, 10, 10)
    assert {each.step for each in app.said[:-1]} == {Reason.EXCLUDED_PERIOD}


def test_advice_is_the_same_and_nothing_is_done() -> None:
    app = Autoscaled(dataclasses.replace(SETTINGS, mode=Mode.ADVISE))
    said = app.for_seconds(600, measured(700.0))
    assert (said.step, said.recommended, said.due) == (Reason.SCALE_UP, 10, True)
    assert (app.executors, app.past.target, app.past.scaled_at) == (4, 0, 0.0)


def test_while_it_does_not_run_nothing_is_decided_and_the_target_stays() -> None:
    app = Autoscaled()
    app.for_seconds(600, measured(700.0))
    said = app.for_seconds(3600, None, obstacle=Obstacle.SUSPENDED)
    assert (said.step, app.executors) == (Reason.NOT_RUNNING, 10)


@pytest.mark.parametrize(
    ("obstacle", "reason", "rows"),
    [
        (Obstacle.CONTINUOUS, Reason.CONTINUOUS_TRIGGER, 0.0),
        (Obstacle.REAL_TIME, Reason.REAL_TIME_TRIGGER, 700.0),  # its batches last for the whole time
    ],
)
def test_with_such_a_trigger_nothing_is_decided_and_the_number_stays(
    obstacle: Obstacle, reason: Reason, rows: float
) -> None:
    app = Autoscaled()
    said = app.for_seconds(3600, measured(rows), obstacle=obstacle)
    assert (said.step, app.changes) == (reason, [])


def test_of_a_driver_that_does_not_tell_enough_nothing_is_made() -> None:
    app = Autoscaled()
    assert app.for_seconds(3600, measured(700.0, rate=0.0)).step is Reason.RATE_UNKNOWN
    assert app.changes == []


def test_an_application_at_work_whose_sources_report_no_rows_keeps_its_executors() -> None:
    app = Autoscaled()
    said = app.for_seconds(7200, measured(0.0, rate=0.0, utilization=0.8, uncounted=True))
    assert (said.step, app.changes) == (Reason.ROWS_UNKNOWN, [])


def test_after_a_gap_without_figures_the_interval_begins_anew() -> None:
    app = Autoscaled()
    app.for_seconds(590, measured(140.0))
    app.for_seconds(600, None)
    app.for_seconds(590, measured(140.0))
    assert app.changes == []


def test_a_new_process_of_the_operator_waits_for_the_whole_interval() -> None:
    app = Autoscaled()
    app.for_seconds(590, measured(140.0))
    app.past = Past(target=app.past.target, version=app.past.version)
    app.for_seconds(590, measured(140.0))
    assert app.changes == []


def test_bounds_that_a_person_sets_hold_also_while_nothing_is_decided() -> None:
    kept: dict[str, Any]
    for kept in ({"obstacle": Obstacle.PAUSED}, {"obstacle": Obstacle.UPGRADING}, {"excluded_until": 1e12}):
        found = evaluate(Settings(most=5, fewest=3), situation(None, wanted=1, **kept), Past(target=1))
        assert (found.step, found.recommended, found.past.target) == (Reason.OUT_OF_BOUNDS, 3, 3)
        advised = evaluate(Settings(most=5, fewest=3, mode=Mode.ADVISE), situation(None, wanted=1, **kept), Past())
        assert advised.past.target == 0
