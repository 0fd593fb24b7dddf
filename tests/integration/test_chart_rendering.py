"""What the chart renders for which values and which cluster. Runs helm, without a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from tidegate.pods.records.platform import restricted_security
from tidegate.settings import Settings, read_settings
from tidegate_testing.helm import Helm

CHART = Path(__file__).parents[2] / "charts" / "tidegate"
OPENSHIFT = "security.openshift.io/v1"
ASSIGNED = {"runAsUser", "runAsGroup", "fsGroup"}
CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
POD = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"))


class Contexts:
    """The security contexts that a rendering has, as the operator's pod has them and as the operator reads them."""

    def __init__(self, rendered: list[dict[str, Any]]) -> None:
        (deployment,) = (o for o in rendered if o["kind"] == "Deployment")
        spec = deployment["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
        self.pod, self.container = spec.get("securityContext"), container.get("securityContext")
        self.applications = dict(read_settings([], environment).pod_security_context)


def contexts(helm: Helm, values: dict[str, Any] | None = None, *apis: str) -> Contexts:
    return Contexts(helm.render(CHART, "tidegate", "tidegate-system", values, apis))


def without_numbers(context: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in context.items() if name not in ASSIGNED}


@pytest.mark.parametrize(
    ("values", "apis"),
    [({}, ()), ({"openshift": "auto"}, ("route.openshift.io/v1",)), ({"openshift": False}, (OPENSHIFT,))],
    ids=["elsewhere", "with another of its APIs", "switched off"],
)
def test_every_pod_has_its_user_where_nobody_assigns_one(
    helm: Helm, values: dict[str, Any], apis: tuple[str, ...]
) -> None:
    found = contexts(helm, values, *apis)
    assert (found.pod, found.container) == (POD, CONTAINER)
    assert found.applications == Settings(operator_image="").pod_security_context == restricted_security()


@pytest.mark.parametrize(
    ("values", "apis"), [({}, (OPENSHIFT,)), ({"openshift": True}, ())], ids=["recognized", "told"]
)
def test_on_openshift_no_pod_names_a_user_or_a_group(helm: Helm, values: dict[str, Any], apis: tuple[str, ...]) -> None:
    found = contexts(helm, values, *apis)
    assert (found.pod, found.container) == (without_numbers(POD), CONTAINER)
    assert found.applications == without_numbers(restricted_security())


def test_numbers_of_ones_own_are_left_out_on_openshift_too(helm: Helm) -> None:
    own = {"runAsUser": 5, "runAsGroup": 5, "fsGroup": 5, "supplementalGroups": [7]}
    values = {"podSecurityContext": own, "securityContext": own, "applications": {"podSecurityContext": own}}
    found = contexts(helm, values, OPENSHIFT)
    assert all(not ASSIGNED & context.keys() for context in (found.pod, found.container, found.applications))
    assert [each["supplementalGroups"] for each in (found.pod, found.container, found.applications)] == [[7]] * 3


def test_a_context_can_be_changed_field_by_field(helm: Helm) -> None:
    large = {"runAsUser": 1000660007, "fsGroup": None}
    values = {"podSecurityContext": large, "applications": {"podSecurityContext": large}}
    found = contexts(helm, values)
    assert found.pod == POD | {"runAsUser": 1000660007}
    usual = restricted_security()
    del usual["fsGroup"]
    assert found.applications == usual | {"runAsUser": 1000660007}


def test_a_context_can_be_emptied(helm: Helm) -> None:
    values = {"podSecurityContext": None, "securityContext": None, "applications": {"podSecurityContext": None}}
    found = contexts(helm, values)
    assert (found.pod, found.container, found.applications) == (None, None, {})


def test_the_variable_is_json_that_the_kubelet_does_not_expand(helm: Helm) -> None:
    rendered = helm.render(CHART, "tidegate", "tidegate-system")
    assert "$(" not in json.dumps([o for o in rendered if o["kind"] == "Deployment"])
