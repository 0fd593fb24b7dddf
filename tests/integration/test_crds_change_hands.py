"""CRDs that kubectl applied and the chart takes over, and the other way round, as docs/install.md says.

Runs helm, kubectl and an API server of its own, since the CRDs come and go.
"""

import copy
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from devcluster.apiserver import ApiServer
from tidegate_testing import plain_yaml
from tidegate_testing.helm import Helm, HelmError
from tidegate_testing.kubectl import Kubectl, KubectlError
from tidegate_testing.waiting import wait_for

ROOT = Path(__file__).parents[2]
CHART, CRDS = ROOT / "charts" / "tidegate", ROOT / "crds"
RELEASE = ("tidegate", str(CHART), "--namespace", "default")
SOURCES: list[dict[str, Any]] = [plain_yaml.load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
NAMES = [crd["metadata"]["name"] for crd in SOURCES]
SERVER_SIDE = ("apply", "--server-side")
FORCED = "--force-conflicts"
RELEASED = ("--set", "crds.enabled=false")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def kubectl(server: ApiServer) -> Kubectl:
    """kubectl of a cluster without CRDs."""
    found = Kubectl(server.kubectl, server.kubeconfig)
    found.run("delete", "crd", "--ignore-not-found", "--wait=false", *NAMES)
    checks = itertools.count(1)

    def gone() -> bool:
        left, number = found.run("get", "crd", "-o", "name").split(), next(checks)
        if left and number % 10 == 0:
            with suppress(KubectlError):  # it has gone meanwhile
                found.run("annotate", "--overwrite", *left, f"tests/check={number}")
        return not left

    # Of a CRD that was changed a moment before, Kubernetes' controllers write the status at the same time, and the one
    # that ends the deletion takes a conflict for news to come (crd_finalizer.go): without any, for five minutes.
    wait_for("the CRDs to be gone", gone, 300)
    return found


@pytest.fixture
def helm(server: ApiServer, tmp_path: Path) -> Iterator[Helm]:
    found = Helm(tools.program("helm"), tmp_path, server.kubeconfig)
    yield found
    found.run("uninstall", "tidegate", "--namespace", "default", "--ignore-not-found")


def of_another_version() -> str:
    crds = copy.deepcopy(SOURCES)
    for crd in crds:
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Of another version."
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})


def descriptions(kubectl: Kubectl) -> set[str]:
    found = json.loads(kubectl.run("get", "crd", *NAMES, "-o", "json"))["items"]
    return {crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("description", "") for crd in found}


def test_a_client_side_apply_works_too(kubectl: Kubectl) -> None:
    assert kubectl.run("apply", "-f", str(CRDS)).count("created") == len(NAMES)
    assert kubectl.run("apply", "-f", str(CRDS)).count("unchanged") == len(NAMES)


def test_once_the_chart_has_brought_them_kubectl_changes_them_by_force(helm: Helm, kubectl: Kubectl) -> None:
    helm.run("install", *RELEASE)
    helm.run("upgrade", *RELEASE, *RELEASED)
    with pytest.raises(KubectlError, match=r'conflicts? with "helm"'):
        kubectl.run(*SERVER_SIDE, "-f", "-", stdin=of_another_version())
    kubectl.run(*SERVER_SIDE, FORCED, "-f", "-", stdin=of_another_version())
    assert descriptions(kubectl) == {"Of another version."}


def test_the_chart_takes_over_another_version_of_kubectls_by_force(helm: Helm, kubectl: Kubectl) -> None:
    kubectl.run(*SERVER_SIDE, "-f", "-", stdin=of_another_version())
    with pytest.raises(HelmError, match="exists and cannot be imported"):
        helm.run("install", *RELEASE)
    takes_over = ("upgrade", "--install", *RELEASE, "--take-ownership")
    with pytest.raises(HelmError, match=r'conflicts? with "kubectl"'):
        helm.run(*takes_over)
    helm.run(*takes_over, FORCED)
    assert "Of another version." not in descriptions(kubectl)


def test_the_same_version_is_taken_over_as_it_is(helm: Helm, kubectl: Kubectl) -> None:
    kubectl.run(*SERVER_SIDE, FORCED, "-f", str(CRDS))
    helm.run("upgrade", "--install", *RELEASE, "--take-ownership")
    found = json.loads(kubectl.run("get", "crd", *NAMES, "-o", "json"))["items"]
    assert {crd["metadata"]["annotations"]["meta.helm.sh/release-name"] for crd in found} == {"tidegate"}
