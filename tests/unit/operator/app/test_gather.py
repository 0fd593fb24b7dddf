"""Which answers of agents count, and how long a look at the drivers' access does. Pure."""

import dataclasses

import pytest

from tidegate.app.observe import observe
from tidegate.cache.access_age import ACCESS_AGE, access_is_due
from tidegate.cache.index import Index
from tidegate.cache.process_state import TimedReport
from tidegate.cache.reports import REPORT_AGE
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import (
    NOW,
    PLATFORM,
    app_with,
    ended_with,
    executor_of,
    launched,
    report_of,
    running_driver,
)

APP = launched(app_with())
KEY = ("shop", "orders")
DRIVER = running_driver(APP)
FRESH = report_of(DRIVER)


def with_report(report: TimedReport) -> Index:
    index = Index()
    index.put_app(APP)
    index.put_pod(DRIVER)
    index.reports[KEY] = report
    return index


def test_it_is_told_since_when_this_process_decides() -> None:
    index = with_report(FRESH)
    index.deciding_since = NOW - 5
    seen = observe(index, KEY, PLATFORM, NOW)
    assert seen is not None
    assert seen.deciding_since == NOW - 5


def test_a_fresh_answer_of_the_present_process_counts() -> None:
    seen = observe(with_report(FRESH), KEY, PLATFORM, NOW)
    assert seen is not None
    assert seen.agent == FRESH


@pytest.mark.parametrize(
    "report",
    [
        dataclasses.replace(FRESH, taken_at=NOW - REPORT_AGE - 1),
        dataclasses.replace(FRESH, restarts=1),
        dataclasses.replace(FRESH, driver_uid="another"),
        dataclasses.replace(FRESH, report=dataclasses.replace(FRESH.report, epoch=7)),
        dataclasses.replace(FRESH, report=dataclasses.replace(FRESH.report, uid="another")),
    ],
    ids=["old", "an earlier process", "another pod", "another epoch", "another application"],
)
def test_other_answers_do_not_count(report: TimedReport) -> None:
    seen = observe(with_report(report), KEY, PLATFORM, NOW)
    assert seen is not None
    assert seen.agent is None


def test_an_application_that_is_gone_is_not_observed() -> None:
    assert observe(Index(), KEY, PLATFORM, NOW) is None


CRASHED = running_driver(APP, ended=ended_with(Reason.APPLICATION_FAILED, 1), restarts=1)
LACKING = report_of(DRIVER, executors_wanted=2, executors_running=1)
ONE = executor_of(APP, 1)

SHOWS_NOTHING: dict[str, tuple[list[PodRecord], TimedReport | None]] = {
    "no driver": ([], None),
    "a driver that failed": ([CRASHED], None),
    "a driver that gets no executors": ([DRIVER, ONE], LACKING),
    "a driver whose executor is gone and does not come back": (
        [DRIVER, ONE, executor_of(APP, 2, delete_by=NOW)],
        LACKING,
    ),
}
SHOWS_IT_IS_THERE: dict[str, tuple[list[PodRecord], TimedReport | None]] = {
    "a driver that starts": ([DRIVER], None),
    "a driver that failed once and is ready": ([dataclasses.replace(CRASHED, ready=True)], None),
    "executors that wait for a node": ([DRIVER, ONE, executor_of(APP, 2, running=False, phase="Pending")], LACKING),
    "a driver that has all it wants": ([DRIVER], report_of(DRIVER, executors_running=1)),
    "a driver that is about to end": ([DRIVER], report_of(DRIVER, DriverState.STOPPING, executors_wanted=2)),
}


def access_ready(pods: list[PodRecord], report: TimedReport | None, age: float) -> bool:
    index = Index()
    index.put_app(APP)
    for pod in pods:
        index.put_pod(pod)
    if report is not None:
        index.reports[KEY] = report
    index.checked_access.note(KEY, NOW - age)
    seen = observe(index, KEY, PLATFORM, NOW)
    assert seen is not None
    return seen.access_ready


@pytest.mark.parametrize("what", SHOWS_NOTHING)
def test_access_is_looked_at_again_where_it_may_be_missing(what: str) -> None:
    assert access_ready(*SHOWS_NOTHING[what], age=ACCESS_AGE - 1)
    assert not access_ready(*SHOWS_NOTHING[what], age=ACCESS_AGE)


@pytest.mark.parametrize("what", SHOWS_IT_IS_THERE)
def test_access_that_shows_is_not_looked_at_again(what: str) -> None:
    assert access_ready(*SHOWS_IT_IS_THERE[what], age=1e9)
    assert access_ready(*SHOWS_IT_IS_THERE[what], age=float("inf"))


@pytest.mark.parametrize(("age", "due"), [(ACCESS_AGE - 1, False), (ACCESS_AGE, True)])
def test_a_report_of_missing_executors_asks_for_a_look_at_the_access_once_in_a_while(age: float, due: bool) -> None:
    index = Index()
    index.put_pod(ONE)
    index.checked_access.note(KEY, NOW - age)
    assert access_is_due(index, KEY, LACKING.report, NOW) is due
    assert not access_is_due(index, KEY, FRESH.report, NOW)
