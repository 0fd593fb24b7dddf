"""The number of executors of a driver that runs, stops or starts, and what is said of those that are missing. Pure."""

import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import AutoscalingStatus, Phase, RepartitionStatus, StreamingApp, UpgradePhase
from tidegate.app.actions import DeleteDriver, SetExecutors, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate.app.rules.pods.executors import (
    LINGER_SECONDS,
    ORDERS_STAND_SECONDS,
    SILENT_SECONDS,
    executor_to_try,
    lacks_pods,
)
from tidegate.autoscaling.algorithm.situation import SHORT_SECONDS, Quota
from tidegate.cache.process_state import ProcessState
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import process_of
from tidegate_spark.contract.control_protocol import ControlReport, MessageReport, MessageState
from tidegate_spark.contract.protocol import PROTOCOL, DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, executor_of, launched, observe, report_of, running_driver
from tidegate_testing.plans import verdict_of
from tidegate_testing.upgrades import launch_of, runs_with, under_test

EIGHT = launched(app_with({"executor.instances": 8}), phase=Phase.RUNNING)


def missing(since: float, pods: int = 5, **fields: Any) -> Observation:
    """Return an application that wants 8 executors and has 5, since some seconds."""
    driver = running_driver(EIGHT, ready=True)
    report = report_of(driver, executors_wanted=8, executors_running=5, executors_short_since=NOW - since)
    executors = tuple(executor_of(EIGHT, number) for number in range(pods))
    return observe(EIGHT, driver=driver, executors=executors, agent=report, **fields)


def autoscaled(phase: UpgradePhase, **fields: Any) -> StreamingApp:
    """Return an application in the middle of an upgrade, whose autoscaler wants 6 executors."""
    app = under_test(phase, {"autoscaling.mode": "Active", "autoscaling.maxExecutors": 8}, **fields)
    status = msgspec.structs.replace(app.status, autoscaling=AutoscalingStatus(mode="Active", target=6))
    return msgspec.structs.replace(app, status=status)


def test_executors_that_are_on_their_way_are_waited_for() -> None:
    plan = decide(missing(since=20), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "Running")
    assert plan.wake_after == SHORT_SECONDS - 20


