"""A Tidegate that is there already is known, and neither overwritten nor joined by a second operator."""

from typing import Any

import pytest

from devcluster import installation
from devcluster.installation import Installed, Release, UnservedError

OURS = Release("tidegate-e2e", "tidegate-e2e")
TEAMS = Release("tidegate", "tidegate-system")


def helm_annotations(release: Release | None) -> dict[str, str]:
    if release is None:
        return {}
    return {"meta.helm.sh/release-name": release.name, "meta.helm.sh/release-namespace": release.namespace}


def crd(release: Release | None) -> dict[str, Any]:
    return {"metadata": {"name": installation.CRD, "annotations": helm_annotations(release)}}


def operator(release: Release | None, watched: str = "", installed_by: str = "") -> dict[str, Any]:
    variables = [{"name": "TIDEGATE_WATCH_NAMESPACES", "value": watched}, {"name": "X", "valueFrom": {}}]
    container = {"image": "registry/operator:1", "env": variables}
    annotations = {installation.INSTALLED_BY: installed_by} if installed_by else {}
    return {
        "metadata": {"name": "tidegate", "namespace": "tidegate-system", "annotations": helm_annotations(release)},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}},
    }


def test_an_empty_cluster_has_nothing_of_others() -> None:
    assert installation.others(Installed(), OURS) == []
    assert installation.to_use(Installed(), "demo", "demo") is None


def test_what_an_earlier_run_left_is_ours() -> None:
    assert installation.others(installation.read(crd(OURS), [operator(OURS)]), OURS) == []


def test_a_teams_installation_is_named_with_its_operator_and_its_crd() -> None:
    first, second = installation.others(installation.read(crd(TEAMS), [operator(TEAMS, "a,b")]), OURS)
    assert first.endswith("release tidegate in namespace tidegate-system, which serves namespaces a, b")
    assert second.endswith("is there already and belongs to release tidegate in namespace tidegate-system")


def test_a_crd_that_kubectl_applied_is_somebody_elses() -> None:
    (said,) = installation.others(installation.read(crd(None), []), OURS)
    assert "was not made by Helm" in said


def test_an_operator_that_helm_did_not_install_is_somebody_elses() -> None:
    (said,) = installation.others(installation.read(None, [operator(None)]), OURS)
    assert "deployment tidegate in namespace tidegate-system, which serves all namespaces" in said


@pytest.mark.parametrize("watched", ["", "team-a,demo"])
def test_an_operator_of_others_that_serves_the_namespace_is_used(watched: str) -> None:
    found = installation.to_use(installation.read(crd(TEAMS), [operator(TEAMS, watched)]), "demo", "demo")
    assert found is not None
    assert found.release == TEAMS


def test_an_operator_that_the_demo_installed_is_installed_again_and_not_used_as_it_is() -> None:
    earlier = installation.read(crd(TEAMS), [operator(TEAMS, installed_by="demo")])
    assert installation.to_use(earlier, "demo", "demo") is None


def test_beside_an_operator_that_serves_other_namespaces_none_is_installed() -> None:
    with pytest.raises(UnservedError, match="serves namespaces team-a"):
        installation.to_use(installation.read(crd(TEAMS), [operator(TEAMS, "team-a")]), "demo", "demo")
