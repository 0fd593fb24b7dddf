"""What the API server refuses of a StreamingApp, with the name of the field and what to do. Does I/O."""

from typing import Any

import pytest

from tidegate_spark.contract.owned_settings import IN_EFFECT, OWNED_KEYS, OWNED_STARTS
from tidegate_testing.crd import REMOVED, changed, create
from tidegate_testing.kubectl import Kubectl, KubectlError


def driver(**fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": fields}}


def container(name: str, variable: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "env": [{"name": variable, "value": "x"}]}]}}


def script_of(source: dict[str, Any]) -> dict[str, Any]:
    return {"image": "example/app:1", "mainFrom": source}


def kafka(**fields: Any) -> dict[str, Any]:
    return {"channel": {"type": "Kafka", "kafka": {"bootstrapServers": "b:9092", "topic": "t", **fields}}}


def rabbitmq(**fields: Any) -> dict[str, Any]:
    return {"channel": {"type": "RabbitMQ", "rabbitmq": {"uri": "amqp://b/shop", "queue": "q", **fields}}}


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
    "no program": (
        "spec/application/main",
        REMOVED,
        ["spec.application", "application.main", "application.mainFrom", "exactly one"],
    ),
    "two programs": (
        "spec/application/mainFrom",
        {"configMapKeyRef": {"name": "count", "key": "count.py"}},
        ["spec.application", "application.main", "application.mainFrom", "exactly one"],
    ),
    "a script from nowhere": ("spec/application", script_of({}), ["mainFrom.configMapKeyRef: Required value"]),
    "a script of no ConfigMap": (
        "spec/application",
        script_of({"configMapKeyRef": {"key": "count.py"}}),
        ["mainFrom.configMapKeyRef.name: Required value"],
    ),
    "a script of no key": (
        "spec/application",
        script_of({"configMapKeyRef": {"name": "count"}}),
        ["mainFrom.configMapKeyRef.key: Required value"],
    ),
    "a ConfigMap that none can be": (
        "spec/application",
        script_of({"configMapKeyRef": {"name": "Count/er", "key": "count.py"}}),
        ["application.mainFrom.configMapKeyRef.name", "lower-case letters"],
    ),
    "a key that leads elsewhere": (
        "spec/application",
        script_of({"configMapKeyRef": {"name": "count", "key": "../count.py"}}),
        ["application.mainFrom.configMapKeyRef.key", "such as main.py"],
    ),
    "a key that is a directory": (
        "spec/application",
        script_of({"configMapKeyRef": {"name": "count", "key": "..data"}}),
        ["application.mainFrom.configMapKeyRef.key", "such as main.py"],
    ),
    "a main without its path": (
        "spec/application/main",
        "main.py",
        ["spec.application.main", "local:///opt/app/main.py"],
    ),
    "a main elsewhere": ("spec/application/main", "https://x/main.py", ["spec.application.main", "file in the image"]),
    "an unknown pull policy": ("spec/application/imagePullPolicy", "Sometimes", ["imagePullPolicy", "IfNotPresent"]),
    "an unknown runtime": ("spec/application/runtime", "Magic", ["spec.application.runtime", "Injected"]),
    "a channel that nobody knows": ("spec/control", {"channel": {"type": "Pigeons"}}, ["channel.type", "RabbitMQ"]),
    "a type of channel without one": (
        "spec/control",
        {"channel": {"type": "Kafka"}},
        ["spec.control.channel", "control.channel.type Kafka needs"],
    ),
    "two channels": (
        "spec/control",
        {"channel": {**kafka()["channel"], "rabbitmq": {"uri": "amqp://b", "queue": "q"}}},
        ["spec.control.channel", "control.channel.type RabbitMQ needs"],
    ),
    "a Secret for no channel": (
        "spec/control",
        {"channel": {"credentialsSecretRef": {"name": "x"}}},
        ["spec.control.channel", "storage.credentialsSecretRef"],
    ),
    "an inbox beside a topic": (
        "spec/control",
        {"channel": {**kafka()["channel"], "storage": {}}},
        ["spec.control.channel", "control.channel.storage needs control.channel.type Storage"],
    ),
    "a look each moment": (
        "spec/control",
        {"channel": {"storage": {"pollIntervalSeconds": 0}}},
        ["control.channel.storage.pollIntervalSeconds", "greater than or equal to 1"],
    ),
    "replies that are kept for a while": (
        "spec/control",
        {"channel": {"storage": {"replyRetentionSeconds": -1}}},
        ["control.channel.storage.replyRetentionSeconds", "greater than or equal to 0"],
    ),
    "a topic with a blank": ("spec/control", kafka(topic="a b"), ["control.channel.kafka.topic", "letters, digits"]),
    "offsets of a consumer": (
        "spec/control",
        kafka(options={"group.id": "mine"}),
        ["control.channel.kafka.options", "Tidegate's"],
    ),
    "a password that everybody sees": (
        "spec/control",
        kafka(options={"ssl.truststore.password": "x"}),
        ["control.channel.kafka.options", "control.channel.credentialsSecretRef"],
    ),
    "a user in an address": (
        "spec/control",
        rabbitmq(uri="amqp://ann:secret@b/shop"),
        ["control.channel.rabbitmq.uri", "user and password belong in the Secret"],
    ),
    "a queue without a name": ("spec/control", rabbitmq(queue=""), ["control.channel.rabbitmq.queue"]),
    "an autoscaler without a maximum": ("spec/autoscaling", {}, ["spec.autoscaling.maxExecutors: Required value"]),
    "an autoscaler with less than nothing to choose from": (
        "spec/autoscaling",
        {"minExecutors": 5, "maxExecutors": 4},
        ["spec.autoscaling", "minExecutors must not be more than autoscaling.maxExecutors: lower the one"],
    ),
    "an autoscaler that nobody knows": (
        "spec/autoscaling",
        {"maxExecutors": 4, "mode": "Wild"},
        ["spec.autoscaling.mode", "Advise"],
    ),
    "figures of a longer time than they are kept for": (
        "spec/autoscaling",
        {"maxExecutors": 4, "metricsWindowSeconds": 3600},
        ["spec.autoscaling.metricsWindowSeconds", "less than or equal to 1800"],
    ),
    "more than all of the executors' time": (
        "spec/autoscaling",
        {"maxExecutors": 4, "targetUtilizationPercent": 96},
        ["spec.autoscaling.targetUtilizationPercent", "95"],
    ),
    "an excluded period whose schedule is none": (
        "spec/autoscaling",
        {"maxExecutors": 4, "excludedPeriods": [{"schedule": "each morning", "durationSeconds": 7200}]},
        ["spec.autoscaling.excludedPeriods[0].schedule", "five fields of cron"],
    ),
    "an excluded period of a day that never comes": (
        "spec/autoscaling",
        {
            "maxExecutors": 4,
            "excludedPeriods": [
                {"schedule": "0 8 * * *", "durationSeconds": 7200},
                {"schedule": "0 8 31 2 *", "durationSeconds": 7200},
            ],
        },
        ["spec.autoscaling.excludedPeriods[1].schedule", "never occurs", "name a day that one of them has"],
    ),
    "an excluded period over midnight": (
        "spec/autoscaling",
        {"maxExecutors": 4, "excludedPeriods": [{"schedule": "0 22-5 * * *", "durationSeconds": 7200}]},
        ["spec.autoscaling.excludedPeriods[0].schedule", "ends before it begins", "such as 22-23,0-5"],
    ),
    "an excluded period over the end of a week": (
        "spec/autoscaling",
        {"maxExecutors": 4, "excludedPeriods": [{"schedule": "0 8 * * Fri-sun", "durationSeconds": 7200}]},
        ["spec.autoscaling.excludedPeriods[0].schedule", "ends before it begins", "such as FRI-SAT,SUN"],
    ),
    "snapshots on a day that never comes": (
        "spec/snapshots",
        {"schedule": "30 4 30,31 feb *"},
        ["spec.snapshots.schedule", "never occurs", "name a day that one of them has"],
    ),
    "snapshots over midnight": (
        "spec/snapshots",
        {"schedule": "0 22-5 * * *"},
        ["spec.snapshots.schedule", "ends before it begins", "such as 22-23,0-5"],
    ),
    "an autoscaler that may take all executors away": (
        "spec/autoscaling",
        {"minExecutors": 0, "maxExecutors": 4},
        ["spec.autoscaling.minExecutors", "greater than or equal to 1"],
    ),
    "an autoscaler that may have no executors": (
        "spec/autoscaling",
        {"maxExecutors": 0},
        ["spec.autoscaling.maxExecutors", "greater than or equal to 1"],
    ),
    "a utilization at which nothing is done": (
        "spec/autoscaling",
        {"maxExecutors": 4, "targetUtilizationPercent": 9},
        ["spec.autoscaling.targetUtilizationPercent", "greater than or equal to 10"],
    ),
    "a utilization that is a share": (
        "spec/autoscaling",
        {"maxExecutors": 4, "targetUtilizationPercent": 0.7},
        ["spec.autoscaling.targetUtilizationPercent", "must be of type integer"],
    ),
    "a step that takes nothing away": (
        "spec/autoscaling",
        {"maxExecutors": 4, "scaleDown": {"maxPercent": 0}},
        ["spec.autoscaling.scaleDown.maxPercent", "greater than or equal to 1"],
    ),
    "a step that takes more away than there is": (
        "spec/autoscaling",
        {"maxExecutors": 4, "scaleDown": {"maxPercent": 101}},
        ["spec.autoscaling.scaleDown.maxPercent", "less than or equal to 100"],
    ),
    "an excluded period without an end": (
        "spec/autoscaling",
        {"maxExecutors": 4, "excludedPeriods": [{"schedule": "0 8 * * *"}]},
        ["spec.autoscaling.excludedPeriods[0]", "durationSeconds is missing"],
    ),
    "a type without a name": (
        "spec/control",
        {"channel": {**kafka()["channel"], "allowedTypes": [""]}},
        ["control.channel.allowedTypes[0]", "at least 1"],
    ),
    "a type that is named twice": (
        "spec/control",
        {"channel": {**kafka()["channel"], "allowedTypes": ["ping", "ping"]}},
        ["control.channel.allowedTypes[1]", "Duplicate"],
    ),
    "a prefix of models without a slash at its end": (
        "spec/control",
        {"models": {"allowedPrefixes": ["s3://models"]}},
        ["control.models.allowedPrefixes must be s3://bucket/"],
    ),
    "all files of a pod as a prefix of models": (
        "spec/control",
        {"models": {"allowedPrefixes": ["file:///"]}},
        ["control.models.allowedPrefixes must be s3://bucket/"],
    ),
    "a prefix of models that leads out of itself": (
        "spec/control",
        {"models": {"allowedPrefixes": ["s3://models/a/../"]}},
        ["control.models.allowedPrefixes must not contain . or .."],
    ),
    "a prefix of models with an escape": (
        "spec/control",
        {"models": {"allowedPrefixes": ["s3://models/%2e%2e/"]}},
        ["control.models.allowedPrefixes must not contain . or .."],
    ),
    "a prefix of models with a backslash": (
        "spec/control",
        {"models": {"allowedPrefixes": ["s3://models/..\\/"]}},
        ["control.models.allowedPrefixes must not contain . or .."],
    ),
    "a size of models that is nothing": (
        "spec/control",
        {"models": {"sizeLimit": 0}},
        ["control.models.sizeLimit must be a quantity above zero"],
    ),
    "a size of models that is no quantity": (
        "spec/control",
        {"models": {"sizeLimit": "large"}},
        ["control.models.sizeLimit must be a quantity above zero"],
    ),
    "a message that may take no time": (
        "spec/control",
        {"messageTimeoutSeconds": 0},
        ["spec.control.messageTimeoutSeconds", "greater than or equal to 1"],
    ),
    "a size of scratch volumes that is no quantity": (
        "spec/scratch",
        {"work": {"sizeLimit": "large"}},
        ["scratch.work.sizeLimit must be a quantity above zero"],
    ),
    "a size of scratch volumes that is nothing": (
        "spec/scratch",
        {"tmp": {"sizeLimit": "0"}},
        ["scratch.tmp.sizeLimit must be a quantity above zero"],
    ),
    "arguments that are one string": ("spec/application/args", "--a --b", ["spec.application.args", "array"]),
    "an argument that is a number": ("spec/application/args", ["--n", 3], ["spec.application.args[1]", "string"]),
    "a variable without a name": ("spec/application/env", [{"value": "x"}], ["spec.application.env[0].name: Required"]),
    "a variable of Tidegate's": (
        "spec/application/env",
        [{"name": "TIDEGATE_CONFIG", "value": "{}"}],
        ["spec.application.env[0]", "belong to Tidegate"],
    ),
    "a variable that Spark sets for executors": (
        "spec/application/env",
        [{"name": "SPARK_EXECUTOR_MEMORY", "value": "8g"}],
        ["spec.application.env[0]", "use executor.cores and executor.resources.requests.memory"],
    ),
    "a variable of Tidegate's in the driver's template": (
        "spec/driver/podTemplate",
        container("driver", "TIDEGATE_MASTER"),
        ["spec.driver.podTemplate.spec.containers[0]", "env of the container driver", "belong to Tidegate"],
    ),
    "a variable of Tidegate's in the executors' template": (
        "spec/executor/podTemplate",
        container("executor", "TIDEGATE_PROCESS"),
        ["spec.executor.podTemplate.spec.containers[0]", "env of the container executor", "belong to Tidegate"],
    ),
    "a variable that Spark sets for executors in their template": (
        "spec/executor/podTemplate",
        container("executor", "SPARK_EXECUTOR_ID"),
        ["spec.executor.podTemplate.spec.containers[0]", "or another name"],
    ),
    "a variable of Tidegate's as a setting": (
        "spec/sparkConf",
        {"spark.executorEnv.TIDEGATE_PROCESS": "x"},
        ["spec.sparkConf", "belong to Tidegate"],
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
    "the driver's container in the template of all pods": (
        "spec/podTemplate",
        {"spec": {"containers": [{"name": "driver", "tty": True}]}},
        ["podTemplate.spec.containers", "use driver.podTemplate or executor.podTemplate"],
    ),
    "negative CPU": ("spec/driver", driver(cpu="-1"), ["spec.driver.resources.requests", "quantities above zero"]),
    "negative CPU as a number": (
        "spec/driver",
        driver(cpu=-1),
        ["spec.driver.resources.requests", "quantities above zero"],
    ),
    "no CPU": ("spec/executor", driver(cpu="0"), ["spec.executor.resources.requests", "quantities above zero"]),
    "CPU that is a word": (
        "spec/driver",
        driver(cpu="lots"),
        ["spec.driver.resources.requests", "such as 500m, 2 or 2Gi"],
    ),
    "CPU that is a list": ("spec/driver", driver(cpu=[1]), ["spec.driver.resources.requests.cpu", "integer,string"]),
    "a CPU limit under the request": (
        "spec/executor",
        {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}},
        ["spec.executor.resources", "executor.resources.limits.cpu must not be lower"],
    ),
    "a memory limit above the request": (
        "spec/driver",
        {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "4Gi"}}},
        ["driver.resources.limits.memory must equal driver.resources.requests.memory, or be left out"],
    ),
    "a GPU that is none": (
        "spec/executor",
        {"resources": {"limits": {"nvidia.com/gpu": "one"}}},
        ["spec.executor.resources.limits", "quantities above zero"],
    ),
    "negative memory": (
        "spec/executor",
        driver(memory="-2Gi"),
        ["executor.resources.requests.memory", "at least 750Mi", "at least 512Mi"],
    ),
    "memory without a unit": (
        "spec/driver",
        driver(memory=2),
        ["driver.resources.requests.memory", "at least 750Mi", "at least 512Mi"],
    ),
    "memory that is a word": (
        "spec/driver",
        driver(memory="2GB"),
        ["spec.driver.resources.requests", "such as 500m, 2 or 2Gi"],
    ),
    "memory in which Spark does not start": (
        "spec/driver",
        driver(memory="600Mi"),
        ["driver.resources.requests.memory", "at least 750Mi"],
    ),
    "no executors": (
        "spec/executor",
        {"instances": 0},
        ["spec.executor.instances", "greater than or equal to 1", "set spec.suspend to true"],
    ),
    "negative executors": (
        "spec/executor",
        {"instances": -3},
        ["spec.executor.instances", "greater than or equal to 1"],
    ),
    "half an executor": ("spec/executor", {"instances": 1.5}, ["spec.executor.instances", "integer"]),
    "no task slots": ("spec/executor", {"cores": 0}, ["spec.executor.cores", "greater than or equal to 1"]),
    "no time to start": ("spec", {"podStartTimeoutSeconds": 0}, ["spec.podStartTimeoutSeconds"]),
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
        "spec/storage/credentialsSecretRef",
        "s",
        ["spec.storage.credentialsSecretRef", "object"],
    ),
    "credentials without a name": (
        "spec/storage/credentialsSecretRef",
        {},
        ["credentialsSecretRef.name: Required value"],
    ),
    "a fate of storage that is unknown": (
        "spec/storage/deletionPolicy",
        "Archive",
        ["spec.storage.deletionPolicy", "Retain"],
    ),
    "an unknown mode of upgrades": ("spec/upgrade", {"mode": "Blue"}, ["spec.upgrade.mode", "Snapshot"]),
    "a version that is stable before its first batch": (
        "spec/upgrade",
        {"stableBatches": 0},
        ["spec.upgrade.stableBatches", "greater than or equal to 1"],
    ),
    "a gate that closes at once": ("spec/upgrade", {"timeoutSeconds": 5}, ["spec.upgrade.timeoutSeconds", "60"]),
    "a pin that is none": (
        "spec/upgrade",
        {"rollbackTo": "Yesterday!"},
        ["spec.upgrade.rollbackTo", "status.upgrade.rollbackSnapshot.id"],
    ),
    "a word for an offset in an upgrade": (
        "spec/upgrade",
        {"startingOffsets": {"lineage": 1, "offsets": '{"orders":"earliest"}'}},
        ["spec.upgrade.startingOffsets.offsets", "earliest and latest are not offsets"],
    ),
    "a number for a word for an offset in an upgrade": (
        "spec/upgrade",
        {"startingOffsets": {"lineage": 1, "offsets": '{"orders-2": {"0": 7, "1": -2}}'}},
        ["spec.upgrade.startingOffsets.offsets", "an offset of at least 0", "-1 and -2", "kafka-get-offsets.sh"],
    ),
    "a rehearsal without a copy of the state": (
        "spec/upgrade",
        {"mode": "LastState", "rehearsal": {}},
        ["upgrade.rehearsal needs upgrade.mode Snapshot"],
    ),
    "a rehearsal of nothing": ("spec/upgrade", {"rehearsal": {"batches": 0}}, ["spec.upgrade.rehearsal.batches", "1"]),
    "a rehearsal that is over at once": (
        "spec/upgrade",
        {"rehearsal": {"timeoutSeconds": 5}},
        ["spec.upgrade.rehearsal.timeoutSeconds", "30"],
    ),
    "a rehearsal in too little memory": (
        "spec/upgrade",
        {"rehearsal": {"resources": {"requests": {"memory": "512Mi"}}}},
        ["upgrade.rehearsal.resources.requests.memory", "at least 1Gi"],
    ),
    "a rehearsal whose limit is below its share": (
        "spec/upgrade",
        {"rehearsal": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}},
        ["upgrade.rehearsal.resources.limits.cpu must not be lower"],
    ),
    "an unknown field": ("spec/executor", {"instanses": 2}, ['unknown field "spec.executor.instanses"']),
    "an unknown field at the top": ("spec/aplication", {}, ['unknown field "spec.aplication"']),
}


