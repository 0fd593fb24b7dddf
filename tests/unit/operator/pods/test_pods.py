"""What a pod's JSON becomes. Pure."""

import datetime
import json
from typing import Any

import msgspec
import pytest

from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.records.metadata import owner_reference
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate.pods.records.record import PodRecord, Waiting
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_testing.observations import PLATFORM, app_with


def record(status: dict[str, Any], **metadata: Any) -> PodRecord:
    known = {
        "name": "orders-driver",
        "namespace": "shop",
        "uid": "pod-1",
        "resourceVersion": "10",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"tidegate.dev/app": "orders", "tidegate.dev/role": "driver", "tidegate.dev/epoch": "3"},
        "annotations": {"tidegate.dev/spec-hash": "abc", "tidegate.dev/app-uid": "u-1"},
        "ownerReferences": [owner_reference(app_with())],
    }
    containers = [{"name": "proxy", "image": "proxy:1"}, {"name": "driver", "image": "shop/orders:1"}]
    pod = {"metadata": {**known, **metadata}, "spec": {"nodeName": "node0", "containers": containers}, "status": status}
    return build_record(msgspec.json.decode(json.dumps(pod), type=Pod))


def container(name: str, state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "", "state": state, "lastState": {}, **fields}


def test_owner_name_and_annotations_are_read() -> None:
    pod = record({"phase": "Pending"})
    assert (pod.app, pod.role, pod.epoch, pod.spec_hash, pod.app_uid) == ("orders", "driver", 3, "abc", "u-1")


def test_the_driver_is_told_from_its_sidecars() -> None:
    states = [container("proxy", {"running": {}}), container("driver", {"waiting": {"reason": "ContainerCreating"}})]
    pod = record({"phase": "Running", "containerStatuses": states})
    assert (pod.running, pod.waiting) == (False, None)


