"""The executors' pod template, whole."""

from tidegate.resources.driver_config import app_storage
from tidegate.resources.executor import build_executor_template
from tidegate.resources.platform import Platform
from tidegate_spark.protocol import ExecutorConfig, from_json
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
    assert template == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {
                "tidegate.dev/app": "orders",
                "tidegate.dev/role": "executor",
                "tidegate.dev/epoch": "3",
                "app.kubernetes.io/managed-by": "tidegate",
            },
            "annotations": {"tidegate.dev/app-uid": "u-1"},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "imagePullSecrets": [{"name": "r"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 185,
                "fsGroup": 185,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [
                {
                    "name": "tidegate-runtime",
                    "image": "tidegate/operator:1",
                    "imagePullPolicy": "Always",
                    "command": ["cp", "-r", "/opt/tidegate-runtime/.", "/opt/tidegate-injected/"],
                    "securityContext": CONTAINER_SECURITY,
                    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                    "volumeMounts": [{"name": "tidegate-runtime", "mountPath": "/opt/tidegate-injected"}],
                }
            ],
            "containers": [
                {
                    "name": "executor",
                    "command": ["python3", "-m", "tidegate_spark.executor"],
                    "env": [
                        {"name": "HOME", "value": "/var/lib/tidegate"},
                        {"name": "PYTHONUNBUFFERED", "value": "1"},
                        {"name": "A", "value": "1"},
                        {"name": "PYTHONPATH", "value": "/opt/tidegate-injected/python"},
                        {"name": "TIDEGATE_EXECUTOR_CONFIG", "value": config["value"]},
                    ],
                    "securityContext": CONTAINER_SECURITY,
                    "volumeMounts": [
                        {"name": "tmp", "mountPath": "/tmp"},
                        {"name": "work", "mountPath": "/var/lib/tidegate"},
                        {"name": "tidegate-runtime", "mountPath": "/opt/tidegate-injected", "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "work", "emptyDir": {}},
                {"name": "tidegate-runtime", "emptyDir": {}},
            ],
        },
    }


def test_credentials_reach_executors_as_variables_and_as_files() -> None:
    orders = app({"storage.credentialsSecret": {"name": "storage"}, "application.runtime": "Image"})
    spec = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]
    (container,) = spec["containers"]
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    assert [item for item in container["env"] if item["name"] in keys] == [
        {"name": key, "valueFrom": {"secretKeyRef": {"name": "storage", "key": key, "optional": True}}} for key in keys
    ]
    assert spec["volumes"][-1] == {
        "name": "tidegate-storage-credentials",
        "secret": {"secretName": "storage", "optional": True, "defaultMode": 0o440},
    }
    assert container["volumeMounts"][-1]["mountPath"] == "/var/run/tidegate/storage-credentials"


def test_a_template_of_the_user_is_merged_into_executors_only() -> None:
    template = {"spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "executor", "tty": True}]}}
    orders = app({"executor.podTemplate": template, "driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}})
    spec = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert [(c["name"], c["tty"]) for c in spec["containers"]] == [("executor", True)]