def test_executors_without_pods_are_told_of_with_the_quota_that_has_no_room() -> None:
    short = missing(since=SHORT_SECONDS, quota=Quota(5, "team"))
    assert lacks_pods(short, NOW)
    plan = decide(short, NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ExecutorsMissing")
    assert "with 5 of 8 executors. 3 have no pod: ResourceQuota team has room for 5" in plan.message


def test_a_driver_of_the_former_account_is_told_how_it_gets_its_rights_back() -> None:
    """Nobody makes the Role of all drivers again, and nothing restarts a driver for it."""
    o = missing(since=SHORT_SECONDS)
    assert o.driver is not None
    shared = dataclasses.replace(o, driver=dataclasses.replace(o.driver, service_account="tidegate-driver"))
    plan = decide(shared, NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ExecutorsMissing")
    assert "tidegate-driver, the former ServiceAccount of all drivers" in plan.message
    assert "Change spec.restartNonce" in plan.message
    assert "former" not in decide(o, NOW).message


def test_executors_that_do_not_state_what_a_quota_counts_are_told_which_field_does_and_what_is_not_known() -> None:
    field = "spec.executor.resources.limits.cpu"
    # Also where the number that is not known is none that keeps any away.
    for most in (5, 8):
        quota = Quota(most, "team", "limits.cpu", "2", "64", unstated=field, unsure=True)
        plan = decide(missing(since=SHORT_SECONDS, quota=quota), NOW)
        assert plan.message.endswith(
            "3 have no pod: the API server refuses them, or the driver may not create them; the log of the driver has "
            'the answer: "kubectl logs orders-driver -n shop". '
            "ResourceQuota team counts limits.cpu (2 of 64 are used), and refuses executors, which state "
            "none, unless a LimitRange gives them one. Set spec.executor.resources.limits.cpu."
        )


def test_a_quota_that_is_used_up_is_told_with_the_field_as_well() -> None:
    quota = Quota(5, "team", "limits.cpu", "2", "2", unstated="spec.executor.resources.limits.cpu")
    plan = decide(missing(since=SHORT_SECONDS, quota=quota), NOW)
    assert plan.message.endswith(
        "ResourceQuota team has room for 5 executors in all (2 of 2 limits.cpu are used, and executors state no "
        "limits.cpu: set spec.executor.resources.limits.cpu). Raise the quota, or lower the number of executors or "
        "spec.executor.resources.requests."
    )


def test_where_no_quota_is_the_reason_others_are_named() -> None:
    for quota in (None, Quota(8, "team")):
        plan = decide(missing(since=SHORT_SECONDS, quota=quota), NOW)
        assert "admission policy" in plan.message
        assert "team" not in plan.message


PRIVILEGES = (
    'pods "orders-e1-exec-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
    '(container "fill" must set securityContext.allowPrivilegeEscalation=false)'
)


def test_what_the_api_server_holds_against_an_executor_is_told_in_its_words() -> None:
    refused = dataclasses.replace(missing(since=SHORT_SECONDS), executor_refused=PRIVILEGES)
    plan = decide(refused, NOW)
    assert plan.reason == "ExecutorsMissing"
    assert 'violates PodSecurity "restricted:latest"' in plan.message
    assert "the log of the driver" not in plan.message


def test_of_executors_of_another_version_than_the_specs_nobody_is_asked() -> None:
    o = missing(since=SHORT_SECONDS)
    assert o.driver is not None
    assert executor_to_try(o) is not None
    assert executor_to_try(dataclasses.replace(o, driver=dataclasses.replace(o.driver, spec_hash="another"))) is None


def test_executors_with_pods_that_never_say_a_word_are_told_of_later() -> None:
    assert not lacks_pods(missing(since=SHORT_SECONDS, pods=8), NOW)
    assert decide(missing(since=SHORT_SECONDS, pods=8), NOW).reason == "Running"
    plan = decide(missing(since=SILENT_SECONDS, pods=8), NOW)
    assert plan.reason == "ExecutorsMissing"
    assert "3 have a pod and do not register with the driver" in plan.message


def leaving(since: float, *, running: int = 5, number: int = 3, short: float = SILENT_SECONDS) -> Observation:
    """Return an application that wants 8 executors, while others have not gone yet, the first since some seconds."""
    driver = running_driver(EIGHT, ready=True)
    known: dict[str, Any] = {"executors_wanted": 8, "executors_running": running, "executors_leaving": number}
    known |= {"executors_leaving_since": NOW - since, "executor_leaving_longest": "7"}
    report = report_of(driver, executors_short_since=NOW - short if running < 8 else 0.0, **known)
    executors = tuple(executor_of(EIGHT, each) for each in range(running + number))
    return observe(EIGHT, driver=driver, executors=executors, agent=report)


def test_executors_that_still_end_their_tasks_keep_others_away_and_nothing_is_wrong_with_that() -> None:
    plan = decide(leaving(since=60.0), NOW)
    assert plan.reason == "Running"
    assert plan.wake_after == LINGER_SECONDS - 60.0
    (write,) = [each for each in plan.actions if isinstance(each, WriteStatus)]
    assert write.status.executors is not None
    assert (write.status.executors.running, write.status.executors.leaving) == (5, 3)


def test_executors_that_go_hide_no_more_that_are_missing_than_they_are() -> None:
    plan = decide(leaving(since=60.0, number=1), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ExecutorsMissing")
    assert "with 5 of 8 executors. 2 have no pod" in plan.message


def test_one_that_was_to_go_and_hangs_is_named_when_it_keeps_others_away() -> None:
    plan = decide(leaving(since=LINGER_SECONDS), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ExecutorsMissing")
    assert "with 5 of 8 executors. Executor 7 and 2 others should have ended at 2027-01-15T07:50:00Z" in plan.message
    assert "still run tasks; Spark starts no others instead before they have gone" in plan.message
    assert 'node of pod orders-e1-exec-7 ("kubectl logs orders-e1-exec-7 -n shop")' in plan.message
    assert "If you delete the pod, other executors run its tasks again" in plan.message
    assert [each.reason for each in plan.actions if isinstance(each, PublishEvent)] == ["ExecutorsMissing"]


def test_one_that_was_to_go_and_hangs_is_named_when_nobody_is_missing_too() -> None:
    plan = decide(leaving(since=LINGER_SECONDS, running=8, number=1), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ExecutorsLinger")
    assert "and still runs tasks. See the log" in plan.message
    (event,) = [each for each in plan.actions if isinstance(each, PublishEvent)]
    assert (event.reason, event.warning) == ("ExecutorsLinger", True)


@pytest.mark.parametrize(
    ("there", "said"),
    [(5, "5 executors run, 8 are wanted, and only the agent can change that."), (9, "9 executors run, 8"), (8, "")],
)
def test_who_can_not_rescale_because_no_agent_answers_is_told_so_and_what_to_look_at(there: int, said: str) -> None:
    driver = running_driver(EIGHT, ready=True, ready_time=NOW - 600)
    executors = tuple(executor_of(EIGHT, number) for number in range(there))
    plan = decide(observe(EIGHT, driver=driver, executors=executors, silence="no answer within 3 s"), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "AgentUnreachable")
    assert "runs. Its agent does not answer the operator (no answer within 3 s)." in plan.message
    assert said in plan.message
    assert ("are wanted" in plan.message) == bool(said)
    assert "network policies, which have to let the operator reach port 8091" in plan.message
    assert [each.reason for each in plan.actions if isinstance(each, PublishEvent)] == ["AgentUnreachable"]


def test_an_agent_that_was_not_asked_often_enough_is_no_reason_to_say_anything() -> None:
    driver = running_driver(EIGHT, ready=True, ready_time=NOW - 600)
    assert verdict_of(decide(observe(EIGHT, driver=driver), NOW)) == (Phase.RUNNING, "Ready", "Running")


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (PROTOCOL + 2, "The operator (protocol 1) is too old for the runtime (protocol 3). Upgrade the operator."),
        (PROTOCOL - 2, "The runtime (protocol -1) is too old for the operator (protocol 1). Change spec.restartNonce"),
    ],
)
def test_a_runtime_that_is_too_far_from_the_operator_is_named_and_runs_on(its: int, said: str) -> None:
    driver = running_driver(EIGHT, ready=True)
    report = report_of(driver, executors_wanted=8, executors_running=8, protocol=its)
    plan = decide(observe(EIGHT, driver=driver, agent=report), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "ProtocolMismatch")
    assert said in plan.message


REFUSED = "HTTP 422: ExecutorTarget.cores: not a known field"


def test_a_number_of_executors_that_the_agent_refuses_is_named_until_it_is_wanted_no_more() -> None:
    driver = running_driver(EIGHT, ready=True)
    refused = ProcessState(executors_refused=(process_of(driver), REFUSED))
    report = report_of(driver, executors_wanted=5, executors_running=5)
    plan = decide(observe(EIGHT, driver=driver, agent=report, memory=refused), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "OrderRefused")
    assert f"refused an order: {REFUSED}." in plan.message
    assert "change spec.restartNonce" in plan.message
    assert [each for each in plan.actions if isinstance(each, SetExecutors)]
    report = report_of(driver, executors_wanted=8, executors_running=8)
    plan = decide(observe(EIGHT, driver=driver, agent=report, memory=refused), NOW)
    assert verdict_of(plan)[2] == "Running"


@pytest.mark.parametrize(
    ("restarts", "ago", "reason"), [(0, 10, "OrderRefused"), (1, 10, "Running"), (0, ORDERS_STAND_SECONDS, "Running")]
)
def test_orders_about_snapshots_that_this_very_driver_refuses_are_named_while_they_are_given(
    restarts: int, ago: float, reason: str
) -> None:
    driver = running_driver(EIGHT, ready=True)
    process = process_of(driver)
    refused = ProcessState(orders_given=(NOW - ago, process), orders_refused=(process, REFUSED))
    now = running_driver(EIGHT, ready=True, restarts=restarts)
    report = report_of(now, executors_wanted=8, executors_running=8)
    assert verdict_of(decide(observe(EIGHT, driver=now, agent=report, memory=refused), NOW))[2] == reason


UNHEARD: dict[str, dict[str, Any]] = {
    "state": {"state": DriverState.UNKNOWN},
    "snapshots.state": {"snapshots": (SnapshotReport("a", SnapshotState.UNKNOWN),)},
    "snapshots.reason": {"snapshots": (SnapshotReport("a", SnapshotState.FAILED, Reason.UNKNOWN),)},
    "control.messages.state": {"control": ControlReport(messages=(MessageReport("a", MessageState.UNKNOWN),))},
}


@pytest.mark.parametrize("field", UNHEARD)
def test_words_of_a_newer_runtime_are_named_with_what_to_do_and_the_application_runs_on(field: str) -> None:
    driver = running_driver(EIGHT, ready=True)
    report = report_of(driver, executors_wanted=8, executors_running=8, **UNHEARD[field])
    plan = decide(observe(EIGHT, driver=driver, agent=report), NOW)
    assert verdict_of(plan) == (Phase.RUNNING, "Ready", "Unknown")
    assert (
        f"words that this operator does not know, in {field}: it is newer than the operator. Upgrade the operator."
        in plan.message
    )
    assert not [each for each in plan.actions if isinstance(each, DeleteDriver)]


def test_a_driver_in_a_state_that_is_not_known_here_has_not_started_until_its_queries_run() -> None:
    app = launched(app_with())
    driver = running_driver(app)
    report = report_of(driver, state=DriverState.UNKNOWN, ready=False)
    assert verdict_of(decide(observe(app, driver=driver, agent=report), NOW))[0] is Phase.STARTING


@pytest.mark.parametrize("its", [PROTOCOL - 1, PROTOCOL, PROTOCOL + 1])
def test_a_runtime_of_the_protocol_before_or_after_is_as_good_as_one_of_the_same(its: int) -> None:
    driver = running_driver(EIGHT, ready=True)
    report = report_of(driver, executors_wanted=8, executors_running=8, protocol=its)
    assert verdict_of(decide(observe(EIGHT, driver=driver, agent=report), NOW)) == (Phase.RUNNING, "Ready", "Running")


def test_one_that_hangs_is_told_beside_another_reason_for_those_that_are_missing() -> None:
    plan = decide(leaving(since=LINGER_SECONDS, number=1), NOW)
    assert "2 have no pod" in plan.message
    assert "Executor 7 should have ended" in plan.message


def test_a_driver_that_starts_is_looked_at_again_when_its_executors_have_had_their_time() -> None:
    driver = running_driver(EIGHT)
    report = report_of(driver, executors_wanted=8, ready=False, executors_short_since=NOW - 10)
    plan = decide(observe(EIGHT, driver=driver, agent=report), NOW)
    assert (plan.reason, plan.wake_after) == ("DriverStarting", SHORT_SECONDS - 10)
    later = decide(observe(EIGHT, driver=driver, agent=report), NOW + SHORT_SECONDS)
    assert verdict_of(later) == (Phase.STARTING, "Stalled", "ExecutorsMissing")


def test_an_older_runtime_does_not_tell_and_nothing_is_made_up() -> None:
    driver = running_driver(EIGHT, ready=True)
    report = report_of(driver, executors_wanted=8, executors_running=5)
    assert decide(observe(EIGHT, driver=driver, agent=report), NOW).reason == "Running"


@pytest.mark.parametrize(("phase", "reported"), [(UpgradePhase.STOPPING, []), (UpgradePhase.GATE, [6])])
def test_a_driver_that_is_to_stop_gets_no_other_number(phase: UpgradePhase, reported: list[int]) -> None:
    app = autoscaled(phase)
    seen = runs_with(app, executors_wanted=2, executors_running=2)
    if phase is UpgradePhase.STOPPING:
        seen["driver"] = dataclasses.replace(seen["driver"], spec_hash="of the previous version")
    plan = decide(observe(app, **seen), NOW)
    assert [action.instances for action in plan.actions if isinstance(action, SetExecutors)] == reported


def test_the_new_lineage_is_started_with_as_many_executors_as_the_old_one_had() -> None:
    done = RepartitionStatus(partitions=8, previous_partitions=4, result="Completed", epoch=2, lineage=2)
    app = autoscaled(UpgradePhase.STOPPING, epoch=0, lineage=2, repartition=done)
    assert launch_of(decide(observe(app), NOW)).executor.instances == 6


def test_a_persons_number_is_told_as_an_event_and_the_autoscalers_is_not() -> None:
    driver = running_driver(EIGHT, ready=True)
    plan = decide(observe(EIGHT, driver=driver, agent=report_of(driver, executors_wanted=2)), NOW)
    (event,) = [each for each in plan.actions if isinstance(each, PublishEvent) and each.reason == "Rescaled"]
    assert event.message == "The number of executors changes from 2 to 8, without a restart."
    app = autoscaled(UpgradePhase.GATE)
    events = decide(observe(app, **runs_with(app, executors_wanted=2)), NOW).actions
    assert not any(isinstance(each, PublishEvent) and each.reason == "Rescaled" for each in events)


@pytest.mark.parametrize(
    ("running", "since", "health"),
    [(0, SHORT_SECONDS, "Stalled"), (0, 5.0, "Reconciling"), (1, SHORT_SECONDS, "Reconciling")],
)
def test_a_driver_that_starts_tells_what_keeps_its_executors_from_it(running: int, since: float, health: str) -> None:
    app = launched(app_with({"executor.instances": 2}))
    driver = running_driver(app)
    stuck = executor_of(app, 2, phase="Pending", running=False, unschedulable="0/1 nodes are available.")
    known: dict[str, Any] = {"executors_wanted": 2, "executors_running": running, "executors_short_since": NOW - since}
    report = report_of(driver, ready=False, **known)
    plan = decide(observe(app, driver=driver, executors=(stuck,), agent=report), NOW)
    assert verdict_of(plan) == (Phase.STARTING, health, "ExecutorsMissing")
    assert f"with {running} of 2 executors" in plan.message


def test_at_the_gate_of_an_upgrade_it_is_told_of_both() -> None:
    app = under_test(UpgradePhase.GATE, {"executor.instances": 2})
    stuck = executor_of(app, 2, phase="Pending", running=False, unschedulable="0/1 nodes are available.")
    known = runs_with(app, executors_wanted=2, executors_running=1)
    plan = decide(observe(app, executors=(stuck,), **known), NOW)
    (write,) = [each for each in plan.actions if isinstance(each, WriteStatus)]
    ready = write.status.condition("Ready")
    assert ready is not None
    assert ready.reason == "UpgradeGate"
    assert ready.message.startswith("Words.")
    assert "with 1 of 2 executors" in ready.message