ENDED = container("driver", {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:05:00Z"}})
GOING = {"deletionTimestamp": "2026-01-01T00:06:00Z", "finalizers": ["example.com/audit"]}


def test_finalizers_keep_a_pod_once_its_node_confirms_that_nothing_of_it_runs() -> None:
    states = [container("proxy", {"running": {}}), ENDED]
    whole = record({"phase": "Failed", "containerStatuses": [ENDED]}, **GOING, deletionGracePeriodSeconds=0)
    assert whole.finalizers == ("example.com/audit",)
    # A sidecar runs on, on a node that may be lost; somebody may have asked for a deletion without grace.
    for grace in (30, 0):
        meshed = record({"phase": "Running", "containerStatuses": states}, **GOING, deletionGracePeriodSeconds=grace)
        assert meshed.finalizers == ()
    evicted = record({"phase": "Failed", "reason": "Evicted"}, **GOING, deletionGracePeriodSeconds=30)
    assert evicted.finalizers == ()


def test_the_limit_of_processors_is_that_of_the_main_container_as_the_api_server_has_it() -> None:
    assert record({"phase": "Running"}).cpu_limit == ""
    containers = [
        {"name": "proxy", "resources": {"limits": {"cpu": "1"}}},
        {"name": "driver", "resources": {"limits": {"cpu": "1500m", "memory": "2Gi"}, "requests": {"cpu": "1"}}},
    ]
    metadata = {"name": "orders-driver", "namespace": "shop", "uid": "pod-1", "resourceVersion": "10"}
    pod = {"metadata": metadata, "spec": {"containers": containers}, "status": {}}
    assert build_record(msgspec.json.decode(json.dumps(pod), type=Pod)).cpu_limit == "1500m"


def launched_with(change: dict[str, Any]) -> dict[str, Any]:
    """Return a driver's pod, as the operator makes it and the API server gives it back."""
    pod = build_driver_pod(app_with(change), 1, 1, PLATFORM)
    return {**pod, "metadata": {**pod["metadata"], "uid": "pod-1", "resourceVersion": "10"}, "status": {}}


def cores_of(pod: dict[str, Any]) -> int:
    return build_record(msgspec.json.decode(json.dumps(pod), type=Pod)).executor_slots


@pytest.mark.parametrize("cores", [1, 4])
def test_a_driver_says_how_many_cores_its_executors_were_launched_with(cores: int) -> None:
    users = [{"name": "COMPUTED", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    change = {"executor.cores": cores, "application.env": users, "application.args": ["$(HOME)", '"cores": 7']}
    assert cores_of(launched_with(change)) == cores


@pytest.mark.parametrize(("per_task", "slots"), [("2", 2), ("3", 1), ("8", 1), ("none", 4)])
def test_a_task_may_take_several_of_the_cores(per_task: str, slots: int) -> None:
    assert cores_of(launched_with({"executor.cores": 4, "sparkConf": {"spark.task.cpus": per_task}})) == slots


@pytest.mark.parametrize("config", ["", "{", "[]", '{"executor": {"cores": "many"}}', '{"executor": {"cores": -1}}'])
def test_a_driver_of_which_somebody_took_the_configuration_says_nothing_of_cores(config: str) -> None:
    pod = launched_with({"executor.cores": 4})
    (driver,) = pod["spec"]["containers"]
    others = [each for each in driver["env"] if each["name"] != CONFIG_VARIABLE]
    containers = [{**driver, "env": [*others, {"name": CONFIG_VARIABLE, "value": config}]}]
    assert cores_of({**pod, "spec": {**pod["spec"], "containers": containers}}) == 0
    assert cores_of({**pod, "spec": {**pod["spec"], "containers": [{**driver, "env": others}]}}) == 0
    assert cores_of({**pod, "spec": {**pod["spec"], "containers": [{"name": "executor", "env": driver["env"]}]}}) == 0


def test_the_image_that_can_not_be_pulled_is_named_as_the_spec_has_it() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    pod = record({"phase": "Pending", "containerStatuses": [container("driver", waiting)]})
    assert pod.waiting == Waiting("driver", "shop/orders:1", "ErrImagePull", "no such image")


def test_the_end_of_the_process_before_this_one_is_kept() -> None:
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "{}", "finishedAt": "2026-01-01T00:01:00Z"}}
    running = {"running": {"startedAt": "2026-01-01T00:02:00Z"}}
    state = container("driver", running, lastState=ended, restartCount=1)
    pod = record({"phase": "Running", "podIP": "10.0.0.5", "containerStatuses": [state]})
    assert pod.ended is not None
    assert (pod.running, pod.restarts, pod.ended.exit_code, pod.ip) == (True, 1, 1, "10.0.0.5")
    assert pod.start_time - pod.ended.completion_time == 60.0


def test_the_start_of_a_process_that_has_ended_is_read() -> None:
    times = {"startedAt": "2026-01-01T00:03:00Z", "finishedAt": "2026-01-01T00:03:02Z"}
    state = container("driver", {"terminated": {"exitCode": 1, **times}})
    ended = record({"phase": "Failed", "containerStatuses": [state]}).ended
    assert ended is not None
    assert ended.completion_time - ended.start_time == 2.0


def test_an_unschedulable_pod_has_the_schedulers_words() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes."}
    assert record({"phase": "Pending", "conditions": [scheduled]}).unschedulable == "0/3 nodes."


def test_a_pod_has_the_time_at_which_it_was_given_a_node() -> None:
    at = {"type": "PodScheduled", "lastTransitionTime": "2026-01-01T00:02:30Z"}
    pods = [record({"phase": "Pending", "conditions": [{**at, "status": status}]}) for status in ("True", "False")]
    assert [pod.scheduled_at - pod.created_at if pod.scheduled_at else None for pod in pods] == [150.0, None]


def test_a_pod_that_is_being_deleted_has_the_end_of_its_grace_period() -> None:
    pod = record({"phase": "Running"}, deletionTimestamp="2026-01-01T00:02:00Z")
    assert (pod.terminating, pod.delete_by - pod.created_at) == (True, 120.0)


def test_a_pod_that_its_nodes_taint_drives_away_is_told_from_one_that_is_evicted_otherwise() -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    reasons = ("DeletionByTaintManager", "EvictionByEvictionAPI", "PreemptionByScheduler")
    reported = [
        record({"phase": "Running", "conditions": [{**disrupted, "reason": reason}]}).tainted for reason in reasons
    ]
    assert reported == [True, False, False]


def test_a_failed_init_container_is_named_until_it_runs_again() -> None:
    failed = container("tidegate-runtime", {"terminated": {"exitCode": 2}})
    again = container("tidegate-runtime", {"running": {}}, lastState={"terminated": {"exitCode": 2}})
    assert record({"phase": "Pending", "initContainerStatuses": [failed]}).init_name == "tidegate-runtime"
    assert record({"phase": "Pending", "initContainerStatuses": [again]}).init_name == ""


# --- pods that do not begin ---

CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()
PLACED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}
COPIED = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:50Z"}}


def silent_since(init: dict[str, Any] | None, main: dict[str, Any] | None, **status: Any) -> float:
    """Return for how many seconds after its creation a pod began to say nothing, -1 if it says something."""
    states = {
        "initContainerStatuses": [container("runtime", init)] if init is not None else [],
        "containerStatuses": [container("driver", main)] if main is not None else [],
    }
    since = record({"phase": "Pending", "conditions": [PLACED], **states, **status}).silent_since
    return since - CREATED if since else -1


@pytest.mark.parametrize(
    ("init", "main", "status", "since"),
    [
        (None, None, {}, 30),
        (None, None, {"conditions": []}, 0),
        (INITIALIZING, INITIALIZING, {}, 30),
        (None, CREATING, {}, 30),
        (COPIED, INITIALIZING, {}, 50),
        ({"running": {}}, INITIALIZING, {}, -1),
        (COPIED, {"running": {}}, {}, -1),
        (COPIED, {"waiting": {"reason": "ImagePullBackOff"}}, {}, -1),
        (COPIED, COPIED, {"phase": "Running"}, -1),
        (None, None, {"phase": "Failed"}, -1),
        (None, None, {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]}, -1),
    ],
    ids=[
        "it has a node",
        "nobody has looked at it",
        "before its first container",
        "one container",
        "after its first container",
        "its first container runs",
        "it runs",
        "it says what it waits for",
        "it has ended",
        "it was refused",
        "it has no node",
    ],
)
def test_since_when_a_pod_waits_for_what_it_does_not_say(
    init: dict[str, Any] | None, main: dict[str, Any] | None, status: dict[str, Any], since: float
) -> None:
    assert silent_since(init, main, **status) == since


