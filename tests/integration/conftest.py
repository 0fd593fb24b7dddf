"""One API server for the whole run, with the CRDs of this checkout and a namespace for each test.

Files that take longest come first: a long one that came last would keep one worker busy while the other has no more.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.apiserver import ApiServer
from tidegate_testing.apps import QUICK_JAVA
from tidegate_testing.kubectl import Kubectl

HERE = Path(__file__).parent
LONGEST_FIRST = (
    "spark_runtime/test_repartitions.py",
    "spark_runtime/test_rehearsals.py",
    "spark_runtime/test_beginning_with_exports.py",
    "test_migration.py",
    "spark_runtime/test_endings.py",
    "spark_runtime/test_rollbacks.py",
    "attack/test_attack.py",
    "spark_runtime/test_stalls_and_budget.py",
    "spark_runtime/test_snapshots.py",
    "spark_runtime/test_checkpoint_files.py",
    "spark_runtime/test_stopping.py",
    "chaos/test_accounting.py",
    "samples/test_flight_delays.py",
    "samples/test_temperature_control.py",
    "spark_runtime/test_one_writer.py",
    "snapshots/test_layouts.py",
    "spark_runtime/test_exports.py",
    "spark_runtime/test_rescale.py",
    "samples/test_word_count.py",
    "spark_runtime/test_outputs.py",
    "spark_runtime/test_inside.py",
    # A worker's API server takes processor time from its first test until the worker's end.
    "test_snapshot_lifecycle.py",
    "test_chart_permissions.py",
)
"""All that take a minute or more on a busy machine; the others follow in the order of their names."""
HANGS_AFTER = 1800
"""Seconds for a test with all that it waits for, each wait as long as it may be; more than that, and it hangs."""
CRDS = Path(__file__).parents[2] / "crds"
_numbers = itertools.count(1)
os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_JAVA)  # of every JVM that a test starts, Spark's and Kafka's


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first, in a file their order stays; give each test time to wait."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HANGS_AFTER))
    ranks = {HERE / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real API server without controllers; the CRDs are installed."""
    with ApiServer() as running:
        kubectl = Kubectl(running.kubectl, running.kubeconfig)
        kubectl.run("apply", "--server-side", "-f", str(CRDS))
        kubectl.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=190)
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
