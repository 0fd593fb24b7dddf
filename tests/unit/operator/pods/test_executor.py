"""The executors' pod template, whole."""

import pytest

from tidegate.api.values.errors import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.admission.admission_error import complaint_of
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_template, build_executor_to_try
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import ExecutorConfig, from_json
from tidegate_testing.golden import assert_golden
from tidegate_testing.values import app

PLATFORM = Platform(operator_image="tidegate/operator:1", operator_image_pull_policy="Always")

CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def test_the_template_of_an_app_without_credentials() -> None:
    orders = app({"application.env": [{"name": "A", "value": "1"}], "application.imagePullSecrets": [{"name": "r"}]})
    template = build_executor_template(orders, 3, app_storage(orders), PLATFORM)
    config = template["spec"]["containers"][0]["env"][-1]
    assert from_json(ExecutorConfig, config["value"]) == ExecutorConfig(
        app="orders", epoch=3, storage=app_storage(orders)
    )
    assert_golden(__file__, "executor_template", template)


def test_credentials_reach_executors_as_variables_and_as_files() -> None:
    orders = app({"storage.credentialsSecretRef": {"name": "storage"}, "application.runtime": "Image"})
    spec = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]
    (container,) = spec["containers"]
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    assert [item for item in container["env"] if item["name"] in keys] == [
        {"name": key, "valueFrom": {"secretKeyRef": {"name": "storage", "key": key, "optional": True}}} for key in keys
    ]
    assert {
        "name": "tidegate-storage-credentials",
        "secret": {"secretName": "storage", "optional": True, "defaultMode": 0o440},
    } in spec["volumes"]
    assert "/var/run/tidegate/storage-credentials" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_a_template_of_the_user_is_merged_into_executors_only() -> None:
    template = {"spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "executor", "tty": True}]}}
    orders = app({"executor.podTemplate": template, "driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}})
    spec = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert [(c["name"], c["tty"]) for c in spec["containers"]] == [("executor", True)]


def test_an_executor_runs_as_its_application_whatever_its_template_says() -> None:
    """Spark leaves alone what a template calls by the former name, and the API server goes by the present one."""
    orders = app({"executor.podTemplate": {"spec": {"serviceAccount": "admin", "serviceAccountName": "admin"}}})
    spec = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]
    assert spec["serviceAccountName"] == "tidegate-driver-orders"
    tried = build_executor_to_try(orders, 1, app_storage(orders), PLATFORM)["spec"]
    assert {"serviceAccount", "serviceAccountName"} & tried.keys() == set()


def test_resources_that_spark_does_not_set_are_in_the_template_and_the_others_are_not() -> None:
    asked = {"requests": {"ephemeral-storage": "5Gi", "memory": "3Gi"}, "limits": {"nvidia.com/gpu": 1, "cpu": 2}}
    orders = app({"executor.resources": asked})
    (container,) = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]["containers"]
    assert container["resources"] == {"requests": {"ephemeral-storage": "5Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    (tried,) = build_executor_to_try(orders, 1, app_storage(orders), PLATFORM)["spec"]["containers"]
    assert tried["resources"] == {
        "requests": {"ephemeral-storage": "5Gi", "memory": "3Gi", "cpu": "2"},
        "limits": {"nvidia.com/gpu": "1", "cpu": "2", "memory": "3Gi"},
    }


def test_the_applications_template_is_in_driver_and_executors_below_their_own() -> None:
    both = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {"nodeSelector": {"disk": "slow", "zone": "b"}, "containers": [{"name": "sidecar", "image": "s:1"}]},
    }
    orders = app({"podTemplate": both, "executor.podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}}})
    executor = build_executor_template(orders, 1, app_storage(orders), PLATFORM)
    driver = build_driver_pod(orders, 1, 1, PLATFORM)
    assert [pod["metadata"]["labels"]["team"] for pod in (driver, executor)] == ["a", "a"]
    assert driver["spec"]["nodeSelector"] == {"disk": "slow", "zone": "b"}
    assert executor["spec"]["nodeSelector"] == {"disk": "fast", "zone": "b"}
    assert all("sidecar" in {c["name"] for c in pod["spec"]["containers"]} for pod in (driver, executor))


def test_what_is_wrong_with_the_applications_template_is_said_of_that_one() -> None:
    orders = app(
        {"podTemplate": {"spec": {"nodeSelector": ["fast"]}}, "driver.podTemplate": {"spec": {"dnsPolicy": "x"}}}
    )
    with pytest.raises(SpecError, match=r"spec\.driver\.podTemplate|spec\.podTemplate"):
        build_driver_pod(app({"podTemplate": {"spec": {"containers": {}}}}), 1, 1, PLATFORM)
    said = complaint_of(
        "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        orders,
        "driver",
        build_driver_pod(orders, 1, 1, PLATFORM),
    )
    assert said.fields == ("spec.podTemplate.spec.nodeSelector",)
