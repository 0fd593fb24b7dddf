"""Periods in which nothing is changed. Pure."""

import datetime

import pytest

from tidegate.api.values.times import ScheduleError
from tidegate.autoscaling.algorithm.excluded import excluded_until
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Sight, recommend
from tidegate.autoscaling.algorithm.samples import History
from tidegate.autoscaling.algorithm.settings import ExcludedPeriod, Settings
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import query, report

MORNINGS = (ExcludedPeriod("0 8 * * MON-FRI", 7200.0),)


def at(text: str) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-11-23T07:59:59", None),
        ("2026-11-23T08:00:00", "2026-11-23T10:00:00"),
        ("2026-11-23T09:59:59", "2026-11-23T10:00:00"),
        ("2026-11-23T10:00:00", None),
        ("2026-11-22T09:00:00", None),
    ],
)
def test_a_period_lasts_from_its_time_for_its_duration(now: str, until: str | None) -> None:
    assert excluded_until(MORNINGS, at(now)) == (at(until) if until else 0.0)


def test_of_periods_that_overlap_the_last_end_counts() -> None:
    periods = (*MORNINGS, ExcludedPeriod("30 9 * * *", 3600.0))
    assert excluded_until(periods, at("2026-11-23T09:45:00")) == at("2026-11-23T10:30:00")


def test_a_schedule_that_is_none_is_said_to_be_none() -> None:
    with pytest.raises(ScheduleError, match="is no schedule"):
        excluded_until((ExcludedPeriod("0 8 5-3 * *", 60.0),), at("2026-11-23T08:00:00"))


def test_what_would_be_done_is_done_when_the_period_is_over() -> None:
    """An application falls behind before eight o'clock in the morning, and gets its executors at ten."""
    settings, begin = Settings(most=8, excluded=MORNINGS), at("2026-11-23T07:59:00")
    history, past, scaled = History(), Past(), list[float]()
    for batch in range(800):
        now = begin + 10.0 * (batch + 1)
        one = query(batch, begin + 10.0 * batch, 10.0, 1000, lag_rows=500 * (batch + 1))
        sight = Sight(now, now, 1, 1, "v", report((one,), 1, 9.0 * (batch + 1)), now, "p")
        history, advice = recommend(settings, history, past, sight)
        past = advice.evaluation.past
        if advice.evaluation.due:
            scaled.append(now)
        elif at("2026-11-23T08:05:00") <= now < at("2026-11-23T10:00:00"):
            assert advice.evaluation.step is Reason.EXCLUDED_PERIOD
            assert "an excluded period lasts until 2026-11-23T10:00:00Z" in advice.message
    assert scaled[0] == at("2026-11-23T10:00:00")