# Each span of time -> what else its group needs.
SPANS: dict[str, dict[str, Any]] = {
    "autoscaling/catchUpSeconds": {"maxExecutors": 4},
    "autoscaling/metricsWindowSeconds": {"maxExecutors": 4},
    "autoscaling/stabilizationWindowSeconds": {"maxExecutors": 4},
    "autoscaling/scaleDown/intervalSeconds": {"maxExecutors": 4},
    "autoscaling/excludedPeriods/0/durationSeconds": {"maxExecutors": 4},
    "snapshots/intervalSeconds": {},
    "snapshots/retention/maxAgeSeconds": {},
    "control/retentionSeconds": {},
    "control/channel/storage/replyRetentionSeconds": {},
}


def with_span(path: str, value: str) -> tuple[str, dict[str, Any]]:
    """Return a group of the spec, and the group with nothing in it but what it needs and the span."""
    group, *inner = path.split("/")
    found: Any = value
    for part in reversed(inner):
        found = [{"schedule": "0 8 * * *", **found}] if part == "0" else {part: found}
    return f"spec/{group}", {**SPANS[path], **found}


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


@pytest.mark.parametrize("value", ["10m", "PT10M", "600"])
@pytest.mark.parametrize("path", SPANS)
def test_a_span_of_time_with_a_unit_is_refused_with_the_field_whose_name_has_the_unit(
    api_kubectl: Kubectl, empty_namespace: str, path: str, value: str
) -> None:
    with pytest.raises(KubectlError) as refusal:
        create(api_kubectl, empty_namespace, changed(*with_span(path, value)))
    said = str(refusal.value)
    name = "spec." + path.replace("/0/", "[0]/").replace("/", ".")
    assert [word for word in (name, "must be of type integer") if word not in said] == [], said
    assert said.count("must be of type integer") == 1, "it is said once"


