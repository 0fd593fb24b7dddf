"""Which items of two lists are the same one. Pure."""

from typing import Any

import pytest

from tidegate.api.values.errors import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.pod_template import lay_over
from tidegate_testing.observations import PLATFORM, app_with

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def laid_over(field: str, below: dict[str, Any], above: dict[str, Any]) -> list[dict[str, Any]]:
    joined = lay_over({field: [below]}, {field: [above]}, "spec")[field]
    assert isinstance(joined, list)
    return joined


SAME: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a port with the same protocol": ("ports", {"containerPort": 9, "protocol": "UDP"}, {"name": "dns"}),
    "a spread of the same kind": (
        "topologySpreadConstraints",
        {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 2},
    ),
    "a mount at the same path": ("volumeMounts", {"mountPath": "/data"}, {"name": "other"}),
    "an alias of the same address": ("hostAliases", {"ip": "10.0.0.1"}, {"hostnames": ["broker"]}),
}
OTHER: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a port with another protocol": (
        "ports",
        {"containerPort": 9, "protocol": "TCP"},
        {"containerPort": 9, "protocol": "UDP"},
    ),
    "a spread over the same places of another kind": (
        "topologySpreadConstraints",
        {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
    ),
    "a spread over other places": (
        "topologySpreadConstraints",
        {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"},
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_items_of_one_identity_become_one(what: str) -> None:
    field, identity, more = SAME[what]
    assert laid_over(field, identity, identity | more) == [identity | more]


@pytest.mark.parametrize("what", OTHER)
def test_items_of_different_identities_stay_two(what: str) -> None:
    field, below, above = OTHER[what]
    assert laid_over(field, below, above) == [below, above]


def test_a_port_without_a_protocol_is_a_tcp_port() -> None:
    named = {"containerPort": 9, "protocol": "TCP", "name": "web"}
    assert laid_over("ports", {"containerPort": 9}, named) == [named]


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"env": {"A": "1"}}, "env: expected a list, found an object"),
        ({"imagePullPolicy": ["Always"]}, "imagePullPolicy: expected a plain value (str), found a list"),
        ({"livenessProbe": "none", "ports": "8080"}, "ports: expected a list, found a plain value (str)"),
    ],
)
def test_a_template_of_the_wrong_type_is_told_what_is_expected_there(container: dict[str, Any], said: str) -> None:
    template = {"spec": {"containers": [{"name": "driver", **container}]}}
    with pytest.raises(SpecError) as refused:
        build_driver_pod(app_with({"driver.podTemplate": template}), 1, 1, PLATFORM)
    assert str(refused.value) == f"spec.driver.podTemplate.spec.containers[driver].{said}"


def test_items_without_identity_are_added_where_they_differ() -> None:
    below, above = (
        [{"key": "a", "operator": "Exists"}, {"key": "b"}],
        [{"operator": "Exists", "key": "a"}, {"key": "c"}],
    )
    joined = lay_over({"tolerations": below}, {"tolerations": above}, "spec")
    assert joined == {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b"}, {"key": "c"}]}


def test_any_number_of_items_is_joined_in_one_go() -> None:
    """Who compares each with each is not done today: 10**11 times here, and for seconds with what the CRD allows."""
    below, above = ([{"key": f"{name}{number}"} for number in range(300_000)] for name in "ab")
    assert len(lay_over({"tolerations": below}, {"tolerations": above}, "spec")["tolerations"]) == 600_000
