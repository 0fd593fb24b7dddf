"""Claims the application's place in its storage by ``app.json``. Does I/O.

:mod:`tidegate_spark.storage.claim.claimed` decides.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.json_form import DamagedFormError, NewerFormatError, from_stored
from tidegate_spark.contract.object_paths import MANIFEST_FILE, SNAPSHOT_PREFIX, is_number
from tidegate_spark.contract.protocol import (
    APP_FILE,
    EXPECTS_NOTHING,
    EXPECTS_STATE,
    FENCE_FILE,
    FIRST_LINEAGE,
    LINEAGE_PREFIX,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    OPENS_REPARTITIONED,
    UPGRADE_PREFIX,
    DriverConfig,
    EarlierPin,
    Fault,
    Storage,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import REPARTITION_PREFIX
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim import claim_messages as messages
from tidegate_spark.storage.claim import later_lineages
from tidegate_spark.storage.claim.claimed import (
    Claim,
    Known,
    as_claimed,
    as_found,
    as_taken_over,
    expected_beside,
    known_beside,
    opens,
)
from tidegate_spark.storage.claim.claims import LONGEST_CLAIM, owner_named_to, refuse_inside_others
from tidegate_spark.storage.claim.fence import Holder
from tidegate_spark.storage.claim.known_batches import first_older, is_there
from tidegate_spark.storage.claim.later_lineages import ran_in
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MOST_LINEAGES = 50
"""Named in a message."""
CLAIM_ATTEMPTS = 5
"""Only another driver of the same application can get in between; five in a row do not."""


class BehindError(FaultError):
    """The storage and this driver's configuration differ about the application; the driver does not run then."""

    def __init__(self, place: str, config: DriverConfig, known: Known) -> None:
        """Carry what ``place`` says."""
        super().__init__(Fault(Reason.FENCED, _message_of(place, config, known)))
        self.known = known


def _message_of(place: str, config: DriverConfig, known: Known) -> str:
    if known.adopted_from:
        return messages.taken_over(place, known.adopted_from, known.epoch, known.lineage)
    if known.otherwise:
        return messages.other_beginning(place, known.lineage)
    if known.epoch < config.epoch or (known.epoch == config.epoch and known.lineage != config.lineage):
        return messages.other_lineage(place, known.lineage, config.lineage)
    user = f"another pod of epoch {known.epoch}" if known.epoch == config.epoch else f"epoch {known.epoch}"
    return messages.other_user(place, user, config.epoch)


@contextlib.contextmanager
def faults_of(config: DriverConfig) -> Iterator[None]:
    """Turn exceptions of boto3 into FaultError, as far as they are the storage's faults."""
    try:
        yield
    except FaultError:
        raise
    except Exception as error:
        fault = store.fault_of(error, config.storage, config.credentials_secret)
        if fault is None:
            raise
        raise FaultError(fault) from error


def claim(client: S3Client, config: DriverConfig, spark_version: str = "") -> None:
    """Write ``app.json``: create it, or bring our own up to this epoch, and to this lineage if the launch opens it.

    Raises:
        FaultError: STORAGE_OWNED if it, or storage around it, belongs to another application; CLAIM_DAMAGED if it is
            missing beside lineages; NOTHING_TO_ADOPT; STORAGE_EMPTY if there is not what the launch expects,
            STORAGE_OLDER if only an earlier state of it; LINEAGE_NOT_EMPTY if one that is to start with nothing has
            something; as :func:`read_claim`.
        BehindError: the storage knows another epoch or lineage of this application, or was taken over just now.
    """
    key = config.storage.key(APP_FILE)
    for _ in range(CLAIM_ATTEMPTS):
        found = _read_unless_damaged(client, config)
        if found is None or isinstance(found, str):
            content, known = _first(client, config, spark_version)
            written = bool(store.write_object_if(client, config.storage, key, _document(content), found))
        else:
            before, etag = found
            content, known = _next(client, config, before, spark_version)
            written = bool(store.replace_object(client, config.storage, key, _document(content), etag))
        if written and known is not None:
            raise BehindError(config.storage.uri, config, known)
        if written:
            return
    raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, messages.claim_contended(config.storage.uri, APP_FILE)))


