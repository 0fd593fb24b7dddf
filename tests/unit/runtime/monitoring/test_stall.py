"""Which queries are stuck. Pure."""

from dataclasses import replace

import pytest

from tidegate_spark.monitoring.stall import QuerySample, StallDetector

BUSY = QuerySample(
    batch_under_way=True, lag_rows=-1, between_triggers=False, tasks_finished=frozenset({(3, 7)}), last_batch=4
)
IDLE = replace(BUSY, batch_under_way=False, between_triggers=True)


def after(detector: StallDetector, *checks: QuerySample, every: float = 10.0, up: bool = True) -> float:
    """Return the seconds without progress at the last of the looks."""
    return [detector.check("q", check, number * every, up) for number, check in enumerate(checks)][-1]


def test_a_batch_without_a_finished_task_is_stalled_after_the_timeout() -> None:
    detector = StallDetector(30)
    assert after(detector, BUSY, BUSY, BUSY, BUSY) == 30
    assert detector.is_stalled(30)
    assert not detector.is_stalled(29)


@pytest.mark.parametrize(
    "progress",
    [
        replace(BUSY, tasks_finished=frozenset({(3, 8)})),
        replace(BUSY, tasks_finished=frozenset({(4, 0)})),
        replace(BUSY, last_batch=5),
    ],
)
def test_a_finished_task_another_stage_or_a_commit_is_progress(progress: QuerySample) -> None:
    assert after(StallDetector(30), BUSY, BUSY, BUSY, progress) == 0


def test_a_query_between_triggers_is_not_stalled_even_with_lag() -> None:
    assert after(StallDetector(30), *[replace(IDLE, lag_rows=100)] * 9) == 0


def test_known_lag_without_a_trigger_to_wait_for_counts() -> None:
    assert after(StallDetector(30), *[replace(IDLE, lag_rows=100, between_triggers=False)] * 4) == 30


@pytest.mark.parametrize("lag", [0, -1])
def test_a_query_that_asks_its_sources_and_knows_of_no_rows_is_not_stalled(lag: int) -> None:
    assert after(StallDetector(30), *[replace(IDLE, lag_rows=lag, between_triggers=False)] * 9) == 0


def test_while_a_dependency_is_down_the_time_does_not_run() -> None:
    detector = StallDetector(30)
    assert after(detector, *[BUSY] * 9, up=False) == 0
    assert detector.check("q", BUSY, 90, True) == 10


def test_a_timeout_of_zero_never_stalls() -> None:
    assert not StallDetector(0).is_stalled(1e9)


def test_a_query_that_was_started_again_begins_anew() -> None:
    detector = StallDetector(30)
    after(detector, BUSY, BUSY)
    detector.forget("q")
    assert detector.check("q", BUSY, 100, True) == 0
