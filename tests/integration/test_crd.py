"""What the API server itself says to StreamingApps: refusals that name the field, defaults, edits, scale, explain.

Needs the API server of ``conftest.py``; runs kubectl.
"""

import copy
import json
from typing import Any

import pytest

from tidegate.model.streaming_app import decode_app
from tidegate.spark.settings import OWNED_KEYS
from tidegate_testing.kubectl import Kubectl, KubectlError

MINIMAL: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "StreamingApp",
    "metadata": {"name": "app"},
    "spec": {
        "application": {"image": "example/app:1", "main": "local:///opt/app/main.py"},
        "storage": {"uri": "s3://streams/apps"},
    },
}

REMOVED: Any = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the minimal app with the field at ``path`` set, or taken away."""
    app = copy.deepcopy(MINIMAL)
    *parents, leaf = path.split("/")
    node = app
    for parent in parents:
        node = node.setdefault(parent, {})
    if value is REMOVED:
        del node[leaf]
    else:
        node[leaf] = value
    return app


def create(kubectl: Kubectl, namespace: str, app: dict[str, Any]) -> dict[str, Any]:
    text = kubectl.run("create", "-n", namespace, "--validate=strict", "-o", "json", "-f", "-", stdin=json.dumps(app))
    created: dict[str, Any] = json.loads(text)
    return created


def driver(**fields: Any) -> dict[str, Any]:
    return {"resources": fields}


# What is set -> words of the refusal: the field, and what to do about it.
REFUSED: dict[str, tuple[str, Any, list[str]]] = {
    "a name whose pods' names would be too long": ("metadata/name", "a" * 41, ["metadata.name", "at most 40"]),
    "a name with a dot": ("metadata/name", "a.b", ["metadata.name", "no dots"]),
    "no spec": ("spec", REMOVED, ["spec: Required value"]),
    "no application": ("spec/application", REMOVED, ["spec.application: Required value"]),
    "no image": ("spec/application/image", REMOVED, ["spec.application.image: Required value"]),
    "an empty image": ("spec/application/image", "", ["spec.application.image"]),
    "an image with a space": ("spec/application/image", "an image", ["spec.application.image", "without spaces"]),
    "an image that is a number": ("spec/application/image", 3, ["spec.application.image", "must be of type string"]),
    "no main": ("spec/application/main", REMOVED, ["spec.application.main: Required value"]),
    "a main without its path": (
        "spec/application/main",
        "main.py",
        ["spec.application.main", "local:///opt/app/main.py"],
    ),
    "a main elsewhere": ("spec/application/main", "https://x/main.py", ["spec.application.main", "file in the image"]),
    "an unknown pull policy": ("spec/application/imagePullPolicy", "Sometimes", ["imagePullPolicy", "IfNotPresent"]),
    "an unknown runtime": ("spec/application/runtime", "Magic", ["spec.application.runtime", "Injected"]),
    "arguments that are one string": ("spec/application/args", "--a --b", ["spec.application.args", "array"]),
    "an argument that is a number": ("spec/application/args", ["--n", 3], ["spec.application.args[1]", "string"]),
    "a variable without a name": ("spec/application/env", [{"value": "x"}], ["spec.application.env[0].name: Required"]),
    "a variable of Tidegate's": (
        "spec/application/env",
        [{"name": "TIDEGATE_CONFIG", "value": "{}"}],
        ["spec.application.env[0]", "belong to Tidegate"],
    ),
    "a variable with two values": (
        "spec/application/env",
        [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ["spec.application.env[0]", "either value or valueFrom"],
    ),
    "a variable twice": (
        "spec/application/env",
        [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}],
        ["spec.application.env[1]", "Duplicate value"],
    ),
    "a variable whose name is no name": (
        "spec/application/env",
        [{"name": "1A", "value": "x"}],
        ["spec.application.env[0]", "does not start with a digit"],
    ),
    "a Python file elsewhere": ("spec/application/pyFiles", ["lib.zip"], ["spec.application.pyFiles[0]", "local:///"]),
    "a setting that is a number": ("spec/sparkConf", {"spark.x": 3}, ["spec.sparkConf.spark.x", "string"]),
    "a setting that is not Spark's": ("spec/sparkConf", {"sparkx": "3"}, ["spec.sparkConf", "start with 'spark.'"]),
    "negative CPU": ("spec/driver", driver(cpu="-1"), ["spec.driver.resources.cpu", "above zero"]),
    "negative CPU as a number": ("spec/driver", driver(cpu=-1), ["spec.driver.resources.cpu", "above zero"]),
    "no CPU": ("spec/executor", driver(cpu="0"), ["spec.executor.resources.cpu", "above zero"]),
    "CPU that is a word": ("spec/driver", driver(cpu="lots"), ["spec.driver.resources.cpu", "500m or 2"]),
    "CPU that is a list": ("spec/driver", driver(cpu=[1]), ["spec.driver.resources.cpu", "integer,string"]),
    "a CPU limit under the request": (
        "spec/executor",
        driver(cpu="2", cpuLimit="1500m"),
        ["spec.executor.resources", "executor.resources.cpuLimit must not be lower"],
    ),
    "negative memory": ("spec/executor", driver(memory="-2Gi"), ["spec.executor.resources.memory", "at least 512Mi"]),
    "memory without a unit": ("spec/driver", driver(memory=2), ["spec.driver.resources.memory", "at least 512Mi"]),
    "memory that is a word": ("spec/driver", driver(memory="2GB"), ["spec.driver.resources.memory", "such as 2Gi"]),
    "memory in which Spark does not start": (
        "spec/driver",
        driver(memory="600Mi"),
        ["driver.resources.memory", "at least 750Mi"],
    ),
    "no executors": ("spec/executor", {"instances": 0}, ["spec.executor.instances", "greater than or equal to 1"]),
    "negative executors": (
        "spec/executor",
        {"instances": -3},
        ["spec.executor.instances", "greater than or equal to 1"],
    ),
    "half an executor": ("spec/executor", {"instances": 1.5}, ["spec.executor.instances", "integer"]),
    "no task slots": ("spec/executor", {"cores": 0}, ["spec.executor.cores", "greater than or equal to 1"]),
    "no time to stop": ("spec/driver", {"stopGracePeriodSeconds": 0}, ["spec.driver.stopGracePeriodSeconds"]),
    "a template whose containers have no name": (
        "spec/driver",
        {"podTemplate": {"spec": {"containers": [{"image": "x"}]}}},
        ["spec.driver.podTemplate.spec.containers[0].name: Required value"],
    ),
    "a template whose containers are no list": (
        "spec/executor",
        {"podTemplate": {"spec": {"containers": {"name": "x"}}}},
        ["spec.executor.podTemplate.spec.containers"],
    ),
    "no partitions": ("spec/state", {"partitions": 0}, ["spec.state.partitions", "greater than or equal to 1"]),
    "nothing to go back to": ("spec/state", {"minBatchesToRetain": 0}, ["spec.state.minBatchesToRetain"]),
    "no storage": ("spec/storage", REMOVED, ["spec.storage: Required value"]),
    "no place in storage": ("spec/storage", {}, ["spec.storage.uri: Required value"]),
    "storage on a disk": (
        "spec/storage/uri",
        "file:///data",
        ["spec.storage.uri", "s3://bucket or s3://bucket/prefix"],
    ),
    "storage in Hadoop's spelling": ("spec/storage/uri", "s3a://bucket/x", ["spec.storage.uri", "s3://bucket"]),
    "storage without a bucket": ("spec/storage/uri", "s3:///x", ["spec.storage.uri", "s3://bucket"]),
    "a storage that climbs": ("spec/storage/uri", "s3://bucket/a/../b", ["spec.storage.uri", "'..'"]),
    "an empty folder's name in storage": ("spec/storage/uri", "s3://bucket//x", ["spec.storage.uri", "s3://bucket"]),
    "an endpoint without scheme": ("spec/storage/endpoint", "minio:9000", ["spec.storage.endpoint", "http://host"]),
    "an endpoint with a path": ("spec/storage/endpoint", "http://minio/x", ["spec.storage.endpoint", "no path"]),
    "credentials that are a string": (
        "spec/storage/credentialsSecret",
        "s",
        ["spec.storage.credentialsSecret", "object"],
    ),
    "credentials without a name": ("spec/storage/credentialsSecret", {}, ["credentialsSecret.name: Required value"]),
    "a fate of storage that is unknown": ("spec/storage/onDelete", "Archive", ["spec.storage.onDelete", "Retain"]),
    "an unknown field": ("spec/executor", {"instanses": 2}, ['unknown field "spec.executor.instanses"']),
    "an unknown field at the top": ("spec/aplication", {}, ['unknown field "spec.aplication"']),
}


@pytest.fixture(scope="module")
def empty_namespace(api_kubectl: Kubectl) -> str:
    """One namespace for all that is refused: nothing is ever stored in it."""
    api_kubectl.run("create", "namespace", "refusals")
    return "refusals"


@pytest.mark.parametrize(("path", "value", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_the_api_server_refuses_it_and_names_the_field(
    api_kubectl: Kubectl, empty_namespace: str, path: str, value: Any, words: list[str]
) -> None:
    with pytest.raises(KubectlError) as refusal:
        create(api_kubectl, empty_namespace, changed(path, value))
    assert [word for word in words if word not in str(refusal.value)] == [], refusal.value


def test_nothing_that_was_refused_is_stored(api_kubectl: Kubectl, empty_namespace: str) -> None:
    assert api_kubectl.list("streamingapps", empty_namespace) == []


def test_every_setting_that_a_field_stands_for_is_refused_with_the_name_of_that_field(
    api_kubectl: Kubectl, namespace: str
) -> None:
    with pytest.raises(KubectlError) as refusal:
        create(api_kubectl, namespace, changed("spec/sparkConf", dict.fromkeys(OWNED_KEYS, "x")))
    said = str(refusal.value)
    assert [key for key, remedy in OWNED_KEYS.items() if f"{key} is Tidegate's: {remedy}" not in said] == []


def test_credentials_come_from_one_place_only(api_kubectl: Kubectl, namespace: str) -> None:
    app = changed("spec/storage/credentialsSecret", {"name": "s"})
    app["spec"]["application"]["env"] = [{"name": "AWS_ACCESS_KEY_ID", "value": "x"}]
    with pytest.raises(KubectlError, match=r"application\.env must not set AWS_ACCESS_KEY_ID"):
        create(api_kubectl, namespace, app)


def test_little_memory_is_enough_for_who_sets_the_heap(api_kubectl: Kubectl, namespace: str) -> None:
    app = changed("spec/driver", driver(memory="600Mi"))
    app["spec"]["sparkConf"] = {"spark.driver.memory": "460m"}
    assert create(api_kubectl, namespace, app)["spec"]["driver"]["resources"]["memory"] == "600Mi"


def test_the_smallest_app_is_stored_with_every_default(api_kubectl: Kubectl, namespace: str) -> None:
    stored = create(api_kubectl, namespace, MINIMAL)
    assert stored["spec"] == {
        "application": {
            "image": "example/app:1",
            "imagePullPolicy": "IfNotPresent",
            "main": "local:///opt/app/main.py",
            "runtime": "Injected",
        },
        "driver": {"resources": {"cpu": "1", "memory": "2Gi"}, "stopGracePeriodSeconds": 120},
        "executor": {"instances": 1, "cores": 1, "resources": {"cpu": "1", "memory": "2Gi"}},
        "state": {"partitions": 4, "minBatchesToRetain": 100},
        "storage": {
            "uri": "s3://streams/apps",
            "region": "us-east-1",
            "pathStyleAccess": False,
            "onDelete": "Retain",
        },
    }


def test_an_object_stored_before_the_defaults_existed_reads_as_if_it_had_them(
    api_kubectl: Kubectl, namespace: str
) -> None:
    stored = create(api_kubectl, namespace, MINIMAL)
    assert decode_app(stored).spec == decode_app({**stored, "spec": MINIMAL["spec"]}).spec


def test_everything_that_can_be_set_is_stored_as_it_was_written(api_kubectl: Kubectl, namespace: str) -> None:
    app = copy.deepcopy(MINIMAL)
    app["spec"] = {
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
            "resources": {"cpu": "500m", "cpuLimit": 1, "memory": "1Gi"},
            "stopGracePeriodSeconds": 60,
            "serviceAccountName": "streams",
            "podTemplate": {
                "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
                "spec": {
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                    "containers": [{"name": "driver", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}],
                    "volumes": [{"name": "x", "configMap": {"name": "m"}}],
                },
            },
        },
        "executor": {
            "instances": 3,
            "cores": 2,
            "resources": {"cpu": 2, "cpuLimit": "2", "memory": "4G"},
            "podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}},
        },
        "state": {"partitions": 12, "minBatchesToRetain": 10},
        "storage": {
            "uri": "s3://streams/apps/a_b/c.d/",
            "endpoint": "https://[fd00::1]:9000",
            "region": "auto",
            "pathStyleAccess": True,
            "credentialsSecret": {"name": "storage"},
            "onDelete": "Delete",
        },
    }
    stored = create(api_kubectl, namespace, app)
    assert stored["spec"] == app["spec"]
    decode_app(stored)


FIXED = {
    "where the state lies": ("spec/storage/uri", "s3://elsewhere", "storage.uri cannot be changed"),
    "how the state is divided": ("spec/state/partitions", 8, "state.partitions cannot be changed"),
}


@pytest.mark.parametrize(("path", "value", "words"), FIXED.values(), ids=FIXED.keys())
def test_an_edit_that_would_lose_the_state_is_refused(
    api_kubectl: Kubectl, namespace: str, path: str, value: Any, words: str
) -> None:
    create(api_kubectl, namespace, MINIMAL)
    change: Any = value
    for part in reversed(path.split("/")):
        change = {part: change}
    with pytest.raises(KubectlError, match=words):
        api_kubectl.patch("streamingapp", "app", namespace, change)


def test_taking_the_partitions_away_is_an_edit_of_them_too(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, changed("spec/state", {"partitions": 8}))
    with pytest.raises(KubectlError, match=r"state\.partitions cannot be changed"):
        api_kubectl.patch("streamingapp", "app", namespace, {"spec": {"state": None}})


def test_kubectl_scale_sets_the_executors(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    api_kubectl.run("scale", "sapp/app", "-n", namespace, "--replicas=3")
    stored = api_kubectl.get("streamingapp", "app", namespace)
    assert stored is not None
    assert stored["spec"]["executor"]["instances"] == 3


def test_kubectl_scale_to_nothing_is_refused(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    with pytest.raises(KubectlError, match=r"spec\.executor\.instances"):
        api_kubectl.run("scale", "sapp/app", "-n", namespace, "--replicas=0")


STATUS = {
    "phase": "Running",
    "epoch": 2,
    "batch": 318,
    "inputRowsPerSecond": 212,
    "executors": {"wanted": 2, "running": 2},
    "selector": "tidegate.dev/app=app,tidegate.dev/role=executor",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "QueriesRun",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def test_the_scale_subresource_shows_executors_and_their_selector(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    write_status(api_kubectl, namespace)
    path = f"/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/streamingapps/app/scale"
    scale = json.loads(api_kubectl.run("get", "--raw", path))
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 2, "selector": STATUS["selector"]}


def test_kubectl_get_shows_what_a_person_looks_for(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    write_status(api_kubectl, namespace)
    table = api_kubectl.run("get", "sapp", "-n", namespace, "-o", "wide").splitlines()
    assert table[0].split() == ["NAME", "PHASE", "READY", "EXECUTORS", "BATCH", "ROWS/S", "AGE", "EPOCH", "REASON"]
    cells = table[1].split()
    assert cells[:6] + cells[7:] == ["app", "Running", "True", "2", "318", "212", "2", "QueriesRun"]


def test_writing_the_status_leaves_the_spec_alone(api_kubectl: Kubectl, namespace: str) -> None:
    before = create(api_kubectl, namespace, MINIMAL)
    change = json.dumps({"spec": {"executor": {"instances": 9}}, "status": STATUS})
    after = json.loads(
        api_kubectl.run(
            *(
                "patch",
                "sapp",
                "app",
                "-n",
                namespace,
                "--subresource=status",
                "--type=merge",
                "-o",
                "json",
                "-p",
                change,
            )
        )
    )
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], 1)
    assert after["status"] == STATUS


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("streamingapp", "stateful Spark application"),
        ("sapp.spec.executor.instances", "How many executors run"),
        ("sapp.spec.driver.resources.memory", "The container's whole memory"),
        ("sapp.status.lastExit.exception", "Class of the exception"),
    ],
)
def test_kubectl_explains_each_field(api_kubectl: Kubectl, path: str, words: str) -> None:
    assert words in " ".join(api_kubectl.run("explain", path).split())


def write_status(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run(
        *("patch", "sapp", "app", "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": STATUS})),
    )
