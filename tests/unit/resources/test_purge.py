"""The pod that removes a deleted application's storage, whole."""

from typing import Any

import pytest

from tidegate.model.streaming_app import decode_app
from tidegate.resources.platform import Platform
from tidegate.resources.purge import build_purge_pod
from tidegate_spark.protocol import DriverConfig, from_json
from tidegate_testing.values import app, body

PLATFORM = Platform(operator_image="tidegate/operator:1")


def test_the_pod_of_an_image_with_the_runtime() -> None:
    resource = body(
        {
            "application.runtime": "Image",
            "application.env": [{"name": "HTTPS_PROXY", "value": "proxy:3128"}],
            "driver.podTemplate": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {"nodeSelector": {"a": "b"}, "hostNetwork": True, "containers": [{"name": "sidecar"}]},
            },
        }
    ) | {"status": {"epoch": 4, "lineage": 2}}
    pod = build_purge_pod(decode_app(resource), PLATFORM)
    (container,) = pod["spec"]["containers"]
    config = from_json(DriverConfig, container["env"][-1]["value"])
    assert (config.uid, config.epoch, config.lineage) == ("u-1", 4, 2)
    assert config.storage.uri == "s3://streams/apps/shop/orders"
    assert pod == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "orders-purge",
            "namespace": "shop",
            "labels": {
                "tidegate.dev/app": "orders",
                "tidegate.dev/role": "purge",
                "app.kubernetes.io/managed-by": "tidegate",
            },
            "annotations": {"tidegate.dev/app-uid": "u-1"},
            "ownerReferences": [
                {
                    "apiVersion": "tidegate.dev/v1alpha1",
                    "kind": "StreamingApp",
                    "name": "orders",
                    "uid": "u-1",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "nodeSelector": {"a": "b"},
            "restartPolicy": "OnFailure",
            "serviceAccountName": "tidegate-driver",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 185,
                "fsGroup": 185,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "purge",
                    "image": "shop/orders:1",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-m", "tidegate_spark.purge"],
                    "env": [
                        {"name": "HOME", "value": "/var/lib/tidegate"},
                        {"name": "PYTHONUNBUFFERED", "value": "1"},
                        {"name": "HTTPS_PROXY", "value": "proxy:3128"},
                        {"name": "TIDEGATE_CONFIG", "value": container["env"][-1]["value"]},
                    ],
                    "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [
                        {"name": "tmp", "mountPath": "/tmp"},
                        {"name": "work", "mountPath": "/var/lib/tidegate"},
                    ],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "work", "emptyDir": {}}],
        },
    }


def test_it_gets_the_runtime_and_the_credentials_like_a_driver_but_not_the_agents_token() -> None:
    orders = app({"storage.credentialsSecret": {"name": "storage"}})
    spec = build_purge_pod(orders, PLATFORM)["spec"]
    assert [c["name"] for c in spec["initContainers"]] == ["tidegate-runtime"]
    assert [v["name"] for v in spec["volumes"]] == ["tmp", "work", "tidegate-runtime", "tidegate-storage-credentials"]


BROKEN: dict[str, dict[str, Any]] = {
    "memory Spark cannot start in": {"driver.resources": {"memory": "1Mi"}, "executor.resources": {"memory": "1Mi"}},
    "a setting that is no size": {"sparkConf": {"spark.driver.memory": "much"}},
    "templates that cannot be merged": {
        "driver.podTemplate": {"spec": {"containers": "x"}},
        "executor.podTemplate": {"spec": "x"},
    },
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_an_app_that_could_never_start_can_be_deleted(change: dict[str, Any]) -> None:
    assert build_purge_pod(app(change), PLATFORM)["metadata"]["name"] == "orders-purge"
