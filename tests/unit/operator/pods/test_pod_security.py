"""The security context of the pods: whose it is to decide is the installation's, for every kind of pod alike."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate.pods.records.platform import restricted_security
from tidegate_testing.every_pod import ALL, of_executor
from tidegate_testing.observations import PLATFORM

EVERY = ALL | {"executor": of_executor}
ASSIGNED = ("runAsUser", "runAsGroup", "fsGroup")
"""What OpenShift's SCC restricted-v2 assigns itself, and refuses in a pod that has another number."""
OPENSHIFT = dataclasses.replace(
    PLATFORM, pod_security={name: value for name, value in restricted_security().items() if name not in ASSIGNED}
)
INJECTED = {"application.runtime": "Injected"}


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(each)


@pytest.mark.parametrize("kind", EVERY)
def test_where_the_cluster_assigns_users_and_groups_no_pod_names_one(kind: str) -> None:
    pod = EVERY[kind](INJECTED, OPENSHIFT)
    assert [each for each in objects_in(pod["spec"]) if each.keys() & set(ASSIGNED)] == []


@pytest.mark.parametrize("kind", EVERY)
def test_nothing_else_of_a_pod_depends_on_it(kind: str) -> None:
    usual, assigned = EVERY[kind](INJECTED), EVERY[kind](INJECTED, OPENSHIFT)
    assert usual["spec"].pop("securityContext") == restricted_security()
    assert assigned["spec"].pop("securityContext") == {
        "runAsNonRoot": True,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # The driver is told of its executors' template, in which the same stands.
    assert without_config(usual) == without_config(assigned)


def without_config(pod: dict[str, Any]) -> dict[str, Any]:
    for container in pod["spec"]["containers"]:
        container["env"] = [entry for entry in container["env"] if entry["name"] != "TIDEGATE_CONFIG"]
    return pod


@pytest.mark.parametrize("kind", EVERY)
def test_the_installation_may_have_another_user(kind: str) -> None:
    other = dataclasses.replace(PLATFORM, pod_security={**restricted_security(), "runAsUser": 10001, "fsGroup": 10001})
    context = EVERY[kind](INJECTED, other)["spec"]["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (10001, 10001)


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_an_application_may_still_choose_its_own(role: str) -> None:
    template = {"spec": {"securityContext": {"runAsUser": 1000660007, "seccompProfile": None}}}
    context = EVERY[role]({f"{role}.podTemplate": template}, OPENSHIFT)["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "runAsUser": 1000660007, "fsGroupChangePolicy": "OnRootMismatch"}


def test_a_pod_changes_nothing_in_the_setting() -> None:
    pod = EVERY["driver"]({"driver.podTemplate": {"spec": {"securityContext": {"fsGroup": 7}}}})
    pod["spec"]["securityContext"]["seccompProfile"]["type"] = "Unconfined"
    assert EVERY["driver"]({})["spec"]["securityContext"] == restricted_security()
