"""What the operator does about an edit of each field is what the table of change classes says. Pure."""

from typing import Any

import pytest

from tidegate.api.change_classes import CHANGE_CLASSES, ChangeClass, fields_of
from tidegate.api.streaming_app import Phase
from tidegate.app.actions import DeleteDriver, RememberReported, SetExecutors, WriteStatus
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import PublishEvent
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver
from tidegate_testing.upgrades import PIN, upgraded

OTHER: dict[str, Any] = {
    "application.image": "shop/orders:2",
    "application.imagePullPolicy": "Always",
    "application.imagePullSecrets": [{"name": "registry"}],
    "application.runtime": "Image",
    "application.main": "local:///opt/other.py",
    "application.mainFrom.configMapKeyRef.key": "other.py",
    "application.mainFrom.configMapKeyRef.name": "other",
    "application.args": ["--other"],
    "application.env": [{"name": "OTHER", "value": "x"}],
    "application.pyFiles": ["local:///opt/other.zip"],
    "autoscaling.mode": "Active",
    "autoscaling.minExecutors": 1,
    "autoscaling.maxExecutors": 7,
    "autoscaling.targetUtilizationPercent": 77,
    "autoscaling.catchUpSeconds": 420,
    "autoscaling.metricsWindowSeconds": 420,
    "autoscaling.stabilizationWindowSeconds": 420,
    "autoscaling.scaleDown.intervalSeconds": 420,
    "autoscaling.scaleDown.maxPercent": 77,
    "autoscaling.excludedPeriods": [{"schedule": "0 8 * * *", "durationSeconds": 25200}],
    "control.messageTimeoutSeconds": 300,
    "control.models.allowedPrefixes": ["s3://models/orders/"],
    "control.models.sizeLimit": "4Gi",
    "control.retentionSeconds": 25200,
    "control.channel.type": "Kafka",
    "control.channel.kafka.bootstrapServers": "other:9092",
    "control.channel.kafka.topic": "other",
    "control.channel.kafka.replyTopic": "other",
    "control.channel.kafka.startingOffsets": "Latest",
    "control.channel.kafka.options": {"security.protocol": "SSL"},
    "control.channel.rabbitmq.uri": "amqp://other/shop",
    "control.channel.rabbitmq.queue": "other",
    "control.channel.rabbitmq.replyQueue": "other",
    "control.channel.storage.pollIntervalSeconds": 5,
    "control.channel.storage.replyRetentionSeconds": 604800,
    "control.channel.credentialsSecretRef.name": "other",
    "control.channel.allowedTypes": ["ping"],
    "scratch.tmp.sizeLimit": "20Gi",
    "scratch.work.sizeLimit": "200Gi",
    "sparkConf": {"spark.other": "x"},
    "driver.resources.limits": {"cpu": "4"},
    "driver.resources.requests": {"cpu": "3", "memory": "3Gi"},
    "driver.stopGracePeriodSeconds": 77,
    "serviceAccountName": "other",
    "podStartTimeoutSeconds": 77,
    "helpers.resources.limits": {"cpu": "4"},
    "helpers.resources.requests": {"cpu": "3", "memory": "3Gi"},
    "podTemplate": {"metadata": {"labels": {"team": "b"}}},
    "driver.podTemplate": {"metadata": {"labels": {"other": "x"}}},
    "executor.instances": 7,
    "executor.cores": 3,
    "executor.resources.limits": {"cpu": "4"},
    "executor.resources.requests": {"cpu": "3", "memory": "3Gi"},
    "executor.podTemplate": {"metadata": {"labels": {"other": "x"}}},
    "restart.policy": "Never",
    "restart.maxFailures": 3,
    "restart.windowSeconds": 77,
    "restart.healthySeconds": 77,
    "restart.stallTimeoutSeconds": 77,
    "restartNonce": 1,
    "suspend": True,
    "state.partitions": 7,
    "state.minBatchesToRetain": 77,
    "state.repartition.resources.limits": {"cpu": "4"},
    "state.repartition.resources.requests": {"cpu": "3", "memory": "3Gi"},
    "state.repartition.timeoutSeconds": 77,
    "storage.uri": "s3://other",
    "storage.endpoint": "http://other:9000",
    "upgrade.startingOffsets.lineage": 7,
    "upgrade.startingOffsets.offsets": '{"other":{"0":1}}',
    "storage.region": "eu-other-1",
    "storage.pathStyleAccess": True,
    "storage.credentialsSecretRef.name": "other",
    "storage.deletionPolicy": "Delete",
    "snapshots.schedule": "0 * * * *",
    "snapshots.intervalSeconds": 21600,
    "snapshots.suspend": True,
    "snapshots.retention.maxCount": 3,
    "snapshots.retention.maxAgeSeconds": 604800,
    "snapshots.timeZone": "Europe/Berlin",
    "snapshots.verify": True,
    "snapshots.finalSnapshot": True,
    "startFrom.exportedState.uri": "s3://streams/apps/shop/orders/exports/nightly-1/manifest.json",
    "startFrom.adopt": True,
    "startFrom.adoptLineage": 2,
    "startFrom.outputs": "TakeOver",
    "startFrom.snapshotRef.name": "nightly",
    "startFrom.startingOffsets": '{"orders":{"0":120}}',
    "upgrade.mode": "LastState",
    "upgrade.rehearsal.batches": 7,
    "upgrade.rehearsal.resources.limits": {"cpu": "4"},
    "upgrade.rehearsal.resources.requests": {"cpu": "3", "memory": "3Gi"},
    "upgrade.rehearsal.timeoutSeconds": 77,
    "upgrade.rollbackPolicy": "Never",
    "upgrade.rollbackTo": PIN,
    "upgrade.stableBatches": 7,
    "upgrade.timeoutSeconds": 77,
}
KAFKA = {"control.channel.kafka.bootstrapServers": "broker:9092", "control.channel.kafka.topic": "control"}
RABBITMQ = {"control.channel.rabbitmq.uri": "amqp://broker", "control.channel.rabbitmq.queue": "control"}
MOUNTED = {
    "application.main": "",
    "application.mainFrom.configMapKeyRef.key": "main.py",
    "application.mainFrom.configMapKeyRef.name": "program",
}
LIVE: dict[str, set[type[Any]]] = {
    # The next evaluation goes by it, and may have another number of executors follow.
    **{path: set() for path in OTHER if path.startswith("autoscaling.")},
    "control.retentionSeconds": set(),  # its messages have decisions of their own
    "executor.instances": {SetExecutors},
    "suspend": {DeleteDriver},
    "upgrade.rollbackTo": {DeleteDriver},
}
_TOLD = (WriteStatus, PublishEvent, RememberReported)


