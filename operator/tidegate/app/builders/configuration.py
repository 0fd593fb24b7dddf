"""Puts the configuration of a launch into a variable, and what is too long for one into a Secret. No I/O.

The pod owns the Secret, so the garbage collector removes it with the pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import TooLongError
from tidegate.pods import messages
from tidegate.pods.builders.pod_parts import literal
from tidegate.pods.records.metadata import labels
from tidegate.pods.records.names import DRIVER_CONTAINER, configuration_secret_name
from tidegate.pods.spark.settings import TASK_CPUS
from tidegate_spark.contract.configuration_protocol import (
    LONGEST_IN_VARIABLE,
    REST_DIRECTORY,
    REST_KEY,
    digest_of,
    divide,
    with_rest,
)
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, DriverConfig, to_json

LONGEST_SECRET = 1024 * 1024
"""Bytes that the API server lets a Secret have (MaxSecretSize in pkg/apis/core/types.go)."""
_VOLUME = "tidegate-configuration"


@dataclass(frozen=True)
class ConfiguredPod:
    """A pod that is to be created, and what has to be beside it for it to start."""

    manifest: dict[str, Any]
    secret: dict[str, Any] | None = None
    """The Secret of its configuration, without its owner, which is the pod; None: the pod has all of it."""


@dataclass(frozen=True)
class Configuration:
    """The configuration of one pod, as it is handed over."""

    config: DriverConfig
    text: str
    """Of the variable."""
    rest: str = ""
    """Content of the Secret; empty: there is none."""
    secret_name: str = ""

    def mount(self, spec: dict[str, Any]) -> None:
        """Give a pod its Secret, if it has one. The kubelet starts no container without it."""
        if not self.rest:
            return
        volume = {"name": _VOLUME, "secret": {"secretName": self.secret_name, "defaultMode": 0o440}}
        mount = {"name": _VOLUME, "mountPath": REST_DIRECTORY, "readOnly": True}
        spec["volumes"] = [*spec["volumes"], volume]
        mine = next(container for container in spec["containers"] if container["name"] == DRIVER_CONTAINER)
        mine["volumeMounts"] = [*mine["volumeMounts"], mount]

    def secret(self, app: StreamingApp) -> dict[str, Any] | None:
        """Return the Secret, without its owner; None if there is none."""
        if not self.rest:
            return None
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            # Kubelets need not watch it, and nobody changes it by mistake.
            "immutable": True,
            "metadata": {
                "name": self.secret_name,
                "namespace": app.metadata.namespace,
                "labels": labels(app.metadata.name, epoch=self.config.epoch),
                "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
            },
            "stringData": {REST_KEY: self.rest},
        }


def configuration_of(config: DriverConfig) -> Configuration:
    """Return how a configuration is handed to its pod.

    Raises:
        TooLongError: a Secret does not take it either.
    """
    text = literal(to_json(config))
    if len(text) <= LONGEST_IN_VARIABLE:  # ASCII: as many bytes
        return Configuration(config, text)
    kept, rest = divide(config, (TASK_CPUS,))
    if len(rest) > LONGEST_SECRET:
        raise TooLongError(_longest_field(config), _too_long(len(rest)))
    name = configuration_secret_name(config.app, config.epoch, config.pod_name, config.uid, digest_of(rest.encode()))
    return Configuration(config, literal(with_rest(kept, name, rest)), rest, name)


def secret_for(secret: dict[str, Any], pod_name: str, pod_uid: str) -> dict[str, Any]:
    """Return the Secret with its owner: the garbage collector removes it with the pod, also one that comes late."""
    # Not as its controller: it adopts nothing.
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": pod_uid}
    return {**secret, "metadata": {**secret["metadata"], "ownerReferences": [owner]}}


def _longest_field(config: DriverConfig) -> str:
    """Return the field of the spec of which the configuration has most."""
    sizes = {
        "spec.application.args": len(to_json(config.args)),
        "spec.sparkConf": len(to_json(config.spark_conf)),
        "spec.application.pyFiles": len(to_json(config.py_files)),
        messages.TEMPLATE_FIELDS: len(to_json(config.executor.template)),
        "spec.control": len(to_json((config.channel, config.control))),
    }
    return max(sizes, key=lambda field: sizes[field])


def _too_long(size: int) -> str:
    return messages.configuration_too_long(size, LONGEST_SECRET)
