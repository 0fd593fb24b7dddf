"""How a StreamingApp looks through the API server: its columns, status, scale and explanations. Runs kubectl."""

import json

import pytest

from tidegate_testing.crd import MINIMAL, create
from tidegate_testing.kubectl import Kubectl, KubectlError
from tidegate_testing.waiting import wait_for

STATUS = {
    "phase": "Running",
    "observedGeneration": 1,
    "epoch": 2,
    "batch": 318,
    "inputRowsPerSecond": 212,
    "executors": {"wanted": 8, "running": 2, "summary": "2/8"},
    "selector": "tidegate.dev/app=app,tidegate.dev/role=executor",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "QueriesRun",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def test_the_scale_subresource_shows_executors_and_their_selector(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    write_status(api_kubectl, namespace)
    path = f"/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/streamingapps/app/scale"
    scale = json.loads(api_kubectl.run("get", "--raw", path))
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 2, "selector": STATUS["selector"]}


def test_who_scales_to_nothing_is_told_what_stops_the_application(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    with pytest.raises(KubectlError, match=r"set spec\.suspend to true"):
        api_kubectl.run("scale", "sapp", "app", "-n", namespace, "--replicas=0")


def test_kubectl_get_shows_what_a_person_looks_for(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    write_status(api_kubectl, namespace)
    table = api_kubectl.run("get", "sapp", "-n", namespace, "-o", "wide").splitlines()
    columns = ["NAME", "PHASE", "READY", "EXECUTORS", "BATCH", "ROWS/S", "AGE", "UPGRADE", "EPOCH", "REASON"]
    assert table[0].split() == columns
    cells = table[1].split()
    assert cells[:6] + cells[7:] == ["app", "Running", "True", "2/8", "318", "212", "2", "QueriesRun"]


def test_what_nobody_has_seen_yet_is_ready_to_no_tool(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    seen = api_kubectl.get("sapp", "app", namespace) or {}
    assert (seen["metadata"]["generation"], seen["status"]) == (1, {"observedGeneration": -1})


def test_writing_the_status_leaves_the_spec_alone(api_kubectl: Kubectl, namespace: str) -> None:
    before = create(api_kubectl, namespace, MINIMAL)
    change = {"spec": {"executor": {"instances": 9}}, "status": STATUS}
    after = api_kubectl.api.patch("sapp", "app", namespace, change, "status")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], 1)
    assert after["status"] == STATUS


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("streamingapp", "stateful Spark Structured Streaming application"),
        ("sapp.spec.executor.instances", "Number of executors"),
        ("sapp.spec.driver.resources.requests", "Resources reserved on the node"),
        ("sapp.status.lastExit.exception", "Class of the exception"),
    ],
)
def test_kubectl_explains_each_field(api_kubectl: Kubectl, path: str, message: str) -> None:
    # What is explained is published a moment after the CRD is established.
    wait_for(f"{path} to be explained", lambda: message in " ".join(api_kubectl.run("explain", path).split()), 60)


def write_status(kubectl: Kubectl, namespace: str) -> None:
    kubectl.patch_status("sapp", "app", namespace, STATUS)
