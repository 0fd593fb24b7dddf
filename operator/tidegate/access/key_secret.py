"""Reads the Secret with the operator's key in its own namespace, and creates it at the first start. Does I/O."""

from __future__ import annotations

import asyncio
import base64
import secrets
from typing import Any

import msgspec
import structlog

from tidegate.access import key_messages
from tidegate.access.keys import KEY_BYTES, OperatorKeys
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, NotFound
from tidegate.kube.paths import collection_of, item
from tidegate_spark.contract.protocol import LABEL_MANAGED_BY, MANAGED_BY

KEY = "key"
PAUSE_SECONDS = 2.0
PATIENCE_SECONDS = 10.0
log = structlog.get_logger()


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


async def find_keys(client: KubeClient, namespace: str, name: str) -> OperatorKeys:
    """Return the operator's keys; waits until there is a Secret that has one.

    Each process does it at its start, whether it leads or not, and nobody ever changes the Secret: of several that make
    one at once, one succeeds, and the others read what it made.

    Args:
        client: asks the API server.
        namespace: the operator's own.
        name: of the Secret.
    """
    reported = ""
    while True:
        found = await _read_or_make(client, namespace, name)
        if isinstance(found, OperatorKeys):
            return found
        if found != reported:
            log.warning("no key for the agents", secret=f"{namespace}/{name}", problem=found)
            reported = found
        await asyncio.sleep(PAUSE_SECONDS)


async def _read_or_make(client: KubeClient, namespace: str, name: str) -> OperatorKeys | str:
    path = item("Secret", namespace, name)
    found = await client.get(path, _Secret)
    if isinstance(found, NotFound):
        key = secrets.token_urlsafe(KEY_BYTES)
        manifest = _manifest(namespace, name, key)
        # No leadership is needed: each replica has the key.
        made = await client.send_beside(
            "POST", collection_of(manifest), msgspec.Raw, manifest, patience=PATIENCE_SECONDS
        )
        if isinstance(made, FAILURES) and not isinstance(made, AlreadyExists):
            return key_messages.key_not_made(made).replace(key, "[redacted]")
        # Read back, so that all processes have the stored key, whichever created it.
        found = await client.get(path, _Secret)
    if isinstance(found, FAILURES):
        return key_messages.key_not_read(found)
    try:
        return OperatorKeys(base64.b64decode(found.data.get(KEY, ""), validate=True))
    except ValueError:
        return key_messages.key_too_short(KEY_BYTES, KEY)


def _manifest(namespace: str, name: str, key: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": True,
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL_MANAGED_BY: MANAGED_BY}},
        "stringData": {KEY: key},
    }
