"""Deletes every object below the application's prefix. Does I/O.

Nothing is deleted without the claim, ``app.json`` with the application's uid, which is deleted last, nor while others
hold one of the snapshots. Storage that a deleted application further below retained stays.

It can be interrupted and repeated. Exit codes: 0 nothing is left, or the storage belongs to another application or does
not say to whom; 75 (EXIT_DEPENDENCY) storage does not answer, or others need a snapshot; 143 (EXIT_STOPPED) it was
asked to stop; 1 no usable configuration.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate_spark.contract.object_paths import INBOX_PREFIX
from tidegate_spark.contract.protocol import (
    APP_FILE,
    CONFIG_VARIABLE,
    EXIT_APPLICATION,
    EXIT_CODES,
    EXIT_DEPENDENCY,
    DriverConfig,
    Fault,
    Termination,
    from_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults.store_codes import EXPIRED_CODES, REJECTED_CODES
from tidegate_spark.process.helper_end import HelperEnd
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.redaction import Secrets, secret_values
from tidegate_spark.process.termination import termination_text
from tidegate_spark.snapshots.purge import purged_snapshots
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.claim import claim_messages as messages
from tidegate_spark.storage.claim import claiming
from tidegate_spark.storage.claim.claims import LONGEST_CLAIM, find_claim, owner_named_to
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PAGE = 1000
"""Keys per listing and per DeleteObjects request; the service's own limit."""
PARALLEL = 8
"""Requests to delete that are under way at once; with :data:`PAGE` it bounds the keys in memory."""
PASSES = 100
"""At most so many times the whole prefix is listed: as deep as directories in directories may be."""
TIMEOUT_SECONDS = 60.0
"""For an answer: a store on plain disks takes its time for a thousand objects."""

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Purged:
    """How many objects are gone, and the places of other applications that stay, each with a slash at its end."""

    objects: int
    kept: tuple[str, ...] = ()
    """Of applications of the same namespace."""
    elsewhere: int = 0
    """How many of those of other namespaces, which are not named."""

    @property
    def message(self) -> str:
        """What the pod's termination message says of it."""
        places = list(self.kept)
        if self.elsewhere:
            places.append(messages.of_other_namespaces(self.elsewhere))
        return messages.purged(self.objects, places)


class StoppedError(Exception):
    """The pod is removed; what is left is for the next one."""


class _Count:
    """Counts what is deleted, and ends the work where a stop was asked for."""

    def __init__(self) -> None:
        self.deleted = 0
        self.stopping = threading.Event()

    def __call__(self, number: int) -> None:
        """Add what one more request has deleted.

        Raises:
            StoppedError: a stop was asked for.
        """
        self.deleted += number
        log.info("%d objects deleted so far", self.deleted)
        if self.stopping.is_set():
            raise StoppedError


def main() -> int:
    """Purge, say how far it is, and return the exit code."""
    log_to_stderr(os.environ)
    environment = Environment.read(os.environ)
    end, count = HelperEnd(environment.termination_log), _Count()
    try:
        config = from_json(DriverConfig, os.environ.get(CONFIG_VARIABLE, ""))
    except ValueError as error:
        log.error("%s: %s", CONFIG_VARIABLE, error)
        return EXIT_APPLICATION

    def word(reason: Reason, message: str, *secrets: str) -> str:
        known = Secrets((*secret_values(os.environ), *secrets))
        return termination_text(Termination(reason, message, config.epoch), known)

    end.listen(count.stopping.set, lambda: word(Reason.STOPPED, messages.purge_stopped(count.deleted)))
    reason, message = Reason.COMPLETED, ""
    credentials = None
    try:
        credentials = s3_client.read_credentials(environment.credentials_directory, config.credentials_secret)
        message = purge(s3_client.connect(config.storage, credentials, TIMEOUT_SECONDS), config, count).message
    except StoppedError:
        reason, message = Reason.STOPPED, messages.purge_stopped(count.deleted)
    except FaultError as error:
        reason, message = error.fault.reason, error.fault.message
    except Exception as error:
        fault = s3_client.fault_of(error, config.storage, config.credentials_secret)
        if fault is None:
            raise
        reason, message = fault.reason, fault.message
    log.info("%s: %s", reason, message, extra={"action": "purge", "reason": reason})
    return end.leave(word(reason, message, *(credentials.secrets if credentials else ())), exit_code(reason))


