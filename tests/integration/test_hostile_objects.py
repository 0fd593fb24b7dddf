"""Whatever a real API server stores, the real operator process goes on, and ten applications are reconciled as before.

Runs processes.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from devcluster.apiserver import ApiServer
from tidegate_testing.apps import streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.hostile_routes import LARGE, store_corpus, store_routes
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.memory import chart_limit, peak_bytes
from tidegate_testing.operator_process import OperatorProcess, lone_operator
from tidegate_testing.waiting import wait_for

GENEROUS = 180.0
APPS = [f"app-{number}" for number in range(10)]


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with ApiServer() as server:
        kubectl = Kubectl(server.kubectl, server.kubeconfig)
        install_crds(kubectl)
        yield kubectl


@pytest.fixture(scope="module")
def operator(kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    with lone_operator(kubectl.kubeconfig, tmp_path_factory.mktemp("operator") / "log") as process:
        yield process


def wait_for_phase(kubectl: Kubectl, name: str, phase: str) -> None:
    def probe() -> bool:
        status = (kubectl.get("streamingapp", name, "shop") or {}).get("status", {})
        assert status.get("phase") == phase, status
        return True

    wait_for(f"{name} to be {phase}", probe, GENEROUS, 0.2)


def says_that_it_is_too_large(kubectl: Kubectl, name: str) -> bool:
    conditions = (kubectl.get("streamingapp", name, "hostile") or {}).get("status", {}).get("conditions", [])
    return any(it["reason"] == "InvalidSpec" and "make it shorter" in it["message"] for it in conditions)


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
    store_routes(kubectl, "hostile")
    store_corpus(kubectl, "hostile")

    for name in APPS:
        kubectl.patch("streamingapp", name, "shop", {"spec": {"suspend": True}})
    for name in APPS:
        wait_for_phase(kubectl, name, "Suspended")
    wait_for(
        "the last of the large ones to be refused", partial(says_that_it_is_too_large, kubectl, LARGE[-1]), GENEROUS
    )
    assert operator.is_ready()
    assert operator.process.pid == process
    assert peak_bytes(Path(f"/proc/{process}/status").read_text()) < chart_limit()
