"""What a driver says at its end is taken in although its pod is gone before anybody looked. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import DriverStatus, LastExit, Phase, StreamingApp
from tidegate.app.actions import CreateDriver
from tidegate.app.observation import Observation
from tidegate.app.observe import observe
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, PLATFORM, app_with, deleted, driver_of, launched, running_driver
from tidegate_testing.plans import acts, status_of, written

KEY = ("shop", "orders")
DRIVER = DriverStatus(pod_name="orders-driver", start_time=time_from_seconds(NOW - 50))
APP = launched(app_with(), 4, phase=Phase.RUNNING, driver=DRIVER)


def final(reason: Reason = Reason.STOPPED, exit_code: int = 143, **reported: Any) -> PodRecord:
    """Return the driver's pod as the news of its deletion show it."""
    termination = to_json(Termination(reason, "because", 4, **reported))
    ended = Exit(exit_code, "Error", termination, NOW - 5)
    return driver_of(APP, phase="Failed", ended=ended, delete_by=NOW + 9, resource_version="11")


def after_its_end(app: StreamingApp, pod: PodRecord) -> Index:
    """Return the index after one piece of news told both the end of a running driver and that its pod is gone."""
    index = Index()
    index.put_app(app)
    index.put_pod(running_driver(APP))
    index.remove_pod(pod)
    return index


def check(index: Index) -> Observation:
    seen = observe(index, KEY, PLATFORM, NOW)
    assert seen is not None
    return seen


def test_the_end_is_told_and_counted_and_only_then_is_the_driver_gone() -> None:
    index = after_its_end(APP, final(boundary=False, failures=(NOW - 9,)))
    seen = check(index)
    plan = decide(seen, NOW)
    events, status = [a.reason for a in plan.actions if isinstance(a, PublishEvent)], status_of(plan)
    assert ("GracePeriodExceeded" in events, acts(plan, CreateDriver)) == (True, False)
    assert status.last_exit is not None
    assert status.restarts is not None
    assert (status.last_exit.reason, status.restarts.total, len(status.restarts.recent_failure_times)) == (
        "Stopped",
        1,
        1,
    )
    index.replace_app(written(seen))
    again = check(index)
    following = decide(again, NOW)
    assert (again.driver, acts(following, CreateDriver), status_of(following).restarts) == (None, True, status.restarts)


@pytest.mark.parametrize(
    ("reason", "phase"), [(Reason.COMPLETED, Phase.COMPLETED), (Reason.RESTART_BUDGET_EXHAUSTED, Phase.FAILED)]
)
def test_what_ended_for_good_is_not_started_again(reason: Reason, phase: Phase) -> None:
    pod = dataclasses.replace(final(reason, 0), phase="Succeeded")
    index = after_its_end(APP, pod)
    index.replace_app(written(check(index)))
    plan = decide(check(index), NOW)
    assert (known_phase(index), acts(plan, CreateDriver)) == (phase, False)


def known_phase(index: Index) -> Phase | None:
    return check(index).app.status.phase


OTHERWISE: dict[str, StreamingApp] = {
    "of an earlier application of the name": launched(app_with(uid="u-2"), 4, driver=DRIVER),
    "of an application that is deleted": deleted(APP),
    "of an earlier epoch": launched(app_with(), 5, driver=DRIVER),
    "whose absence was seen before": launched(app_with(), 4),
    "whose end was told": msgspec.structs.replace(
        APP,
        status=msgspec.structs.replace(APP.status, last_exit=LastExit(completion_time=time_from_seconds(NOW - 5))),
    ),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_a_driver_that_is_gone_is_not_shown(case: str) -> None:
    assert check(after_its_end(OTHERWISE[case], final())).driver is None


def test_nor_is_one_whose_end_nobody_saw() -> None:
    assert check(after_its_end(APP, running_driver(APP, resource_version="11"))).driver is None
