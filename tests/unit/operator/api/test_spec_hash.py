"""The hash follows the fields that need a restart, and nothing else."""

import string
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate.api.spec_hash import program_hash, spec_hash, version_of, with_version
from tidegate_testing.values import app

message = st.text(string.ascii_lowercase, min_size=1, max_size=8)
names = message.map(lambda word: f"x{word}")
cpus = st.integers(1, 64).map(str)
mebibytes = st.integers(600, 4096).map(lambda size: f"{size}Mi")
templates = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"labels": st.dictionaries(names, message, min_size=1)})}
)
variables = st.lists(st.fixed_dictionaries({"name": names, "value": message}), min_size=1, max_size=3)
requests = st.fixed_dictionaries({"cpu": cpus, "memory": mebibytes})
limits = st.fixed_dictionaries({"cpu": cpus}, optional={"nvidia.com/gpu": st.sampled_from(["1", "2"])})

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "application.image": names,
    "application.imagePullPolicy": st.sampled_from(["Always", "Never", "IfNotPresent"]),
    "application.imagePullSecrets": st.lists(st.fixed_dictionaries({"name": names}), min_size=1, max_size=3),
    "application.runtime": st.sampled_from(["Image", "Injected"]),
    "application.main": names,
    "application.mainFrom.configMapKeyRef.key": names,
    "application.mainFrom.configMapKeyRef.name": names,
    "application.args": st.lists(message, min_size=1, max_size=4),
    "application.env": variables,
    "application.pyFiles": st.lists(names, min_size=1, max_size=3),
    "autoscaling.mode": st.sampled_from(["Off", "Advise", "Active"]),
    "autoscaling.minExecutors": st.integers(1, 100),
    "autoscaling.maxExecutors": st.integers(1, 100),
    "autoscaling.targetUtilizationPercent": st.integers(10, 95),
    "autoscaling.catchUpSeconds": st.integers(1, 1800),
    "autoscaling.metricsWindowSeconds": st.integers(1, 1800),
    "autoscaling.stabilizationWindowSeconds": st.integers(1, 1800),
    "autoscaling.scaleDown.intervalSeconds": st.integers(1, 1800),
    "autoscaling.scaleDown.maxPercent": st.integers(1, 100),
    "autoscaling.excludedPeriods": st.lists(
        st.fixed_dictionaries({"schedule": names, "durationSeconds": st.integers(1, 10**6)}), min_size=1, max_size=3
    ),
    "control.channel.type": st.sampled_from(["Kafka", "RabbitMQ"]),
    "control.channel.kafka.bootstrapServers": names,
    "control.channel.kafka.topic": names,
    "control.channel.kafka.replyTopic": names,
    "control.channel.kafka.startingOffsets": st.sampled_from(["Earliest", "Latest"]),
    "control.channel.kafka.options": st.dictionaries(names, message, min_size=1, max_size=4),
    "control.channel.rabbitmq.uri": names,
    "control.channel.rabbitmq.queue": names,
    "control.channel.rabbitmq.replyQueue": names,
    "control.channel.storage.pollIntervalSeconds": st.integers(2, 3600),
    "control.channel.storage.replyRetentionSeconds": st.integers(0, 10**6),
    "control.channel.credentialsSecretRef.name": names,
    "control.channel.allowedTypes": st.lists(names, min_size=1, max_size=3),
    "control.messageTimeoutSeconds": st.integers(1, 59),
    "control.models.allowedPrefixes": st.lists(names, max_size=3),
    "control.models.sizeLimit": st.sampled_from(["1Gi", "3Gi", 1, 10**9]),
    "control.retentionSeconds": st.integers(60, 10**6),
    "scratch.tmp.sizeLimit": st.sampled_from(["1Gi", "20Gi", 10**9]),
    "scratch.work.sizeLimit": st.sampled_from(["1Gi", "200Gi", 10**9]),
    "sparkConf": st.dictionaries(names, message, min_size=1, max_size=4),
    "driver.resources.limits": limits,
    "driver.resources.requests": requests,
    "driver.stopGracePeriodSeconds": st.integers(10, 86400),
    "serviceAccountName": names,
    "podStartTimeoutSeconds": st.integers(10, 119),
    "helpers.resources.limits": limits,
    "helpers.resources.requests": requests,
    "podTemplate": templates,
    "driver.podTemplate": templates,
    "executor.instances": st.integers(1, 100),
    "executor.cores": st.integers(1, 16),
    "executor.resources.limits": limits,
    "executor.resources.requests": requests,
    "executor.podTemplate": templates,
    "restart.policy": st.sampled_from(["Always", "OnFailure", "Never"]),
    "restart.maxFailures": st.integers(0, 100),
    "restart.windowSeconds": st.integers(60, 604800),
    "restart.healthySeconds": st.integers(10, 604800),
    "restart.stallTimeoutSeconds": st.integers(30, 86400),
    "restartNonce": st.integers(0, 2**62),
    "suspend": st.booleans(),
    "snapshots.schedule": names,
    "snapshots.intervalSeconds": st.integers(1, 10**4).map(lambda minutes: 60 * minutes),
    "snapshots.suspend": st.booleans(),
    "snapshots.retention.maxCount": st.integers(1, 100),
    "snapshots.retention.maxAgeSeconds": st.integers(60, 10**9),
    "snapshots.timeZone": names,
    "snapshots.verify": st.booleans(),
    "snapshots.finalSnapshot": st.booleans(),
    "startFrom.exportedState.uri": names,
    "startFrom.adopt": st.booleans(),
    "startFrom.adoptLineage": st.integers(1, 9),
    "startFrom.startingOffsets": names,
    "startFrom.outputs": st.sampled_from(["Own", "TakeOver"]),
    "startFrom.snapshotRef.name": names,
    "state.partitions": st.integers(1, 64),
    "state.minBatchesToRetain": st.integers(2, 200),
    "state.repartition.resources.limits": limits,
    "state.repartition.resources.requests": requests,
    "state.repartition.timeoutSeconds": st.integers(60, 86400),
    "storage.uri": names,
    "storage.endpoint": names,
    "storage.region": names,
    "storage.pathStyleAccess": st.booleans(),
    "storage.credentialsSecretRef.name": names,
    "storage.deletionPolicy": st.sampled_from(["Retain", "Delete"]),
    "upgrade.mode": st.sampled_from(["Snapshot", "LastState", "Stateless"]),
    "upgrade.rehearsal.batches": st.integers(1, 100),
    "upgrade.rehearsal.resources.limits": limits,
    "upgrade.rehearsal.resources.requests": requests,
    "upgrade.rehearsal.timeoutSeconds": st.integers(30, 86400),
    "upgrade.rollbackTo": names,
    "upgrade.rollbackPolicy": st.sampled_from(["OnFailure", "Never"]),
    "upgrade.stableBatches": st.integers(1, 100),
    "upgrade.startingOffsets.lineage": st.integers(1, 9),
    "upgrade.startingOffsets.offsets": names,
    "upgrade.timeoutSeconds": st.integers(60, 86400),
}


