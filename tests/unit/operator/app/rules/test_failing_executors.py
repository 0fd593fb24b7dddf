"""An upgrade whose executors end at once fails at its gate in minutes; what the cluster ends is waited for. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.streaming_app import RollbackPolicy, StreamingApp, UpgradePhase
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.pods.records.faults import blames_version
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import EXIT_CODES, DriverState, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Fault
from tidegate_spark.contract.reasons.registry import fault_of
from tidegate_testing.observations import (
    NOW,
    driver_of,
    ended_with,
    executor_of,
    observe,
    report_of,
    running_driver,
)
from tidegate_testing.upgrades import record, under_test

PREEMPTED: dict[str, Any] = {"disruption": "PreemptionByScheduler", "code": 143}
OOM: dict[str, Any] = {"word": "OOMKilled", "code": 137}


def end_of(app: StreamingApp, number: int, born: float, lived: float = 2.0, **fields: Any) -> PodRecord:
    """Return an executor that was made so many seconds ago and lived for so long."""
    code, word = fields.pop("code", 1), fields.pop("word", "Error")
    last = Exit(code, word, "Unrecognized VM option", NOW - born + lived, NOW - born)
    known = {"ended": last, "running": False, "phase": "Failed", "created_at": NOW - born}
    return executor_of(app, number, **{**known, **fields})


def at_gate(*ends: PodRecord, alive: tuple[PodRecord, ...] = (), **report: Any) -> Observation:
    """Return a version at its gate, whose driver runs and whose executors ended like this."""
    app = under_test()
    driver = running_driver(app, ready=False, start_time=NOW - 600)
    known: dict[str, Any] = {
        "executors_wanted": 2,
        "executors_running": 0,
        "executors_ended": len(ends),
        "ready": False,
    }
    agent = report_of(driver, **{**known, **report})
    return observe(app, driver=driver, agent=agent, executors=alive, executor_ends=ends)


def rounds(**fields: Any) -> tuple[PodRecord, ...]:
    """Return the ends of two rounds of two executors each."""
    return tuple(end_of(under_test(), number, born, **fields) for number, born in enumerate((40, 40, 20, 20), 1))


def phase_of(o: Observation) -> UpgradePhase:
    return record(decide(o, NOW)).phase


@pytest.mark.parametrize(
    ("fields", "reason"), [({}, "ExecutorsFailing"), (OOM, "OutOfMemory"), ({"code": 52}, "OutOfMemory")]
)
def test_a_version_whose_executors_end_at_once_is_rolled_back_long_before_its_timeout(
    fields: dict[str, Any], reason: str
) -> None:
    upgrade = record(decide(at_gate(*rounds(**fields)), NOW))
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.ROLLING_BACK, reason)
    assert "orders-e2-exec-4" in upgrade.message


def test_the_ends_of_one_moment_may_have_one_cause_that_passes() -> None:
    app = under_test()
    once = tuple(end_of(app, number, 20.0) for number in range(8))
    assert phase_of(at_gate(*once, executors_wanted=8)) is UpgradePhase.GATE


def test_two_ends_are_not_enough() -> None:
    assert phase_of(at_gate(*rounds()[1:3])) is UpgradePhase.GATE


@pytest.mark.parametrize(
    "fields", [PREEMPTED, {"reason": "Evicted", "disruption": "TerminationByKubelet", "code": 137}]
)
def test_what_the_cluster_ends_is_never_blamed_on_the_version(fields: dict[str, Any]) -> None:
    many = tuple(end_of(under_test(), number, 500.0 - number * 30, **fields) for number in range(16))
    assert phase_of(at_gate(*many, executors_ended=40)) is UpgradePhase.GATE


def test_what_the_cluster_ends_between_does_not_hide_what_the_version_does() -> None:
    preempted = end_of(under_test(), 9, 30.0, **PREEMPTED)
    assert phase_of(at_gate(*rounds(), preempted)) is UpgradePhase.ROLLING_BACK


def test_executors_that_lived_show_that_the_versions_can() -> None:
    app = under_test()
    alive = executor_of(app, 9, start_time=NOW - 150)
    assert phase_of(at_gate(*rounds(), alive=(alive,), executors_running=1)) is UpgradePhase.GATE
    lived = end_of(app, 8, 300.0, lived=200.0)
    assert phase_of(at_gate(lived, *rounds())) is UpgradePhase.GATE


def test_the_time_in_which_a_pod_waits_for_its_image_or_a_node_is_no_life() -> None:
    waited = end_of(under_test(), 8, 300.0, lived=200.0)
    assert waited.ended is not None
    for start_time in (NOW - 102, 0.0):  # a process that could not be started has none
        at_once = dataclasses.replace(waited, ended=dataclasses.replace(waited.ended, start_time=start_time))
        assert phase_of(at_gate(at_once, *rounds())) is UpgradePhase.ROLLING_BACK


def test_an_operator_that_has_just_begun_needs_one_end_and_the_drivers_count() -> None:
    (last,) = rounds()[3:]
    assert phase_of(at_gate(last, executors_ended=4)) is UpgradePhase.ROLLING_BACK
    assert phase_of(at_gate(last, executors_ended=3)) is UpgradePhase.GATE


def test_executors_that_end_with_their_driver_say_nothing() -> None:
    o = at_gate(*rounds())
    agent = o.agent
    assert agent is not None
    stops = dataclasses.replace(agent, report=dataclasses.replace(agent.report, state=DriverState.STOPPING))
    assert phase_of(dataclasses.replace(o, agent=stops)) is UpgradePhase.GATE


def test_executors_of_the_process_before_say_nothing() -> None:
    o = at_gate(*rounds())
    assert o.driver is not None
    again = dataclasses.replace(o, driver=dataclasses.replace(o.driver, start_time=NOW - 10))
    assert phase_of(again) is UpgradePhase.GATE


def test_a_version_that_is_not_to_be_rolled_back_says_why_it_failed() -> None:
    app = under_test(change={"upgrade.rollbackPolicy": RollbackPolicy.NEVER.value})
    driver = running_driver(app, start_time=NOW - 600)
    ends = tuple(end_of(app, number, born) for number, born in enumerate((40, 40, 20, 20), 1))
    agent = report_of(driver, executors_wanted=2, executors_ended=4, ready=False)
    reported = record(decide(observe(app, driver=driver, agent=agent, executor_ends=ends), NOW))
    assert (reported.phase, reported.reason) == (UpgradePhase.FAILED, "ExecutorsFailing")
    assert "Unrecognized VM option" in reported.message


# --- whose fault an end is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", sorted(EXIT_CODES))
def test_of_each_end_the_registry_says_whether_it_speaks_against_the_version(reason: Reason) -> None:
    app = under_test()
    ended = driver_of(app, ended=ended_with(reason, EXIT_CODES[reason]))
    of_version = fault_of(reason) in (Fault.VERSION, Fault.DATA) and reason is not Reason.SOURCE_DATA_LOST
    assert blames_version(ended) == of_version


def test_another_driver_that_took_the_storage_and_a_fault_of_the_surroundings_are_nobodys_fault_here() -> None:
    spared = {
        reason for reason in EXIT_CODES if not blames_version(driver_of(under_test(), ended=ended_with(reason, 1)))
    }
    assert {
        Reason.STOPPED,
        Reason.COMPLETED,
        Reason.FENCED,
        Reason.STORAGE_UNAVAILABLE,
        Reason.BROKER_UNAVAILABLE,
    } <= spared
    assert not {Reason.APPLICATION_FAILED, Reason.STALLED, Reason.STATE_MISSING, Reason.NEWER_FORMAT} & spared


@pytest.mark.parametrize(("code", "blamed"), [(0, True), (1, True), (75, False), (143, False)])
def test_a_word_of_a_newer_runtime_is_judged_by_its_exit_code(code: int, blamed: bool) -> None:
    reported = to_json(Termination(Reason.STALLED, "because", 1)).replace("Stalled", "SomethingNew")
    assert blames_version(driver_of(under_test(), ended=Exit(code, "Error", reported, NOW - 5))) is blamed


def test_at_the_gate_the_end_of_executors_is_told_beside_the_upgrade() -> None:
    o = at_gate(*rounds()[2:], executors_running=1, ready=True, executors_held_until=NOW + 20)
    plan = decide(o, NOW)
    assert record(plan).phase is UpgradePhase.GATE
    assert (plan.reason, "Unrecognized VM option" in plan.message) == ("UpgradeGate", True)
