"""The application is rescaled to numbers that it has not, one repartition after the other; how each ended is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.chaos import rescaling
from tests.chaos.faults import Change, Rescale
from tests.chaos.report import Rescaled
from tests.chaos.rescaling import PARTITIONS, Rescaler


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescaling, "SETTLED_SECONDS", -1.0)


@dataclass
class App:
    """An application that was stable; its upgrades go as the test says."""

    partitions: int = 4
    asked: int = 4
    executors: int = 2
    upgrade: dict[str, Any] = field(default_factory=dict)
    stable: bool = True
    refusal: OSError | None = None

    def get(self) -> dict[str, Any]:
        spec = {"executor": {"instances": self.executors}, "state": {"partitions": self.asked}}
        status = {"statePartitions": self.partitions, "upgrade": self.upgrade}
        return {"spec": spec, "status": {**status, **({"lastStable": {}} if self.stable else {})}}

    def patch(self, spec: Mapping[str, Any]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked = spec.get("state", {}).get("partitions", self.asked)
        self.executors = spec.get("executor", {}).get("instances", self.executors)

    def goes_on(self, phase: str, reason: str = "") -> None:
        """Have the upgrade to what is asked for begin, or be further."""
        known = self.upgrade.get("toSpecHash") == str(self.asked)
        number = self.upgrade.get("number", 0) + (not known)
        self.upgrade = {"number": number, "toSpecHash": str(self.asked), "phase": phase, "reason": reason}
        if phase == "Completed":
            self.partitions = self.asked


def rescaler(app: App) -> Rescaler:
    said: list[str] = []
    return Rescaler(app, 2, said.append)


def partitions(pick: float = 0.0) -> Change:
    return Change(Rescale.PARTITIONS, pick)


@pytest.mark.parametrize("pick", [0.0, 0.3, 0.5, 0.99])
def test_the_number_that_is_asked_for_is_neither_the_state_s_nor_the_one_that_was_refused(pick: float) -> None:
    app = App(partitions=4, asked=6, upgrade={"number": 1, "toSpecHash": "6", "phase": "Refused"})
    rescaler(app).change(partitions(pick))
    assert app.asked in set(PARTITIONS) - {4, 6}


@pytest.mark.parametrize("phase", ["Copying", "Stopping", "Repartitioning", "Gate", "RollingBack"])
def test_while_an_upgrade_is_under_way_the_partitions_stay(phase: str) -> None:
    app = App(upgrade={"number": 1, "toSpecHash": "4", "phase": phase})
    with pytest.raises(AssertionError, match=phase):
        rescaler(app).change(partitions())
    assert app.asked == 4


def test_what_was_asked_for_is_under_way_before_the_operator_has_noticed_it() -> None:
    app = App(upgrade={"number": 1, "toSpecHash": "4", "phase": "Completed"})
    asking = rescaler(app)
    asking.change(partitions())
    asked = app.asked
    with pytest.raises(AssertionError, match="the end of an upgrade"):
        asking.change(partitions())
    assert app.asked == asked


def test_a_version_that_was_not_stable_yet_is_left_alone() -> None:
    app = App(stable=False)
    with pytest.raises(AssertionError, match="the end of an upgrade"):
        rescaler(app).change(partitions())
    assert app.asked == 4


def test_each_repartition_is_counted_once_by_its_end() -> None:
    app = App()
    asking = rescaler(app)
    ends = (("Completed", "Stable"), ("RolledBack", "DriverCrashed"), ("Refused", "NoRoom"), ("Completed", ""))
    for phase, reason in ends:
        asking.change(partitions())
        app.goes_on("Copying")
        app.goes_on(phase, reason)
        asking.settle()
        asking.settle()
    assert asking.rescaled == Rescaled(0, {"Completed": 2, "Refused": 1, "RolledBack": 1})
    assert asking.problems == []


def test_a_repartition_that_is_put_off_has_not_ended_and_counts_as_what_it_comes_to_later() -> None:
    app = App()
    asking = rescaler(app)
    asking.change(partitions())
    app.goes_on("Refused", "StatePartitionsKept")
    with pytest.raises(AssertionError, match="StatePartitionsKept"):
        asking.settle()
    app.upgrade = {**app.upgrade, "number": 2, "phase": "Completed", "reason": "Stable"}
    asking.settle()
    assert (asking.rescaled.partitions, asking.problems) == ({"Completed": 1}, [])


def test_a_version_in_the_place_of_one_that_failed_is_another_repartition_under_the_same_number() -> None:
    app = App()
    asking = rescaler(app)
    asking.change(partitions())
    app.goes_on("Failed")
    asking.change(partitions())
    app.upgrade = {**app.upgrade, "toSpecHash": str(app.asked), "phase": "Completed"}
    asking.settle()
    assert asking.rescaled.partitions == {"Completed": 1, "Failed": 1}


@pytest.mark.parametrize("reason", ["StateDiffers", "SparkFailed"])
def test_a_repartition_that_no_fault_can_have_refused_is_a_problem(reason: str) -> None:
    app = App()
    asking = rescaler(app)
    asking.change(partitions())
    app.goes_on("Refused", reason)
    asking.settle()
    (problem,) = asking.problems
    assert reason in problem


@pytest.mark.parametrize("now", [1, 2, 3])
@pytest.mark.parametrize("pick", [0.0, 0.99])
def test_executors_are_one_or_more_and_at_most_one_more_than_at_first_and_not_as_many_as_now(
    now: int, pick: float
) -> None:
    app = App(executors=now, upgrade={"number": 1, "toSpecHash": "4", "phase": "Gate"})
    asking = rescaler(app)
    asking.change(Change(Rescale.EXECUTORS, pick))
    assert app.executors in {1, 2, 3} - {now}
    assert asking.rescaled == Rescaled(1)


def test_an_api_server_that_refuses_for_too_long_is_no_change() -> None:
    app = App(refusal=OSError("away"))
    asking = rescaler(app)
    with pytest.raises(AssertionError, match="away"):
        asking.change(Change(Rescale.EXECUTORS, 0.0))
    assert asking.rescaled == Rescaled()


def test_a_repartition_whose_record_was_lost_is_counted_as_such_and_the_next_one_waits_for_a_stable_version() -> None:
    app = App()
    asking = rescaler(app)
    asking.change(partitions())
    assert asking.under_way
    asking.forget()
    asking.forget()
    assert not asking.under_way
    app.upgrade, app.stable = {}, False
    with pytest.raises(AssertionError, match="the end of an upgrade"):
        asking.settle()
    app.stable = True
    asking.change(partitions())
    assert (asking.rescaled.partitions, asking.problems) == ({"Lost": 1}, [])