@pytest.mark.parametrize(
    "schedule", ["0 8 31 * *", "0 8 29 2 *", "0 8 30 2 MON", "0 8 31 2,3 *", "0 8-17 1-7 JAN-MAR *"]
)
def test_schedules_that_come_are_taken(api_kubectl: Kubectl, namespace: str, schedule: str) -> None:
    app = changed("spec/snapshots", {"schedule": schedule})
    periods = [{"schedule": schedule, "durationSeconds": 7200}] * 16
    app["spec"]["autoscaling"] = {"maxExecutors": 4, "excludedPeriods": periods}
    assert create(api_kubectl, namespace, app)["spec"]["autoscaling"]["excludedPeriods"] == periods


def test_nothing_that_was_refused_is_stored(api_kubectl: Kubectl, empty_namespace: str) -> None:
    assert api_kubectl.list("streamingapps", empty_namespace) == []


@pytest.mark.parametrize("key", ["access.key", "secret.key", "session.token"])
def test_keys_of_the_storage_are_refused_as_settings_with_the_field_for_them(
    api_kubectl: Kubectl, namespace: str, key: str
) -> None:
    setting = f"spark.hadoop.fs.s3a.{key}"
    with pytest.raises(KubectlError) as refusal:
        create(api_kubectl, namespace, changed("spec/sparkConf", {setting: "hunter2"}))
    assert "they belong in the Secret of storage.credentialsSecretRef" in str(refusal.value)
    taken = create(api_kubectl, namespace, changed("spec/sparkConf", {setting: "${env.KEY}"}))
    assert taken["spec"]["sparkConf"] == {setting: "${env.KEY}"}