def _first(client: S3Client, config: DriverConfig, spark_version: str) -> tuple[dict[str, Any], Known | None]:
    """Return the claim of a place that has none; and what was there before, if that is taken over."""
    refuse_inside_others(client, config)
    adopts = config.adopt and config.rehearsal is None
    if not is_there(client, config.storage, f"{LINEAGE_PREFIX}/"):
        if adopts:
            message = messages.nothing_to_adopt(config.storage.uri)
            raise FaultError(Fault(Reason.NOTHING_TO_ADOPT, message))
        if config.expects != EXPECTS_NOTHING:
            raise _nothing_there(config)
        if config.opening == OPENS_NOTHING and config.lineage != FIRST_LINEAGE:
            # A start with nothing in an empty place starts in the first lineage: nothing recorded the number here.
            nothing = f"{config.storage.uri}, where there is nothing,"
            raise BehindError(nothing, config, Known(config.epoch, FIRST_LINEAGE, found=False))
        return as_claimed({}, None, config, spark_version), None
    missing = f"{config.storage.uri}/{APP_FILE} is missing or damaged, and there are lineages of an application"
    if not adopts:
        raise FaultError(Fault(Reason.CLAIM_DAMAGED, messages.owner_unknown(missing)))
    return _by_fence(client, config, missing)


def _by_fence(client: S3Client, config: DriverConfig, missing: str) -> tuple[dict[str, Any], Known]:
    """Return the claim of a place that has lost its own, by its fence, or by what a person names."""
    place = config.storage
    damaged = ""
    try:
        holder = _read_fence(client, place)
    except FaultError as error:
        if error.fault.reason is not Reason.CLAIM_DAMAGED:
            raise
        holder, damaged = None, f" {error.fault.message.rstrip('.')}."
    if holder is not None:
        known = Known(holder.epoch, holder.lineage, adopted_from=holder.uid)
        return as_found(holder.epoch, holder.lineage, holder.uid, config), known
    if not config.adopt_lineage:
        message = messages.adopted_unknown(missing, FENCE_FILE, _lineages(client, place))
        raise FaultError(Fault(Reason.CLAIM_DAMAGED, message + damaged))
    if not is_there(client, place, f"{LINEAGE_PREFIX}/{config.adopt_lineage}/"):
        message = messages.no_such_lineage(config.adopt_lineage, _lineages(client, place))
        raise FaultError(Fault(Reason.NOTHING_TO_ADOPT, message))
    if damaged:
        # Nobody can take a fence that says nothing. Whoever holds it finds that it is another one, and stops.
        client.delete_object(Bucket=place.bucket, Key=place.key(FENCE_FILE))
    known = Known(config.epoch, config.adopt_lineage, adopted_from=config.uid)
    return as_found(config.epoch, config.adopt_lineage, config.uid, config), known


def _lineages(client: S3Client, place: Storage) -> list[int]:
    """Return the numbers of the lineages that there are."""
    root = place.key(f"{LINEAGE_PREFIX}/")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=root)
    keys = (item["Key"][len(root) :] for page in pages for item in page.get("Contents", []))
    found = {name for name, inside, _ in (key.partition("/") for key in keys) if inside and is_number(name)}
    return sorted(map(int, found))[-MOST_LINEAGES:]


def _next(
    client: S3Client, config: DriverConfig, content: dict[str, Any], spark_version: str
) -> tuple[dict[str, Any], Known | None]:
    """Return the claim that follows the one that is there; and what was there before, if that is taken over."""
    owned = from_stored(Claim, json.dumps(content))
    if owned.uid != config.uid:
        taken = as_taken_over(content, owned, config)
        if taken is None:
            raise FaultError(Fault(Reason.STORAGE_OWNED, _owner_message(config, content)))
        return taken, Known(owned.epoch, owned.lineage, adopted_from=owned.uid)
    known = known_beside(owned, config, lambda lineage: _can_be_continued(client, config.storage, lineage))
    before = _before_repartition(client, config, owned) if known is None else None
    if before is not None:
        return {**content, "lineage": before}, Known(owned.epoch, before)
    if known is None or config.lineage < FIRST_LINEAGE:
        # A launch that is behind gets where the application is; one that only asks, whether it can continue there.
        expected = [f"{LINEAGE_PREFIX}/{start}" for start in expected_beside(owned, config)]
        if expected and not any(is_there(client, config.storage, prefix) for prefix in expected):
            raise _nothing_there(config)
    _refuse_older(client, config, owned, known)
    if known is not None:
        raise BehindError(f"{config.storage.uri}/{APP_FILE}", config, known)
    opening = config.opening if opens(owned, config) else OPENS_NOTHING
    if opening == OPENS_EMPTY:
        _refuse_to_start_over_something(client, config)
    elif opening == OPENS_FROM_SNAPSHOT and later_lineages.is_of_others(client, config):
        message = messages.lineage_of_others(config.lineage, config.storage.uri, LINEAGE_PREFIX)
        raise FaultError(Fault(Reason.LINEAGE_NOT_EMPTY, message))
    return later_lineages.accept(client, config, owned, as_claimed(content, owned, config, spark_version))


