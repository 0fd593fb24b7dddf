"""An executor.instances that somebody changes while the autoscaler decides is not left without a word. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import AutoscalingBasis, AutoscalingStatus, Condition, Phase, StreamingApp
from tidegate.app.actions import Action, SetExecutors, WriteStatus
from tidegate.app.rules.live.ignored_instances import INSTANCES_IGNORED
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver

BEGAN = AutoscalingBasis(instances=2, min_executors=1, max_executors=12)


class World:
    """An application that the autoscaler has given three executors, and whoever edits it; a look follows each edit."""

    def __init__(self, basis: AutoscalingBasis | None = BEGAN, target: int | None = 3) -> None:
        self.spec: dict[str, Any] = {
            "autoscaling.mode": "Active",
            "autoscaling.maxExecutors": 12,
            "executor.instances": 2,
        }
        self.now, self.generation = NOW, 1
        known = AutoscalingStatus(mode="Active", target=target, basis=basis)
        self.app: StreamingApp = launched(app_with(self.spec), phase=Phase.RUNNING, autoscaling=known)
        self.events: dict[tuple[str, str, str], PublishEvent] = {}
        self.writes = 0
        self.check()
        self.writes = 0

    def edit(self, after: float = 0.0, **fields: Any) -> None:
        self.spec |= {name.replace("__", "."): value for name, value in fields.items()}
        self.now, self.generation = self.now + after, self.generation + 1
        edited = app_with(self.spec, status=self.app.status)
        metadata = msgspec.structs.replace(edited.metadata, generation=self.generation)
        self.app = msgspec.structs.replace(edited, metadata=metadata)
        self.check()

    def check(self) -> Sequence[Action]:
        driver = running_driver(self.app, ready=True)
        report = report_of(driver, executors_wanted=3, executors_running=3)
        actions = decide(observe(self.app, driver=driver, agent=report), self.now).actions
        for action in actions:
            if isinstance(action, WriteStatus):
                self.writes += 1
                self.app = msgspec.structs.replace(self.app, status=action.status)
            if isinstance(action, PublishEvent) and action.reason == INSTANCES_IGNORED:
                # As the publisher does: what says the same on the same occasion is one event.
                self.events[action.reason, action.message, action.occasion] = action
        return actions

    @property
    def condition(self) -> Condition | None:
        return self.app.status.condition(INSTANCES_IGNORED)


def test_a_number_that_somebody_sets_while_the_autoscaler_decides_is_answered_with_what_holds_and_what_to_do() -> None:
    world = World()
    assert world.condition is None
    world.edit(executor__instances=6)
    condition = world.condition
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", Reason.AUTOSCALER_ACTIVE)
    assert "changed from 2 to 6 and has no effect" in condition.message
    assert "from 1 (minExecutors) to 12 (maxExecutors)" in condition.message
    assert (
        "Set the number back, set spec.autoscaling.mode to Off or Advise, or change spec.autoscaling.minExecutors"
        in condition.message
    )
    (event,) = world.events.values()
    assert event.warning
    assert "Off or Advise" in event.message
    assert [a for a in world.check() if isinstance(a, SetExecutors)] == [], "the driver is left as it is"


def test_the_application_is_as_ready_as_it_was() -> None:
    world = World()
    world.edit(executor__instances=6)
    ready = world.app.status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Running")


def test_what_has_been_said_is_not_said_again() -> None:
    world = World()
    world.edit(executor__instances=6)
    world.writes = 0
    for _ in range(3):
        assert [a for a in world.check() if isinstance(a, PublishEvent | WriteStatus)] == []


def test_a_scaler_that_writes_again_and_again_makes_one_event_an_hour_and_one_write_an_edit() -> None:
    world = World()
    for number in range(240):
        world.edit(after=15.0, executor__instances=3 + number % 5)
    assert len(world.events) <= 2
    assert world.writes == 240
    assert world.condition is not None


def test_an_edit_hours_later_is_told_anew() -> None:
    world = World()
    world.edit(executor__instances=6)
    world.edit(after=7200, executor__instances=8)
    assert len(world.events) == 2


@pytest.mark.parametrize(
    "remedy",
    [
        {"autoscaling__mode": "Off"},
        {"autoscaling__mode": "Advise"},
        {"autoscaling__minExecutors": 6},
        {"autoscaling__maxExecutors": 20},
        {"executor__instances": 2},
    ],
    ids=str,
)
def test_each_remedy_ends_it(remedy: dict[str, Any]) -> None:
    world = World()
    world.edit(executor__instances=6)
    world.edit(**remedy)
    assert world.condition is None
    world.check()
    assert world.condition is None


def test_the_number_that_the_autoscaler_starts_from_is_no_edit() -> None:
    for basis, target in ((None, 3), (BEGAN, None), (None, None)):
        world = World(basis, target)
        known = world.app.status.autoscaling
        assert known is not None
        assert known.basis == BEGAN
        assert world.condition is None


def test_off_and_on_again_it_starts_from_the_number_of_now() -> None:
    world = World()
    world.edit(autoscaling__mode="Advise")
    world.edit(executor__instances=6)
    assert world.condition is None
    world.edit(autoscaling__mode="Active")
    assert (world.condition, world.events) == (None, {})


def test_an_operator_that_begins_anew_knows_it_from_the_status() -> None:
    world = World()
    world.edit(executor__instances=6)
    since = world.condition
    world.edit(after=60, executor__instances=7)
    assert since is not None
    assert world.condition is not None
    assert world.condition.last_transition_time == since.last_transition_time
    assert "changed from 2 to 7" in world.condition.message
