"""How rehearsals end, in figures. Pure."""

import datetime

import pytest
from prometheus_client import CollectorRegistry

from tidegate.api.streaming_app import RehearsalStatus, StreamingAppStatus, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app.metrics.rehearsals import RehearsalMetrics

APP = ("shop", "orders")
LABELS = {"namespace": "shop", "app": "orders"}
BEGUN = datetime.datetime.fromtimestamp(1000, datetime.UTC)


def status(result: str = "", seconds: float = 0, started: bool = True, number: int = 1) -> StreamingAppStatus:
    rehearsal = RehearsalStatus(
        result=result,
        start_time=BEGUN if started else None,
        completion_time=BEGUN + datetime.timedelta(seconds=seconds) if result else None,
    )
    upgrade = UpgradeStatus(
        phase=UpgradePhase.REHEARSING,
        mode=UpgradeMode.SNAPSHOT,
        number=number,
        from_spec_hash="a",
        to_spec_hash="b",
        lineage=1,
        rehearsal=rehearsal,
    )
    return StreamingAppStatus(upgrade=upgrade)


def shown(*course: StreamingAppStatus) -> tuple[CollectorRegistry, RehearsalMetrics]:
    registry = CollectorRegistry()
    metrics, before = RehearsalMetrics(registry), StreamingAppStatus()
    for each in course:
        metrics.show(APP, before, each)
        before = each
    return registry, metrics


def ended(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("tidegate_app_rehearsals_total", {**LABELS, "outcome": outcome})


@pytest.mark.parametrize("outcome", ["Passed", "Failed", "Inconclusive"])
def test_each_end_is_counted_once_with_what_it_took(outcome: str) -> None:
    registry, _ = shown(status(), status(outcome, 90), status(outcome, 90))
    assert ended(registry, outcome) == 1
    taken = registry.get_sample_value("tidegate_rehearsal_duration_seconds_sum", {"outcome": outcome})
    assert taken == 90


def test_one_that_could_not_begin_is_counted_and_took_no_time() -> None:
    registry, _ = shown(status("Inconclusive", started=False))
    assert ended(registry, "Inconclusive") == 1
    assert registry.get_sample_value("tidegate_rehearsal_duration_seconds_count", {"outcome": "Inconclusive"}) is None


def test_the_next_upgrades_is_another_one() -> None:
    registry, _ = shown(status("Failed", 5), status(number=2), status("Failed", 7, number=2))
    assert ended(registry, "Failed") == 2


def test_an_application_that_is_gone_leaves_nothing() -> None:
    registry, metrics = shown(status("Passed", 5))
    metrics.forget(APP)
    assert ended(registry, "Passed") is None
