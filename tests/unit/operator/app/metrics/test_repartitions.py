"""How changes of the number of state partitions end, in figures. Pure."""

import datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tidegate.api.streaming_app import RepartitionStatus, StreamingAppStatus, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app.metrics.repartitions import RepartitionMetrics

APP = ("shop", "orders")
LABELS = {"namespace": "shop", "app": "orders"}
BEGUN = datetime.datetime.fromtimestamp(1000, datetime.UTC)


def status(
    result: str = "", *, epoch: int = 0, number: int = 1, phase: UpgradePhase = UpgradePhase.REPARTITIONING
) -> StreamingAppStatus:
    times: dict[str, Any] = {"start_time": BEGUN if epoch else None}
    if result:
        times["completion_time"] = BEGUN + datetime.timedelta(seconds=90)
    upgrade = UpgradeStatus(
        phase=phase,
        mode=UpgradeMode.SNAPSHOT,
        number=number,
        from_spec_hash="a",
        to_spec_hash="b",
        lineage=1,
        repartition=RepartitionStatus(partitions=8, previous_partitions=4, epoch=epoch, result=result, **times),
    )
    return StreamingAppStatus(upgrade=upgrade)


def shown(*course: StreamingAppStatus) -> tuple[CollectorRegistry, RepartitionMetrics]:
    registry = CollectorRegistry()
    metrics, before = RepartitionMetrics(registry), StreamingAppStatus()
    for each in course:
        metrics.show(APP, before, each)
        before = each
    return registry, metrics


def ended(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("tidegate_app_repartitions_total", {**LABELS, "outcome": outcome})


def attempts(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("tidegate_app_repartition_attempts_total", LABELS)


@pytest.mark.parametrize("outcome", ["Completed", "Failed"])
def test_each_end_is_counted_once_with_the_time_that_the_application_stood_still(outcome: str) -> None:
    gate = status(outcome, epoch=2, phase=UpgradePhase.GATE)
    registry, _ = shown(status(), status(epoch=2), status(outcome, epoch=2), gate)
    assert (ended(registry, outcome), attempts(registry)) == (1, 1)
    taken = registry.get_sample_value("tidegate_repartition_duration_seconds_sum", {"outcome": outcome})
    assert taken == 90


def test_a_pod_in_the_place_of_one_that_was_lost_is_another_attempt() -> None:
    registry, _ = shown(status(epoch=2), status(epoch=3), status("Completed", epoch=3))
    assert (ended(registry, "Completed"), attempts(registry)) == (1, 2)


def test_what_is_refused_before_the_stop_is_counted_and_took_no_time() -> None:
    registry, _ = shown(status(phase=UpgradePhase.COPYING), status(phase=UpgradePhase.REFUSED))
    assert (ended(registry, "Refused"), attempts(registry)) == (1, None)
    assert registry.get_sample_value("tidegate_repartition_duration_seconds_count", {"outcome": "Refused"}) is None


def test_the_next_upgrades_is_another_one() -> None:
    registry, _ = shown(status("Failed", epoch=2), status(number=2), status("Failed", epoch=3, number=2))
    assert ended(registry, "Failed") == 2


def test_an_application_that_is_gone_leaves_nothing() -> None:
    registry, metrics = shown(status(epoch=2), status("Completed", epoch=2))
    metrics.forget(APP)
    assert (ended(registry, "Completed"), attempts(registry)) == (None, None)
