"""Variables that a spec cannot set, and where the refusal looks for them."""

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.api.streaming_app import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.pods.records.platform import Platform
from tidegate_testing.values import app

PLATFORM = Platform("operator:1")
WITH_SECRET: dict[str, Any] = {"storage.credentialsSecretRef": {"name": "storage"}}
ELSEWHERE = {"configMapKeyRef": {"name": "paths", "key": "python"}}


def container(name: str, *env: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "env": list(env)}]}}


# Where it stands -> what is changed in the spec by a variable, and the field that the refusal names.
PLACES: dict[str, Callable[[dict[str, Any]], tuple[dict[str, Any], str]]] = {
    "application": lambda item: ({"application.env": [item]}, "spec.application.env"),
    "driver": lambda item: (
        {"driver.podTemplate": container("driver", item)},
        "spec.driver.podTemplate.spec.containers[driver].env",
    ),
    "executor": lambda item: (
        {"executor.podTemplate": container("executor", item)},
        "spec.executor.podTemplate.spec.containers[executor].env",
    ),
}

RESERVED: dict[str, tuple[dict[str, Any], str]] = {
    "one of Tidegate's": ({"name": "TIDEGATE_MASTER", "value": "local"}, "belong to Tidegate; choose another"),
    "one of Spark's": ({"name": "SPARK_EXECUTOR_MEMORY", "value": "9g"}, "use executor.cores and executor.resources."),
    "the credentials": ({"name": "AWS_SESSION_TOKEN", "value": "x"}, "storage.credentialsSecretRef sets it"),
    "a path from elsewhere": ({"name": "PYTHONPATH", "valueFrom": ELSEWHERE}, "give it as a value"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("variable", "message"), RESERVED.values(), ids=RESERVED.keys())
def test_it_is_refused_with_the_field_and_what_to_do(place: str, variable: dict[str, Any], message: str) -> None:
    change, field = PLACES[place](variable)
    with pytest.raises(SpecError) as refusal:
        build_driver_pod(app(WITH_SECRET | change), 1, 1, PLATFORM)
    assert refusal.value.field == f"{field}[{variable['name']}]"
    assert message in refusal.value.remedy


ALLOWED: dict[str, dict[str, Any]] = {
    "credentials that no Secret brings": {"application.env": [{"name": "AWS_ACCESS_KEY_ID", "value": "x"}]},
    "a path as a value": {"driver.podTemplate": container("driver", {"name": "PYTHONPATH", "value": "/opt/app"})},
    "anything in a container beside": {
        "executor.podTemplate": container("sidecar", {"name": "TIDEGATE_MASTER", "value": "local"})
    },
    "settings of Spark's scripts": {"application.env": [{"name": "SPARK_LOCAL_IP", "value": "127.0.0.1"}]},
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED.keys())
def test_it_is_let_pass(change: dict[str, Any]) -> None:
    assert build_driver_pod(app(change), 1, 1, PLATFORM)


def test_an_application_with_a_reserved_variable_can_be_deleted() -> None:
    change, _ = PLACES["driver"]({"name": "TIDEGATE_MASTER", "value": "local"})
    assert build_purge_pod(app(WITH_SECRET | change), PLATFORM)
