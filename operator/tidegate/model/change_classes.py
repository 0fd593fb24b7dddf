"""The one table of what an edit to each spec field does to a running application. No I/O.

It is published as an annotation on the CRD and in the reference; tests compare those, and the schema's leaves, with it.
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
    RESTATE = "Restate"
    """Other state, which needs a new lineage: made of a snapshot while nothing runs, or refused as an edit."""


CHANGE_CLASSES: dict[str, ChangeClass] = {
    "application.image": ChangeClass.RESTART,
    "application.imagePullPolicy": ChangeClass.RESTART,
    "application.imagePullSecrets": ChangeClass.RESTART,
    "application.runtime": ChangeClass.RESTART,
    "application.main": ChangeClass.RESTART,
    "application.args": ChangeClass.RESTART,
    "application.env": ChangeClass.RESTART,
    "application.pyFiles": ChangeClass.RESTART,
    "autoscaling.mode": ChangeClass.LIVE,
    "autoscaling.minExecutors": ChangeClass.LIVE,
    "autoscaling.maxExecutors": ChangeClass.LIVE,
    "autoscaling.targetUtilization": ChangeClass.LIVE,
    "autoscaling.catchUp": ChangeClass.LIVE,
    "autoscaling.window": ChangeClass.LIVE,
    "autoscaling.stabilization": ChangeClass.LIVE,
    "autoscaling.scaleDown.interval": ChangeClass.LIVE,
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
    "control.channel.storage.keepReplies": ChangeClass.RESTART,
    "control.channel.credentialsSecret.name": ChangeClass.RESTART,
    "control.channel.types": ChangeClass.RESTART,
    "control.retention": ChangeClass.LIVE,
    "sparkConf": ChangeClass.RESTART,
    "driver.resources.cpu": ChangeClass.RESTART,
    "driver.resources.cpuLimit": ChangeClass.RESTART,
    "driver.resources.memory": ChangeClass.RESTART,
    # A restart to learn a longer grace period would itself be cut short by the old one.
    "driver.stopGracePeriodSeconds": ChangeClass.NONE,
    "driver.serviceAccountName": ChangeClass.RESTART,
    "driver.podTemplate": ChangeClass.RESTART,
    "executor.instances": ChangeClass.LIVE,
    "executor.cores": ChangeClass.RESTART,
    "executor.resources.cpu": ChangeClass.RESTART,
    "executor.resources.cpuLimit": ChangeClass.RESTART,
    "executor.resources.memory": ChangeClass.RESTART,
    "executor.podTemplate": ChangeClass.RESTART,
    "restart.policy": ChangeClass.NONE,
    "restart.maxFailures": ChangeClass.NONE,
    "restart.windowSeconds": ChangeClass.NONE,
    "restart.healthySeconds": ChangeClass.NONE,
    "restart.stallTimeoutSeconds": ChangeClass.NONE,
    "restartNonce": ChangeClass.RESTART,
    "suspend": ChangeClass.LIVE,
    "snapshots.schedule": ChangeClass.NONE,
    "snapshots.every": ChangeClass.NONE,
    "snapshots.suspend": ChangeClass.NONE,
    "snapshots.keep.last": ChangeClass.NONE,
    "snapshots.keep.maxAge": ChangeClass.NONE,
    "snapshots.verify": ChangeClass.NONE,
    "snapshots.onDelete": ChangeClass.NONE,
    "startFrom.export": ChangeClass.RESTATE,
    # For who takes the place of an application that was stopped, also long after it began.
    "startFrom.outputs": ChangeClass.NONE,
    "startFrom.snapshot.name": ChangeClass.RESTATE,
    "state.partitions": ChangeClass.RESTATE,
    "state.minBatchesToRetain": ChangeClass.RESTART,
    "state.repartition.resources.cpu": ChangeClass.NONE,
    "state.repartition.resources.cpuLimit": ChangeClass.NONE,
    "state.repartition.resources.memory": ChangeClass.NONE,
    "state.repartition.timeoutSeconds": ChangeClass.NONE,
    "storage.uri": ChangeClass.RESTATE,
    "storage.endpoint": ChangeClass.RESTART,
    "storage.region": ChangeClass.RESTART,
    "storage.pathStyleAccess": ChangeClass.RESTART,
    "storage.credentialsSecret.name": ChangeClass.RESTART,
    "storage.onDelete": ChangeClass.NONE,
    "upgrade.mode": ChangeClass.NONE,
    "upgrade.rehearse.batches": ChangeClass.NONE,
    "upgrade.rehearse.resources.cpu": ChangeClass.NONE,
    "upgrade.rehearse.resources.cpuLimit": ChangeClass.NONE,
    "upgrade.rehearse.resources.memory": ChangeClass.NONE,
    "upgrade.rehearse.timeoutSeconds": ChangeClass.NONE,
    "upgrade.rollBackTo": ChangeClass.LIVE,
    "upgrade.rollback": ChangeClass.NONE,
    "upgrade.stableBatches": ChangeClass.NONE,
    "upgrade.timeoutSeconds": ChangeClass.NONE,
}


def fields_of(change_class: ChangeClass) -> tuple[str, ...]:
    """Return the paths below ``spec`` of one class, sorted."""
    return tuple(sorted(path for path, of_field in CHANGE_CLASSES.items() if of_field is change_class))
