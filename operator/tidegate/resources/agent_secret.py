"""The Secret with the bearer token of an application's agent, and with what opens Spark's ports. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.model.streaming_app import StreamingApp
from tidegate.resources.metadata import labels, owner_reference
from tidegate.resources.names import agent_secret_name
from tidegate.resources.spark_auth import SPARK_SECRET_KEY
from tidegate_spark.protocol import AGENT_TOKEN_FILE, ANNOTATION_APP_UID

TOKEN_KEY = AGENT_TOKEN_FILE.rpartition("/")[2]


def build_agent_secret(app: StreamingApp, token: str, spark_secret: str) -> dict[str, Any]:
    """Return the Secret.

    Args:
        app: whose driver and executors it is for.
        token: of the driver's agent.
        spark_secret: what driver and executors show each other.

    Not immutable: the kubelet brings a Secret that was removed and made again into a running pod only if it watches it,
    and those that are immutable it does not.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": agent_secret_name(app.metadata.name),
            "namespace": app.metadata.namespace,
            "labels": labels(app.metadata.name),
            "annotations": {ANNOTATION_APP_UID: app.metadata.uid},
            "ownerReferences": [owner_reference(app)],
        },
        "stringData": {TOKEN_KEY: token, SPARK_SECRET_KEY: spark_secret},
    }
