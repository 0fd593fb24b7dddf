"""One API server for the whole run, with the CRDs of this checkout and a namespace for each test."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.apiserver import ApiServer
from tidegate_testing.apps import QUICK_JAVA
from tidegate_testing.kubectl import Kubectl

CRDS = Path(__file__).parents[2] / "crds"
_numbers = itertools.count(1)
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_JAVA)  # of every JVM that a test starts, Spark's and Kafka's


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real API server without controllers; the CRDs are installed."""
    with ApiServer() as running:
        kubectl = Kubectl(running.kubectl, running.kubeconfig)
        kubectl.run("apply", "--server-side", "-f", str(CRDS))
        kubectl.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield running


@pytest.fixture(scope="session")
def api_kubectl(api_server: ApiServer) -> Kubectl:
    """kubectl for :func:`api_server`."""
    return Kubectl(api_server.kubectl, api_server.kubeconfig)


@pytest.fixture
def namespace(api_kubectl: Kubectl) -> str:
    """A fresh namespace that admits restricted pods only."""
    name = f"test-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api_kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return name
