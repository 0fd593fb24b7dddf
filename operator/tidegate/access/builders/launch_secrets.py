"""Builds the two Secrets of a launch: the agent's and the one for Spark's ports. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.builders.spark_auth import SPARK_SECRET_KEY
from tidegate.pods.records.metadata import labels, owner_reference
from tidegate.pods.records.names import agent_secret_name, spark_secret_name
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import AGENT_NUMBER_FILE, AGENT_TOKEN_FILE, ANNOTATION_APP_UID

TOKEN_KEY, NUMBER_KEY = (path.rpartition("/")[2] for path in (AGENT_TOKEN_FILE, AGENT_NUMBER_FILE))


def build_agent_secret(app: StreamingApp, epoch: int, platform: Platform, token: str, number: str) -> dict[str, Any]:
    """Return the Secret of the driver's agent.

    Args:
        app: whose driver it is for.
        epoch: of the launch.
        platform: has the id of the key that the rest is derived from.
        token: for looks.
        number: the operator's public one, with which the driver makes the key of orders.
    """
    name = agent_secret_name(app.metadata.name, app.metadata.uid, epoch, platform.key_id)
    return _secret(app, name, {TOKEN_KEY: token, NUMBER_KEY: number})


def build_spark_secret(app: StreamingApp, epoch: int, platform: Platform, secret: str) -> dict[str, Any]:
    """Return the Secret of Spark's ports, which driver and executors mount.

    Args:
        app: whose driver and executors it is for.
        epoch: of the launch.
        platform: has the id of the key that the secret is derived from.
        secret: what they show each other.
    """
    name = spark_secret_name(app.metadata.name, app.metadata.uid, epoch, platform.key_id)
    return _secret(app, name, {SPARK_SECRET_KEY: secret})


def _secret(app: StreamingApp, name: str, content: dict[str, str]) -> dict[str, Any]:
    # Not immutable: the kubelet brings a Secret that was removed and made again into a running pod only if it watches
    # it, and those that are immutable it does not.
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": app.metadata.namespace,
            "labels": labels(app.metadata.name),
            "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
            "ownerReferences": [owner_reference(app)],
        },
        "stringData": content,
    }
