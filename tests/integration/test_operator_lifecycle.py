"""The real operator process on a real API server; the test plays the kubelet. Runs processes."""

import itertools
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, TextIO

import pytest

from devcluster.apiserver import ApiServer
from tidegate_spark.contract.protocol import Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing import audit_log, plain_yaml
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import changed, install_crds
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import ROOT, OperatorProcess, lone_operator
from tidegate_testing.waiting import wait_for

STORAGE = {"uri": "s3://bucket/apps"}
GENEROUS = 180.0  # a LimitRange may be gone by for half a minute after its end, and launches come with pauses
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(audit_log=True) as running:
        kubectl = Kubectl(running.kubectl, running.kubeconfig)
        install_crds(kubectl)
        yield running


@pytest.fixture(scope="module")
def kubectl(server: ApiServer) -> Kubectl:
    return Kubectl(server.kubectl, server.kubeconfig)


@pytest.fixture(scope="module")
def operator(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    with lone_operator(server.kubeconfig, tmp_path_factory.mktemp("operator") / "log") as process:
        yield process


@pytest.fixture
def space(kubectl: Kubectl, operator: OperatorProcess) -> str:
    name = f"operator-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return name


@pytest.fixture
def other_version(kubectl: Kubectl) -> Iterator[None]:
    """A CRD that knows a value of ``application.runtime`` that this operator does not know."""
    crd = plain_yaml.load((ROOT / "crds/streamingapps.tidegate.dev.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["application"]["properties"]["runtime"]["enum"].append("Unheard")
    apply = ("apply", "--server-side", "--force-conflicts", "-f")
    kubectl.run(*apply, "-", stdin=json.dumps(crd))
    taken = partial(kubectl.create, changed("spec/application/runtime", "Unheard"), dry_run=True)
    wait_for("the API server to go by it", taken, GENEROUS, 0.1)
    yield
    kubectl.run(*apply, str(ROOT / "crds"))


def create(kubectl: Kubectl, space: str, name: str = "orders", **spec: Any) -> None:
    app = streaming_app(name, space, image="shop/orders:1", storage=STORAGE, main="local:///opt/main.py", spec=spec)
    kubectl.apply(app)


def pod(kubectl: Kubectl, space: str, name: str = "orders-driver") -> dict[str, Any]:
    return wait_for(f"pod {name}", lambda: kubectl.get("pod", name, space), GENEROUS, 0.1) or {}


def app(kubectl: Kubectl, space: str, name: str = "orders") -> dict[str, Any]:
    return kubectl.get("streamingapp", name, space) or {}


def wait_for_reason(kubectl: Kubectl, space: str, reason: str) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        seen = app(kubectl, space)
        ready = kubectl.condition(seen, "Ready")
        assert ready.get("reason") == reason, seen.get("status")
        return seen

    return wait_for(f"reason {reason}", probe, GENEROUS, 0.1) or {}


def wait_for_event(kubectl: Kubectl, space: str, reason: str) -> dict[str, Any]:
    """Return an event of that reason: one is published after what it is about, and others may be as well."""

    def probe() -> dict[str, Any]:
        found = {event["reason"]: event for event in kubectl.list("events", space)}
        assert reason in found, list(found)
        event: dict[str, Any] = found[reason]
        return event

    return wait_for(f"event {reason}", probe, GENEROUS, 0.1)


def play_kubelet(kubectl: Kubectl, space: str, status: dict[str, Any], name: str = "orders-driver") -> None:
    """Write a pod's status, as its node would."""
    kubectl.patch_status("pod", name, space, status)


def container(state: dict[str, Any], *, last: dict[str, Any] | None = None, restarts: int = 0) -> list[dict[str, Any]]:
    entry = {"name": "driver", "image": "shop/orders:1", "imageID": "", "ready": False, "restartCount": restarts}
    return [{**entry, "state": state, "lastState": last or {}}]


def running() -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {"phase": "Running", "conditions": [ready], "containerStatuses": container(state)}


def terminated(reason: Reason, code: int, exception: str = "") -> dict[str, Any]:
    message = to_json(Termination(reason, "no column x", 1, exception))
    return {"terminated": {"exitCode": code, "reason": "Error", "message": message}}


def requests_of_operator(server: ApiServer, space: str) -> list[dict[str, Any]]:
    assert server.audit_log is not None
    lines = audit_log.entries(server.audit_log)
    ours = [line for line in lines if line.get("userAgent", "").startswith("tidegate-operator/")]
    return [line for line in ours if line.get("objectRef", {}).get("namespace") == space]


def what(line: dict[str, Any]) -> str:
    reference = line["objectRef"]
    return " ".join(filter(None, (line["verb"], reference["resource"], reference.get("subresource"))))


def test_the_epoch_is_recorded_before_there_is_a_pod(server: ApiServer, kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    driver = pod(kubectl, space)
    assert driver["metadata"]["labels"]["tidegate.dev/epoch"] == "1"
    assert app(kubectl, space)["status"]["epoch"] == 1

    def done() -> list[str]:
        return [what(line) for line in requests_of_operator(server, space)]

    # A request is told of when it ends: the pod is there before.
    wait_for("the audit log to tell of the pod", lambda: "create pods" in done(), GENEROUS, 0.1)
    assert done().index("patch streamingapps status") < done().index("create pods")


def test_a_launch_costs_at_most_eight_requests_beside_the_access_of_its_namespace(
    server: ApiServer, kubectl: Kubectl, space: str
) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    play_kubelet(kubectl, space, running())
    wait_for_reason(kubectl, space, "Running")

    wait_for_event(kubectl, space, "Running")
    access = {"serviceaccounts", "roles", "rolebindings"}
    asked = [line for line in requests_of_operator(server, space) if line["objectRef"]["resource"] not in access]
    # A conflict costs a request more: what is written then is read first, and written again.
    conflicts = sum(line["responseStatus"]["code"] == HTTPStatus.CONFLICT for line in asked)
    counted = Counter(map(what, asked))
    assert sum(counted.values()) - 2 * conflicts <= 8, counted


def test_kopf_writes_nothing_of_its_own(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    metadata = app(kubectl, space)["metadata"]
    assert metadata["finalizers"] == ["tidegate.dev/streamingapp"]
    assert set(metadata["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}


def test_a_pod_the_api_server_refuses_is_named_and_launched_when_the_cause_is_gone(
    kubectl: Kubectl, space: str
) -> None:
    limits = {"limits": [{"type": "Container", "max": {"memory": "100Mi"}}]}
    metadata = {"name": "small", "namespace": space}
    kubectl.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})
    create(kubectl, space)
    seen = wait_for_reason(kubectl, space, "LaunchRefused")
    message = kubectl.condition(seen, "Stalled")["message"]
    assert "maximum memory usage" in message
    assert "Correct spec.driver.resources; Tidegate retries." in message
    kubectl.delete("limitrange", "small", space)
    assert pod(kubectl, space)["metadata"]["labels"]["tidegate.dev/epoch"] == "1"
    wait_for_reason(kubectl, space, "DriverStarting")


def floor(kubectl: Kubectl, space: str, memory: str) -> None:
    limits = {"limits": [{"type": "Container", "min": {"memory": memory}, "maxLimitRequestRatio": {"memory": "1"}}]}
    metadata = {"name": "floor", "namespace": space}
    kubectl.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})


def memory_of(container: dict[str, Any]) -> tuple[str, str]:
    return container["resources"]["requests"]["memory"], container["resources"]["limits"]["memory"]


def test_in_a_namespace_with_a_floor_an_application_starts_and_its_deletion_purges_the_storage(
    kubectl: Kubectl, space: str
) -> None:
    floor(kubectl, space, "1Gi")
    create(kubectl, space, storage={"deletionPolicy": "Delete"}, application={"runtime": "Injected"})
    driver = pod(kubectl, space)
    assert [memory_of(each) for each in driver["spec"]["initContainers"]] == [("1Gi", "1Gi")]
    assert driver["metadata"]["labels"]["tidegate.dev/epoch"] == "1"
    kubectl.delete("streamingapp", "orders", space)
    purge = pod(kubectl, space, "orders-purge")
    assert [memory_of(each) for each in purge["spec"]["containers"]] == [("1Gi", "1Gi")]
    play_kubelet(kubectl, space, {"phase": "Succeeded"}, "orders-purge")
    wait_for("the end of the application", lambda: not app(kubectl, space), GENEROUS, 0.1)


def test_of_a_floor_above_the_drivers_memory_container_and_field_are_named(kubectl: Kubectl, space: str) -> None:
    floor(kubectl, space, "3Gi")
    create(kubectl, space)
    seen = wait_for_reason(kubectl, space, "LaunchRefused")
    message = kubectl.condition(seen, "Stalled")["message"]
    assert "minimum memory usage per Container is 3Gi, but request is 1200Mi" in message
    assert "in container driver, as a LimitRange" in message
    assert "Correct spec.driver.resources; Tidegate retries." in message


def test_an_image_that_does_not_exist_is_named_and_forgotten_when_it_is_there(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    play_kubelet(kubectl, space, {"containerStatuses": container(waiting)})
    seen = wait_for_reason(kubectl, space, "ImagePullFailed")
    assert kubectl.condition(seen, "Stalled")["status"] == "True"
    play_kubelet(kubectl, space, running())
    seen = wait_for_reason(kubectl, space, "Running")
    assert [kubectl.condition(seen, kind)["status"] for kind in ("Ready", "Stalled")] == ["True", "False"]


def test_an_exception_of_the_application_is_named_with_class_and_message(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    failed = terminated(Reason.APPLICATION_FAILED, 1, "ValueError")
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    play_kubelet(kubectl, space, {"phase": "Running", "containerStatuses": container(waiting, last=failed, restarts=1)})
    seen = wait_for_reason(kubectl, space, "ApplicationFailed")
    assert seen["status"]["phase"] == "Failed"
    assert seen["status"]["lastExit"]["exception"] == "ValueError"
    assert "ValueError: no column x" in kubectl.condition(seen, "Stalled")["message"]


def test_a_finished_application_is_completed(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    ended = container(terminated(Reason.COMPLETED, 0))
    play_kubelet(kubectl, space, {"phase": "Succeeded", "containerStatuses": ended})
    assert wait_for_reason(kubectl, space, "Completed")["status"]["phase"] == "Completed"


def test_a_driver_pod_that_somebody_deleted_comes_back_with_the_next_epoch(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    first = pod(kubectl, space)
    kubectl.delete("pod", "orders-driver", space, "--grace-period=0", "--force")

    def another() -> bool:
        now = kubectl.get("pod", "orders-driver", space)
        return now is not None and now["metadata"]["uid"] != first["metadata"]["uid"]

    wait_for("another driver", another, GENEROUS, 0.1)
    assert pod(kubectl, space)["metadata"]["labels"]["tidegate.dev/epoch"] == "2"


def test_a_changed_spec_replaces_the_driver(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    kubectl.patch("streamingapp", "orders", space, {"spec": {"application": {"args": ["--fast"]}}})

    def second() -> bool:
        now = kubectl.get("pod", "orders-driver", space)
        return now is not None and now["metadata"]["labels"]["tidegate.dev/epoch"] == "2"

    wait_for("the driver of the changed spec", second, GENEROUS, 0.1)


def test_a_second_application_inside_the_storage_of_the_first_is_refused(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    inner = {"uri": f"s3://bucket/apps/{space}/orders"}
    kubectl.apply(streaming_app("inner", space, image="x", storage=inner, main="local:///opt/main.py"))

    def refused() -> bool:
        return kubectl.condition(app(kubectl, space, "inner"), "Stalled").get("reason") == "StorageConflict"

    wait_for("the refusal", refused, GENEROUS, 0.1)
    kubectl.delete("streamingapp", "orders", space)
    assert pod(kubectl, space, "inner-driver")


def left_behind(kubectl: Kubectl, space: str, uid: str) -> list[str]:
    """Return what is left that the garbage collector, which does not run here, would not take with the application."""
    found = kubectl.list("pods,secrets,serviceaccounts,roles,rolebindings", space)
    owners = {
        f"{item['kind']}/{item['metadata']['name']}": {o["uid"] for o in item["metadata"].get("ownerReferences", [])}
        for item in found
    }
    return [name for name, uids in owners.items() if uids != {uid} or name.startswith("Pod/")]


def test_deletion_leaves_nothing(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    uid = app(kubectl, space)["metadata"]["uid"]
    kubectl.delete("streamingapp", "orders", space)
    wait_for("the end of the application", lambda: not app(kubectl, space), GENEROUS, 0.1)
    assert left_behind(kubectl, space, uid) == []
    assert kubectl.list("secrets", space) == []


def test_the_resource_stays_until_its_storage_is_empty(kubectl: Kubectl, space: str) -> None:
    create(kubectl, space, storage={"deletionPolicy": "Delete"})
    pod(kubectl, space)
    kubectl.delete("streamingapp", "orders", space)
    pod(kubectl, space, "orders-purge")
    wait_for("the phase", lambda: app(kubectl, space)["status"]["phase"] == "Deleting", GENEROUS, 0.1)
    play_kubelet(kubectl, space, {"phase": "Succeeded"}, "orders-purge")
    wait_for("the end of the application", lambda: not app(kubectl, space), GENEROUS, 0.1)
    assert kubectl.get("pod", "orders-purge", space) is None


def test_a_namespace_that_is_being_deleted_lets_an_application_go_whose_storage_it_can_not_remove(
    kubectl: Kubectl, space: str, operator: OperatorProcess
) -> None:
    create(kubectl, space, storage={"deletionPolicy": "Delete"})
    pod(kubectl, space)
    kubectl.delete("namespace", space, space)
    # What the namespace's controller does, which does not run here.
    kubectl.delete("streamingapp", "orders", space)
    wait_for("the end of the application", lambda: not app(kubectl, space), GENEROUS, 0.1)

    def lines() -> list[str]:
        return [line for line in operator.log.read_text().splitlines() if "StorageRetained" in line and space in line]

    reported = wait_for("a line of the log", lines, GENEROUS, 0.1)
    assert {f"s3://bucket/apps/{space}/orders" in line for line in reported} == {True}


def test_a_deleted_resource_of_another_version_of_the_crd_ends_with_its_driver_and_keeps_its_storage(
    kubectl: Kubectl, space: str, other_version: None
) -> None:
    create(kubectl, space, storage={"deletionPolicy": "Delete"})
    pod(kubectl, space)
    kubectl.patch("streamingapp", "orders", space, {"spec": {"application": {"runtime": "Unheard"}}})
    uid = wait_for_reason(kubectl, space, "InvalidSpec")["metadata"]["uid"]
    assert pod(kubectl, space)
    kubectl.delete("streamingapp", "orders", space)
    wait_for("the end of the application", lambda: not app(kubectl, space), GENEROUS, 0.1)
    wait_for_event(kubectl, space, "StorageRetained")
    assert left_behind(kubectl, space, uid) == []


def test_a_resource_of_another_version_of_the_crd_is_told_what_can_not_be_read(
    kubectl: Kubectl, space: str, other_version: None
) -> None:
    create(kubectl, space, application={"runtime": "Unheard"})
    stalled = kubectl.condition(wait_for_reason(kubectl, space, "InvalidSpec"), "Stalled")
    assert (stalled["status"], "spec.application.runtime" in stalled["message"]) == ("True", True)
    assert wait_for_event(kubectl, space, "InvalidSpec")["type"] == "Warning"
    kubectl.patch("streamingapp", "orders", space, {"spec": {"application": {"runtime": "Image"}}})
    assert pod(kubectl, space)


def test_an_operator_that_was_away_goes_on_where_it_was(
    kubectl: Kubectl, space: str, operator: OperatorProcess
) -> None:
    create(kubectl, space)
    first = pod(kubectl, space)
    operator.end(signal.SIGKILL)
    try:
        play_kubelet(kubectl, space, running())
        create(kubectl, space, "later")
    finally:
        operator.start()
    wait_for_reason(kubectl, space, "Running")
    assert pod(kubectl, space)["metadata"]["uid"] == first["metadata"]["uid"]
    assert pod(kubectl, space, "later-driver")


def test_edits_made_while_the_operator_was_away_end_in_the_last_one_with_one_launch(
    kubectl: Kubectl, space: str, operator: OperatorProcess
) -> None:
    create(kubectl, space)
    pod(kubectl, space)
    play_kubelet(kubectl, space, running())
    wait_for_reason(kubectl, space, "Running")
    operator.end(signal.SIGKILL)
    try:
        for argument in ("--first", "--last"):
            kubectl.patch("streamingapp", "orders", space, {"spec": {"application": {"args": [argument]}}})
    finally:
        operator.start()

    def last_one_runs() -> bool:
        now = kubectl.get("pod", "orders-driver", space)
        return now is not None and "--last" in json.dumps(now["spec"]["containers"])

    wait_for("the driver of the last edit", last_one_runs, GENEROUS, 0.1)
    assert pod(kubectl, space)["metadata"]["labels"]["tidegate.dev/epoch"] == "2"
    assert app(kubectl, space)["status"]["epoch"] == 2


def test_an_operator_killed_with_an_epoch_recorded_and_no_pod_launches_the_next_one(
    kubectl: Kubectl, space: str, operator: OperatorProcess
) -> None:
    limits = {"limits": [{"type": "Container", "max": {"memory": "100Mi"}}]}
    metadata = {"name": "small", "namespace": space}
    kubectl.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})
    create(kubectl, space)
    seen = wait_for_reason(kubectl, space, "LaunchRefused")
    assert (seen["status"]["epoch"], kubectl.get("pod", "orders-driver", space)) == (1, None)
    operator.end(signal.SIGKILL)
    try:
        kubectl.delete("limitrange", "small", space)
    finally:
        operator.start()
    assert pod(kubectl, space)["metadata"]["labels"]["tidegate.dev/epoch"] == "2"
    assert app(kubectl, space)["status"]["epoch"] == 2


def requests_so_far(log: TextIO, space: str) -> int:
    """Return how many requests of the operator in the namespace the audit log tells of from where it is read now."""
    position = log.tell()
    *lines, _ = log.read().split("\n")  # the last line may be half written
    log.seek(position)
    return sum('"tidegate-operator/' in line and f'"namespace":"{space}"' in line for line in lines)


@pytest.mark.parametrize(
    "requests", [pytest.param(number, marks=() if number in (2, 4, 6) else pytest.mark.long) for number in range(1, 8)]
)
def test_an_operator_killed_anywhere_in_a_launch_makes_one_driver(
    server: ApiServer, kubectl: Kubectl, space: str, operator: OperatorProcess, requests: int
) -> None:
    assert server.audit_log is not None
    with server.audit_log.open() as log:
        log.seek(0, os.SEEK_END)
        create(kubectl, space)
        # Wherever it is by the time the signal arrives: what follows has to hold for each step.
        wait_for(f"request {requests}", lambda: requests_so_far(log, space) >= requests, GENEROUS, 0.005)
        operator.end(signal.SIGKILL)
    operator.start()
    driver = pod(kubectl, space)
    play_kubelet(kubectl, space, running())
    seen = wait_for_reason(kubectl, space, "Running")
    assert driver["metadata"]["labels"]["tidegate.dev/epoch"] == str(seen["status"]["epoch"])
    made = [line for line in requests_of_operator(server, space) if what(line) == "create pods"]
    assert [line["responseStatus"]["code"] for line in made].count(201) == 1
    assert pod(kubectl, space)["metadata"]["uid"] == driver["metadata"]["uid"]