def exit_code(reason: Reason) -> int:
    """Return with which code a purge ends.

    What no driver ends for is waited for: others need a snapshot, or it cannot be known whether they do.
    """
    return EXIT_CODES.get(reason, EXIT_DEPENDENCY)


def purge(client: S3Client, config: DriverConfig, report: Callable[[int], None] = lambda number: None) -> Purged:
    """Delete everything below the application's prefix but what another application claimed there.

    It works page by page: memory does not grow with the number of objects, and what is deleted stays deleted if it is
    interrupted.

    Args:
        client: of the storage.
        config: whose storage it is.
        report: called with how many objects each request has deleted; what it raises ends the work.

    Raises:
        FaultError: STORAGE_OWNED if ``app.json`` is another application's, CLAIM_DAMAGED if it does not say whose it
            is, or is missing beside something else, NEWER_FORMAT if a newer Tidegate wrote it, HELD if others need a
            snapshot, CATALOG_LOST if that cannot be known: nothing is deleted then; CREDENTIALS_REJECTED if they may
            not delete; STORAGE_UNAVAILABLE if something is left that the store does not delete.
        Exception: what boto3 raises when storage does not answer.
    """
    if not config.storage.prefix:
        raise FaultError(Fault(Reason.STORAGE_OWNED, messages.whole_bucket(config.storage.uri)))
    if not _has_claim(client, config):
        _refuse_unclaimed(client, config)
        return Purged(0)
    purged_snapshots.give_up(client, config)
    others = _places_of_others(client, config)
    kept = tuple(others)
    claim, catalog = config.storage.key(APP_FILE), purged_snapshots.catalog_key(config)
    deleted = 0
    # Stores that keep objects as files refuse to delete a directory's marker while something is in the directory. The
    # claim goes last: until then nobody else can take the place of what is being deleted. The catalog goes after what
    # it is of: without it, the next run after an interruption does not know that nobody needs the rest.
    first: Callable[[str], bool] = lambda key: key not in (claim, catalog) and not _is_marker(key)  # noqa: E731
    for wanted in (first, _is_marker, lambda key: key != claim):
        for number in _clear(client, config, kept, wanted):
            deleted += number
            report(number)
    left = _first_left(client, config, kept, claim)
    if left is not None:
        raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, messages.not_deleted(left)))
    # Hours may have gone by, and people hand storage over by removing the claim.
    if _has_claim(client, config):
        deleted += _delete_page(client, config, [claim])
        deleted += sum(_clear(client, config, kept, _is_marker))
    named = tuple(place for place, namespace in others.items() if namespace == config.namespace)
    return Purged(deleted, named, len(others) - len(named))


def _has_claim(client: S3Client, config: DriverConfig) -> bool:
    """Return whether the storage is the application's by its claim, False if there is none.

    Raises:
        FaultError: as :func:`purge`.
    """
    existing = claiming.read_claim(client, config.storage)
    if existing is None:
        return False
    if existing[0]["uid"] != config.uid:
        owner = owner_named_to(config.namespace, existing[0])
        raise FaultError(
            Fault(Reason.STORAGE_OWNED, messages.others_not_purged(config.storage.uri, owner)),
        )
    return True


def _refuse_unclaimed(client: S3Client, config: DriverConfig) -> None:
    """Raise if there is anything in a storage without a claim; without anything, there is nothing to do.

    So it is after a purge that was interrupted at its very end, and of an application that never got so far.
    """
    left = _first_left(client, config, (), "")
    if left is not None:
        missing = messages.claim_missing(config.storage.uri, APP_FILE)
        raise FaultError(Fault(Reason.CLAIM_DAMAGED, missing))


def _first_left(client: S3Client, config: DriverConfig, kept: Sequence[str], claim: str) -> str | None:
    """Return a key that is there beside the claim, None if there is none.

    Whoever writes messages to an application need not know that it goes; what they put there meanwhile is not waited
    for, or there would be no end. A directory's marker holds nothing.
    """
    inbox = config.storage.key(INBOX_PREFIX) + "/"
    keys = (key for page in list_pages(client, config, kept) for key in page)
    return next((k for k in keys if k != claim and not k.startswith(inbox) and not _is_root_marker(k, config)), None)


