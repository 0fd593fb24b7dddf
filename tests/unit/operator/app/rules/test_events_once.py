"""An event of an upgrade comes once, whatever comes between the decision and its status, and after it. Pure."""

import pytest

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.app.actions import Plan
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, driver_of, ended_with, observe, running_driver
from tidegate_testing.plans import written
from tidegate_testing.upgrades import (
    IMAGE,
    B,
    edited,
    made_invalid,
    new_app,
    of_earlier_operator,
    old_app,
    record,
    runs,
)


def reported(plan: Plan, reason: str) -> list[tuple[str, str]]:
    """Return text and occasion of the events with a reason: two with the same ones are published once."""
    found = [action for action in plan.actions if isinstance(action, PublishEvent) and action.reason == reason]
    return [(event.message, event.occasion) for event in found]


def lives_through(o: Observation, *worlds: dict[str, object]) -> list[tuple[str, str]]:
    """Return what is told of a refused upgrade while the driver of the stable version is in one world after another."""
    events = reported(decide(o, NOW), "UpgradeRefused")
    app = written(o)
    for number, world in enumerate(worlds, 1):
        seen = observe(app, **world)
        events += reported(decide(seen, NOW + number), "UpgradeRefused")
        app = written(seen, NOW + number)
    return events


def refused_where_nothing_runs() -> tuple[Observation, StreamingApp]:
    bad = made_invalid(of_earlier_operator(new_app(UpgradePhase.STOPPING)))
    return observe(bad), old_app()


def test_a_refusal_is_not_told_again_when_the_version_before_has_started() -> None:
    refused, old = refused_where_nothing_runs()
    events = lives_through(refused, {"driver": driver_of(old)}, runs(old))
    assert len(events) == 1


def test_a_refusal_is_not_told_again_after_the_version_before_failed_and_came_round() -> None:
    old = old_app()
    crashed = running_driver(old, running=False, restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1))
    events = lives_through(observe(made_invalid(old), **runs(old)), {"driver": crashed}, runs(old))
    assert len(events) == 1


@pytest.mark.parametrize("refused", [True, False])
def test_a_step_that_is_decided_again_because_its_status_was_not_written_is_told_as_the_same_event(
    refused: bool,
) -> None:
    old = old_app()
    seen = observe(made_invalid(old) if refused else edited(old, {IMAGE: B}), **runs(old))
    first, second = decide(seen, NOW), decide(seen, NOW + 7)
    reason = f"Upgrade{record(first).phase.value}"
    assert record(second).phase_start_time != record(first).phase_start_time
    assert reported(second, reason) == reported(first, reason)
    assert len(reported(first, reason)) == 1


def test_another_edit_that_is_refused_is_told_again() -> None:
    old = old_app()
    bad = written(observe(made_invalid(old), **runs(old)))
    another = edited(bad, {IMAGE: B, "driver.podTemplate": {"spec": {"containers": "none"}}})
    events = reported(decide(observe(another, **runs(old)), NOW + 60), "UpgradeRefused")
    assert len(events) == 1
    assert events != reported(decide(observe(made_invalid(old), **runs(old)), NOW), "UpgradeRefused")
