"""Finds claims of others around the application's place. Does I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.protocol import APP_FILE, DriverConfig, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim import claim_messages as messages
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CLAIM_FIELDS = frozenset({"uid", "namespace", "app", "epoch", "lineage"})
"""Fields of ``app.json`` that are always there."""
_MOST_AROUND = 16
"""So many places around its own a driver looks for claims in: a request each, at its first start."""
LONGEST_CLAIM = 256 * 1024
"""Bytes of an ``app.json`` that are read: a claim has a few hundred, and others may put anything under the name."""
_ELSEWHERE = "an application of another namespace"


def refuse_inside_others(client: S3Client, config: DriverConfig) -> None:
    """Refuse a place inside one that an application of another namespace has claimed.

    The operator refuses it only to applications of one namespace, since a spec proves no right to the place that it
    names; a claim does. Whoever has a claim of their own already is not asked again.
    """
    parts = config.storage.prefix.split("/")
    for length in range(min(len(parts) - 1, _MOST_AROUND), 0, -1):
        place = replace(config.storage, uri=f"s3://{config.storage.bucket}/{'/'.join(parts[:length])}")
        found = _claim_around(client, place)
        if found and found.get("uid") != config.uid and found.get("namespace") != config.namespace:
            raise FaultError(
                Fault(
                    Reason.STORAGE_OWNED,
                    messages.inside_others(config.storage.uri, _ELSEWHERE),
                )
            )


def _claim_around(client: S3Client, place: Storage) -> dict[str, Any]:
    """Return a claim, of whatever format; empty if there is none, or these credentials do not reach it."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - as in tidegate_spark.storage.s3_client

    try:
        found = store.read_object(client, place, place.key(APP_FILE), LONGEST_CLAIM)
    except ClientError as error:
        if store.status_of(error) in (403, 404):
            return {}  # who may use the place alone cannot read around it, nor can somebody else there be in the way
        raise
    return find_claim(found[0]) if found is not None else {}


def find_claim(body: bytes) -> dict[str, Any]:
    """Return what an ``app.json`` says if it is, or was once, a claim; an application has files of that name, too."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and len(CLAIM_FIELDS & content.keys()) > 1 else {}


def owner_named_to(namespace: str, content: Mapping[str, Any]) -> str:
    """Return whose a storage is, as people of ``namespace`` may know it: nobody is named across namespaces."""
    if content["namespace"] != namespace:
        return _ELSEWHERE
    return f"{content['namespace']}/{content['app']} with uid {content['uid'] or '?'}"
