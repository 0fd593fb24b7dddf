"""Prepares the catalog of snapshots for a purge. Does I/O.

A purge waits for holders: imports, and applications that are to start from a snapshot. Otherwise it puts all snapshots
into ``deleting`` in one conditional write, so that later holders are refused instead of losing files. Those that lie
there and that the catalog lacks, because it was put back to an earlier version, are noted as gone: nobody enters them
again meanwhile.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from tidegate_spark.contract.object_paths import MANIFEST_FILE, SNAPSHOT_PREFIX
from tidegate_spark.contract.protocol import DriverConfig, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import Catalog
from tidegate_spark.snapshots.catalog_json import UnreadableCatalogError, decode, encode
from tidegate_spark.snapshots.purge import purge_messages as messages
from tidegate_spark.snapshots.repository import CATALOG_FILE
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ATTEMPTS = 20
"""Each is lost to somebody who holds or releases a snapshot."""
_OF_OTHERS = ("fork-", "import-")
"""How those are called that hold a snapshot from elsewhere; all others are the application's own, and go with it."""


def catalog_key(config: DriverConfig) -> str:
    """Return the key of the catalog."""
    return config.storage.key(f"{SNAPSHOT_PREFIX}/{CATALOG_FILE}")


def give_up(client: S3Client, config: DriverConfig) -> None:
    """Put all snapshots into ``deleting``.

    Raises:
        FaultError: HELD if others need one, CATALOG_LOST or NEWER_FORMAT if that cannot be known, STORAGE_UNAVAILABLE
            if the catalog changes all the time. Nothing was changed then.
        Exception: what boto3 raises when storage does not answer.
    """
    listed: set[str] | None = None
    for _ in range(ATTEMPTS):
        found = s3_client.read_object(client, config.storage, catalog_key(config))
        if found is None:
            _refuse_without_catalog(client, config)
            return
        before = _decoded(found[0], config)
        held = held_by_others(before, config.uid)
        if held:
            raise FaultError(Fault(Reason.HELD, messages.held_by_others(config.storage.uri, held)))
        if listed is None:
            listed = {name for name, _ in _own_files(client, config)}
        after = given_up(before, listed, time.time())
        if after == before:
            return
        if s3_client.replace_object(client, config.storage, catalog_key(config), encode(after), found[1]):
            return
    raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, messages.catalog_contended(_named(config))))


def held_by_others(known: Catalog, uid: str) -> dict[str, list[str]]:
    """Return the ids of snapshots that others need, and who does; pure.

    Args:
        known: the catalog.
        uid: of the application, which may itself have been started from one of its earlier snapshots.
    """
    found = {
        name: sorted(it for it in snapshot.holders if it.startswith(_OF_OTHERS) and it != f"fork-{uid}")
        for name, snapshot in known.snapshots.items()
    }
    return {name: holders for name, holders in sorted(found.items()) if holders}


def given_up(known: Catalog, listed: Collection[str], now: float) -> Catalog:
    """Return the catalog with nothing but snapshots that are being deleted, or are gone; pure.

    Args:
        known: the catalog.
        listed: ids of which there are files.
        now: seconds since the epoch.
    """
    unknown = sorted(name for name in listed if catalog.is_id(name) and name not in known.snapshots)
    known = dataclasses.replace(known, gone={**dict.fromkeys(unknown, now), **known.gone})
    for name, snapshot in known.snapshots.items():
        for holder in snapshot.holders:
            known = catalog.release(known, name, holder)
        known = catalog.dispose(known, name)
    return known


def _decoded(body: bytes, config: DriverConfig) -> Catalog:
    try:
        return decode(body)
    except NewerStorageError as error:
        raise FaultError(Fault(Reason.NEWER_FORMAT, messages.newer_catalog(_named(config), error))) from error
    except UnreadableCatalogError as error:
        raise FaultError(Fault(Reason.CATALOG_LOST, messages.catalog_unreadable(_named(config), error))) from error


def _refuse_without_catalog(client: S3Client, config: DriverConfig) -> None:
    published = next((key for _, key in _own_files(client, config) if key.endswith(f"/{MANIFEST_FILE}")), None)
    if published is not None:
        raise FaultError(Fault(Reason.CATALOG_LOST, messages.catalog_missing(_named(config), published)))


def _own_files(client: S3Client, config: DriverConfig) -> Iterator[tuple[str, str]]:
    """Yield the key of each file that is a snapshot's own, with the snapshot's id."""
    root = config.storage.key(f"{SNAPSHOT_PREFIX}/")
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=config.storage.bucket, Prefix=root, PaginationConfig={"PageSize": 1000}
    )
    for key in (item["Key"] for page in pages for item in page.get("Contents", [])):
        name, inside, _ = key[len(root) :].partition("/")
        if inside:
            yield name, key


def _named(config: DriverConfig) -> str:
    return f"{config.storage.uri}/{SNAPSHOT_PREFIX}/{CATALOG_FILE}"