def before_edit_of(path: str) -> dict[str, Any]:
    """Return what the application has before, beside what all have: a channel has its broker's fields together."""
    if path.startswith("control.channel.rabbitmq"):
        return {"control.channel.type": "RabbitMQ", **RABBITMQ}
    if path == "control.channel.type":
        return KAFKA
    if path.startswith("application.mainFrom"):
        return MOUNTED
    if path.startswith("upgrade.startingOffsets"):
        return {"upgrade.startingOffsets": {"lineage": 6, "offsets": '{"other":{"0":0}}'}}
    return {"control.channel.type": "Kafka", **KAFKA} if path.startswith("control.channel") else {}


def what_is_done_about(path: str) -> set[type[Any]]:
    """Return the kinds of actions, beside telling, after an edit of one field of an application that runs."""
    before = before_edit_of(path)
    old = launched(app_with(before), phase=Phase.RUNNING)
    if path == "upgrade.rollbackTo":
        old = upgraded(old, app_with({"application.image": "shop/orders:0"}))
    edited = app_with({**before, path: OTHER[path]}, status=old.status)
    driver = running_driver(old, ready=True)
    plan = decide(observe(edited, driver=driver, agent=report_of(driver)), NOW)
    return {type(action) for action in plan.actions if not isinstance(action, _TOLD)}


def test_every_field_of_the_table_is_edited_here() -> None:
    missing, gone = sorted(set(CHANGE_CLASSES) - set(OTHER)), sorted(set(OTHER) - set(CHANGE_CLASSES))
    assert (missing, gone) == ([], []), "give the first another value in OTHER of this file; the second are no fields"


# Of state that is not there yet, another number of partitions is another version and no more.
@pytest.mark.parametrize("path", [*fields_of(ChangeClass.RESTART), "state.partitions"])
def test_an_edit_of_class_restart_stops_the_driver_and_does_nothing_else(path: str) -> None:
    assert what_is_done_about(path) == {DeleteDriver}


@pytest.mark.parametrize("path", fields_of(ChangeClass.LIVE))
def test_an_edit_of_class_live_is_applied_at_once(path: str) -> None:
    assert what_is_done_about(path) == LIVE[path]


# Of class StateMigration the API server refuses the edit; if one gets by, nothing may happen to what runs.
@pytest.mark.parametrize(
    "path", sorted({*fields_of(ChangeClass.NONE), *fields_of(ChangeClass.STATE_MIGRATION)} - {"state.partitions"})
)
def test_any_other_edit_leaves_alone_what_runs(path: str) -> None:
    assert what_is_done_about(path) == set(), (
        f"an edit of {path} is of a class that touches nothing: correct its class in api/change_classes.py, or the rule"
    )
