"""An excluded period whose schedule tells no times keeps the autoscaler from nothing, and is named. Pure."""

from typing import Any

import msgspec

from tidegate.api.spec import AutoscalingSpec
from tidegate.api.streaming_app import Condition, Phase, StreamingApp
from tidegate.app.actions import WriteStatus
from tidegate.app.rules.live.ignored_periods import PERIODS_IGNORED
from tidegate.app.rules.plan import decide
from tidegate.autoscaling.algorithm.settings import ExcludedPeriod
from tidegate.autoscaling.rules.inputs import settings_of
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver

GOOD = {"schedule": "0 8 * * *", "durationSeconds": 7200}
NEVER = {"schedule": "0 8 31 2 *", "durationSeconds": 7200}
NONE = {"schedule": "0 8 * * FRI-1", "durationSeconds": 7200}


class World:
    """A running application, and whoever edits its excluded periods; a look follows each edit."""

    def __init__(self, *periods: dict[str, Any], mode: str = "Active") -> None:
        self.generation, self.mode = 0, mode
        self.app: StreamingApp = launched(app_with({}), phase=Phase.RUNNING)
        self.said: list[PublishEvent] = []
        self.edit(*periods)

    def edit(self, *periods: dict[str, Any]) -> None:
        self.generation += 1
        asked: dict[str, Any] = {
            "autoscaling.mode": self.mode,
            "autoscaling.maxExecutors": 8,
            "autoscaling.excludedPeriods": list(periods),
        }
        edited = app_with(asked, status=self.app.status)
        metadata = msgspec.structs.replace(edited.metadata, generation=self.generation)
        self.app = msgspec.structs.replace(edited, metadata=metadata)
        self.check()

    def check(self, seconds: float = 0.0) -> None:
        driver = running_driver(self.app, ready=True)
        for action in decide(observe(self.app, driver=driver, agent=report_of(driver)), NOW + seconds).actions:
            if isinstance(action, WriteStatus):
                self.app = msgspec.structs.replace(self.app, status=action.status)
            if isinstance(action, PublishEvent) and action.reason == Reason.SCHEDULE_INVALID:
                self.said.append(action)

    @property
    def condition(self) -> Condition | None:
        return self.app.status.condition(PERIODS_IGNORED)


def test_a_period_that_never_comes_is_named_with_what_to_write_instead() -> None:
    world = World(GOOD, NEVER)
    assert world.condition is not None
    assert (world.condition.status, world.condition.reason) == ("True", Reason.SCHEDULE_INVALID)
    assert world.condition.message == (
        "The autoscaler ignores this period and follows the others until that is corrected. "
        "spec.autoscaling.excludedPeriods[1].schedule: '0 8 31 2 *' never occurs: none of its months has that "
        "day. Name a day that one of them has, such as 28."
    )
    (event,) = world.said
    assert (event.message, event.warning) == (world.condition.message, True)


def test_of_several_each_is_named() -> None:
    world = World(NONE, GOOD, NEVER)
    assert world.condition is not None
    assert "excludedPeriods[0].schedule: '0 8 * * FRI-1' is no schedule (Bad day-of-week)" in world.condition.message
    assert "excludedPeriods[2].schedule: '0 8 31 2 *' never occurs" in world.condition.message
    assert "excludedPeriods[1]" not in world.condition.message


def test_it_is_told_once_however_often_it_is_looked() -> None:
    world = World(NEVER, mode="Advise")
    for seconds in range(0, 7200, 600):
        world.check(float(seconds))
    assert len(world.said) == 1


def test_what_is_corrected_is_not_said_any_more_and_another_mistake_is_told_anew() -> None:
    world = World(NEVER)
    world.edit(GOOD)
    assert world.condition is None
    world.edit(GOOD, NONE)
    assert [event.message.count("FRI-1") for event in world.said] == [0, 1]


def test_an_autoscaler_that_is_off_has_no_periods_to_leave_out() -> None:
    world = World(NEVER, mode="Off")
    assert (world.condition, world.said) == (None, [])


def test_the_application_is_as_ready_as_without() -> None:
    ready = World(NEVER).app.status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Running")


def test_the_autoscaler_goes_by_the_periods_that_come() -> None:
    spec = msgspec.convert({"maxExecutors": 8, "excludedPeriods": [NEVER, GOOD, NONE]}, AutoscalingSpec)
    assert settings_of(spec).excluded == (ExcludedPeriod("0 8 * * *", 7200.0),)