VERSION = [*fields_of(ChangeClass.RESTART), "state.partitions"]


def test_every_field_of_the_table_is_tried_here() -> None:
    missing, gone = sorted(set(CHANGE_CLASSES) - set(VALUES)), sorted(set(VALUES) - set(CHANGE_CLASSES))
    assert (missing, gone) == ([], []), "give the first values in VALUES of this file; the second are no fields"


@given(data=st.data())
@pytest.mark.parametrize("path", VERSION)
def test_the_hash_tells_two_values_of_a_field_of_a_version_apart(path: str, data: st.DataObject) -> None:
    one, other = data.draw(VALUES[path]), data.draw(VALUES[path])
    same = spec_hash(app({path: one})) == spec_hash(app({path: other}))
    assert same == (one == other)


@given(data=st.data())
@pytest.mark.parametrize("path", sorted(CHANGE_CLASSES.keys() - set(VERSION)))
def test_no_other_field_changes_the_hash(path: str, data: st.DataObject) -> None:
    assert spec_hash(app({path: data.draw(VALUES[path])})) == spec_hash(app())


@given(spec=st.fixed_dictionaries({}, optional=VALUES))
def test_the_hash_is_the_same_for_what_was_stored_and_read_again(spec: dict[str, Any]) -> None:
    once = app(spec)
    again = msgspec.json.decode(msgspec.json.encode(once), type=type(once))
    assert spec_hash(again) == spec_hash(once)