def _before_repartition(client: S3Client, config: DriverConfig, owned: Claim) -> int | None:
    """Return the lineage that a person goes back to in a storage that lacks the one which a repartition made.

    The pod that makes one says so after its mark was written. So a storage without the mark is a copy from before, in
    which the application would start with nothing; only a person can accept that, who names the lineage to go on in.
    But the application may have run there all the same, with an earlier runtime, or the mark alone may be lost.

    Returns:
        None if the launch may run in the lineage that was made.

    Raises:
        FaultError: STORAGE_OLDER if nobody has named one that there is, STORAGE_EMPTY if there is none.
    """
    place, lineage = config.storage, config.lineage
    if config.opening != OPENS_REPARTITIONED or is_there(client, place, f"{LINEAGE_PREFIX}/{lineage}.json"):
        return None
    accepted = config.adopt_lineage if config.adopt else 0
    ran = ran_in(client, place, lineage)
    if ran and lineage in (owned.lineage, accepted):
        return None
    ends = owned.lineage
    if ends == lineage:  # the claim alone is newer
        ends = next((each for each in range(lineage - 1, 0, -1) if ran_in(client, place, each)), 0)
    if not ends:
        raise _nothing_there(config)
    if accepted == ends:
        _remove_fence_beyond(client, config, ends)
        return ends
    text = messages.mark_missing if ran else messages.not_repartitioned
    raise FaultError(Fault(Reason.STORAGE_OLDER, text(place.uri, place.endpoint, ends, lineage)))


def _remove_fence_beyond(client: S3Client, config: DriverConfig, lineage: int) -> None:
    """Remove the fence of a later lineage, which would keep out the launch that may continue in this one."""
    place = config.storage
    holder = _read_fence(client, place)
    if holder is not None and holder.uid == config.uid and holder.lineage > lineage and holder.epoch <= config.epoch:
        client.delete_object(Bucket=place.bucket, Key=place.key(FENCE_FILE))


def _refuse_older(client: S3Client, config: DriverConfig, owned: Claim, known: Known | None) -> None:
    """Refuse a copy of the storage that is older than what the application has committed, unless a person accepts it.

    Epochs cannot show that: a launch has one before it claims anything, and may never come so far.
    """
    if config.adopt and config.adopt_lineage == owned.lineage:
        if known is None and config.lineage == owned.lineage:
            # The fence alone may be newer: each launch would be behind it, and the next one behind the claim.
            _remove_fence_beyond(client, config, owned.lineage)
        return
    if known is None and opens(owned, config):
        _refuse_older_than_left(client, config)
    if config.lineage < FIRST_LINEAGE:
        return
    if known is None:
        if config.expects == EXPECTS_STATE and not (config.adopt and config.adopt_lineage == config.lineage):
            _refuse_earlier_batches(client, config, config.lineage, config.expects_batches)
    elif owned.lineage < config.lineage and owned.epoch < config.epoch and _has_run_in_it(client, config):
        place = config.storage
        message = messages.older_lineage(place.uri, place.endpoint, owned.lineage, config.lineage)
        raise FaultError(Fault(Reason.STORAGE_OLDER, message))


def _has_run_in_it(client: S3Client, config: DriverConfig) -> bool:
    """Return whether the application has run in the launch's lineage, by its status or by the fence."""
    # Where the fence alone says so, each launch would be behind the one or the other, without end.
    holder = _read_fence(client, config.storage) if config.expects != EXPECTS_STATE else None
    return config.expects == EXPECTS_STATE or (
        holder is not None and (holder.uid, holder.lineage) == (config.uid, config.lineage)
    )


def _refuse_older_than_left(client: S3Client, config: DriverConfig) -> None:
    """Refuse to roll back to the end of a lineage that had a later one.

    Of a lineage that was never filled there is none: what that was to start from is rolled back to, and is compared.
    """
    of = config.start_from
    if of is None or not of.lineage:
        return
    _refuse_earlier_end(client, config, EarlierPin(of.snapshot, of.holder, of.lineage), config.expects_left)
    lineage = of.lineage
    for earlier, batches in zip(of.otherwise, config.expects_otherwise):  # noqa: B905 - strict= is newer than the Python of Spark images
        if is_there(client, config.storage, f"{LINEAGE_PREFIX}/{lineage}.json"):
            return
        _refuse_earlier_end(client, config, earlier, batches)
        lineage = earlier.lineage


