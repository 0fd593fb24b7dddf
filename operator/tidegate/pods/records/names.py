"""Names of an application's objects; constant, so that the API server refuses a second one. No I/O.

An application's name has at most 40 characters. The longest derived name is an executor's,
``<app>-e<epoch>-exec-<id>``: Spark allows prefixes of 47 characters, which leaves five digits for the epoch.
"""

from __future__ import annotations

import hashlib

ACCESS_PREFIX = "tidegate-driver-"
"""Of the ServiceAccount, Role and RoleBinding of each application. The chart's admission policy knows drivers by it."""
SHARED_ACCESS_NAME = "tidegate-driver"
"""What all drivers of a namespace shared before each application had its own."""
DEFAULT_ACCOUNT = "default"
"""The ServiceAccount that Kubernetes makes in each namespace."""

DRIVER_CONTAINER = "driver"
EXECUTOR_CONTAINER = "executor"
PURGE_CONTAINER = "purge"
SNAPSHOT_CONTAINER = "snapshot"
EXPORT_CONTAINER = "export"
REPARTITION_CONTAINER = "repartition"
RUNTIME_CONTAINER = "tidegate-runtime"
"""The init container that copies the runtime into the pod."""


def access_name(app_name: str) -> str:
    """Return the name of an application's ServiceAccount, Role and RoleBinding; at most 56 characters."""
    return f"{ACCESS_PREFIX}{app_name}"


def driver_pod_name(app_name: str) -> str:
    """Return the name of the driver pod; the same in each epoch, so that there is never a second driver."""
    return f"{app_name}-driver"


def executor_prefix(app_name: str, epoch: int) -> str:
    """Return the prefix of the executor pods' names in one epoch; Spark appends ``-exec-<id>``."""
    return f"{app_name}-e{epoch}"


def agent_secret_name(app_name: str, app_uid: str, epoch: int, key_id: str) -> str:
    """Return the name of the Secret of one launch's agent.

    Name and content follow from the same: what has the name has this content, or somebody else has put it there, who
    cannot know the name before it is there. So it need not be read.

    Args:
        app_name: of the application.
        app_uid: of the application.
        epoch: of the launch.
        key_id: of the operator's key, from which the content is derived.
    """
    return f"{app_name}-agent-{epoch}-{_launch_digest(app_uid, epoch, key_id)}"


def spark_secret_name(app_name: str, app_uid: str, epoch: int, key_id: str) -> str:
    """Return the name of the Secret of what driver and executors of one launch show each other; likewise."""
    return f"{app_name}-spark-{epoch}-{_launch_digest(app_uid, epoch, key_id)}"


def configuration_secret_name(app_name: str, epoch: int, pod_name: str, app_uid: str, digest: str) -> str:
    """Return the name of the Secret with what is too long of one pod's configuration.

    Args:
        app_name: of the application.
        epoch: of the launch.
        pod_name: of the pod; a driver and a rehearsal may be of one epoch.
        app_uid: of the application.
        digest: of the content. Another content has another name: none is ever in the place of another.
    """
    own = hashlib.sha256(f"{app_uid}/{epoch}/{pod_name}/{digest}".encode()).hexdigest()[:10]
    return f"{app_name}-config-{epoch}-{own}"


def _launch_digest(app_uid: str, epoch: int, key_id: str) -> str:
    return hashlib.sha256(f"{key_id}/{app_uid}/{epoch}".encode()).hexdigest()[:10]


def purge_pod_name(app_name: str) -> str:
    """Return the name of the pod that removes the application's storage."""
    return f"{app_name}-purge"


def release_pod_name(app_name: str) -> str:
    """Return the name of the pod that releases the snapshot with which a deleted application was to begin."""
    return f"{app_name}-release"


def rehearsal_pod_name(app_name: str, number: int) -> str:
    """Return the name of the pod that rehearses the application's upgrade of this number."""
    return f"{app_name}-rehearsal-{number}"


def repartition_pod_name(app_name: str, epoch: int) -> str:
    """Return the name of the pod that repartitions the application's state, of the attempt with this epoch."""
    return f"{app_name}-repartition-{epoch}"


def snapshot_pod_name(snapshot_id: str, *, disposing: bool) -> str:
    """Return the name of the pod that takes a snapshot of an application that does not run, or disposes of one."""
    return f"{snapshot_id}-{'dispose' if disposing else 'take'}"


def export_pod_prefix(snapshot_id: str) -> str:
    """Return how the names begin of the pods that write a snapshot's state as plain files."""
    return f"{snapshot_id}-export-"


def export_pod_name(snapshot_id: str, nonce: int) -> str:
    """Return the name of the pod that makes one of a snapshot's exports."""
    return f"{export_pod_prefix(snapshot_id)}{nonce}"


def verify_pod_name(snapshot_id: str, nonce: int) -> str:
    """Return the name of the pod that reads a snapshot back, as ``spec.verifyNonce`` asks with this number."""
    return f"{snapshot_id}-verify-{nonce}"


def is_verify_pod_name(name: str, snapshot_id: str) -> bool:
    """Return whether a pod of this name reads the snapshot back, whoever asked; earlier operators gave no number."""
    number = name.removeprefix(f"{snapshot_id}-verify-")
    return name == f"{snapshot_id}-verify" or (number != name and number.isdecimal())


def number_of_verify_pod(name: str) -> int | None:
    """Return for which ``spec.verifyNonce`` a pod reads a snapshot back, None if an earlier operator made it."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else None
