"""``python3 -m tidegate_spark.purge``: deletes every object below the application's prefix. Does I/O.

What another application has kept further below, which is gone itself, is left alone: nobody asked for that to go.

Idempotent: it can be interrupted and started again at any time. Exit codes: 0 nothing is left, or the storage belongs
to another application or does not say to whom; 75 (EXIT_DEPENDENCY) storage does not answer; 1 no usable configuration.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate_spark import preflight, storage
from tidegate_spark.environment import Environment
from tidegate_spark.log_lines import log_to_stderr
from tidegate_spark.places import INBOX_PREFIX
from tidegate_spark.protocol import (
    APP_FILE,
    CONFIG_VARIABLE,
    EXIT_APPLICATION,
    EXIT_CODES,
    DriverConfig,
    Fault,
    Storage,
    Termination,
    from_json,
)
from tidegate_spark.reasons import Reason
from tidegate_spark.redaction import Secrets
from tidegate_spark.storage import FaultError
from tidegate_spark.termination import write_termination

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

    @property
    def message(self) -> str:
        """What is said of it in the pod's last words."""
        kept = f" Retained, because other applications have claimed them: {', '.join(self.kept)}." if self.kept else ""
        return f"{self.objects} objects deleted.{kept}"


def main() -> int:
    """Purge, say how far it is, and return the exit code."""
    log_to_stderr(os.environ)
    environment = Environment.read(os.environ)
    try:
        config = from_json(DriverConfig, os.environ.get(CONFIG_VARIABLE, ""))
    except ValueError as error:
        log.error("%s: %s", CONFIG_VARIABLE, error)
        return EXIT_APPLICATION
    reason, message = Reason.COMPLETED, ""
    credentials = None
    try:
        credentials = storage.read_credentials(environment.credentials_directory, config.credentials_secret)
        message = purge(storage.connect(config.storage, credentials, TIMEOUT_SECONDS), config).message
    except FaultError as error:
        reason, message = error.fault.reason, error.fault.message
    except Exception as error:
        fault = storage.fault_of(error, config.storage, config.credentials_secret)
        if fault is None:
            raise
        reason, message = fault.reason, fault.message
    log.info("%s: %s", reason, message, extra={"action": "purge", "reason": reason})
    secrets = Secrets(credentials.secrets if credentials else ())
    write_termination(environment.termination_log, Termination(reason, message, config.epoch), secrets)
    return EXIT_CODES[reason]


def purge(client: S3Client, config: DriverConfig) -> Purged:
    """Delete everything below the application's prefix but what another application claimed there.

    It works page by page: memory does not grow with the number of objects, and what is deleted stays deleted if it is
    interrupted.

    Raises:
        FaultError: STORAGE_OWNED if ``app.json`` is another application's, CLAIM_DAMAGED if it does not say whose it
            is, nothing is deleted then;
            CREDENTIALS_REJECTED if they may not delete; STORAGE_UNAVAILABLE if something is left that the store does
            not delete.
        Exception: what boto3 raises when storage does not answer.
    """
    if not config.storage.prefix:
        raise FaultError(Fault(Reason.STORAGE_OWNED, f"{config.storage.uri} is a whole bucket, not an application's."))
    _refuse_foreign(client, config)
    kept = _places_of_others(client, config)
    claim = config.storage.key(APP_FILE)
    deleted = 0
    # Stores that keep objects as files refuse to delete a directory's marker while something is in the directory. The
    # claim goes last: until then nobody else can take the place of what is being deleted.
    for wanted in (lambda key: key != claim and not _is_marker(key), _is_marker, lambda key: True):
        for number in _clear(client, config, kept, wanted):
            deleted += number
            log.info("%d objects deleted so far", deleted)
    # Whoever writes messages to an application need not know that it goes; what they put there meanwhile is not waited
    # for, or there would be no end.
    inbox = config.storage.key(INBOX_PREFIX) + "/"
    left = next((key for page in list_pages(client, config, kept) for key in page if not key.startswith(inbox)), None)
    if left is not None:
        raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, f"The store does not delete {left}; see the pod's log."))
    return Purged(deleted, kept)


def list_pages(client: S3Client, config: DriverConfig, kept: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield the keys below the application's prefix but those of kept places, in pages as the store has them."""
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=config.storage.bucket, Prefix=config.storage.prefix + "/", PaginationConfig={"PageSize": PAGE}
    )
    for page in pages:
        yield [item["Key"] for item in page.get("Contents", []) if not _belongs(item["Key"], kept)]


def _places_of_others(client: S3Client, config: DriverConfig) -> tuple[str, ...]:
    """Return the prefixes below the application's that another application claimed; each ends with a slash.

    No such application runs: the operator refuses storage inside another one's. But one that was deleted may have kept
    its own, and an application that came later may have been given a place around it.
    """
    claims = [
        key
        for page in list_pages(client, config)
        for key in page
        if key.endswith(f"/{APP_FILE}") and key != config.storage.key(APP_FILE)
    ]
    return tuple(key.removesuffix(APP_FILE) for key in claims if _is_claimed_by_another(client, config, key))


def _is_claimed_by_another(client: S3Client, config: DriverConfig, claim: str) -> bool:
    place = replace(config.storage, uri=f"s3://{config.storage.bucket}/{claim.removesuffix('/' + APP_FILE)}")
    try:
        found = preflight.read_claim(client, place)
    except FaultError as error:
        if error.fault.reason is not Reason.CLAIM_DAMAGED:
            raise
        return _looks_like_a_claim(client, place)
    return found is not None and found[0]["uid"] != config.uid


def _looks_like_a_claim(client: S3Client, place: Storage) -> bool:
    """Return whether an ``app.json`` that is no claim was one once; an application has files of that name, too."""
    body, _ = storage.read_object(client, place, place.key(APP_FILE)) or (b"", "")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and len(preflight.CLAIM_FIELDS & content.keys()) > 1


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
    if any(error.get("Code") in storage.REJECTED_CODES for error in errors):
        refused = f"bucket {config.storage.bucket!r} (spec.storage.uri) does not let these credentials delete objects"
        raise FaultError(Fault(Reason.CREDENTIALS_REJECTED, refused))
    for error in errors[:10]:
        log.warning("%s: %s: %s", error.get("Key"), error.get("Code"), error.get("Message"))
    return len(keys) - len(errors)


def _refuse_foreign(client: S3Client, config: DriverConfig) -> None:
    existing = preflight.read_claim(client, config.storage)
    if existing is not None and existing[0]["uid"] != config.uid:
        raise FaultError(
            Fault(
                Reason.STORAGE_OWNED,
                f"{config.storage.uri} belongs to another application (uid {existing[0]['uid']}); nothing is deleted.",
            )
        )


if __name__ == "__main__":
    sys.exit(main())
