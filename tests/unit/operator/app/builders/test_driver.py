"""The driver pod, whole."""

import dataclasses
import json
from typing import Any

import pytest

from tidegate.api.spec_hash import program_hash, spec_hash
from tidegate.api.streaming_app import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.names import agent_secret_name
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.control_protocol import ControlSettings, ModelSettings
from tidegate_spark.contract.protocol import (
    EXPECTS_BEGINNING,
    PROTOCOL,
    DriverConfig,
    ExecutorSettings,
    Storage,
    from_json,
)
from tidegate_testing.golden import assert_golden
from tidegate_testing.values import app

PLATFORM = Platform(operator_image="tidegate/operator:1")

POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 185,
    "fsGroup": 185,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
RUNTIME_INIT = {
    "name": "tidegate-runtime",
    "image": "tidegate/operator:1",
    "imagePullPolicy": "IfNotPresent",
    "command": ["cp", "-r", "/opt/tidegate-runtime/.", "/opt/tidegate-injected/"],
    "securityContext": CONTAINER_SECURITY,
    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
    "volumeMounts": [{"name": "tidegate-runtime", "mountPath": "/opt/tidegate-injected"}],
}


def secret_env(name: str, key: str) -> dict[str, Any]:
    return {"name": key, "valueFrom": {"secretKeyRef": {"name": name, "key": key, "optional": True}}}


def driver_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = [c for c in pod["spec"]["containers"] if c["name"] == "driver"]
    return dict(container)


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def with_cpu_limit(limit: str, request: str) -> dict[str, Any]:
    return {"requests": {"cpu": request, "memory": "64Mi"}, "limits": {"cpu": limit, "memory": "256Mi"}}


def test_the_pod_of_an_app_with_credentials() -> None:
    orders = app(
        {
            "storage.credentialsSecretRef": {"name": "storage"},
            "driver.resources": {"requests": {"cpu": 1}, "limits": {"cpu": "2"}},
        }
    )
    pod = build_driver_pod(orders, 3, 1, PLATFORM)
    config = driver_of(pod)["env"][-1]
    name = agent_secret_name("orders", "u-1", 3, PLATFORM.key_id)
    expected = dataclasses.replace(build_driver_config(orders, 3, 1, PLATFORM), agent_secret=name)
    assert from_json(DriverConfig, config["value"]) == expected
    assert_golden(__file__, "driver_pod", pod)


def test_the_configuration_of_a_launch() -> None:
    orders = app(
        {
            "application.args": ["--topic", "$(TOPIC)"],
            "application.pyFiles": ["local:///opt/app/lib.zip"],
            "sparkConf": {"spark.sql.session.timeZone": "UTC"},
            "executor": {
                "instances": 3,
                "cores": 2,
                "resources": {"requests": {"cpu": 2, "memory": "4Gi"}, "limits": {"cpu": 4}},
            },
            "driver": {
                "resources": {"requests": {"memory": "1Gi"}},
                "stopGracePeriodSeconds": 60,
            },
            "serviceAccountName": "streams",
            "state": {"partitions": 12, "minBatchesToRetain": 10},
            "storage.endpoint": "http://s3:9000",
            "storage.pathStyleAccess": True,
            "storage.credentialsSecretRef": {"name": "storage"},
        }
    )
    place = Storage(
        uri="s3://streams/apps/shop/orders", endpoint="http://s3:9000", region="us-east-1", path_style_access=True
    )
    assert build_driver_config(orders, 3, 2, PLATFORM) == DriverConfig(
        app="orders",
        namespace="shop",
        uid="u-1",
        epoch=3,
        lineage=2,
        pod_name="orders-driver",
        main="local:///opt/app/main.py",
        storage=place,
        executor=ExecutorSettings(
            instances=3,
            image="shop/orders:1",
            image_pull_policy="IfNotPresent",
            service_account="streams",
            pod_name_prefix="orders-e3",
            cores=2,
            cpu_request="2",
            cpu_limit="4",
            heap_mib=2457,
            overhead_mib=1639,
            template=build_executor_template(orders, 3, place, PLATFORM),
        ),
        driver_heap_mib=614,
        args=("--topic", "$(TOPIC)"),
        py_files=("local:///opt/app/lib.zip",),
        spark_conf={
            "spark.sql.session.timeZone": "UTC",
            "spark.kubernetes.executor.disableConfigMap": "true",
            "spark.kubernetes.driver.service.deleteOnTermination": "false",
            "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
            "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
            "spark.ui.killEnabled": "false",
            "spark.authenticate": "true",
            "spark.authenticate.secret.file": "/var/run/tidegate/spark/spark-auth",
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.network.crypto.saslFallback": "false",
            "spark.kubernetes.executor.podTemplateContainerName": "executor",
        },
        state_partitions=12,
        min_batches_to_retain=10,
        stop_grace_seconds=60,
        credentials_secret="storage",
        injected=True,
        program=program_hash(orders.spec),
        spec_hash=spec_hash(orders),
        opening="none",
        expects=EXPECTS_BEGINNING,
        protocol=PROTOCOL,
        control=ControlSettings(ModelSettings(("s3://streams/apps/shop/orders/",), 2 * 1024**3), 60.0),
    )


