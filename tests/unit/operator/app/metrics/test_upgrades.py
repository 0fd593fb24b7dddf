"""How upgrades end, in figures. Pure."""

import datetime

import pytest
from prometheus_client import CollectorRegistry

from tidegate.api.streaming_app import DriverStatus, Phase, StreamingAppStatus, UpgradeMode, UpgradePhase, UpgradeStatus
from tidegate.app.metrics.lifecycle import Restart, restarts_between
from tidegate.app.metrics.upgrades import ENDS, UpgradeMetrics

APP = ("shop", "orders")
LABELS = {"namespace": "shop", "app": "orders"}
NOTHING = StreamingAppStatus()


def status(phase: UpgradePhase, seconds: float = 0, number: int = 1) -> StreamingAppStatus:
    begun = datetime.datetime.fromtimestamp(1000, datetime.UTC)
    upgrade = UpgradeStatus(
        phase=phase,
        mode=UpgradeMode.SNAPSHOT,
        number=number,
        from_spec_hash="a",
        to_spec_hash="b",
        lineage=1,
        start_time=begun,
        phase_start_time=begun + datetime.timedelta(seconds=seconds),
    )
    return StreamingAppStatus(upgrade=upgrade, phase=Phase.RUNNING)


def shown(*course: StreamingAppStatus) -> CollectorRegistry:
    registry = CollectorRegistry()
    metrics, before = UpgradeMetrics(registry), NOTHING
    for each in course:
        metrics.show(APP, before, each)
        before = each
    return registry


def ended(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("tidegate_app_upgrades_total", {**LABELS, "outcome": outcome})


@pytest.mark.parametrize("phase", list(UpgradePhase))
def test_an_end_is_counted_once_and_a_way_there_is_not(phase: UpgradePhase) -> None:
    registry = shown(status(UpgradePhase.STOPPING), status(phase, 9), status(phase, 9), status(phase, 9))
    assert ended(registry, phase.value) == (1.0 if phase in ENDS else None)


def test_the_next_upgrade_that_ends_in_the_same_way_is_another_one() -> None:
    registry = shown(status(UpgradePhase.REFUSED), status(UpgradePhase.REFUSED, number=2))
    assert ended(registry, "Refused") == 2.0


def test_a_sum_of_durations_does_not_fall_when_the_next_leader_s_clock_is_behind() -> None:
    registry = shown(
        status(UpgradePhase.ROLLING_BACK, 50),
        status(UpgradePhase.ROLLED_BACK, 48),
        status(UpgradePhase.REFUSED, -3, number=2),
    )
    assert registry.get_sample_value("tidegate_rollback_duration_seconds_sum") == 0.0
    assert registry.get_sample_value("tidegate_upgrade_duration_seconds_sum", {"outcome": "Refused"}) == 0.0


def test_only_the_phase_that_it_is_in_is_shown() -> None:
    registry = shown(status(UpgradePhase.COPYING), status(UpgradePhase.GATE))
    values = {
        phase.value: registry.get_sample_value("tidegate_app_upgrade_phase", {**LABELS, "phase": phase.value})
        for phase in UpgradePhase
    }
    assert {phase for phase, value in values.items() if value is not None} == {"Gate"}


def test_durations_are_from_the_edit_to_the_end_and_from_the_decision_to_the_version_before() -> None:
    registry = shown(
        status(UpgradePhase.GATE, 30), status(UpgradePhase.ROLLING_BACK, 50), status(UpgradePhase.ROLLED_BACK, 80)
    )
    whole = registry.get_sample_value("tidegate_upgrade_duration_seconds_sum", {"outcome": "RolledBack"})
    assert (whole, registry.get_sample_value("tidegate_rollback_duration_seconds_sum")) == (80.0, 30.0)


TAKEN_BACK_LATER = (status(UpgradePhase.ROLLING_BACK, 90000), status(UpgradePhase.ROLLED_BACK, 90030))


@pytest.mark.parametrize(
    "later", [TAKEN_BACK_LATER, (status(UpgradePhase.WITHDRAWN, 90000),), (status(UpgradePhase.COMPLETED, 90000),)]
)
@pytest.mark.parametrize("end", [UpgradePhase.COMPLETED, UpgradePhase.FAILED, UpgradePhase.ROLLED_BACK])
def test_what_becomes_of_an_upgrade_days_after_its_end_is_not_how_long_it_took(
    end: UpgradePhase, later: tuple[StreamingAppStatus, ...]
) -> None:
    registry = shown(status(UpgradePhase.GATE, 30), status(end, 60), *later)
    whole = sum(
        registry.get_sample_value(f"tidegate_upgrade_duration_seconds_{what}", {"outcome": phase.value}) or 0
        for phase in ENDS
        for what in ("sum", "count")
    )
    assert whole == 60 + 1


def test_the_duration_of_a_rollback_by_hand_is_observed_whenever_it_is() -> None:
    registry = shown(status(UpgradePhase.COMPLETED, 60), *TAKEN_BACK_LATER)
    assert registry.get_sample_value("tidegate_rollback_duration_seconds_sum") == 30.0


def test_an_application_that_is_gone_has_no_series() -> None:
    registry = CollectorRegistry()
    metrics = UpgradeMetrics(registry)
    metrics.show(APP, NOTHING, status(UpgradePhase.COMPLETED))
    metrics.forget(APP)
    assert [s for family in registry.collect() for s in family.samples if s.labels.get("app")] == []


@pytest.mark.parametrize(
    ("phase", "reason"), [(UpgradePhase.ROLLING_BACK, "RolledBack"), (UpgradePhase.GATE, "SpecChanged")]
)
def test_a_launch_of_a_rollback_is_counted_as_one(phase: UpgradePhase, reason: str) -> None:
    old = StreamingAppStatus(phase=Phase.STOPPING, epoch=2, applied_spec_hash="b", driver=DriverStatus(restarts=1))
    new = StreamingAppStatus(phase=Phase.STARTING, epoch=3, applied_spec_hash="a", upgrade=status(phase).upgrade)
    assert restarts_between(old, new) == (Restart(reason, 1),)
