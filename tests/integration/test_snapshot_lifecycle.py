"""Snapshots with the real operator process on a real API server; the test plays kubelet and agents. Runs processes."""

import dataclasses
import itertools
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from devcluster.apiserver import ApiServer
from tidegate_spark.contract import protocol
from tidegate_spark.contract.agent_protocol import GREETING_PATH
from tidegate_spark.contract.protocol import AgentReport, DriverConfig, DriverState, from_json, to_json
from tidegate_spark.contract.snapshot_protocol import (
    SNAPSHOT_COMMAND,
    QueryPin,
    SnapshotOrders,
    SnapshotReport,
    SnapshotReports,
    SnapshotState,
)
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import OperatorProcess, lone_operator
from tidegate_testing.waiting import wait_for

STORAGE = {"uri": "s3://bucket/apps"}
GENEROUS = 180.0
_numbers = itertools.count(1)


class Agent(ThreadingHTTPServer):
    """The agent of a driver that runs: it takes orders and does each at once, or as told."""

    def __init__(self, address: str, uid: str, *, at_once: bool = False) -> None:
        self.at_once = at_once
        self.uid, self.snapshots, self.orders = uid, dict[str, SnapshotReport](), list[SnapshotOrders]()
        super().__init__((address, protocol.COMMAND_PORT), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def report(self) -> str:
        reported = AgentReport(
            "orders",
            self.uid,
            1,
            DriverState.RUNNING,
            executors_wanted=1,
            executors_running=1,
            ready=True,
            snapshots=tuple(self.snapshots.values()),
        )
        return to_json(reported)

    def take_in(self, orders: SnapshotOrders) -> None:
        self.orders.append(orders)
        for order in orders.take:
            self.snapshots.setdefault(order.id, SnapshotReport(order.id, SnapshotState.COPYING, files=1, of_files=3))
        if self.at_once:
            self.complete()
        for name in orders.dispose:
            self.snapshots[name] = SnapshotReport(name, SnapshotState.DISPOSED)

    def complete(self) -> None:
        # What is gone stays gone, or whoever had it disposed of and has not looked yet never hears of that.
        for name, report in list(self.snapshots.items()):
            if report.state is not SnapshotState.DISPOSED:
                self.snapshots[name] = ready(name)


class Handler(BaseHTTPRequestHandler):
    """Two addresses of the command port, as a runtime from before signed requests has them."""

    server: Agent

    def do_GET(self) -> None:
        if self.path.startswith(GREETING_PATH):
            self._answer(404, "")
        else:
            self._answer(200, self.server.report())

    def do_POST(self) -> None:
        assert self.path == SNAPSHOT_COMMAND
        self.server.take_in(from_json(SnapshotOrders, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self._answer(202, "{}")

    def _answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


def ready(name: str) -> SnapshotReport:
    return SnapshotReport(
        name,
        SnapshotState.READY,
        files=3,
        bytes=4096,
        new_bytes=1024,
        lineage=1,
        digest="sha256:1",
        manifest=f"s3://bucket/apps/{name}/manifest.json",
        queries={"main": QueryPin(7, "{}")},
    )


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with ApiServer() as server:
        found = Kubectl(server.kubectl, server.kubeconfig)
        install_crds(found)
        yield found


@pytest.fixture(scope="module")
def operator(kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    with lone_operator(kubectl.kubeconfig, tmp_path_factory.mktemp("operator") / "log") as process:
        yield process


@pytest.fixture
def space(kubectl: Kubectl, operator: OperatorProcess, schedule: tuple[str, Agent]) -> str:
    """A namespace; there is the schedule's as well, since its periods pass meanwhile."""
    return make_space(kubectl)


def make_space(kubectl: Kubectl) -> str:
    name = f"snapshots-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return name


def create_app(kubectl: Kubectl, space: str, name: str = "orders", **spec: Any) -> None:
    app = streaming_app(name, space, image="shop/orders:1", storage=STORAGE, main="local:///opt/main.py", spec=spec)
    app["spec"] |= {key: value for key, value in spec.items() if not isinstance(value, dict)}
    kubectl.apply(app)


def create_snapshot(kubectl: Kubectl, space: str, name: str = "nightly", policy: str = "Retain") -> str:
    """Make a StreamSnapshot of orders; return its id."""
    spec = {"appRef": {"name": "orders"}, "deletionPolicy": policy}
    metadata = {"name": name, "namespace": space}
    resource = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
    kubectl.apply(resource)
    uid = (kubectl.get("snap", name, space) or {})["metadata"]["uid"]
    return f"{name}-{uid.replace('-', '')[:8]}"


def pod(kubectl: Kubectl, space: str, name: str) -> dict[str, Any]:
    return wait_for(f"pod {name}", lambda: kubectl.get("pod", name, space), GENEROUS, 0.1) or {}


def play_kubelet(kubectl: Kubectl, space: str, name: str, status: dict[str, Any]) -> None:
    kubectl.patch_status("pod", name, space, status)


def container(name: str, state: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}]


@pytest.fixture
def agent(kubectl: Kubectl, space: str) -> Iterator[Agent]:
    """An application that runs, as far as the operator can see."""
    create_app(kubectl, space)
    with running_app(kubectl, space) as server:
        yield server


@pytest.fixture(scope="module")
def schedule(kubectl: Kubectl, operator: OperatorProcess) -> Iterator[tuple[str, Agent]]:
    """An application with a schedule that runs from the first test on, and its namespace: a period takes a minute.

    It is one that nobody looked after for a while. The period that passed last is made up for at once, so that only the
    next one has to be waited for.
    """
    space = make_space(kubectl)
    create_app(kubectl, space, snapshots={"intervalSeconds": 60, "retention": {"maxCount": 1}})
    with running_app(kubectl, space, at_once=True) as server:
        wait_for("the schedule's start", lambda: schedule_status(kubectl, space).get("startTime"), GENEROUS, 0.1)
        kubectl.patch_status("sapp", "orders", space, {"snapshots": {"startTime": "2026-01-01T00:00:00Z"}})
        yield space, server
        kubectl.patch("sapp", "orders", space, {"spec": {"snapshots": {"suspend": True}}})


@contextmanager
def running_app(kubectl: Kubectl, space: str, *, at_once: bool = False) -> Iterator[Agent]:
    """Have the driver of orders run, as far as the operator can see."""
    driver = pod(kubectl, space, "orders-driver")
    address = f"127.0.77.{next(_numbers)}"
    server = Agent(address, driver["metadata"]["annotations"][protocol.ANNOTATION_APP_UID], at_once=at_once)
    running = container("driver", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    condition = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    play_kubelet(kubectl, space, "orders-driver", {**status, "containerStatuses": running})
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def end_pod(kubectl: Kubectl, space: str, name: str, *reports: SnapshotReport) -> None:
    """Let a snapshot's pod end with these words."""
    (main,) = pod(kubectl, space, name)["spec"]["containers"]
    ended = {"exitCode": 0, "reason": "Completed", "message": to_json(SnapshotReports(reports))}
    status = {"phase": "Succeeded", "containerStatuses": container(main["name"], {"terminated": ended})}
    play_kubelet(kubectl, space, name, status)


def snap(kubectl: Kubectl, space: str, name: str = "nightly") -> dict[str, Any]:
    return kubectl.get("snap", name, space) or {}


def wait_for_phase(kubectl: Kubectl, space: str, phase: str, name: str = "nightly") -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        seen = snap(kubectl, space, name)
        assert seen.get("status", {}).get("phase") == phase, seen.get("status")
        return seen

    return wait_for(f"phase {phase}", probe, GENEROUS, 0.2) or {}


def test_a_running_application_has_a_snapshot_taken_and_another_starts_from_it(
    kubectl: Kubectl, space: str, agent: Agent
) -> None:
    name = create_snapshot(kubectl, space, policy="Delete")
    copying = wait_for_phase(kubectl, space, "Copying")
    assert copying["status"]["progress"] == {"files": 1, "ofFiles": 3, "bytes": 0, "ofBytes": 0}
    create_app(kubectl, space, "variant", startFrom={"snapshotRef": {"name": "nightly"}})
    agent.complete()
    kubectl.run("wait", "--for=condition=Ready", "snap/nightly", "-n", space, "--timeout=180s", timeout=190)
    # Ordered again, if the first order is not seen in a report soon.
    assert {order.id for orders in agent.orders for order in orders.take} == {name}
    status = snap(kubectl, space)["status"]
    assert (status["batch"], status["queries"][0]["batchId"], status["size"]) == (7, 7, "4.0Ki")
    wait_for("lastSnapshot", lambda: kubectl.get("sapp", "orders", space)["status"].get("lastSnapshot"), GENEROUS, 0.2)  # type: ignore[index]

    driver = pod(kubectl, space, "variant-driver")
    (env,) = [c["env"] for c in driver["spec"]["containers"] if c["name"] == "driver"]
    config = from_json(DriverConfig, next(v["value"] for v in env if v["name"] == protocol.CONFIG_VARIABLE))
    assert config.start_from is not None
    assert (config.start_from.snapshot, config.start_from.storage.uri) == (name, f"s3://bucket/apps/{space}/orders")

    kubectl.delete("snap", "nightly", space)
    kept = wait_for_phase(kubectl, space, "Deleting")
    assert kubectl.condition(kept, "Ready")["reason"] == "NeededByFork"
    assert not any(orders.dispose for orders in agent.orders)
    kubectl.delete("sapp", "variant", space)
    wait_for("the snapshot to be gone", lambda: not snap(kubectl, space), GENEROUS, 0.2)
    assert agent.orders[-1].dispose == (name,)


def test_a_suspended_application_has_its_snapshot_taken_by_a_pod_and_removed_by_one_when_it_is_gone(
    kubectl: Kubectl, space: str
) -> None:
    create_app(kubectl, space)
    uid = (kubectl.get("sapp", "orders", space) or {})["metadata"]["uid"]
    pod(kubectl, space, "orders-driver")
    kubectl.patch("sapp", "orders", space, {"spec": {"suspend": True}})
    name = create_snapshot(kubectl, space, policy="Delete")
    end_pod(kubectl, space, f"{name}-take", ready(name))
    wait_for_phase(kubectl, space, "Ready")
    kubectl.delete("sapp", "orders", space)
    wait_for("the application to be gone", lambda: kubectl.get("sapp", "orders", space) is None, GENEROUS, 0.2)
    wait_for("the pods to be gone", lambda: not kubectl.list("pods", space), GENEROUS, 0.2)

    kubectl.delete("snap", "nightly", space)
    end_pod(kubectl, space, f"{name}-dispose", SnapshotReport(name, SnapshotState.DISPOSED))
    wait_for("the snapshot to be gone", lambda: not snap(kubectl, space), GENEROUS, 0.2)
    ours = "app.kubernetes.io/managed-by=tidegate"
    wait_for("no pod", lambda: not kubectl.list("pods", space, ours), GENEROUS, 0.2)
    # No garbage collector runs here. What it takes with the application is the application's by its owner.
    left = kubectl.list("serviceaccounts,roles,rolebindings", space, ours)
    assert {owner["uid"] for each in left for owner in each["metadata"]["ownerReferences"]} == {uid}
    assert all(each["metadata"]["ownerReferences"] for each in left)


def test_the_operator_that_is_killed_goes_on_with_what_was_ordered(
    kubectl: Kubectl, space: str, agent: Agent, operator: OperatorProcess
) -> None:
    name = create_snapshot(kubectl, space)
    wait_for("the order", lambda: agent.orders, GENEROUS, 0.05)
    operator.end(signal.SIGKILL)
    agent.complete()
    operator.start()
    assert wait_for_phase(kubectl, space, "Ready")["status"]["snapshotId"] == name
    kubectl.run("delete", "snap", "nightly", "-n", space, "--timeout=180s", timeout=190)
    assert not any(orders.dispose for orders in agent.orders)


def test_an_application_that_is_deleted_leaves_a_snapshot_if_it_is_told_to(kubectl: Kubectl, space: str) -> None:
    create_app(kubectl, space, snapshots={"finalSnapshot": True})
    driver = pod(kubectl, space, "orders-driver")
    uid = driver["metadata"]["annotations"][protocol.ANNOTATION_APP_UID]
    kubectl.delete("sapp", "orders", space)
    name = f"orders-last-{uid.replace('-', '')[:8]}"
    found = wait_for("the last snapshot", lambda: snap(kubectl, space, name), GENEROUS, 0.2) or {}
    identity = f"{name}-{found['metadata']['uid'].replace('-', '')[:8]}"
    assert kubectl.get("sapp", "orders", space) is not None
    end_pod(kubectl, space, f"{identity}-take", ready(identity))
    wait_for("the application to be gone", lambda: kubectl.get("sapp", "orders", space) is None, GENEROUS, 0.2)
    assert wait_for_phase(kubectl, space, "Ready", name)["spec"]["deletionPolicy"] == "Retain"


def test_a_fork_that_is_deleted_before_it_began_releases_its_origin(kubectl: Kubectl, space: str, agent: Agent) -> None:
    create_snapshot(kubectl, space)
    wait_for("the order", lambda: agent.orders, GENEROUS, 0.05)
    agent.complete()
    wait_for_phase(kubectl, space, "Ready")
    create_app(kubectl, space, "variant", startFrom={"snapshotRef": {"name": "nightly"}})
    pod(kubectl, space, "variant-driver")
    kubectl.delete("sapp", "variant", space)
    released = pod(kubectl, space, "variant-release")
    (env,) = [c["env"] for c in released["spec"]["containers"]]
    assert any("fork-" in item.get("value", "") for item in env)
    end_pod(kubectl, space, "variant-release", SnapshotReport("x", SnapshotState.RELEASED))
    wait_for("the fork to be gone", lambda: kubectl.get("sapp", "variant", space) is None, GENEROUS, 0.2)


def test_a_snapshot_of_another_bucket_is_looked_at_started_from_and_released(kubectl: Kubectl, space: str) -> None:
    uri = "s3://far/apps/shop/orders/snapshots/weekly-99887766/manifest.json"
    resource = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamSnapshot",
        "metadata": {"name": "imported", "namespace": space},
        "spec": {"uri": uri, "storage": {"endpoint": "http://far:9000", "pathStyleAccess": True}},
    }
    kubectl.apply(resource)
    uid = snap(kubectl, space, "imported")["metadata"]["uid"]
    identity = f"imported-{uid.replace('-', '')[:8]}"
    looked_at = dataclasses.replace(ready(identity), app="shop/orders", app_uid="far-uid", image="shop/orders:7")
    end_pod(kubectl, space, f"{identity}-take", looked_at)
    status = wait_for_phase(kubectl, space, "Ready", "imported")["status"]
    assert (status["snapshotId"], status["app"]["name"]) == ("weekly-99887766", "shop/orders")

    create_app(kubectl, space, "variant", startFrom={"snapshotRef": {"name": "imported"}})
    driver = pod(kubectl, space, "variant-driver")
    (env,) = [c["env"] for c in driver["spec"]["containers"] if c["name"] == "driver"]
    config = from_json(DriverConfig, next(v["value"] for v in env if v["name"] == protocol.CONFIG_VARIABLE))
    assert config.start_from is not None
    assert config.start_from.storage.uri == "s3://far/apps/shop/orders"
    assert (config.start_from.snapshot, config.start_from.fork) == ("weekly-99887766", True)

    kubectl.delete("sapp", "variant", space)
    end_pod(kubectl, space, "variant-release")
    kubectl.delete("snap", "imported", space)
    end_pod(kubectl, space, f"{identity}-dispose")
    wait_for("the import to be gone", lambda: not snap(kubectl, space, "imported"), GENEROUS, 0.2)


def test_a_complete_snapshot_is_read_back_when_somebody_asks(kubectl: Kubectl, space: str, agent: Agent) -> None:
    name = create_snapshot(kubectl, space)
    wait_for("the order", lambda: agent.orders, GENEROUS, 0.05)
    agent.complete()
    wait_for_phase(kubectl, space, "Ready")
    kubectl.patch("snap", "nightly", space, {"spec": {"verifyNonce": 1}})
    whole = SnapshotReport(name, SnapshotState.VERIFIED, message="Whole.", files=3, bytes=4096)
    end_pod(kubectl, space, f"{name}-verify-1", whole)
    kubectl.run("wait", "--for=condition=Verified", "snap/nightly", "-n", space, "--timeout=180s", timeout=190)
    status = snap(kubectl, space)["status"]
    assert (status["phase"], status["verification"]["nonce"], status["verification"]["files"]) == ("Ready", 1, 3)
    wait_for("the pod to be gone", lambda: kubectl.get("pod", f"{name}-verify-1", space) is None, GENEROUS, 0.2)


def test_a_complete_snapshots_state_is_exported_when_somebody_asks(kubectl: Kubectl, space: str, agent: Agent) -> None:
    name = create_snapshot(kubectl, space)
    wait_for("the order", lambda: agent.orders, GENEROUS, 0.05)
    agent.complete()
    wait_for_phase(kubectl, space, "Ready")
    kubectl.patch("snap", "nightly", space, {"spec": {"export": {"format": "CSV", "timeoutSeconds": 300}}})
    made = pod(kubectl, space, f"{name}-export-1")
    assert made["spec"]["activeDeadlineSeconds"] == 300
    uri = f"s3://bucket/apps/{space}/orders/exports/{name}-1/manifest.json"
    whole = SnapshotReport(name, SnapshotState.EXPORTED, message="5 rows.", files=2, rows=5, bytes=99, manifest=uri)
    end_pod(kubectl, space, f"{name}-export-1", whole)
    kubectl.run("wait", "--for=condition=Exported", "snap/nightly", "-n", space, "--timeout=180s", timeout=190)
    status = snap(kubectl, space)["status"]
    assert (status["phase"], status["export"]["phase"], status["export"]["uri"]) == ("Ready", "Completed", uri)
    wait_for("the pod to be gone", lambda: kubectl.get("pod", f"{name}-export-1", space) is None, GENEROUS, 0.2)


# --- last: by now its periods have passed ---


def schedule_status(kubectl: Kubectl, space: str) -> dict[str, Any]:
    """Return what the status says of the schedule of orders; empty before it says anything."""
    found: dict[str, Any] = (kubectl.get("sapp", "orders", space) or {}).get("status", {}).get("snapshots", {})
    return found


def scheduled(kubectl: Kubectl, space: str) -> list[dict[str, Any]]:
    """Return the schedule's snapshots, the oldest first."""
    return sorted(
        kubectl.list("snap", space, "tidegate.dev/scheduled=true"), key=lambda found: found["metadata"]["name"]
    )


def test_a_schedule_takes_snapshots_and_keeps_as_many_as_it_is_told(
    kubectl: Kubectl, schedule: tuple[str, Agent]
) -> None:
    space, agent = schedule

    def replaced() -> bool:
        taken = [order.id for orders in agent.orders for order in orders.take]
        return taken != [] and any(taken[0] in orders.dispose for orders in agent.orders)

    wait_for("the first of the schedule to be replaced", replaced, 300, 0.2)
    first = agent.orders[0].take[0].id

    def newest() -> dict[str, Any] | None:
        found = scheduled(kubectl, space)
        assert first not in {each.get("status", {}).get("snapshotId") for each in found}
        ready = [each for each in found if each.get("status", {}).get("phase") == "Ready"]
        return ready[-1] if ready else None

    kept = wait_for("the next one in its place", newest, 300, 0.2) or {}
    assert kept["spec"] == {"appRef": {"name": "orders"}, "deletionPolicy": "Delete", "verifyNonce": 0}
    assert json.loads(kept["metadata"]["annotations"]["tidegate.dev/retention"]) == {"maxCount": 1}
    status = schedule_status(kubectl, space)
    assert (status["schedule"], "nextScheduleTime" in status) == ("every 60 s", True)