def test_a_pod_whose_claim_does_not_exist_is_not_one_for_which_there_is_no_room() -> None:
    message = '0/1 nodes are available: persistentvolumeclaim "data" not found.'
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = record({"phase": "Pending", "conditions": [refused]})
    assert (pod.unschedulable, pod.silent_since) == ("", 0.0)
    assert pod.delay is not None
    assert pod.delay.name == "PersistentVolumeClaim data"


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase"),
    [
        ("OnFailure", 0, "Succeeded"),
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
        ("OnFailure", 1, "Running"),  # the kubelet starts it again
        ("Always", 0, "Running"),
        ("Always", 1, "Running"),
    ],
)
def test_a_pod_ends_with_its_main_container_whatever_runs_beside_it(policy: str, exit_code: int, phase: str) -> None:
    states = [container("proxy", {"running": {}}), container("driver", {"terminated": {"exitCode": exit_code}})]
    metadata = {"name": "orders-driver", "namespace": "shop", "uid": "pod-1", "resourceVersion": "10"}
    status = {"phase": "Running", "containerStatuses": states}
    pod = {"metadata": metadata, "spec": {"restartPolicy": policy}, "status": status}
    found = build_record(msgspec.json.decode(json.dumps(pod), type=Pod))
    assert (found.phase, found.finished) == (phase, phase != "Running")


def test_a_pod_that_was_evicted_has_failed_although_its_container_completed() -> None:
    states = [container("driver", {"terminated": {"exitCode": 0}})]
    assert record({"phase": "Failed", "reason": "Evicted", "containerStatuses": states}).phase == "Failed"
