"""One cluster with operator, S3 and Kafka for all end-to-end tests of a worker. Starts servers; leaves nothing behind.

Two workers have a cluster each, and what they start has both cores busy nearly all the time. So batches of most
applications are four seconds apart: back to back they would take from the tests what starts of pods need.

With TIDEGATE_KUBECONFIG the tests run on that cluster, with the services and images that the environment names. They
install Tidegate under names of their own and take it away again; where it is already, they refuse to run. With
TIDEGATE_E2E_CLUSTER they run on the development cluster of that name and leave it up, for a second look. Neither has
room for two workers.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import environment, installation, tools
from devcluster.cluster import Cluster
from devcluster.environment import Environment
from devcluster.installation import Release
from tests.gate.order import longest_first
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.world import OPERATOR_NAMESPACE, World

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
HANGS_AFTER = 1800
"""Seconds for a test with all that it waits for, each wait as long as it may be; more than that, and it hangs."""
BUCKET = "tidegate-e2e"
RELEASE = Release("tidegate-e2e", OPERATOR_NAMESPACE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first; give each test time to wait."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HANGS_AFTER))
    longest_first(items)


@pytest.fixture(scope="session")
def surroundings(worker_id: str) -> Iterator[Environment]:
    """A Kubernetes with S3, Kafka and the images, of this worker alone."""
    kept, foreign = os.environ.get("TIDEGATE_E2E_CLUSTER"), os.environ.get(environment.KUBECONFIG)
    if worker_id != "master" and (kept or foreign):
        pytest.exit("One cluster has room for one worker: run these tests without --numprocesses.", returncode=3)
    if kept or foreign:
        yield environment.current(kept or "e2e")
        return
    name = "e2e" if worker_id == "master" else f"e2e-{worker_id}"
    Cluster(name).down()  # a run that was cut off left its applications, which are not what the tests start with
    try:
        yield environment.current(name)
    finally:
        Cluster(name).down()


@pytest.fixture(scope="session")
def world(surroundings: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The operator is installed by the chart and ready."""
    kubectl = Kubectl(tools.program("kubectl"), surroundings.kubeconfig)
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"), surroundings.kubeconfig)
    refuse_to_meet_another(kubectl)
    scripts = {path.name: path.read_text() for path in (ROOT / "tests/e2e/scripts").glob("*.py")}
    made = World(surroundings, kubectl, BUCKET, scripts)
    try:
        install(helm, surroundings)
        # A run that kept its cluster, or was cut off, left state there that applications of the same names would meet.
        made.remove_bucket(BUCKET)
        made.make_bucket(BUCKET)
        yield made
    finally:
        # One of our own is taken away whole, or kept for a second look.
        if not surroundings.own:
            clean_up(made, helm)


def refuse_to_meet_another(kubectl: Kubectl) -> None:
    """End the run if the cluster has a Tidegate that is not ours: ours serves all namespaces, and its CRD is one."""
    others = installation.others(installation.check(kubectl.run), RELEASE)
    if others:
        remedy = "Uninstall it (docs/install.md), or name another cluster; these tests bring their own."
        pytest.exit("\n".join([f"End-to-end tests do not run on {kubectl.kubeconfig}.", *others, remedy]), returncode=3)


def install(helm: Helm, surroundings: Environment) -> None:
    """Install the chart under our own names and wait until the operator is ready."""
    repository, _, tag = surroundings.image_operator.rpartition(":")
    helm.run(
        *("upgrade", "--install", RELEASE.name, str(ROOT / "charts/tidegate"), "--namespace", RELEASE.namespace),
        *("--create-namespace", "--set", f"image.repository={repository}", "--set", f"image.tag={tag}"),
        *("--set", f"podAnnotations.started-by=tests-{os.getpid()}", "--set", "crds.keep=false"),
        *("--wait", "--timeout", "300s"),
        timeout=360,
    )


def clean_up(made: World, helm: Helm) -> None:
    """Leave a foreign cluster and its object store as they were: no release, CRD, namespace or bucket of ours."""
    made.remove_apps()
    helm.run("uninstall", RELEASE.name, "--namespace", RELEASE.namespace, "--ignore-not-found", "--wait", timeout=360)
    made.remove_namespaces()
    made.remove_buckets()


@pytest.fixture(autouse=True)
def diagnosis(request: pytest.FixtureRequest) -> Iterator[None]:
    """Show what one would look at, if the test fails."""
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before and "world" in request.fixturenames:
        world: World = request.getfixturevalue("world")
        namespace = getattr(request.module, "NAMESPACE", "default")
        print(world.diagnosis(namespace))
