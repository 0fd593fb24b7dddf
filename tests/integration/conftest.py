"""One API server for the whole run, with the CRDs of this checkout and a namespace for each test."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from devcluster.apiserver import ApiServer
from tests.gate.order import longest_first
from tidegate_testing import class_archive
from tidegate_testing.apps import QUICK_JAVA
from tidegate_testing.crd import install_crds
from tidegate_testing.java_classes import compiled
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.streaming_queries import end_shared, shared_session

HERE = Path(__file__).parent
HANGS_AFTER = 1800
"""Seconds for a test with all that it waits for, each wait as long as it may be; more than that, and it hangs."""
_numbers = itertools.count(1)
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_JAVA)  # of every JVM that a test starts, Spark's and Kafka's


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first; give each test time to wait."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HANGS_AFTER))
    longest_first(items)


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The queries in Java, compiled."""
    return compiled(HERE / "spark_runtime" / "java", tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="module")
def spark(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session of a file's own in the one Spark of this worker."""
    settings = {"spark.driver.extraClassPath": f"{class_archive.jars()}/*:{classes}"}
    return shared_session(tmp_path_factory.mktemp("spark"), settings)


@pytest.fixture(scope="session", autouse=True)
def _shared_spark_ends() -> Iterator[None]:
    yield
    end_shared()


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real API server without controllers; the CRDs are installed."""
    with ApiServer() as running:
        kubectl = Kubectl(running.kubectl, running.kubeconfig)
        install_crds(kubectl)
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