def _is_root_marker(key: str, config: DriverConfig) -> bool:
    # It cannot go before the claim that is in it.
    return key == config.storage.prefix + "/"


def list_pages(client: S3Client, config: DriverConfig, kept: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield the keys below the application's prefix but those of kept places, in pages as the store has them."""
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=config.storage.bucket, Prefix=config.storage.prefix + "/", PaginationConfig={"PageSize": PAGE}
    )
    for page in pages:
        yield [item["Key"] for item in page.get("Contents", []) if not _belongs(item["Key"], kept)]


def _places_of_others(client: S3Client, config: DriverConfig) -> dict[str, str]:
    """Return the prefixes below the application's that another one claimed, and the namespace of each.

    Each prefix ends with a slash; the namespace is empty if a claim does not say it any more.

    No such application runs in this namespace: the operator refuses storage inside another one's. But one that was
    deleted may have kept its own, and an application that came later may have been given a place around it.
    """
    claims = [
        key
        for page in list_pages(client, config)
        for key in page
        if key.endswith(f"/{APP_FILE}") and key != config.storage.key(APP_FILE)
    ]
    found = {key.removesuffix(APP_FILE): _namespace_of_claim(client, config, key) for key in claims}
    return {place: namespace for place, namespace in found.items() if namespace is not None}


def _namespace_of_claim(client: S3Client, config: DriverConfig, claim: str) -> str | None:
    """Return the namespace in another application's claim, None if it is this one's or no claim at all."""
    place = replace(config.storage, uri=f"s3://{config.storage.bucket}/{claim.removesuffix('/' + APP_FILE)}")
    try:
        found = claiming.read_claim(client, place)
        content = found[0] if found is not None else {}
    except FaultError as error:
        if error.fault.reason is Reason.NEWER_FORMAT:
            return ""  # whatever it says: it may be another's
        body, _ = s3_client.read_object(client, place, place.key(APP_FILE), LONGEST_CLAIM) or (b"", "")
        content = find_claim(body)
    return str(content.get("namespace") or "") if content and content.get("uid") != config.uid else None


def _belongs(key: str, kept: Sequence[str]) -> bool:
    """Return whether a key is in one of the kept places, or the marker of a directory around one."""
    return key.startswith(tuple(kept)) or (_is_marker(key) and any(place.startswith(key) for place in kept))


def _is_marker(key: str) -> bool:
    return key.endswith("/")


def _clear(client: S3Client, config: DriverConfig, kept: Sequence[str], wanted: Callable[[str], bool]) -> Iterator[int]:
    """Delete what is wanted, pass after pass until one deletes nothing; yield how many went with each request.

    One pass may leave something: a last object of a driver that was just killed, a directory inside which was another.
    """
    for _ in range(PASSES):
        gone = 0
        for number in _sweep(client, config, kept, wanted):
            gone += number
            yield number
        if not gone:
            return


def _sweep(client: S3Client, config: DriverConfig, kept: Sequence[str], wanted: Callable[[str], bool]) -> Iterator[int]:
    under_way: deque[Future[int]] = deque()
    with ThreadPoolExecutor(PARALLEL) as pool:
        for page in list_pages(client, config, kept):
            # Backwards, so that a directory comes after what is in it.
            keys = sorted(filter(wanted, page), reverse=True)
            if not keys:
                continue
            if len(under_way) == PARALLEL:
                yield under_way.popleft().result()
            under_way.append(pool.submit(_delete_page, client, config, keys))
        while under_way:
            yield under_way.popleft().result()


def _delete_page(client: S3Client, config: DriverConfig, keys: list[str]) -> int:
    answer = client.delete_objects(
        Bucket=config.storage.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
    )
    errors = answer.get("Errors", [])
    if any(error.get("Code") in REJECTED_CODES | EXPIRED_CODES for error in errors):
        refused = f"bucket {config.storage.bucket!r} (spec.storage.uri) does not let these credentials delete objects"
        raise FaultError(Fault(Reason.CREDENTIALS_REJECTED, refused))
    for error in errors[:10]:
        log.warning("%s: %s: %s", error.get("Key"), error.get("Code"), error.get("Message"))
    return len(keys) - len(errors)
