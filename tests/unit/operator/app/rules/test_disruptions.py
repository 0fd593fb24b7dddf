"""What is said of pods that the cluster ends, as the scheduler and the kubelet write them.

The fields are those of Kubernetes' own source: pkg/scheduler/framework/preemption, pkg/kubelet/preemption and
pkg/kubelet/eviction. "Preempted" is the reason of an event; no pod has it.
"""

import json
from typing import Any

import msgspec
import pytest

from tidegate.app.actions import DeleteDriver
from tidegate.app.rules.plan import decide
from tidegate.app.rules.pods.executor_ends import executor_end_problem
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.names import driver_pod_name
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import EXIT_DEPENDENCY, EXIT_STOPPED, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe
from tidegate_testing.plans import acts, verdict_of

APP = launched(app_with())
BY_SCHEDULER: dict[str, Any] = {
    "phase": "Running",
    "conditions": [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
        }
    ],
}
BY_KUBELET: dict[str, Any] = {
    "phase": "Failed",
    "reason": "Preempting",
    "message": "Preempted in order to admit critical pod",
    "conditions": [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": "Pod was preempted by Kubelet to accommodate a critical pod.",
        }
    ],
}
SHORT_OF_DISK = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 5Gi, available: 4Gi. Container main was "
    "using 7Gi, request is 0, has larger consumption of ephemeral-storage. "
)
NODE_SHORT_OF_DISK: dict[str, Any] = {
    "phase": "Failed",
    "reason": "Evicted",
    "message": SHORT_OF_DISK,
    "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": SHORT_OF_DISK}
    ],
}
STOPPED = to_json(Termination(Reason.STOPPED, "Asked to stop.", 1))


def pod(container: str, status: dict[str, Any], code: int | None, text: str = "", **metadata: Any) -> PodRecord:
    """Return a pod on node0 with a main container that has ended with a code, or runs."""
    ended = {"exitCode": code, "reason": "Error", "message": text, "finishedAt": "2027-01-15T08:00:00Z"}
    state = {"terminated": ended} if code is not None else {"running": {"startedAt": "2027-01-15T07:00:00Z"}}
    body = {
        "metadata": {
            "namespace": "shop",
            "uid": "pod-1",
            "resourceVersion": "10",
            "creationTimestamp": "2027-01-15T07:00:00Z",
            "annotations": {"tidegate.dev/app-uid": APP.metadata.uid},
            **metadata,
        },
        "spec": {"nodeName": "node0", "restartPolicy": "OnFailure", "containers": [{"name": container}]},
        "status": {**status, "containerStatuses": [{"name": container, "state": state, "lastState": {}}]},
    }
    return build_record(msgspec.json.decode(json.dumps(body), type=Pod))


def driver(status: dict[str, Any], code: int | None, text: str = "", **metadata: Any) -> PodRecord:
    labels = {"tidegate.dev/app": "orders", "tidegate.dev/role": "driver", "tidegate.dev/epoch": "1"}
    notes = {"tidegate.dev/app-uid": APP.metadata.uid, "tidegate.dev/spec-hash": APP.status.applied_spec_hash}
    known = {"name": driver_pod_name("orders"), "labels": labels, "annotations": notes}
    return pod("driver", status, code, text, **{**known, "ownerReferences": [owner_reference(APP)], **metadata})


def executor(status: dict[str, Any], code: int, text: str = "") -> PodRecord:
    labels = {"tidegate.dev/app": "orders", "tidegate.dev/role": "executor", "tidegate.dev/epoch": "1"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "orders-driver", "uid": "pod-1", "controller": True}
    known = {"name": "orders-e1-exec-1", "labels": labels, "ownerReferences": [owner]}
    return pod("executor", {**status, "phase": "Failed"}, code, text, **known)


def test_a_driver_that_is_preempted_says_so_while_it_stops() -> None:
    going = driver(BY_SCHEDULER, None, deletionTimestamp="2027-01-15T09:00:00Z")
    plan = decide(observe(APP, driver=going), NOW)
    assert (verdict_of(plan), acts(plan, DeleteDriver)) == (("Stopping", "Reconciling", "DriverLost"), False)
    assert plan.message == (
        "Driver pod orders-driver on node node0 was preempted by a pod of a higher priority; it stops at a batch "
        "boundary, and a new one follows. If it recurs, set a higher priority in "
        "spec.podTemplate.spec.priorityClassName."
    )


@pytest.mark.parametrize("text", [STOPPED, ""], ids=["it stopped in time", "it was killed"])
@pytest.mark.parametrize("status", [BY_KUBELET, NODE_SHORT_OF_DISK], ids=["for a critical pod", "for want of disk"])
def test_a_driver_that_its_kubelet_ended_says_why_although_it_stopped_at_a_boundary(
    status: dict[str, Any], text: str
) -> None:
    gone = driver(status, EXIT_STOPPED if text else 137, text)
    plan = decide(observe(APP, driver=gone), NOW)
    assert (plan.reason, acts(plan, DeleteDriver)) == ("DriverLost", True)
    assert f"Pod orders-driver was ended: {status['reason']}. {status['message'].strip()}" in plan.message


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (BY_SCHEDULER, "Executor pod orders-e1-exec-1 on node node0 was preempted by a pod of a higher priority."),
        (BY_KUBELET, "was ended by its kubelet (Preempting). Preempted in order to admit critical pod."),
        (NODE_SHORT_OF_DISK, f"was ended by its kubelet (Evicted). {SHORT_OF_DISK.strip()}"),
    ],
    ids=["by the scheduler", "for a critical pod", "for want of disk"],
)
def test_an_executor_that_the_cluster_ends_says_by_what(status: dict[str, Any], message: str) -> None:
    problem = executor_end_problem(executor(status, 143))
    assert problem is not None
    assert (problem.reason, message in problem.message) == ("ExecutorsLost", True), problem.message
    assert "spec.podTemplate.spec.priorityClassName" in problem.message


def test_a_full_disk_is_named_by_the_driver_s_own_last_words_and_by_an_executor_s_last_lines() -> None:
    reported = to_json(Termination(Reason.DISK_FULL, "No space left on device", 1, "java.io.IOException"))
    plan = decide(observe(APP, driver=driver({"phase": "Running"}, EXIT_DEPENDENCY, reported)), NOW)
    assert plan.reason == "DiskFull"
    assert "ephemeral-storage" in plan.message
    problem = executor_end_problem(executor({}, 50, "java.io.IOException: No space left on device"))
    assert problem is not None
    assert problem.reason == "DiskFull"
