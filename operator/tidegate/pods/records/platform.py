"""What the installation and the namespace, not the application, determine about pods. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.pods.records.floors import NO_FLOORS, Floors

SPARK_USER = 185
"""The user of Apache Spark's own images."""


def restricted_security() -> dict[str, Any]:
    """Return a pod's security context that Kubernetes' restricted standard admits."""
    return {
        "runAsNonRoot": True,
        "runAsUser": SPARK_USER,
        "fsGroup": SPARK_USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@dataclass(frozen=True)
class Platform:
    """Settings of the installed operator, and what it learned of the namespace of the pods.

    Attributes:
        operator_image: holds the runtime that the init container copies into drivers and executors, and in which
            purge pods run.
        operator_image_pull_policy: when nodes pull that image for them.
        runtime_log_format: form of the runtime's own log lines in the applications' pods; text or json.
        key_id: identifies the operator's key, and shows nothing of it.
        floors: what LimitRanges of the namespace demand.
        pod_security: security context of every pod of an application; without numbers where the cluster assigns them.
        image_pull_secrets: names of Secrets in the namespaces of applications, for every pod, beside an application's
            own.
        pod_labels: of every pod of an application, below those of its templates; Tidegate's own cannot be named.
        pod_annotations: likewise.
    """

    operator_image: str
    operator_image_pull_policy: str = "IfNotPresent"
    runtime_log_format: str = "text"
    key_id: str = ""
    floors: Floors = NO_FLOORS
    pod_security: Mapping[str, Any] = field(default_factory=restricted_security, hash=False)
    image_pull_secrets: tuple[str, ...] = ()
    pod_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    pod_annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
