"""What the chart renders for which values and which cluster. Runs helm, without a cluster."""

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import tools
from tidegate.pods.records.platform import restricted_security
from tidegate.settings import Settings, read_settings
from tidegate_testing.chart_values import EVERY_POLICY
from tidegate_testing.helm import Helm, HelmError

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


def test_pods_of_applications_have_the_labels_and_annotations_that_were_given(helm: Helm) -> None:
    given = {
        "podLabels": {"sidecar.istio.io/inject": "false"},
        "podAnnotations": {"note": 'a "b" $(POD_NAMESPACE) <c>'},
    }
    rendered = helm.render(CHART, "tidegate", "tidegate-system", {"applications": given})
    (container,) = deployment(rendered)["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    assert not [name for name, value in environment.items() if "$(" in value]
    found = read_settings([], environment)
    assert (found.pod_labels, found.pod_annotations) == (given["podLabels"], given["podAnnotations"])


def test_pods_of_applications_name_the_pull_secrets_that_were_given(helm: Helm) -> None:
    given = {"applications": {"imagePullSecrets": [{"name": "mirror"}, {"name": "second"}]}}
    for values, names in ((None, ()), (given, ("mirror", "second"))):
        rendered = helm.render(CHART, "tidegate", "tidegate-system", values)
        (container,) = deployment(rendered)["spec"]["template"]["spec"]["containers"]
        environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
        assert read_settings([], environment).image_pull_secrets == names


LABELS = {"example.com/cost": "streams", "app.kubernetes.io/part-of": "platform"}
ANNOTATIONS = {"example.com/owner": "data"}
EVERY_OBJECT: dict[str, Any] = {
    "watchNamespaces": ["team-a", "team-b"],
    "controlMessages": {"restrict": [{"types": ["pause"], "groups": ["sre"]}]},
    "admissionPolicies": EVERY_POLICY,
    "serviceAccount": {"annotations": {"example.com/role": "operator"}},
    "metrics": {"service": {"enabled": True, "annotations": {"prometheus.io/scrape": "true"}}},
    "monitoring": {
        "enabled": True,
        "labels": {"release": "prometheus", "app.kubernetes.io/instance": "prometheus"},
        "dashboard": {"annotations": {"grafana_folder": "Streaming"}},
    },
    "networkPolicies": {"enabled": True, "applicationEgress": []},
}
"""Whatever the chart can make, with labels and annotations of single objects."""
OF_THE_POD: dict[str, Any] = {
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "system-cluster-critical",
    "topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
}


class OnceLoader(yaml.CSafeLoader):
    """Refuses a name that an object has twice, of which PyYAML would take the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value]
        assert len(names) == len(set(names)), f"a name twice in line {node.start_mark.line + 1}: {sorted(names)}"
        return super().construct_mapping(node, deep)


def rendered_once(helm: Helm, values: dict[str, Any]) -> list[dict[str, Any]]:
    text = helm.run("template", "tidegate", str(CHART), "--namespace", "tidegate-system", values=values)
    return [document for document in yaml.load_all(text, Loader=OnceLoader) if document]


def deployment(rendered: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = (o for o in rendered if o["kind"] == "Deployment")
    return found


def key(o: dict[str, Any]) -> tuple[str, ...]:
    return o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]


def test_every_object_has_the_common_labels_and_annotations_beside_its_own(helm: Helm) -> None:
    usual = helm.render(CHART, "tidegate", "tidegate-system", EVERY_OBJECT)
    marked = rendered_once(helm, {**EVERY_OBJECT, "commonLabels": LABELS, "commonAnnotations": ANNOTATIONS})
    assert [key(o) for o in marked] == [key(o) for o in usual]
    for before, after in zip(usual, marked, strict=True):
        assert after["metadata"]["labels"] == before["metadata"]["labels"] | LABELS, key(after)
        assert after["metadata"]["annotations"] == before["metadata"].get("annotations", {}) | ANNOTATIONS, key(after)
    kinds = {o["kind"] for o in marked}
    assert kinds == {
        *("Deployment", "ServiceAccount", "Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy"),
        *("Role", "RoleBinding", "ClusterRole", "CustomResourceDefinition"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("ServiceMonitor", "PodMonitor", "PrometheusRule"),
    }


def test_what_is_found_by_labels_is_found_by_the_same_ones(helm: Helm) -> None:
    usual = helm.render(CHART, "tidegate", "tidegate-system", EVERY_OBJECT)
    marked = rendered_once(helm, {**EVERY_OBJECT, "commonLabels": LABELS, "commonAnnotations": ANNOTATIONS})
    template = deployment(marked)["spec"].pop("template")
    assert template["spec"] == deployment(usual)["spec"].pop("template")["spec"]
    assert [o.get("spec") for o in marked if o["kind"] != "CustomResourceDefinition"] == [
        o.get("spec") for o in usual if o["kind"] != "CustomResourceDefinition"
    ]
    assert deployment(marked)["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_a_pods_own_labels_and_annotations_are_over_the_common_ones_and_none_is_there_twice(helm: Helm) -> None:
    values = {
        "commonLabels": {"team": "platform", "example.com/cost": "streams"},
        "commonAnnotations": {"note": "common", "example.com/owner": "data"},
        "podLabels": {"team": "streams", "app.kubernetes.io/part-of": "mesh", "app.kubernetes.io/version": "7"},
        "podAnnotations": {"note": "pod", "kubectl.kubernetes.io/default-container": "sidecar"},
    }
    metadata = deployment(rendered_once(helm, values))["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {
        "note": "pod",
        "example.com/owner": "data",
        "kubectl.kubernetes.io/default-container": "sidecar",
    }
    expected = {"team": "streams", "example.com/cost": "streams", "app.kubernetes.io/part-of": "mesh"}
    assert expected.items() <= metadata["labels"].items()
    assert metadata["labels"]["app.kubernetes.io/version"] == "7"


def test_everything_that_places_a_pod_reaches_it(helm: Helm) -> None:
    spec = deployment(rendered_once(helm, EVERY_OBJECT | OF_THE_POD))["spec"]["template"]["spec"]
    assert {name: spec[name] for name in OF_THE_POD} == OF_THE_POD


def test_labels_by_which_objects_are_found_are_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match=r"invalid propertyName 'app\.kubernetes\.io/instance'"):
        rendered_once(helm, {"podLabels": {"app.kubernetes.io/instance": "mine"}})


def test_an_allowed_place_or_image_stands_in_the_policies_as_it_was_given(helm: Helm) -> None:
    places = ["s3://streams/SECURITY/", "s3://streams/TEMPLATE/"]
    images = ["URI.example.com/", "CONTAINERS.example.com/", "TEMPLATE.example.com:5000/", "<uri>.<template>/"]
    allowed = {"storagePrefixes": places, "imagePrefixes": images}
    rendered = helm.render(CHART, "tidegate", "tidegate-system", {"admissionPolicies": {"applications": allowed}})
    policies = [o["spec"]["validations"] for o in rendered if o["kind"] == "ValidatingAdmissionPolicy"]
    expressions = [each["expression"] for validations in policies for each in validations]
    lists = [json.loads(found) for each in expressions for found in re.findall(r'\["[^]]*\]', each)]
    assert {tuple(each) for each in lists} == {tuple(places), tuple(images)}
    assert (lists.count(places), lists.count(images)) == (3, 2 + 3 * 2)
    assert not any(re.search("<[a-z]+>|URI [+]", each) for each in expressions)


@pytest.mark.parametrize("odd", ["no", "2024", "1e5", "2024-01-01"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_name(helm: Helm, odd: str) -> None:
    """``no`` is a truth value for it, and a namespace may be called so."""

    def rendered(name: str) -> list[dict[str, Any]]:
        named = {
            "watchNamespaces": ["team-a", name],
            "nameOverride": name,
            "fullnameOverride": name,
            "serviceAccount": {"name": name},
            "priorityClassName": name,
            "imagePullSecrets": [{"name": name}],
            "image": {"tag": name},
        }
        values = EVERY_OBJECT | named | {"crds": {"enabled": False}}
        found = sorted(helm.render(CHART, name, name, values), key=lambda o: str(key(o)))
        for service in (each for each in found if each["kind"] == "Service"):
            # It needs a letter first: the test below.
            service["metadata"]["name"] = service["metadata"]["name"].removeprefix("release-")
        return found

    assert rendered(odd) == json.loads(json.dumps(rendered("ordinary")).replace("ordinary", odd))


@pytest.mark.parametrize(
    ("release", "service"),
    [
        ("r" * 45, f"{'r' * 45}-tidegate-metrics"),
        ("r" * 46, f"{'r' * 46}-tidegate-metrics"),
        ("r" * 47, f"{'r' * 47}-tidegat-metrics"),
        ("r" * 53, f"{'r' * 53}-t-metrics"),
        (f"{'r' * 50}-rr", f"{'r' * 50}-rr-t-metrics"),
        ("tidegate", "tidegate-metrics"),
        ("2024", "release-2024-tidegate-metrics"),
        ("stream.team-a", "stream-team-a-tidegate-metrics"),
    ],
)
def test_the_service_has_a_name_that_a_service_may_have(helm: Helm, release: str, service: str) -> None:
    rendered = helm.render(CHART, release, "tidegate-system", {"metrics": {"service": {"enabled": True}}})
    (name,) = (o["metadata"]["name"] for o in rendered if o["kind"] == "Service")
    assert (name, len(name) <= 63) == (service, True)
