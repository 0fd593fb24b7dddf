"""One cluster with operator, S3 and Kafka for all end-to-end tests. Starts servers; leaves nothing behind.

With TIDEGATE_KUBECONFIG the tests run on that cluster, with the services and images that the environment names. With
TIDEGATE_E2E_CLUSTER they run on the development cluster of that name and leave it up, for a second look.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import environment, images, tools
from devcluster.cluster import Cluster
from devcluster.environment import Environment
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.world import OPERATOR_NAMESPACE, World

ROOT = Path(__file__).parents[2]
BUCKET = "e2e"


@pytest.fixture(scope="session")
def surroundings() -> Iterator[Environment]:
    """A Kubernetes with S3, Kafka and the images."""
    kept = os.environ.get("TIDEGATE_E2E_CLUSTER")
    found = environment.current(kept or "e2e")
    if found.cluster is not None:
        images.load(found.cluster)
    yield found
    if found.cluster is not None and not kept:
        Cluster(found.cluster.name).down()


@pytest.fixture(scope="session")
def world(surroundings: Environment, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The operator is installed by the chart and ready."""
    kubectl = Kubectl(tools.program("kubectl"), surroundings.kubeconfig)
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"), surroundings.kubeconfig)
    repository, _, tag = surroundings.image_operator.rpartition(":")
    helm.run(
        *("upgrade", "--install", "tidegate", str(ROOT / "charts/tidegate"), "--namespace", OPERATOR_NAMESPACE),
        *("--create-namespace", "--set", f"image.repository={repository}", "--set", f"image.tag={tag}"),
        *("--set", f"podAnnotations.started-by=tests-{os.getpid()}", "--wait", "--timeout", "180s"),
        timeout=240,
    )
    scripts = {path.name: path.read_text() for path in (ROOT / "tests/e2e/scripts").glob("*.py")}
    made = World(surroundings, kubectl, BUCKET, scripts)
    made.make_bucket(BUCKET)
    return made


@pytest.fixture(autouse=True)
def diagnosis(request: pytest.FixtureRequest) -> Iterator[None]:
    """Show what one would look at, if the test fails."""
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before and "world" in request.fixturenames:
        world: World = request.getfixturevalue("world")
        namespace = getattr(request.module, "NAMESPACE", "default")
        print(world.diagnosis(namespace))