@pytest.mark.parametrize(
    ("start", "apart"),
    [
        (None, False),
        ({"snapshotRef": {"name": "nightly"}}, True),
        ({"snapshotRef": {"name": "nightly"}, "outputs": "TakeOver"}, False),
        ({"exportedState": {"uri": "s3://far/exports/a-1/manifest.json"}}, False),
    ],
)
def test_who_starts_from_another_ones_snapshot_writes_elsewhere_unless_it_takes_its_place(
    start: dict[str, Any] | None, apart: bool
) -> None:
    fork = app({"startFrom": start} if start else {})
    assert build_driver_config(fork, 1, 1, PLATFORM).apart is apart


def test_an_export_that_lies_elsewhere_than_its_address_says_is_not_read() -> None:
    start = {"exportedState": {"uri": "s3://far/of-a/../of-b/exports/a-1/manifest.json"}}
    with pytest.raises(SpecError, match=r"spec\.startFrom\.exportedState\.uri: must not contain"):
        build_driver_pod(app({"startFrom": start}), 1, 1, PLATFORM)


def test_the_same_app_and_epoch_give_the_same_pod() -> None:
    assert json.dumps(build_driver_pod(app(), 1, 1, PLATFORM)) == json.dumps(build_driver_pod(app(), 1, 1, PLATFORM))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, RUNTIME_INIT["resources"]),
        ({"limits": {"cpu": "2"}}, with_cpu_limit("2", "50m")),
        (
            {"requests": {"cpu": "10m"}, "limits": {"cpu": "20m"}},
            with_cpu_limit("20m", "20m"),
        ),  # a request is at most its limit
    ],
)
def test_where_a_quota_counts_limits_of_processors_each_container_states_one(
    resources: dict[str, str], expected: dict[str, Any]
) -> None:
    pod = build_driver_pod(app({"driver.resources": resources}), 1, 1, PLATFORM)
    (runtime,) = pod["spec"]["initContainers"]
    assert runtime["resources"] == expected


def test_an_image_with_the_runtime_gets_nothing_injected() -> None:
    pod = build_driver_pod(app({"application.runtime": "Image"}), 1, 1, PLATFORM)
    assert "initContainers" not in pod["spec"]
    assert "PYTHONPATH" not in env_of(driver_of(pod))
    assert [v["name"] for v in pod["spec"]["volumes"]] == ["tmp", "work", "tidegate-agent", "tidegate-spark-auth"]


