"""What the API server stores of a StreamingApp: defaults where nothing was written, else what was. Does I/O."""

import copy

from tidegate.api.streaming_app import decode_app
from tidegate_testing.crd import MINIMAL, changed, create
from tidegate_testing.kubectl import Kubectl


def test_the_smallest_app_is_stored_with_every_default(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, MINIMAL)
    assert stored["spec"] == {
        "application": {
            "image": "example/app:1",
            "imagePullPolicy": "IfNotPresent",
            "main": "local:///opt/app/main.py",
            "runtime": "Injected",
        },
        "podStartTimeoutSeconds": 120,
        "driver": {"resources": {}, "stopGracePeriodSeconds": 120},
        "executor": {"instances": 1, "cores": 1, "resources": {}},
        "state": {
            "partitions": 4,
            "minBatchesToRetain": 100,
            "repartition": {"timeoutSeconds": 3600, "resources": {}},
        },
        "storage": {
            "uri": "s3://streams/apps",
            "region": "us-east-1",
            "pathStyleAccess": False,
            "deletionPolicy": "Retain",
        },
        "restart": {
            "policy": "OnFailure",
            "maxFailures": 10,
            "windowSeconds": 3600,
            "healthySeconds": 600,
            "stallTimeoutSeconds": 600,
        },
        "upgrade": {
            "mode": "Snapshot",
            "stableBatches": 5,
            "timeoutSeconds": 1800,
            "rollbackPolicy": "OnFailure",
            "rollbackTo": "",
        },
        "control": {
            "retentionSeconds": 86400,
            "messageTimeoutSeconds": 60,
            "models": {"sizeLimit": "2Gi"},
            "channel": {"type": "Storage"},
        },
        "scratch": {"tmp": {"sizeLimit": "10Gi"}, "work": {"sizeLimit": "50Gi"}},
        "restartNonce": 0,
        "suspend": False,
    }


def test_an_autoscaler_is_off_until_somebody_switches_it_on(api_kubectl: Kubectl, namespace: str) -> None:
    app = copy.deepcopy(MINIMAL)
    app["spec"]["autoscaling"] = {"maxExecutors": 4}
    stored = create(api_kubectl, namespace, app)
    assert stored["spec"]["autoscaling"] == {
        "mode": "Off",
        "minExecutors": 1,
        "maxExecutors": 4,
        "targetUtilizationPercent": 70,
        "catchUpSeconds": 600,
        "metricsWindowSeconds": 60,
        "stabilizationWindowSeconds": 15,
        "scaleDown": {"intervalSeconds": 600, "maxPercent": 50},
    }
    assert decode_app(stored).spec == decode_app({**stored, "spec": app["spec"]}).spec


def test_an_object_stored_before_the_defaults_existed_reads_as_if_it_had_them(
    api_kubectl: Kubectl, namespace: str
) -> None:
    stored = create(api_kubectl, namespace, MINIMAL)
    assert decode_app(stored).spec == decode_app({**stored, "spec": MINIMAL["spec"]}).spec


def test_everything_that_can_be_set_is_stored_as_it_was_written(api_kubectl: Kubectl, namespace: str) -> None:
    app = copy.deepcopy(MINIMAL)
    app["spec"] = {
        "podStartTimeoutSeconds": 30,
        "application": {
            "image": "images.example:5000/streams/app@sha256:" + "0" * 64,
            "imagePullPolicy": "Always",
            "imagePullSecrets": [{"name": "registry"}],
            "runtime": "Image",
            "main": "shop.orders",
            "args": ["--topic", "$(TOPIC)"],
            "env": [
                {"name": "TOPIC", "value": "readings"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
                {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            ],
            "pyFiles": ["local:///opt/app/lib.zip"],
        },
        "sparkConf": {"spark.sql.session.timeZone": "UTC"},
        "driver": {
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1}},
            "stopGracePeriodSeconds": 60,
            "podTemplate": {
                "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
                "spec": {
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                    "containers": [{"name": "driver", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}],
                    "volumes": [{"name": "x", "configMap": {"name": "m"}}],
                },
            },
        },
        "serviceAccountName": "streams",
        "podTemplate": {"spec": {"containers": [{"name": "sidecar", "image": "s:1"}], "nodeSelector": {"a": "b"}}},
        "executor": {
            "instances": 3,
            "cores": 2,
            "resources": {"requests": {"cpu": 2, "memory": "4G"}, "limits": {"cpu": "2"}},
            "podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}},
        },
        "state": {
            "partitions": 12,
            "minBatchesToRetain": 10,
            "repartition": {
                "timeoutSeconds": 600,
                "resources": {"requests": {"cpu": 2, "memory": "4G"}, "limits": {"cpu": "2"}},
            },
        },
        "storage": {
            "uri": "s3://streams/apps/a_b/c.d/",
            "endpoint": "https://[fd00::1]:9000",
            "region": "auto",
            "pathStyleAccess": True,
            "credentialsSecretRef": {"name": "storage"},
            "deletionPolicy": "Delete",
        },
        "restart": {
            "policy": "Always",
            "maxFailures": 0,
            "windowSeconds": 600,
            "healthySeconds": 60,
            "stallTimeoutSeconds": 0,
        },
        "upgrade": {
            "mode": "LastState",
            "stableBatches": 100,
            "timeoutSeconds": 60,
            "rollbackPolicy": "Never",
            "rollbackTo": "up-9f31a2c4-7-3-6745a1b2",
        },
        "control": {
            "retentionSeconds": 604800,
            "messageTimeoutSeconds": 300,
            "models": {"allowedPrefixes": ["s3://models/a b/", "file:///opt/models/"], "sizeLimit": "500Mi"},
            "channel": {
                "type": "Kafka",
                "kafka": {
                    "bootstrapServers": "kafka.messaging:9092",
                    "topic": "orders-control",
                    "replyTopic": "orders-control-replies",
                    "startingOffsets": "Latest",
                    "options": {"security.protocol": "SASL_SSL"},
                },
                "credentialsSecretRef": {"name": "kafka-control"},
                "allowedTypes": ["reload-config", "order:new"],
            },
        },
        "scratch": {"tmp": {"sizeLimit": "20Gi"}, "work": {"sizeLimit": "200Gi"}},
        "restartNonce": 7,
        "suspend": True,
    }
    stored = create(api_kubectl, namespace, app)
    assert stored["spec"] == app["spec"]
    decode_app(stored)


def test_a_script_of_a_config_map_stands_in_place_of_main(api_kubectl: Kubectl, namespace: str) -> None:
    source = {"configMapKeyRef": {"name": "count-7b9f", "key": "count.py"}}
    app = changed("spec/application", {"image": "example/app:1", "mainFrom": source})
    stored = create(api_kubectl, namespace, app)
    assert stored["spec"]["application"]["mainFrom"] == source
    reference = decode_app(stored).spec.application.main_from
    assert reference is not None
    assert (reference.config_map_key_ref.name, reference.config_map_key_ref.key) == ("count-7b9f", "count.py")


def test_an_application_goes_from_a_file_of_its_image_to_a_script_of_a_config_map(
    api_kubectl: Kubectl, namespace: str
) -> None:
    create(api_kubectl, namespace, MINIMAL)
    source = {"configMapKeyRef": {"name": "count-7b9f", "key": "count.py"}}
    api_kubectl.patch("sapp", "app", namespace, {"spec": {"application": {"main": None, "mainFrom": source}}})
    stored = api_kubectl.get("sapp", "app", namespace)
    assert stored is not None
    assert stored["spec"]["application"]["mainFrom"] == source
    assert "main" not in stored["spec"]["application"]
