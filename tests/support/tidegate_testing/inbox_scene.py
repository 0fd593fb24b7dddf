"""An inbox in an object store, in memory or on a real server, as a producer and a driver see it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from devcluster import s3
from devcluster.site import Site
from tidegate_spark.contract.control_protocol import InboxSettings
from tidegate_spark.contract.object_paths import INBOX_PREFIX, REPLIES_PREFIX, Storage
from tidegate_spark.control.channels.transports.storage import StorageChannel
from tidegate_spark.control_writer import ControlWriter, Credentials
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX
from tidegate_testing.memory_store import Buckets, Call, MemoryStore

QUICK = InboxSettings(poll_seconds=0.02, keep_replies_seconds=1e12)
"""Times of objects in memory are numbers, not times: no reply of theirs is ever too old."""
PLACE = Storage(f"s3://{BUCKET}/{PREFIX}")
_numbers = itertools.count(1)


def replies_in(repository: SnapshotRepository) -> list[dict[str, Any]]:
    """Return all replies that can be read."""
    keys = [entry.key for entry in repository.store.list(repository.key(REPLIES_PREFIX) + "/")]
    bodies = [found[0] for found in map(repository.store.get, keys) if found is not None]
    return [reply for body in bodies for reply in json.loads(body)]


def unread(repository: SnapshotRepository) -> list[str]:
    """Return the names of the objects in the inbox."""
    prefix = repository.key(INBOX_PREFIX) + "/"
    return [entry.key[len(prefix) :] for entry in repository.store.list(prefix)]


def refused(code: str, status: int) -> ClientError:
    """Return what boto3 raises for such an answer."""
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Request")


class MemoryInbox:
    """See :class:`Scene`; objects are put by hand, as anybody may who can put one."""

    replays = has_content_types = False

    def __init__(self, buckets: Buckets | None = None, settings: InboxSettings = QUICK) -> None:
        self.buckets, self.settings = buckets or Buckets(), settings
        self.is_up = True

    def repository(self, fault: Exception | None = None) -> SnapshotRepository:
        def watch(call: Call) -> None:
            if fault is not None:
                raise fault
            if not self.is_up:
                raise EndpointConnectionError(endpoint_url="http://nowhere")

        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, watch), PREFIX, lambda seconds: None)

    def put(self, name: str, body: bytes) -> None:
        self.buckets.write(BUCKET, f"{PREFIX}/{INBOX_PREFIX}/{name}", body)

    def send(self, body: bytes, content_type: str = "") -> None:
        self.put(f"{next(_numbers):09d}.json", body)

    def replies(self) -> list[dict[str, Any]]:
        return replies_in(SnapshotRepository(MemoryStore(self.buckets, BUCKET), PREFIX))

    def unread(self) -> list[str]:
        return unread(SnapshotRepository(MemoryStore(self.buckets, BUCKET), PREFIX))

    def channel(self, *, password: str = "", name: str = "") -> StorageChannel:
        fault = refused("SignatureDoesNotMatch", 403) if password else refused("NoSuchBucket", 404) if name else None
        return StorageChannel(self.settings, lambda: self.repository(fault), PLACE)

    def stop(self) -> None:
        self.is_up = False

    def start(self) -> None:
        self.is_up = True


class InboxScene:
    """See :class:`Scene`; an application's place on a real S3 server, written by the library's writer or by hand."""

    replays = has_content_types = False

    def __init__(self, place: Storage, credentials: Credentials, site: Site | None = None) -> None:
        """Look at a place; ``site`` is whose server it is, where that may be stopped."""
        self.place, self.credentials, self.site = place, credentials, site
        self.repository = reach_repository(place, credentials)

    @classmethod
    def on(cls, site: Site, bucket: str = "inbox") -> InboxScene:
        """Return a place of its own on a site's server."""
        s3.ensure_bucket(site, bucket)
        place = Storage(f"s3://{bucket}/apps/tests/inbox-{next(_numbers)}", site.s3_endpoint_host, s3.REGION, True)
        return cls(place, Credentials(site.s3_keys.access_key, site.s3_keys.secret_key), site)

    def writer(self, source: str = "/test", **more: Any) -> ControlWriter:
        """Return a writer, as anybody has it who may write to the bucket."""
        where: dict[str, Any] = {"endpoint": self.place.endpoint, "path_style_access": self.place.path_style_access}
        return ControlWriter(self.place.uri, source=source, credentials=self.credentials, **where, **more)

    def send(self, body: bytes, content_type: str = "") -> None:
        name = f"{next(_numbers):09d}.json"
        assert self.repository.store.put_if(self.repository.key(INBOX_PREFIX, name), body, None) is not None

    def replies(self) -> list[dict[str, Any]]:
        return replies_in(self.repository)

    def unread(self) -> list[str]:
        return unread(self.repository)

    def channel(self, *, password: str = "", name: str = "") -> StorageChannel:
        place = replace(self.place, uri=f"s3://{name}/apps") if name else self.place
        credentials = replace(self.credentials, secret_key=password) if password else self.credentials
        return StorageChannel(InboxSettings(), lambda: reach_repository(place, credentials), place)

    def stop(self) -> None:
        assert self.site is not None
        s3.stop(self.site, grace=0)

    def start(self) -> None:
        assert self.site is not None
        s3.start(self.site)
