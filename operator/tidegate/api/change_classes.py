"""The table of change classes: what an edit of each spec field does to a running application. No I/O.

It is published as an annotation of the CRD and in the reference; tests compare both, and the schema, with it.
"""

from __future__ import annotations

from enum import StrEnum


class ChangeClass(StrEnum):
    """What the operator does about an edit."""

    NONE = "None"
    """Nothing now: the value is used by the next decision or launch that needs it."""
    LIVE = "Live"
    """Applied at once, without another launch of the driver."""
    RESTART = "Restart"
    """Stop at a batch boundary, start again on the same state."""
    STATE_MIGRATION = "StateMigration"
    """Other state, which needs a new lineage: made of a snapshot while nothing runs, or refused as an edit."""


CHANGE_CLASSES: dict[str, ChangeClass] = {
    "application.image": ChangeClass.RESTART,
    "application.imagePullPolicy": ChangeClass.RESTART,
    "application.imagePullSecrets": ChangeClass.RESTART,
    "application.runtime": ChangeClass.RESTART,
    "application.main": ChangeClass.RESTART,
    "application.mainFrom.configMapKeyRef.key": ChangeClass.RESTART,
    "application.mainFrom.configMapKeyRef.name": ChangeClass.RESTART,
    "application.args": ChangeClass.RESTART,
    "application.env": ChangeClass.RESTART,
    "application.pyFiles": ChangeClass.RESTART,
    "autoscaling.mode": ChangeClass.LIVE,
    "autoscaling.minExecutors": ChangeClass.LIVE,
    "autoscaling.maxExecutors": ChangeClass.LIVE,
    "autoscaling.targetUtilizationPercent": ChangeClass.LIVE,
    "autoscaling.catchUpSeconds": ChangeClass.LIVE,
    "autoscaling.metricsWindowSeconds": ChangeClass.LIVE,
    "autoscaling.stabilizationWindowSeconds": ChangeClass.LIVE,
    "autoscaling.scaleDown.intervalSeconds": ChangeClass.LIVE,
    "autoscaling.scaleDown.maxPercent": ChangeClass.LIVE,
    "autoscaling.excludedPeriods": ChangeClass.LIVE,
    "control.channel.type": ChangeClass.RESTART,
    "control.channel.kafka.bootstrapServers": ChangeClass.RESTART,
    "control.channel.kafka.topic": ChangeClass.RESTART,
    "control.channel.kafka.replyTopic": ChangeClass.RESTART,
    "control.channel.kafka.startingOffsets": ChangeClass.RESTART,
    "control.channel.kafka.options": ChangeClass.RESTART,
    "control.channel.rabbitmq.uri": ChangeClass.RESTART,
    "control.channel.rabbitmq.queue": ChangeClass.RESTART,
    "control.channel.rabbitmq.replyQueue": ChangeClass.RESTART,
    "control.channel.storage.pollIntervalSeconds": ChangeClass.RESTART,
    "control.channel.storage.replyRetentionSeconds": ChangeClass.RESTART,
    "control.channel.credentialsSecretRef.name": ChangeClass.RESTART,
    "control.channel.allowedTypes": ChangeClass.RESTART,
    "control.messageTimeoutSeconds": ChangeClass.RESTART,
    "control.models.allowedPrefixes": ChangeClass.RESTART,
    "control.models.sizeLimit": ChangeClass.RESTART,
    "control.retentionSeconds": ChangeClass.LIVE,
    "sparkConf": ChangeClass.RESTART,
    "driver.resources.limits": ChangeClass.RESTART,
    "driver.resources.requests": ChangeClass.RESTART,
    # A restart to learn a longer grace period would itself be cut short by the old one.
    "driver.stopGracePeriodSeconds": ChangeClass.NONE,
    "serviceAccountName": ChangeClass.RESTART,
    "podStartTimeoutSeconds": ChangeClass.NONE,
    "helpers.resources.limits": ChangeClass.NONE,
    "helpers.resources.requests": ChangeClass.NONE,
    "podTemplate": ChangeClass.RESTART,
    "driver.podTemplate": ChangeClass.RESTART,
    "executor.instances": ChangeClass.LIVE,
    "executor.cores": ChangeClass.RESTART,
    "executor.resources.limits": ChangeClass.RESTART,
    "executor.resources.requests": ChangeClass.RESTART,
    "executor.podTemplate": ChangeClass.RESTART,
    "restart.policy": ChangeClass.NONE,
    "restart.maxFailures": ChangeClass.NONE,
    "restart.windowSeconds": ChangeClass.NONE,
    "restart.healthySeconds": ChangeClass.NONE,
    "restart.stallTimeoutSeconds": ChangeClass.NONE,
    "restartNonce": ChangeClass.RESTART,
    "suspend": ChangeClass.LIVE,
    "scratch.tmp.sizeLimit": ChangeClass.RESTART,
    "scratch.work.sizeLimit": ChangeClass.RESTART,
    "snapshots.schedule": ChangeClass.NONE,
    "snapshots.intervalSeconds": ChangeClass.NONE,
    "snapshots.suspend": ChangeClass.NONE,
    "snapshots.retention.maxCount": ChangeClass.NONE,
    "snapshots.retention.maxAgeSeconds": ChangeClass.NONE,
    "snapshots.timeZone": ChangeClass.NONE,
    "snapshots.verify": ChangeClass.NONE,
    "snapshots.finalSnapshot": ChangeClass.NONE,
    # For a takeover of an earlier resource's storage: the application has run nothing yet, or the field has no effect.
    "startFrom.adopt": ChangeClass.NONE,
    "startFrom.adoptLineage": ChangeClass.NONE,
    "startFrom.exportedState.uri": ChangeClass.STATE_MIGRATION,
    "startFrom.startingOffsets": ChangeClass.STATE_MIGRATION,
    # For taking over a stopped application's outputs, also long after the start.
    "startFrom.outputs": ChangeClass.NONE,
    "startFrom.snapshotRef.name": ChangeClass.STATE_MIGRATION,
    "state.partitions": ChangeClass.STATE_MIGRATION,
    "state.minBatchesToRetain": ChangeClass.RESTART,
    "state.repartition.resources.limits": ChangeClass.NONE,
    "state.repartition.resources.requests": ChangeClass.NONE,
    "state.repartition.timeoutSeconds": ChangeClass.NONE,
    "storage.uri": ChangeClass.STATE_MIGRATION,
    "storage.endpoint": ChangeClass.RESTART,
    "storage.region": ChangeClass.RESTART,
    "storage.pathStyleAccess": ChangeClass.RESTART,
    "storage.credentialsSecretRef.name": ChangeClass.RESTART,
    "storage.deletionPolicy": ChangeClass.NONE,
    "upgrade.mode": ChangeClass.NONE,
    "upgrade.rehearsal.batches": ChangeClass.NONE,
    "upgrade.rehearsal.resources.limits": ChangeClass.NONE,
    "upgrade.rehearsal.resources.requests": ChangeClass.NONE,
    "upgrade.rehearsal.timeoutSeconds": ChangeClass.NONE,
    "upgrade.rollbackTo": ChangeClass.LIVE,
    "upgrade.rollbackPolicy": ChangeClass.NONE,
    "upgrade.stableBatches": ChangeClass.NONE,
    "upgrade.startingOffsets.lineage": ChangeClass.NONE,
    "upgrade.startingOffsets.offsets": ChangeClass.NONE,
    "upgrade.timeoutSeconds": ChangeClass.NONE,
}


def fields_of(change_class: ChangeClass) -> tuple[str, ...]:
    """Return the paths below ``spec`` of one class, sorted."""
    return tuple(sorted(path for path, of_field in CHANGE_CLASSES.items() if of_field is change_class))
