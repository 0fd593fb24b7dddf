"""The pod that removes a deleted application's storage, whole."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidegate_spark
from tidegate.api.streaming_app import decode_app
from tidegate.app.builders.purge import build_purge_pod
from tidegate.pods.builders.pod_parts import RUNTIME_IN_OPERATOR_IMAGE
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import DriverConfig, from_json
from tidegate_testing.golden import assert_golden
from tidegate_testing.values import app, body

PLATFORM = Platform(operator_image="tidegate/operator:1", operator_image_pull_policy="Always")
ROOT = Path(__file__).parents[5]


def test_the_whole_pod() -> None:
    resource = body(
        {
            "application.env": [{"name": "HTTPS_PROXY", "value": "proxy:3128"}, {"name": "MODE", "value": "fast"}],
            "application.imagePullSecrets": [{"name": "registry"}],
            "driver.podTemplate": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {"nodeSelector": {"a": "b"}, "hostNetwork": True, "containers": [{"name": "sidecar"}]},
            },
        }
    ) | {"status": {"epoch": 4, "lineage": 2}}
    orders = decode_app(resource)
    pod = build_purge_pod(orders, PLATFORM)
    (container,) = pod["spec"]["containers"]
    config = from_json(DriverConfig, container["env"][-1]["value"])
    assert (config.uid, config.epoch, config.lineage) == ("u-1", 4, 2)
    assert config.storage.uri == "s3://streams/apps/shop/orders"
    assert_golden(__file__, "purge_pod", pod)


def env_of(change: dict[str, Any]) -> list[str]:
    (container,) = build_purge_pod(app(change), PLATFORM)["spec"]["containers"]
    return [item["name"] for item in container["env"]]


OURS = {"HOME", "PYTHONUNBUFFERED", "PYTHONPATH", "TIDEGATE_CONFIG"}


def test_it_gets_the_credentials_like_a_driver_but_not_the_agents_token() -> None:
    orders = app({"storage.credentialsSecretRef": {"name": "storage"}, "serviceAccountName": "cloud"})
    spec = build_purge_pod(orders, PLATFORM)["spec"]
    assert spec["serviceAccountName"] == "cloud"
    assert [v["name"] for v in spec["volumes"]] == ["tmp", "work", "tidegate-storage-credentials"]
    names = env_of({"storage.credentialsSecretRef": {"name": "storage"}})
    assert set(names) - OURS == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}


def test_of_the_applications_variables_it_has_only_those_that_reach_the_storage() -> None:
    given = {
        "PATH": "/opt/conda/bin",
        "PYTHONHOME": "/opt/conda",
        "LD_PRELOAD": "/opt/lib.so",
        "ROLE": "reader",
        "AWS_ROLE_ARN": "arn:$(ROLE)",
        "https_proxy": "proxy",
        "NO_PROXY": "localhost",
    }
    names = env_of({"application.env": [{"name": name, "value": value} for name, value in given.items()]})
    assert [name for name in names if name not in OURS] == ["ROLE", "AWS_ROLE_ARN", "https_proxy", "NO_PROXY"]


def test_of_the_drivers_template_it_has_the_files_that_those_variables_name() -> None:
    volumes: list[dict[str, Any]] = [
        {"name": "ca", "configMap": {"name": "company-ca"}},
        {"name": "model", "configMap": {"name": "model"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    mounts = [
        {"name": "ca", "mountPath": "/etc/company"},
        {"name": "model", "mountPath": "/etc/company-model"},
        {"name": "data", "mountPath": "/data"},
    ]
    change = {
        "application.env": [
            {"name": "AWS_CA_BUNDLE", "value": "/etc/company/ca.crt"},
            {"name": "AWS_CONFIG_FILE", "value": "/data/config"},
        ],
        "driver.podTemplate": {
            "spec": {"volumes": volumes, "containers": [{"name": "driver", "volumeMounts": mounts}]}
        },
    }
    spec = build_purge_pod(app(change), PLATFORM)["spec"]
    assert spec["volumes"][2:] == [{"name": "ca", "configMap": {"name": "company-ca", "optional": True}}]
    assert spec["containers"][0]["volumeMounts"][2:] == [mounts[0]]


def test_its_image_has_what_it_runs_where_it_looks_for_it() -> None:
    dockerfile = (ROOT / "images/operator/Dockerfile").read_text()
    assert f"COPY spark_app/tidegate_spark {RUNTIME_IN_OPERATOR_IMAGE}/python/tidegate_spark" in dockerfile
    assert f"COPY --from=python /out/python {RUNTIME_IN_OPERATOR_IMAGE}/python" in dockerfile
    assert "--target /out/python -r /tmp/runtime.lock" in dockerfile
    assert "boto3==" in (ROOT / "locks/runtime.lock").read_text()


def test_it_needs_neither_spark_nor_a_jvm() -> None:
    """The operator's image has no PySpark, no Py4J and no Java."""
    code = "import sys, tidegate_spark.purge; print([m for m in sys.modules if m.startswith(('pyspark', 'py4j'))])"
    path = str(Path(tidegate_spark.__file__).parents[1])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


BROKEN: dict[str, dict[str, Any]] = {
    "memory Spark cannot start in": {
        "driver.resources": {"requests": {"memory": "1Mi"}},
        "executor.resources": {"requests": {"memory": "1Mi"}},
    },
    "a setting that is no size": {"sparkConf": {"spark.driver.memory": "much"}},
    "templates that cannot be merged": {
        "driver.podTemplate": {"spec": {"containers": "x"}},
        "executor.podTemplate": {"spec": "x"},
    },
    "a template of another shape": {
        "application.env": [{"name": "AWS_CA_BUNDLE", "value": "/a/b"}],
        "driver.podTemplate": {
            "spec": {"volumes": "x", "containers": ["x", {"name": "driver", "volumeMounts": [{"mountPath": "/a"}, 1]}]}
        },
    },
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_an_app_that_could_never_start_can_be_deleted(change: dict[str, Any]) -> None:
    assert build_purge_pod(app(change), PLATFORM)["metadata"]["name"] == "orders-purge"


def test_the_purge_goes_where_the_applications_template_says_and_two_that_cannot_be_merged_do_not_keep_it() -> None:
    placed = {"podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}}}
    assert build_purge_pod(app(placed), PLATFORM)["spec"]["nodeSelector"] == {"disk": "fast"}
    torn = {
        "podTemplate": {"spec": {"nodeSelector": ["fast"]}},
        "driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}},
    }
    assert build_purge_pod(app(torn), PLATFORM)["spec"]["nodeSelector"] == {"a": "b"}
