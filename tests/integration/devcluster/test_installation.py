"""What Helm really leaves on a cluster is read as the installation that it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import installation, tools
from devcluster.apiserver import ApiServer
from devcluster.installation import Release
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import Kubectl

CHART = Path(__file__).parents[3] / "charts" / "tidegate"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server of its own: the CRD is installed and removed."""
    with ApiServer() as running:
        yield running


def test_a_release_its_namespaces_and_its_crd_are_seen_and_gone_when_uninstalled(
    server: ApiServer, tmp_path: Path
) -> None:
    kubectl = Kubectl(server.kubectl, server.kubeconfig)
    helm = Helm(tools.program("helm"), tmp_path, server.kubeconfig)
    assert installation.check(kubectl.run) == installation.Installed()

    kubectl.run("create", "namespace", "team-a")
    values = {
        "watchNamespaces": ["team-a"],
        "crds": {"keep": False},
        "podAnnotations": {installation.INSTALLED_BY: "demo"},
    }
    helm.run("install", "gate", str(CHART), "-n", "gates", "--create-namespace", values=values)
    seen = installation.check(kubectl.run)
    (operator,) = seen.operators
    release = Release("gate", "gates")
    assert (operator.release, operator.watched, operator.installed_by) == (release, ("team-a",), "demo")
    assert seen.crd_release == release

    helm.run("uninstall", "gate", "-n", "gates")
    assert installation.check(kubectl.run).operators == ()
