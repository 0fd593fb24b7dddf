"""An S3 server that is a dictionary, behind the methods of boto3's client that the runtime calls.

Objects have ETags, and writes honour ``IfMatch`` and ``IfNoneMatch``; one contract suite holds it and a real S3 server
to the same behaviour.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from tidegate_spark.contract.protocol import FENCE_FILE, Storage
from tidegate_spark.storage.s3_client import read_object, write_object_if

PRECONDITION_FAILED = 412


@dataclass
class ObjectStore:
    """Buckets are the first part of a key: ``bucket/prefix/name``."""

    objects: dict[str, bytes] = field(default_factory=dict)
    down: bool = False
    meanwhile: Callable[[str], None] = lambda key: None
    """Called before each conditional write is looked at, with its key: what others do in between."""
    removed: Callable[[str], None] = lambda key: None
    """Called with the key of each object that is deleted."""

    def keys(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, sorted."""
        return sorted(key for key in self.objects if key.startswith(prefix))


def etag_of(content: bytes) -> str:
    """Return the ETag that S3 gives an object written in one part."""
    return f'"{hashlib.md5(content).hexdigest()}"'


def root_of(endpoint: str) -> str:
    """Return how keys of a store begin, among those of all stores; nothing for the one without an endpoint."""
    return f"{endpoint.partition('://')[2]}/" if endpoint else ""


class StoreClient:
    """One client of the store; ``cut_off`` tells whether it cannot reach it.

    With ``at``, an endpoint, it is another store, whose buckets may have the same names.
    """

    def __init__(self, store: ObjectStore, cut_off: Callable[[], bool] = lambda: False, at: str = "") -> None:
        self._store, self._cut_off, self._root = store, cut_off, root_of(at)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **condition: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        """Write an object, if its condition holds."""
        key = self._reach("PutObject", Bucket, Key)
        if condition:
            self._store.meanwhile(key)
        known = self._store.objects.get(key)
        if "IfNoneMatch" in condition and known is not None:
            raise _error("PutObject", PRECONDITION_FAILED, "PreconditionFailed")
        if "IfMatch" in condition:
            if known is None:
                raise _error("PutObject", 404, "NoSuchKey")
            if etag_of(known) != condition["IfMatch"]:
                raise _error("PutObject", PRECONDITION_FAILED, "PreconditionFailed")
        self._store.objects[key] = Body
        return {"ETag": etag_of(Body)}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read an object."""
        key = self._reach("GetObject", Bucket, Key)
        content = self._store.objects.get(key)
        if content is None:
            raise _error("GetObject", 404, "NoSuchKey")
        return {"Body": io.BytesIO(content), "ETag": etag_of(content)}

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Delete an object; one that is not there is no error."""
        key = self._reach("DeleteObject", Bucket, Key)
        if self._store.objects.pop(key, None) is not None:
            self._store.removed(key)
        return {}

    def delete_objects(self, *, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        """Delete several objects."""
        for each in Delete["Objects"]:
            self.delete_object(Bucket=Bucket, Key=each["Key"])
        return {}

    def list_objects_v2(
        self,
        *,
        Bucket: str,  # noqa: N803
        Prefix: str = "",  # noqa: N803
        Delimiter: str = "",  # noqa: N803
        MaxKeys: int | None = None,  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        """List keys, or with a delimiter also what stands before the next one; together so many, the first ones."""
        whole = self._reach("ListObjectsV2", Bucket, Prefix)
        found = [key.removeprefix(f"{self._root}{Bucket}/") for key in self._store.keys(whole)]
        if Delimiter:
            rest = (key[len(Prefix) :].partition(Delimiter) for key in found)
            found = sorted({Prefix + name + delimiter for name, delimiter, _ in rest})
        listed = found[:MaxKeys]
        folders = [{"Prefix": key} for key in listed if Delimiter and key.endswith(Delimiter)]
        keys = [{"Key": key} for key in listed if not (Delimiter and key.endswith(Delimiter))]
        return {**({"CommonPrefixes": folders} if folders else {}), **({"Contents": keys} if keys else {})}

    def get_paginator(self, operation: str) -> "StoreClient":
        """Return what lists page by page; here there is one."""
        assert operation == "list_objects_v2"
        return self

    def paginate(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield the only page."""
        yield self.list_objects_v2(**arguments)

    def _reach(self, operation: str, bucket: str, key: str) -> str:
        if self._store.down or self._cut_off():
            raise EndpointConnectionError(endpoint_url=f"http://store/{operation}")
        return f"{self._root}{bucket}/{key}"


class FencePort:
    """``fence.json`` through boto3's client, real or simulated, by the runtime's own reads and writes."""

    def __init__(self, client: Any, place: Storage) -> None:
        self._client, self._place, self._key = client, place, place.key(FENCE_FILE)

    def get(self) -> tuple[bytes, str] | None:
        """Return content and ETag, or None."""
        return read_object(self._client, self._place, self._key)

    def put_if(self, body: bytes, etag: str | None) -> str | None:
        """Write if the object is as it was; return its new ETag, or None."""
        return write_object_if(self._client, self._place, self._key, body, etag)


def _error(operation: str, status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, operation)  # type: ignore[typeddict-item] # the fields that are read