@given(old=st.fixed_dictionaries({}, optional=VALUES), new=st.fixed_dictionaries({}, optional=VALUES))
def test_a_version_put_into_another_spec_is_that_version_and_changes_nothing_else(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before, after = app(old), app(new)
    mixed = msgspec.structs.replace(after, spec=with_version(after.spec, version_of(before.spec)))
    assert spec_hash(mixed) == spec_hash(before)
    back = msgspec.structs.replace(mixed, spec=with_version(mixed.spec, version_of(after.spec)))
    assert back == after


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("driver.resources.requests.cpu", 2, "2000m"),
        ("executor.resources.requests.memory", "2Gi", "2048Mi"),
        ("executor.resources.limits.cpu", "1.50", "1500m"),
    ],
)
def test_a_quantity_written_in_another_way_is_no_change(path: str, one: Any, other: Any) -> None:
    assert spec_hash(app({path: one})) == spec_hash(app({path: other}))


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("application.runtime", "Injected"),
        ("application.args", []),
        ("sparkConf", {}),
        ("driver.resources.requests.cpu", "1000m"),
        ("driver.resources.requests", {"memory": "2048Mi"}),
        ("driver.resources.limits", {"memory": "2Gi"}),
        ("storage.region", "us-east-1"),
        ("storage.pathStyleAccess", False),
    ],
)
def test_a_default_that_is_written_out_is_no_change(path: str, default: Any) -> None:
    assert spec_hash(app({path: default})) == spec_hash(app())


def test_the_order_of_settings_does_not_matter_and_that_of_arguments_does() -> None:
    one, other = {"spark.a": "1", "spark.b": "2"}, {"spark.b": "2", "spark.a": "1"}
    assert spec_hash(app({"sparkConf": one})) == spec_hash(app({"sparkConf": other}))
    assert spec_hash(app({"application.args": ["a", "b"]})) != spec_hash(app({"application.args": ["b", "a"]}))


def test_a_quantity_that_cannot_be_read_still_has_a_hash() -> None:
    assert len(spec_hash(app({"driver.resources.requests.cpu": "lots"}))) == 16


def test_the_hash_of_a_known_spec_stays_what_it_was_because_another_one_restarts_every_application() -> None:
    known = app(
        {"application.args": ["--a"], "executor.resources.requests.memory": "3Gi", "storage.endpoint": "http://s3"}
    )
    assert spec_hash(known) == "6a5ed84885028c84"


@pytest.mark.parametrize(
    ("field", "value", "same"),
    [
        ("application.args", ["--output", "b"], False),
        ("application.env", [{"name": "OUTPUT", "value": "b"}], False),
        ("application.image", "another", False),
        ("application.mainFrom", {"configMapKeyRef": {"name": "b", "key": "main.py"}}, False),
        ("sparkConf", {"spark.output": "b"}, False),
        ("driver.podTemplate", {"metadata": {"labels": {"a": "b"}}}, False),
        ("driver.resources.requests.memory", "4Gi", True),
        ("storage.uri", "s3://elsewhere", True),
        ("restartNonce", 7, True),
    ],
)
def test_two_applications_run_one_program_if_nothing_differs_that_says_where_output_goes(
    field: str, value: Any, same: bool
) -> None:
    assert (program_hash(app({field: value}).spec) == program_hash(app().spec)) is same


def test_the_hash_of_a_known_program_stays_what_it_was_because_forks_compare_it_with_one_that_was_stored() -> None:
    known = app({"application.args": ["--a"], "sparkConf": {"spark.a": "1"}})
    assert program_hash(known.spec) == "ef4956d1f6ca6083"
