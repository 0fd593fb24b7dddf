"""Which answers of agents count. Pure."""

import dataclasses

import pytest

from tidegate.observe.gather import REPORT_AGE, observe
from tidegate.observe.index import Index
from tidegate.observe.observation import TimedReport
from tidegate_testing.observations import NOW, PLATFORM, app_with, launched, report_of, running_driver

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