def test_the_kubelet_finds_nothing_to_expand_in_the_configuration() -> None:
    orders = app({"application.args": ["$(HOME)", "$$", "\\$(X)"], "sparkConf": {"spark.x": "$(TIDEGATE_POD_IP)"}})
    text = driver_of(build_driver_pod(orders, 1, 1, PLATFORM))["env"][-1]["value"]
    assert "$" not in text
    assert from_json(DriverConfig, text).args == ("$(HOME)", "$$", "\\$(X)")


TEMPLATE: dict[str, Any] = {
    "metadata": {
        "labels": {"team": "a", "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"note": "b"},
        "name": "mine",
    },
    "spec": {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "restartPolicy": "Never",
        "serviceAccountName": "mine",
        "securityContext": {"runAsUser": 1000},
        "imagePullSecrets": [{"name": "mine"}],
        "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        "containers": [
            {"name": "sidecar", "image": "sidecar:1"},
            {
                "name": "driver",
                "image": "mine",
                "command": ["sleep"],
                "env": [{"name": "A", "value": "1"}, {"name": "HOME", "value": "/h"}, {"name": "B", "value": "1"}],
                "ports": [{"name": "own", "containerPort": 9000}, {"name": "stolen", "containerPort": 8090}],
                "resources": {"limits": {"memory": "1Ki", "example.com/gpu": "1"}},
                "livenessProbe": {"exec": {"command": ["true"]}},
                "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
        ],
        "volumes": [{"name": "data", "configMap": {"name": "m"}}, {"name": "work", "ephemeral": {}}],
    },
}


@pytest.fixture
def merged() -> dict[str, Any]:
    change = {
        "driver.podTemplate": TEMPLATE,
        "application.env": [{"name": "B", "value": "2"}, {"name": "PYTHONPATH", "value": "/opt/app"}],
        "application.imagePullSecrets": [{"name": "registry"}],
    }
    return build_driver_pod(app(change), 1, 1, PLATFORM)


def test_what_a_template_says_about_the_pod_is_kept(merged: dict[str, Any]) -> None:
    spec, metadata = merged["spec"], merged["metadata"]
    assert (metadata["labels"]["team"], metadata["annotations"]["note"]) == ("a", "b")
    assert (spec["nodeSelector"], spec["affinity"]) == ({"disk": "fast"}, {"nodeAffinity": {}})
    assert spec["tolerations"] == [{"key": "dedicated", "operator": "Exists"}]
    assert spec["securityContext"] == POD_SECURITY | {"runAsUser": 1000}
    assert spec["imagePullSecrets"] == [{"name": "mine"}, {"name": "registry"}]
    assert [c["name"] for c in spec["initContainers"]] == ["fetch", "tidegate-runtime"]
    assert [c["name"] for c in spec["containers"]] == ["driver", "sidecar"]


def test_what_tidegate_needs_for_itself_wins_over_a_template(merged: dict[str, Any]) -> None:
    spec, metadata, driver = merged["spec"], merged["metadata"], driver_of(merged)
    assert (metadata["name"], metadata["labels"]["app.kubernetes.io/managed-by"]) == ("orders-driver", "tidegate")
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("OnFailure", "tidegate-driver-orders")
    assert (driver["image"], driver["command"]) == ("shop/orders:1", ["python3", "-m", "tidegate_spark"])
    assert driver["resources"]["limits"] == {"memory": "2Gi", "example.com/gpu": "1"}
    assert driver["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "status"}
    assert "exec" not in driver["livenessProbe"]
    assert driver["ports"] == [
        {"name": "own", "containerPort": 9000},
        {"name": "status", "containerPort": 8090},
        {"name": "command", "containerPort": 8091},
    ]


def test_what_a_template_says_about_the_driver_container_is_merged(merged: dict[str, Any]) -> None:
    driver = driver_of(merged)
    assert driver["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
    assert {"name": "data", "mountPath": "/data"} in driver["volumeMounts"]
    assert {"name": "tmp", "mountPath": "/tmp"} in driver["volumeMounts"]


def test_the_apps_variables_win_over_the_templates_and_the_runtimes_path_comes_first(merged: dict[str, Any]) -> None:
    env = env_of(driver_of(merged))
    assert (env["A"], env["B"], env["HOME"]) == ("1", "2", "/h")
    assert env["PYTHONPATH"] == "/opt/tidegate-injected/python:/opt/app"


def test_a_volume_of_the_template_replaces_its_namesake_whole(merged: dict[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in merged["spec"]["volumes"]}
    assert volumes["work"] == {"name": "work", "ephemeral": {}}
    assert volumes["data"] == {"name": "data", "configMap": {"name": "m"}}


def test_the_template_itself_is_left_as_it_was() -> None:
    orders = app({"driver.podTemplate": TEMPLATE})
    before = json.dumps(orders.spec.driver.pod_template)
    build_driver_pod(orders, 1, 1, PLATFORM)
    assert json.dumps(orders.spec.driver.pod_template) == before


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "containers that are no list": (
        {"driver.podTemplate": {"spec": {"containers": {"name": "x"}}}},
        r"spec\.driver\.podTemplate\.spec\.containers: expected a list, found an object",
    ),
    "a container without a name": (
        {"driver.podTemplate": {"spec": {"containers": [{"image": "x"}]}}},
        r"spec\.driver\.podTemplate\.spec\.containers: each item needs 'name'",
    ),
    "a spec that is a word": (
        {"executor.podTemplate": {"spec": "x"}},
        r"spec\.executor\.podTemplate\.spec: expected an object, found a plain value",
    ),
    "a mount without a path": (
        {"executor.podTemplate": {"spec": {"containers": [{"name": "executor", "volumeMounts": [{"name": "x"}]}]}}},
        r"volumeMounts: each item needs 'mountPath'",
    ),
    "a variable without a name": ({"application.env": [{"value": "x"}]}, r"env: each item needs 'name'"),
    "memory that is no quantity": (
        {"driver.resources": {"requests": {"memory": "much"}}},
        r"spec\.driver\.resources\.requests\.memory",
    ),
    "CPU that is no quantity": (
        {"driver.resources": {"requests": {"cpu": "much"}}},
        r"spec\.driver\.resources\.requests\.cpu",
    ),
    "executors too small for Spark": (
        {"executor.resources": {"requests": {"memory": "512Mi"}}},
        r"spec\.executor\.resources\.requests\.memory",
    ),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_spec_no_pod_can_be_built_from_is_an_error_that_names_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build_driver_pod(app(change), 1, 1, PLATFORM)


@pytest.mark.parametrize(
    "template", [{"spec": None}, {"metadata": None}, {"spec": {"containers": None, "volumes": None}}]
)
def test_a_null_in_a_template_leaves_a_pod_that_tidegate_can_start(template: dict[str, Any]) -> None:
    pod = build_driver_pod(app({"driver.podTemplate": template, "executor.podTemplate": template}), 1, 1, PLATFORM)
    assert driver_of(pod)["command"] == ["python3", "-m", "tidegate_spark"]
    assert pod["metadata"]["name"] == "orders-driver"


def test_a_null_takes_a_default_away() -> None:
    template = {"spec": {"securityContext": {"fsGroup": None}}}
    pod = build_driver_pod(app({"driver.podTemplate": template}), 1, 1, PLATFORM)
    assert "fsGroup" not in pod["spec"]["securityContext"]


def test_the_account_of_another_application_is_refused() -> None:
    """By it, and by nothing else, the chart's policy knows whose executors a driver may touch."""
    with pytest.raises(SpecError, match=r"spec\.serviceAccountName: tidegate-driver-billing is another application's"):
        build_driver_pod(app({"serviceAccountName": "tidegate-driver-billing"}), 1, 1, PLATFORM)
    for name in ("tidegate-driver-orders", "tidegate-driver", "streams"):
        pod = build_driver_pod(app({"serviceAccountName": name}), 1, 1, PLATFORM)
        assert pod["spec"]["serviceAccountName"] == name
