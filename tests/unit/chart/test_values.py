"""values.yaml, its schema and its comments belong together. Reads the chart's files."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from devcluster.demo.installing import chart_values
from devcluster.installation import Installed
from tidegate.settings import Settings, read_settings
from tidegate_spark.contract.protocol import SPARKS_LABELS
from tidegate_testing.chart_values import EVERY_POLICY

CHART = Path(__file__).parents[3] / "charts" / "tidegate"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())

# Objects whose content is the user's own, or Kubernetes': the API server checks them.
OPEN = (
    {"/affinity", "/tolerations[]", "/topologySpreadConstraints[]", "/global", "/extraEnv[]/valueFrom"}
    | {"/podSecurityContext", "/securityContext", "/applications/podSecurityContext"}
    | {
        f"/networkPolicies/{name}[]"
        for name in ("metricsFrom", "apiServer/to", "dns/to", "applicationEgress", "operatorEgress")
    }
)
# Helm sets these when the chart is a dependency; they mean nothing to the chart and are not in values.yaml.
FROM_A_PARENT = {"global", "enabled"}


def objects_of(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if schema.get("type") == "object":
        yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from objects_of(child, f"{path}/{name}")
    if "items" in schema:
        yield from objects_of(schema["items"], f"{path}[]")


def test_the_defaults_fit_the_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(VALUES)


POLICIES = [f"admissionPolicies/{group}/{name}" for group, names in EVERY_POLICY.items() for name in names]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({}, ["watchNamespaces"]),
        ({"watchNamespaces": ["a"]}, []),
        ({"watchNamespaces": ["a"], "admissionPolicies": EVERY_POLICY}, POLICIES),
        ({"watchNamespaces": ["a"], "controlMessages": {"restrict": [{"types": ["*"]}]}}, ["controlMessages/restrict"]),
    ],
)
def test_an_install_without_objects_of_the_cluster_has_nothing_that_needs_one(
    values: dict[str, Any], where: list[str]
) -> None:
    given = {**VALUES, "clusterObjects": False, **values}
    errors = jsonschema.Draft7Validator(SCHEMA).iter_errors(given)
    assert sorted("/".join(map(str, error.absolute_path)) for error in errors) == sorted(where)


def test_every_object_is_closed_unless_it_is_kubernetes_own() -> None:
    loose = {path for path, schema in objects_of(SCHEMA) if schema.get("additionalProperties", True) is True}
    assert loose == OPEN, (
        "in charts/tidegate/values.schema.json, close each object (additionalProperties: false); one whose content is "
        "Kubernetes' own belongs into OPEN, and one that is closed by now does not"
    )


def test_every_value_has_a_place_in_the_schema_and_every_place_a_default() -> None:
    def compare(values: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        from_a_parent = FROM_A_PARENT if path == "" else set()
        places = schema["properties"].keys() - from_a_parent
        assert values.keys() == places, (
            f"{path or 'at the top'}: values.yaml lacks {sorted(places - values.keys())}, "
            f"values.schema.json lacks {sorted(values.keys() - places)} (both in charts/tidegate)"
        )
        for name, value in values.items():
            if "properties" in schema["properties"][name]:
                compare(value, schema["properties"][name], f"{path}{name}.")

    compare(VALUES, SCHEMA, "")


def test_every_value_is_explained() -> None:
    """A comment stands on the line above the value, above its block, or above a group of simple neighbours."""
    unexplained = []
    lines = (CHART / "values.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        key = re.match(r"^(\s*)([a-zA-Z]+):", line)
        if not key or key[1] == "    ":
            continue
        above = lines[number - 1].strip()
        is_group = line.rstrip().endswith(":")
        if not above.startswith("#") and not is_group and not in_an_explained_group(lines, number, key[1]):
            unexplained.append(key[2])
    assert unexplained == [], "write a comment above each of these in charts/tidegate/values.yaml"


def in_an_explained_group(lines: list[str], number: int, indent: str) -> bool:
    """Whether the value continues a run of neighbours, without a blank line, that a comment introduces."""
    for line in reversed(lines[:number]):
        if line.strip().startswith("#"):
            return True
        if not line.strip() or not line.startswith(indent):
            return False
    return False


def test_every_alert_can_be_left_out() -> None:
    rules = yaml.safe_load((CHART / "files" / "monitoring" / "alerts.yaml").read_text())
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    left_out = SCHEMA["properties"]["monitoring"]["properties"]["rules"]["properties"]["disabled"]
    assert left_out["items"]["enum"] == alerts, (
        "monitoring.rules.disabled in charts/tidegate/values.schema.json lists the alerts of "
        "files/monitoring/alerts.yaml, in their order"
    )


def test_what_the_deployment_sets_the_operator_reads() -> None:
    template = (CHART / "templates" / "deployment.yaml").read_text()
    variables = set(re.findall(r"name: (TIDEGATE_\w+)", template))
    chosen = {
        "OPERATOR_IMAGE_PULL_POLICY": "Always",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "info",
        "RUNTIME_LOG_FORMAT": "json",
        "POD_SECURITY_CONTEXT": "{}",
        "POD_LABELS": '{"a": "b"}',
        "POD_ANNOTATIONS": '{"a": "b"}',
    }
    given = dict.fromkeys(variables, "1") | {f"TIDEGATE_{name}": choice for name, choice in chosen.items()}
    settings = read_settings([], given)
    defaults = Settings(operator_image="")
    of_the_chart = (
        "operator_image",
        "operator_image_pull_policy",
        "watch_namespaces",
        "metrics_port",
        "runtime_log_format",
        "lease_name",
        "key_name",
        "concurrency",
        "agent_concurrency",
        "large_apps_mib",
        "large_apps_of_namespace_mib",
        "pod_security_context",
        "image_pull_secrets",
        "pod_labels",
        "pod_annotations",
    )
    assert all(getattr(settings, name) != getattr(defaults, name) for name in of_the_chart), (
        "charts/tidegate/templates/deployment.yaml sets a variable for each of these settings: "
        f"{[name for name in of_the_chart if getattr(settings, name) == getattr(defaults, name)]} have none"
    )
    assert len(variables) == len(of_the_chart) + 2, (
        f"charts/tidegate/templates/deployment.yaml sets {sorted(variables)}: name a new one here"
    )


def test_the_budgets_of_the_chart_are_those_that_the_operator_has_without_it() -> None:
    defaults, budgets = Settings(operator_image=""), yaml.safe_load((CHART / "values.yaml").read_text())["budgets"]
    found = {re.sub(r"([A-Z])", r"_\1", name).lower(): value for name, value in budgets.items()}
    assert found == {name: getattr(defaults, name) for name in found}, (
        "give `budgets` in charts/tidegate/values.yaml the defaults of tidegate/settings.py, or the other way round"
    )
    limit = yaml.safe_load((CHART / "values.yaml").read_text())["resources"]["limits"]["memory"]
    assert limit == f"{4 * budgets['largeAppsMib']}Mi", (
        "resources.limits.memory in charts/tidegate/values.yaml is four times budgets.largeAppsMib"
    )


def test_the_pods_of_applications_have_the_security_context_that_they_have_without_the_chart() -> None:
    assert VALUES["applications"]["podSecurityContext"] == Settings(operator_image="").pod_security_context


@pytest.mark.parametrize("value", ["logFormat", "logLevel", "runtimeLogFormat"])
def test_the_operator_accepts_every_choice_the_schema_offers(value: str) -> None:
    variable = re.sub(r"([A-Z])", r"_\1", value).upper()
    for choice in SCHEMA["properties"][value]["enum"]:
        read = read_settings([], {"TIDEGATE_OPERATOR_IMAGE": "x", f"TIDEGATE_{variable}": choice})
        assert getattr(read, variable.lower()) == choice


def test_the_operator_accepts_every_pull_policy_the_schema_offers() -> None:
    for choice in SCHEMA["properties"]["image"]["properties"]["pullPolicy"]["enum"]:
        given = {"TIDEGATE_OPERATOR_IMAGE": "x", "TIDEGATE_OPERATOR_IMAGE_PULL_POLICY": choice}
        assert read_settings([], given).operator_image_pull_policy == choice


def test_artifact_hub_shows_every_crd() -> None:
    annotations = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    assert all(isinstance(value, str) for value in annotations.values())
    shown = yaml.safe_load(annotations["artifacthub.io/crds"])
    assert all(set(crd) == {"kind", "version", "name", "displayName", "description"} for crd in shown)
    crds = [yaml.safe_load(path.read_text()) for path in (CHART / "files" / "crds").glob("*.yaml")]
    assert sorted((crd["name"], crd["kind"], crd["version"]) for crd in shown) == sorted(
        (crd["metadata"]["name"], crd["spec"]["names"]["kind"], version["name"])
        for crd in crds
        for version in crd["spec"]["versions"]
        if version["served"]
    )


@pytest.mark.parametrize("name", [*sorted(SPARKS_LABELS), "tidegate.dev/role", "app.kubernetes.io/managed-by"])
@pytest.mark.parametrize("value", ["podLabels", "podAnnotations"])
def test_what_pods_of_applications_are_known_by_cannot_be_named(value: str, name: str) -> None:
    validator = jsonschema.Draft7Validator(SCHEMA)
    (error,) = validator.iter_errors({**VALUES, "applications": {value: {name: "x"}}})
    assert (list(error.absolute_path), name in error.message) == (["applications", value], True)


LABEL_FAULTS = [
    {"a b": "x"},
    {"a/b/c": "x"},
    {"": "x"},
    {"team": "a b"},
    {"team": "-x"},
    {"team": "x" * 64},
    {"team": True},
]


@pytest.mark.parametrize("labels", LABEL_FAULTS, ids=str)
def test_a_label_that_would_have_every_pod_refused_is_refused_itself(labels: dict[str, Any]) -> None:
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors({**VALUES, "applications": {"podLabels": labels}}))


@pytest.mark.parametrize("label", ["sidecar.istio.io/inject", "team", "app.kubernetes.io/part-of"])
def test_other_labels_of_pods_of_applications_are_the_installations_to_choose(label: str) -> None:
    for text in ("", "x", "a.b_c-D9"):
        values = {**VALUES, "applications": {"podLabels": {label: text}, "podAnnotations": {label: "any: text"}}}
        assert not list(jsonschema.Draft7Validator(SCHEMA).iter_errors(values))


@pytest.mark.parametrize("name", ["TIDEGATE_LEADER_ELECTION", "TIDEGATE_LOG_LEVEL", "POD_NAMESPACE"])
def test_a_variable_by_which_the_chart_sets_the_operator_is_not_set_beside_it(name: str) -> None:
    """It would stand there twice, which a server-side apply refuses; and two operators would both lead."""
    validator = jsonschema.Draft7Validator(SCHEMA)
    (error,) = validator.iter_errors({**VALUES, "extraEnv": [{"name": name, "value": "false"}]})
    assert (list(error.absolute_path), name in error.message) == (["extraEnv", 0, "name"], True)


@pytest.mark.parametrize("name", ["PYTHONASYNCIODEBUG", "KUBERNETES_SERVICE_HOST"])
def test_any_other_variable_can_be_set(name: str) -> None:
    assert not list(
        jsonschema.Draft7Validator(SCHEMA).iter_errors({**VALUES, "extraEnv": [{"name": name, "value": "x"}]})
    )


@pytest.mark.parametrize(
    "repository", ["example.com/gate:1", "https://example.com/gate", "example.com/gate/", "a b", "a@b"]
)
def test_a_repository_that_no_image_can_have_is_refused(repository: str) -> None:
    values = {**VALUES, "image": {**VALUES["image"], "repository": repository}}
    errors = jsonschema.Draft7Validator(SCHEMA).iter_errors(values)
    assert [list(error.absolute_path) for error in errors] == [["image", "repository"]]


@pytest.mark.parametrize(
    "repository", ["gate", "mirror.example.com:5000/team/gate", "localhost/tidegate-operator", "10.0.0.1:80/a"]
)
def test_a_repository_may_be_anywhere(repository: str) -> None:
    values = {**VALUES, "image": {**VALUES["image"], "repository": repository}}
    assert not list(jsonschema.Draft7Validator(SCHEMA).iter_errors(values))


RESERVED = [
    *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "managed-by")),
    *("helm.sh/chart", "tidegate.dev/role"),
]


@pytest.mark.parametrize("label", RESERVED)
@pytest.mark.parametrize("value", ["commonLabels", "podLabels"])
def test_labels_by_which_objects_are_found_cannot_be_named(value: str, label: str) -> None:
    validator = jsonschema.Draft7Validator(SCHEMA)
    (error,) = validator.iter_errors({**VALUES, value: {label: "x"}})
    assert (list(error.absolute_path), label in error.message) == ([value], True)
    assert not list(validator.iter_errors({**VALUES, value: {"app.kubernetes.io/part-of": "x", "team": "y"}}))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("commonAnnotations", "meta.helm.sh/release-name"),
        ("commonAnnotations", "tidegate.dev/app-uid"),
        ("podAnnotations", "meta.helm.sh/release-name"),
    ],
)
def test_annotations_by_which_objects_are_known_cannot_be_named(value: str, name: str) -> None:
    validator = jsonschema.Draft7Validator(SCHEMA)
    assert [list(error.absolute_path) for error in validator.iter_errors({**VALUES, value: {name: "x"}})] == [[value]]
    assert not list(validator.iter_errors({**VALUES, value: {"helm.sh/hook": "x"}}))


def test_whoever_installs_the_operator_may_mark_its_pod_as_the_demo_does() -> None:
    annotations = chart_values("tidegate/operator:1", "sha256:0", Installed())["podAnnotations"]
    assert annotations
    assert not list(jsonschema.Draft7Validator(SCHEMA).iter_errors({**VALUES, "podAnnotations": annotations}))


@pytest.mark.parametrize("version", ["version", "appVersion"])
def test_chart_and_distribution_are_one_release(version: str) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    distribution = re.search(r'^version = "(.+)"$', (CHART.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert distribution is not None
    assert chart[version] == distribution[1]