def _refuse_earlier_end(client: S3Client, config: DriverConfig, pin: EarlierPin, batches: Mapping[str, int]) -> None:
    # Once the batches of the rollback snapshot are written down, or it is published, its batches are exactly those.
    settled = (f"{UPGRADE_PREFIX}/{pin.snapshot}.json", f"{SNAPSHOT_PREFIX}/{pin.snapshot}/{MANIFEST_FILE}")
    if batches and not any(is_there(client, config.storage, key) for key in settled):
        _refuse_earlier_batches(client, config, pin.lineage, batches)


def _refuse_earlier_batches(client: S3Client, config: DriverConfig, lineage: int, batches: Mapping[str, int]) -> None:
    place = config.storage
    older = first_older(client, place, lineage, batches)
    if older is not None:
        found = older.newest, older.known
        message = messages.older_batch(place.uri, place.endpoint, lineage, older.query, found)
        raise FaultError(Fault(Reason.STORAGE_OLDER, message))


def _nothing_there(config: DriverConfig) -> FaultError:
    place = config.storage
    return FaultError(Fault(Reason.STORAGE_EMPTY, messages.nothing_there(place.uri, place.endpoint)))


def _refuse_to_start_over_something(client: S3Client, config: DriverConfig) -> None:
    # What an attempt at a repartition left is removed under the fence, where nobody makes it any more.
    if _can_be_continued(client, config.storage, config.lineage):
        message = messages.lineage_not_empty(config.lineage, config.storage.uri, LINEAGE_PREFIX)
        raise FaultError(Fault(Reason.LINEAGE_NOT_EMPTY, message))


def _can_be_continued(client: S3Client, place: Storage, lineage: int) -> bool:
    """Return whether there is a lineage, and not only what an attempt at a repartition makes or has left.

    That may never become whole, and nobody ran in it: only a launch that says so opens it.
    """
    attempt = is_there(client, place, f"{REPARTITION_PREFIX}/{lineage}.json")
    return not attempt and _has_lineage(client, place, lineage)


def _has_lineage(client: S3Client, place: Storage, lineage: int) -> bool:
    # Its files, or what says beside them what it is to start with or was filled with; not that it starts empty.
    return any(is_there(client, place, f"{LINEAGE_PREFIX}/{lineage}{end}") for end in ("/", ".begin", ".json"))


def _read_unless_damaged(client: S3Client, config: DriverConfig) -> tuple[dict[str, Any], str] | str | None:
    """Return what :func:`read_claim` does; the ETag alone of a damaged one that is to be taken over all the same."""
    try:
        return read_claim(client, config.storage)
    except FaultError as error:
        adopts = config.adopt and config.rehearsal is None
        if error.fault.reason is not Reason.CLAIM_DAMAGED or not adopts:
            raise
    found = store.read_object(client, config.storage, config.storage.key(APP_FILE), LONGEST_CLAIM)
    return found[1] if found is not None else None


def _read_fence(client: S3Client, place: Storage) -> Holder | None:
    found = store.read_object(client, place, place.key(FENCE_FILE))
    try:
        return from_stored(Holder, found[0]) if found is not None else None
    except (NewerFormatError, DamagedFormError) as error:
        raise refusal_of(place, FENCE_FILE, error) from error


def read_claim(client: S3Client, place: Storage) -> tuple[dict[str, Any], str] | None:
    """Return ``app.json``'s content and ETag, None if there is none.

    Raises:
        FaultError: NEWER_FORMAT if a newer Tidegate wrote it, CLAIM_DAMAGED if it lacks a field of :class:`Claim`.
    """
    found = store.read_object(client, place, place.key(APP_FILE), LONGEST_CLAIM)
    if found is None:
        return None
    body, etag = found
    try:
        from_stored(Claim, body)
    except (NewerFormatError, DamagedFormError) as error:
        raise refusal_of(place, APP_FILE, error) from error
    # As an object: what a later version added is kept by whoever claims again.
    return json.loads(body), etag


def refusal_of(place: Storage, name: str, error: NewerFormatError | DamagedFormError) -> FaultError:
    """Return why nothing is done with a storage of which ``app.json`` or ``fence.json`` does not say whose it is.

    Args:
        place: the storage.
        name: of the object.
        error: why it cannot be read.
    """
    reason = Reason.NEWER_FORMAT if isinstance(error, NewerFormatError) else Reason.CLAIM_DAMAGED
    return FaultError(Fault(reason, messages.claim_unreadable(place.uri, name, error)))


def _owner_message(config: DriverConfig, content: dict[str, Any]) -> str:
    return messages.belongs_to(
        config.storage.uri, owner_named_to(config.namespace, content), config.namespace, config.app, config.uid
    )


def _document(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
