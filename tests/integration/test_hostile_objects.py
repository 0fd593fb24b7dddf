"""Whatever a real API server stores, the real operator process goes on, and ten applications are reconciled as before.

Runs processes.
"""

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.apiserver import ApiServer
from devcluster.kubeapi import RequestFailedError
from tidegate_spark.protocol import CONFIG_VARIABLE
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.hostile import hostile_documents, nested
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import ROOT, OperatorProcess
from tidegate_testing.waiting import wait_for

GENEROUS = 180.0
NUMBER = 60
"""Objects of the generator for each kind; most are refused by the API server."""
APPS = [f"app-{number}" for number in range(10)]
API = "tidegate.dev/v1alpha1"
GENERATED = {"generateName": "hostile-", "labels": {}, "annotations": {}}
LABELS = {"tidegate.dev/app": "app-0", "tidegate.dev/role": "driver", "tidegate.dev/epoch": "1"}


def message(payload: Any) -> dict[str, Any]:
    spec = {"appRef": {"name": "app-0"}, "type": "reload-config", "payload": payload}
    return {"apiVersion": API, "kind": "ControlMessage", "metadata": GENERATED, "spec": spec}


def application(**spec: Any) -> dict[str, Any]:
    app = streaming_app("x", "", image="shop/x:1", storage={"uri": "s3://bucket/x"}, main="local:///x.py", spec=spec)
    return {**app, "metadata": GENERATED}


def snapshot() -> dict[str, Any]:
    spec = {"appRef": {"name": "app-0"}, "export": {"nonce": 1, "states": [{"query": "a"}]}}
    return {"apiVersion": API, "kind": "StreamSnapshot", "metadata": GENERATED, "spec": spec}


def pod(config: str) -> dict[str, Any]:
    """Return a pod that claims to be the driver of the first application."""
    container = {"name": "driver", "image": "x", "env": [{"name": CONFIG_VARIABLE, "value": config}]}
    metadata = {"generateName": "hostile-", "labels": LABELS, "annotations": {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def with_raw(value: dict[str, Any], raw: str) -> bytes:
    """Return an object with JSON in the place of ``@`` that no encoder of Python makes."""
    return json.dumps(value).replace('"@"', raw).encode()


TEMPLATE = {"spec": {"tolerations": [{"key": "a"}]}}
DIGITS = "9" * 5_000
ROUTES: list[tuple[str, bytes]] = [
    ("controlmessage", with_raw(message("@"), nested(2_000))),
    ("controlmessage", with_raw(message("@"), nested(90))),
    ("controlmessage", with_raw(message("@"), DIGITS)),
    *[("controlmessage", json.dumps(message("x" * 1_400_000)).encode())] * 6,
    ("streamingapp", json.dumps(application(sparkConf={"spark.task.cpus": DIGITS})).encode()),
    ("streamingapp", json.dumps(application(sparkConf={"spark.executor.memoryOverhead": DIGITS})).encode()),
    ("streamingapp", json.dumps(application(sparkConf={"spark.driver.memory": f"{DIGITS}g"})).encode()),
    ("streamingapp", with_raw(application(driver={"podTemplate": {"spec": {"nodeSelector": "@"}}}), nested(2_000))),
    ("pod", json.dumps(pod(nested(100_000))).encode()),
    ("pod", json.dumps(pod('{"executor":{"cores":' + DIGITS + "}}")).encode()),
    ("pod", json.dumps(pod("null")).encode()),
]
"""Ways in that were found by reading: each is one object of those that anybody with the right for its kind creates."""
SEEN: dict[str, dict[str, Any]] = {
    "controlmessage": message({"threshold": [1, {"a": "b"}]}),
    "streamsnapshot": snapshot(),
    "streamingapp": application(sparkConf={"spark.task.cpus": "1"}, driver={"podTemplate": TEMPLATE}),
    "pod": pod(json.dumps({"executor": {"cores": 1}, "spark_conf": {"spark.task.cpus": "1"}})),
}


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with ApiServer() as server:
        kubectl = Kubectl(server.kubectl, server.kubeconfig)
        install_crds(kubectl)
        yield kubectl


@pytest.fixture(scope="module")
def operator(kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    alone = {"TIDEGATE_LEADER_ELECTION": "false"}
    process = OperatorProcess(kubectl.kubeconfig, tmp_path_factory.mktemp("operator") / "log", alone)
    process.start()
    wait_for("the operator to be ready", process.is_ready, 600)
    yield process
    assert process.end(signal.SIGTERM) == 0, process.log.read_text()[-3000:]


def peak_memory(process: OperatorProcess) -> int:
    """Return the most bytes that the process ever had in memory."""
    assert process.process is not None
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def memory_limit() -> int:
    """Return the bytes that the chart allows the operator."""
    text = yaml.safe_load((ROOT / "charts/tidegate/values.yaml").read_text())["resources"]["limits"]["memory"]
    return int(str(text).removesuffix("Mi")) * 1024 * 1024


def wait_for_phase(kubectl: Kubectl, name: str, phase: str) -> None:
    def probe() -> bool:
        status = (kubectl.get("streamingapp", name, "shop") or {}).get("status", {})
        assert status.get("phase") == phase, status
        return True

    wait_for(f"{name} to be {phase}", probe, GENEROUS, 0.2)


def store(kubectl: Kubectl, kind: str, text: bytes) -> bool:
    """Create an object in another namespace; say whether the API server took it."""
    try:
        kubectl.api.create_text(kind, "hostile", text)
    except RequestFailedError:
        return False
    return True


def store_corpus(kubectl: Kubectl, kind: str) -> int:
    """Return how many of the generator's objects the API server took."""
    return sum(store(kubectl, kind, text) for text in hostile_documents(SEEN[kind], NUMBER, 3))


def test_ten_applications_are_reconciled_whatever_else_is_stored(kubectl: Kubectl, operator: OperatorProcess) -> None:
    for name in ("shop", "hostile"):
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    storage, main = {"uri": "s3://bucket/apps"}, "local:///opt/main.py"
    for name in APPS:
        kubectl.create(streaming_app(name, "shop", image="shop/orders:1", storage=storage, main=main), "shop")
    for name in APPS:
        has_driver = partial(kubectl.get, "pod", f"{name}-driver", "shop")
        wait_for(f"the driver of {name}", has_driver, GENEROUS, 0.2)

    assert operator.process is not None
    process = operator.process.pid
    stored = [store(kubectl, kind, text) for kind, text in ROUTES]
    taken = {kind: store_corpus(kubectl, kind) for kind in SEEN}
    assert sum(stored) >= len(ROUTES) // 2, stored
    assert all(taken.values()), taken

    for name in APPS:
        kubectl.patch("streamingapp", name, "shop", {"spec": {"suspend": True}})
    for name in APPS:
        wait_for_phase(kubectl, name, "Suspended")
    assert operator.is_ready()
    assert operator.process.pid == process
    assert peak_memory(operator) < memory_limit()
