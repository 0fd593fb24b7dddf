"""What is said of a decision. Pure."""

import dataclasses
from typing import Any

from tidegate.autoscaling.algorithm.evaluate import evaluate
from tidegate.autoscaling.algorithm.large_batches import LargeBatches
from tidegate.autoscaling.algorithm.messages import explain
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.settings import Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Quota, Shortage
from tidegate_testing.autoscaling import NOW, SETTINGS, Autoscaled, measured, situation


def say(settings: Settings = SETTINGS, past: Past | None = None, **fields: Any) -> str:
    now = situation(fields.pop("measures", None), **fields)
    return explain(settings, now, evaluate(settings, now, past or Past()))


def test_a_step_up_is_explained_with_its_numbers() -> None:
    measures = measured(700.0, saturated=True, processed=400.0, backlog=120_000.0)
    assert say(measures=measures) == (
        "12 executors instead of 4. 700 rows/s arrive; an executor can process 100, and is to be used for 70% of that; "
        "120,000 rows of backlog are to be processed within 10 min: 12.0 are needed."
    )


def test_the_rate_of_large_batches_is_told_with_what_small_ones_do_and_the_numbers_make_the_need() -> None:
    large = LargeBatches(rate=40.0, rows=3400.0, shares=(1.0,))
    small = measured(35.0, rate=5.0, busy=1.0, back_to_back=True, rows_per_batch=60.0, shares=(1.0,), backlog=2400.0)
    assert say(measures=small, past=Past(large=large, packing=0.8, packed_with=1, version="v")).endswith(
        "35 rows/s arrive; an executor can process 32 in batches of 3,400 rows (in the present ones of 60 rows, 4.0), "
        "and is to be used for 70% of that; 2,400 rows of backlog are to be processed within 10 min: 1.7 are needed."
    )
    assert f"{35 / (32 * 0.7) + 2400 / (32 * 600):.1f}" == "1.7"


def test_what_is_right_is_explained_too() -> None:
    assert say(measures=measured(280.0)) == (
        "4 executors are right. 280 rows/s arrive; an executor can process 100, and is to be used for 70% of that: 4.0 "
        "are needed."
    )


def test_what_keeps_more_away_is_named_with_what_can_be_done() -> None:
    at_the_maximum = say(Settings(most=4), measures=measured(700.0))
    assert at_the_maximum.startswith("More than 4 executors would be needed; spec.autoscaling.maxExecutors is 4.")
    of_state = say(measures=measured(700.0, source_partitions=2, state_partitions=4))
    assert of_state.startswith("4 executors already have a core for every task; more would be idle.")
    assert of_state.endswith(
        "The sources have 2 partitions and the state has 4 partitions: enough for 4 executors with 1 task each at a "
        "time. Raise spec.state.partitions, which stops the application while its state is repartitioned. Or give the "
        "source more partitions."
    )
    of_sources = say(measures=measured(700.0, source_partitions=4))
    assert of_sources.endswith(
        "The sources have 4 partitions: enough for 4 executors with 1 task each at a time. Give the source more "
        "partitions."
    )
    room = Quota(4, "team", "requests.cpu", "7500m", "8", "1")
    assert say(measures=measured(700.0), quota=room).startswith(
        "More than 4 executors would be needed; ResourceQuota team has room for 4 executors in all (7500m of 8 "
        "requests.cpu are used, and an executor requests 1)."
    )
    assert "only 3 of the 4 that are wanted run" in say(measures=measured(700.0, executors=3))


def test_sources_that_report_no_rows_are_told_with_the_work_that_there_is() -> None:
    assert say(measures=measured(0.0, rate=0.0, utilization=0.8, uncounted=True)) == (
        "The number stays at 4: executors work 80% of their time, and Spark reports no rows of the sources."
    )


def test_batches_that_are_limited_are_told_with_what_waits() -> None:
    throttled = measured(700.0, throttled=True, lag_rows=12_000, busy=0.62, backlog=12_000.0)
    assert "input waits (12,000 rows) while batches take 62% of the time" in say(measures=throttled)


def test_what_still_grows_is_explained_with_what_came_lately() -> None:
    assert say(measures=measured(420.0, arriving_lately=700.0)).endswith(
        ": 6.0 are needed, and 10.0 for the 700 rows/s that arrived lately."
    )


def test_fewer_are_explained_with_the_highest_need_of_the_interval_and_the_share_that_may_go() -> None:
    app = Autoscaled(executors=16)
    app.for_seconds(300, measured(560.0))
    app.for_seconds(270, measured(70.0))
    now = situation(measured(70.0), app.at, wanted=16)
    assert explain(SETTINGS, now, app.said[-1]) == (
        "9 executors instead of 16, if no more are needed for 40 s. 70 rows/s arrive; an executor can process 100, and "
        "is to be used for 70% of that: 1.0 are needed; up to 8.0 were needed in the last 9 min."
    )
    app.for_seconds(400, measured(70.0))
    assert "one step removes at most 50% of the executors" in explain(
        SETTINGS, situation(measured(70.0), app.at), app.said[-1]
    )


