"""The chart's NetworkPolicies, enforced by kube-router between pods in network namespaces of their own.

Needs root. The first run builds kube-router, which takes minutes.
"""

from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.metadata import labels
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import COMMAND_PORT, ROLE_SNAPSHOT, STATUS_PORT
from tidegate_testing.helm import Helm
from tidegate_testing.policy_world import Pod, Reached, World, enforce
from tidegate_testing.values import app

pytestmark = pytest.mark.long

CHART = Path(__file__).parents[2] / "charts" / "tidegate"
PLATFORM = Platform(operator_image="tidegate/operator:1")
OPERATORS = "tidegate-system"
DNS, API_SERVER, WEB_INTERFACE, METRICS, STORAGE, SPARK = 53, 443, 4040, 8080, 9000, 35_000
PORTS = [DNS, API_SERVER, WEB_INTERFACE, METRICS, STATUS_PORT, COMMAND_PORT, STORAGE, SPARK]

CLUSTER_WIDE: dict[str, Any] = {"networkPolicies": {"enabled": True, "namespaces": ["team"]}}
NARROW: dict[str, Any] = {
    "watchNamespaces": ["team"],
    "networkPolicies": {
        "enabled": True,
        "applicationEgress": [
            {
                "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "storage"}}}],
                "ports": [{"port": STORAGE}],
            }
        ],
    },
}


def pods(rendered: list[dict[str, Any]]) -> list[Pod]:
    """Return pods as chart and operator make them, and others beside them."""
    (deployment,) = (each for each in rendered if each["kind"] == "Deployment")
    orders = app()
    executor = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["metadata"]["labels"]
    driver = build_driver_pod(orders, 1, 1, PLATFORM)["metadata"]["labels"]
    return [
        Pod("operator", OPERATORS, deployment["spec"]["template"]["metadata"]["labels"]),
        Pod("driver", "team", driver),
        Pod("executor", "team", executor),
        Pod("executor-2", "team", executor),
        Pod("snapshot", "team", labels("orders", ROLE_SNAPSHOT)),
        Pod("stranger", "team", {"app": "web"}),
        Pod("elsewhere", "other-team", executor),
        Pod("prometheus", "monitoring", {"app": "prometheus"}),
        Pod("storage", "storage", {"app": "s3"}),
    ]


def enforced(folder: Path, values: dict[str, Any]) -> tuple[Reached, Reached]:
    rendered = Helm(tools.program("helm"), folder).render(CHART, "tidegate", OPERATORS, values)
    policies = [each for each in rendered if each["kind"] == "NetworkPolicy"]
    return enforce(World(pods(rendered), PORTS, policies))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reached, Reached]:
    """Who reaches whom without and with the policies of an operator for all namespaces."""
    return enforced(tmp_path_factory.mktemp("helm"), CLUSTER_WIDE)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Reached:
    """Who reaches whom where it is also said what applications reach."""
    return enforced(tmp_path_factory.mktemp("helm"), NARROW)[1]


def to(found: Reached, pod: str) -> set[tuple[str, int]]:
    return {(source, port) for source, target, port in found if target == pod}


def of(found: Reached, pod: str) -> set[tuple[str, int]]:
    return {(target, port) for source, target, port in found if source == pod}


AGENT = {("operator", STATUS_PORT), ("operator", COMMAND_PORT)}
INWARD = {
    "operator": {("prometheus", METRICS)},
    "driver": AGENT | {("prometheus", STATUS_PORT), ("executor", SPARK), ("executor-2", SPARK)},
    "executor": AGENT | {("driver", SPARK), ("executor-2", SPARK)},
    "snapshot": AGENT,
}


def test_without_the_policies_everybody_reaches_everybody(wide: tuple[Reached, Reached]) -> None:
    before, _ = wide
    names = {source for source, _, _ in before}
    assert len(names) == 9
    assert len(before) == 9 * 8 * len(PORTS)


@pytest.mark.parametrize("pod", INWARD)
def test_a_pod_of_tidegates_is_reached_by_those_that_have_to_reach_it(wide: tuple[Reached, Reached], pod: str) -> None:
    assert to(wide[1], pod) == INWARD[pod]


@pytest.mark.parametrize("pod", INWARD)
def test_what_applications_reach_changes_nothing_for_those_that_reach_them(narrow: Reached, pod: str) -> None:
    assert to(narrow, pod) == INWARD[pod]


def test_applications_reach_everything_unless_it_is_said_what(wide: tuple[Reached, Reached]) -> None:
    everything = {(name, port) for name in ("stranger", "elsewhere", "prometheus", "storage") for port in PORTS}
    assert everything <= of(wide[1], "driver")
    assert everything <= of(wide[1], "executor")


def everywhere(*ports: int) -> set[tuple[str, int]]:
    return {(name, port) for name in ("stranger", "elsewhere", "prometheus", "storage") for port in ports}


def test_applications_reach_what_is_listed_and_what_each_of_them_needs(narrow: Reached) -> None:
    storage = {("storage", STORAGE)}
    spark = {(name, SPARK) for name in ("driver", "executor", "executor-2")}
    assert of(narrow, "executor") == storage | everywhere(DNS) | (spark - {("executor", SPARK)})
    assert of(narrow, "driver") == storage | everywhere(DNS, API_SERVER) | (spark - {("driver", SPARK)})
    assert of(narrow, "snapshot") == storage | everywhere(DNS)


def test_the_operator_reaches_agents_names_and_the_api_server_and_nothing_else(
    wide: tuple[Reached, Reached], narrow: Reached
) -> None:
    agents = {(name, port) for name in ("driver", "executor", "executor-2", "snapshot") for _, port in AGENT}
    unlisted = {("elsewhere", port) for _, port in AGENT}
    assert of(wide[1], "operator") == agents | unlisted | everywhere(DNS, API_SERVER)
    assert of(narrow, "operator") == agents | everywhere(DNS, API_SERVER)


def test_who_has_no_policy_is_left_alone(wide: tuple[Reached, Reached]) -> None:
    before, after = wide
    others = {"stranger", "elsewhere", "prometheus", "storage"}
    assert {each for each in before if others.issuperset(each[:2])} <= after