def test_every_setting_that_a_field_stands_for_is_refused_with_the_name_of_that_field(
    api_kubectl: Kubectl, namespace: str
) -> None:
    with pytest.raises(KubectlError) as refusal:
        create(api_kubectl, namespace, changed("spec/sparkConf", dict.fromkeys(OWNED_KEYS, "x")))
    said = str(refusal.value)
    assert [key for key, remedy in OWNED_KEYS.items() if f"{key} cannot be set: {remedy}" not in said] == []


def test_every_setting_that_has_no_effect_is_refused_by_what_it_starts_with(
    api_kubectl: Kubectl, namespace: str
) -> None:
    for start, remedy in OWNED_STARTS.items():
        with pytest.raises(KubectlError) as refusal:
            create(api_kubectl, namespace, changed("spec/sparkConf", {f"{start}x": "x"}))
        assert f"{start}* cannot be set: {remedy}" in str(refusal.value)
    taken = create(api_kubectl, namespace, changed("spec/sparkConf", dict.fromkeys(IN_EFFECT, "true")))
    assert taken["spec"]["sparkConf"] == dict.fromkeys(IN_EFFECT, "true")


def test_credentials_come_from_one_place_only(api_kubectl: Kubectl, namespace: str) -> None:
    app = changed("spec/storage/credentialsSecretRef", {"name": "s"})
    app["spec"]["application"]["env"] = [{"name": "AWS_ACCESS_KEY_ID", "value": "x"}]
    with pytest.raises(KubectlError, match=r"application\.env must not set AWS_ACCESS_KEY_ID"):
        create(api_kubectl, namespace, app)


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_credentials_come_from_no_template_beside_the_secret(
    api_kubectl: Kubectl, empty_namespace: str, role: str
) -> None:
    app = changed("spec/storage/credentialsSecretRef", {"name": "s"})
    app["spec"][role] = {"podTemplate": container(role, "AWS_SESSION_TOKEN")}
    with pytest.raises(KubectlError, match=rf"{role}\.podTemplate must not set AWS_ACCESS_KEY_ID"):
        create(api_kubectl, empty_namespace, app)


def test_variables_of_other_containers_are_their_own(api_kubectl: Kubectl, namespace: str) -> None:
    template = container("sidecar", "TIDEGATE_MASTER")
    stored = create(api_kubectl, namespace, changed("spec/driver/podTemplate", template))
    assert stored["spec"]["driver"]["podTemplate"] == template


def test_little_memory_is_enough_for_who_sets_the_heap(api_kubectl: Kubectl, namespace: str) -> None:
    app = changed("spec/driver", driver(memory="600Mi"))
    app["spec"]["sparkConf"] = {"spark.driver.memory": "460m"}
    assert create(api_kubectl, namespace, app)["spec"]["driver"]["resources"]["requests"]["memory"] == "600Mi"
