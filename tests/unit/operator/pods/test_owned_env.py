"""Variables that the operator gives to every container of the runtime."""

from typing import Any

import pytest

from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import LOG_FORMAT_VARIABLE, SECRET_VARIABLES, Storage
from tidegate_testing.values import app

FROM_A_SECRET = {"valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}}
ENV: list[dict[str, Any]] = [
    {"name": "DATABASE", **FROM_A_SECRET},
    {"name": "GREETING", "value": "hello"},
    {"name": "API", **FROM_A_SECRET},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]
ROLES = ("driver", "executor", "purge")


def variables(role: str, platform: Platform, env: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the environment of the runtime's container in a pod of a role."""
    given = app({"application.env": env})
    pods = {
        "driver": lambda: build_driver_pod(given, 1, 1, platform),
        "executor": lambda: build_executor_template(given, 1, Storage("s3://b/p"), platform),
        "purge": lambda: build_purge_pod(given, platform),
    }
    (container,) = [c for c in pods[role]()["spec"]["containers"] if "env" in c]
    return {entry["name"]: entry.get("value") for entry in container["env"]}


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_the_runtime_learns_which_variables_hold_secrets(role: str) -> None:
    assert variables(role, Platform("operator:1"), ENV)[SECRET_VARIABLES] == "API,DATABASE"
    assert SECRET_VARIABLES not in variables(role, Platform("operator:1"), ENV[1:2])


def test_a_purge_learns_it_of_the_variables_that_lead_to_the_storage() -> None:
    env = [*ENV, {"name": "AWS_SECRET_ACCESS_KEY", **FROM_A_SECRET}]
    assert variables("purge", Platform("operator:1"), env)[SECRET_VARIABLES] == "AWS_SECRET_ACCESS_KEY"


@pytest.mark.parametrize("role", ROLES)
def test_the_form_of_log_lines_is_passed_on(role: str) -> None:
    assert variables(role, Platform("operator:1", runtime_log_format="json"), [])[LOG_FORMAT_VARIABLE] == "json"
    assert LOG_FORMAT_VARIABLE not in variables(role, Platform("operator:1"), [])
