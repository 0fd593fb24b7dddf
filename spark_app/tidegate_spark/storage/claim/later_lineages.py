"""Finds lineages that are later than the one in which a launch runs, and in which an application ran. Does I/O.

A tool that copies a bucket reads ``app.json`` and ``fence.json`` first, and the lineages hours later. If a rollback
opens a lineage meanwhile, the copy has it, and both objects name the one before: to run there would go back silently,
and the next rollback would find its lineage full of another history.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.object_paths import is_number
from tidegate_spark.contract.protocol import LINEAGE_PREFIX, DriverConfig, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import REPARTITION_PREFIX
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim import claim_messages as messages
from tidegate_spark.storage.claim.claimed import Claim, Known, opens
from tidegate_spark.storage.claim.known_batches import has_batches, is_there
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LONGEST = 1 << 20
"""Bytes that are read of what says with what a lineage began; it has hundreds."""


def ran_in(client: S3Client, place: Storage, lineage: int) -> bool:
    """Return whether there are batches in a lineage, and nobody makes it."""
    return not is_there(client, place, f"{REPARTITION_PREFIX}/{lineage}.json") and has_batches(client, place, lineage)


def later_than(client: S3Client, place: Storage, lineage: int) -> list[int]:
    """Return the lineages after one in which somebody ran, in order; one listing, as a rule.

    Something beside each says why it is there (``.begin``, ``.json`` or ``.empty``). What has nothing beside it may be
    what a repartition's pod that was taken for lost still wrote, after what it had made was removed.
    """
    root = place.key(f"{LINEAGE_PREFIX}/")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=root, Delimiter="/")
    names = [item["Prefix"][len(root) : -1] for page in pages for item in page.get("CommonPrefixes", [])]
    later = sorted(int(name) for name in names if is_number(name) and int(name) > lineage)
    return [
        each for each in later if is_there(client, place, f"{LINEAGE_PREFIX}/{each}.") and ran_in(client, place, each)
    ]


def is_of_others(client: S3Client, config: DriverConfig) -> bool:
    """Return whether the lineage that a launch is to open has batches, and did not start from what the launch names.

    Where the claim alone was put back to an earlier one, the lineage is the launch's own, half filled or whole.
    """
    place, of = config.storage, config.start_from
    if not ran_in(client, place, config.lineage):
        return False
    own = {of.snapshot, *(earlier.snapshot for earlier in of.otherwise)} if of is not None else set[str]()
    beside = (f"{LINEAGE_PREFIX}/{config.lineage}{end}" for end in (".json", ".begin"))
    return own.isdisjoint(_snapshot_in(client, place, name) for name in beside)


def _snapshot_in(client: S3Client, place: Storage, name: str) -> str:
    """Return the snapshot that an object beside a lineage names, empty if none."""
    found = store.read_object(client, place, place.key(name), _LONGEST)
    try:
        content = json.loads(found[0]) if found is not None else None
    except (ValueError, RecursionError):
        return ""
    return str(content.get("snapshot", "")) if isinstance(content, dict) else ""


def accept(
    client: S3Client, config: DriverConfig, owned: Claim, claimed: dict[str, Any]
) -> tuple[dict[str, Any], Known | None]:
    """Return the claim of a launch that may run; a later lineage with batches is for a person to decide about.

    Args:
        client: of the storage.
        config: the launch's.
        owned: the claim that is there.
        claimed: the one that follows.

    Returns:
        What is to be written, and where the application is, if the person has named a later lineage.

    Raises:
        FaultError: STORAGE_OLDER if there is one, and nobody has named it or the present one.
    """
    place = config.storage
    later = later_than(client, place, max(config.lineage, owned.passed))
    here = owned.lineage if opens(owned, config) else config.lineage
    accepted = config.adopt_lineage if config.adopt else 0
    if not later:
        return claimed, None
    if accepted == here:
        return {**claimed, "passed": later[-1]}, None
    if accepted in later:
        return {**claimed, "lineage": accepted, "passed": later[-1]}, Known(config.epoch, accepted)
    raise FaultError(Fault(Reason.STORAGE_OLDER, messages.later_lineages(place.uri, place.endpoint, here, later)))