def test_a_share_that_is_less_than_one_executor_is_told_to_be_one() -> None:
    def last(executors: int, share: float, arriving: float) -> str:
        settings = dataclasses.replace(SETTINGS, down_share=share)
        app = Autoscaled(settings, executors)
        said = app.for_seconds(310, measured(arriving))
        return explain(settings, situation(measured(arriving), app.at, wanted=executors), said)

    assert "; one step removes at most 5% of the executors, but always one." in last(12, 0.05, 70.0)
    assert last(12, 0.05, 70.0).startswith("11 executors instead of 12, if no more are needed")
    assert "; one step removes at most 10% of the executors." in last(20, 0.1, 70.0)
    # Of those that the tolerance keeps it says nothing, and neither where the need itself is reached.
    assert last(11, 0.5, 630.0).startswith("11 executors are right.")
    assert "one step" not in last(11, 0.5, 630.0)
    assert "one step" not in last(12, 0.5, 490.0)


def test_where_only_the_ceiling_asks_for_fewer_the_share_is_told_too() -> None:
    measures = measured(7000.0, source_partitions=6, state_partitions=6)
    app = Autoscaled(executors=20)
    said = app.for_seconds(310, measures)
    assert (said.recommended, said.current) == (10, 20)
    assert "one step removes at most 50% of the executors" in explain(
        SETTINGS, situation(measures, app.at, wanted=20), said
    )


def test_executors_that_were_of_no_use_are_told_with_what_was_expected_of_them() -> None:
    app = Autoscaled()
    app.for_seconds(10, measured(700.0, saturated=True, processed=400.0))
    said = app.for_seconds(600, measured(1400.0, saturated=True, processed=430.0))
    assert "4 executors processed 400 rows/s, and 10 process 430, where 1,000 were expected." in explain(
        SETTINGS, situation(measured(1400.0), app.at, wanted=10), said
    )


def test_an_excluded_period_is_told_with_its_end() -> None:
    settings, now = SETTINGS, situation(measured(700.0, saturated=True), excluded_until=NOW + 3600)
    assert explain(settings, now, evaluate(settings, now, Past())).startswith(
        "10 executors would do instead of 4; an excluded period lasts until 2027-01-15T09:00:00Z."
    )


def test_where_only_reading_gets_faster_that_is_said() -> None:
    said = say(measures=measured(280.0, source_partitions=32, state_partitions=2))
    assert said.endswith(
        "Beyond 2 executors only reading gets faster: the state has 2 partitions (spec.state.partitions)."
    )


def test_without_figures_it_is_said_that_they_are_waited_for() -> None:
    assert say() == "The number stays at 4 until enough batches are measured."


def test_of_executors_that_are_not_there_it_is_said_since_when() -> None:
    at = "2027-01-15T08:00:00Z"
    assert say(at=300.0, shortage=Shortage(0, 0, NOW)) == (
        f"No executor runs (4 wanted); there have been too few since {at}. The condition Ready says why. "
        "Nothing can be measured without executors."
    )
    assert say(at=300.0, shortage=Shortage(1, 2, NOW)) == (
        f"Only 1 executor runs (4 wanted); there have been too few since {at}. 2 executors must end first. The "
        "condition Ready says why. Measuring starts when their number has stayed the same for 60 s."
    )


def test_of_few_executors_that_have_stayed_it_is_said_that_batches_are_waited_for_and_that_they_are_few() -> None:
    at = "2027-01-15T08:00:00Z"
    few = f"Only 1 executor runs (4 wanted); there have been too few since {at}. The condition Ready says why."
    assert say(at=300.0, shortage=Shortage(1, 0, NOW), same_for=59.0).startswith(few)
    assert say(at=300.0, shortage=Shortage(1, 0, NOW), same_for=60.0) == (
        f"The number stays at 4 until enough batches are measured. {few}"
    )
    # Without any it is no matter for how long.
    assert say(at=300.0, shortage=Shortage(0, 0, NOW), same_for=600.0).endswith(
        "Nothing can be measured without executors."
    )


def test_executors_that_are_missing_are_told_beside_any_other_reason() -> None:
    short = Shortage(3, 0, NOW)
    said = say(measures=measured(280.0), at=300.0, shortage=short)
    assert said.startswith("4 executors are right.")
    assert "Only 3 executors run (4 wanted); there have been too few since 2027-01-15T08:00:00Z." in said
    assert "Only 3 executors run" in say(at=300.0, shortage=short, obstacle=Obstacle.NOT_READY)
    assert "Only 3 executors run" not in say(measures=measured(280.0), at=30.0, shortage=short)


def test_what_does_not_run_is_not_judged() -> None:
    assert say(obstacle=Obstacle.PAUSED) == "No decision: its queries are paused."
    said = "No decision: a query has a continuous trigger, of which Spark reports no rows and no rates."
    assert say(obstacle=Obstacle.CONTINUOUS) == said
    said = "No decision: a query is in real-time mode, in which tasks hold their cores for the whole batch."
    assert say(obstacle=Obstacle.REAL_TIME) == said
