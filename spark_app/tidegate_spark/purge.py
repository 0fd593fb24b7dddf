"""``python3 -m tidegate_spark.purge``: deletes every object below the application's prefix. Does I/O.

Idempotent: it can be interrupted and started again at any time. Exit codes: 0 nothing is left, or the storage belongs
to another application; 75 (EXIT_DEPENDENCY) storage does not answer; 1 no usable configuration.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidegate_spark import preflight, storage
from tidegate_spark.environment import Environment
from tidegate_spark.log_lines import log_to_stderr
from tidegate_spark.protocol import (
    APP_FILE,
    CONFIG_VARIABLE,
    EXIT_APPLICATION,
    EXIT_CODES,
    DriverConfig,
    Fault,
    Reason,
    Termination,
    from_json,
)
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
        message = f"{purge(storage.connect(config.storage, credentials, TIMEOUT_SECONDS), config)} objects deleted."
    except FaultError as error:
        reason, message = error.fault.reason, error.fault.message
    except Exception as error:
        fault = storage.fault_of(error, config.storage, config.credentials_secret)
        if fault is None:
            raise
        reason, message = fault.reason, fault.message
    log.info("%s: %s", reason.value, message, extra={"action": "purge", "reason": reason.value})
    secrets = Secrets(credentials.secrets if credentials else ())
    write_termination(environment.termination_log, Termination(reason, message, config.epoch), secrets)
    return EXIT_CODES[reason]


def purge(client: S3Client, config: DriverConfig) -> int:
    """Delete everything below the application's prefix; return the number of objects.

    It works page by page: memory does not grow with the number of objects, and what is deleted stays deleted if it is
    interrupted.

    Raises:
        FaultError: STORAGE_OWNED if ``app.json`` is another application's, nothing is deleted then;
            CREDENTIALS_REJECTED if they may not delete; STORAGE_UNAVAILABLE if something is left that the store does
            not delete.
        Exception: what boto3 raises when storage does not answer.
    """
    if not config.storage.prefix:
        raise FaultError(Fault(Reason.STORAGE_OWNED, f"{config.storage.uri} is a whole bucket, not an application's."))
    _refuse_foreign(client, config)
    claim = config.storage.key(APP_FILE)
    deleted = 0
    # Stores that keep objects as files refuse to delete a directory's marker while something is in the directory. The
    # claim goes last: until then nobody else can take the place of what is being deleted.
    for wanted in (lambda key: key != claim and not _is_marker(key), _is_marker, lambda key: True):
        for number in _clear(client, config, wanted):
            deleted += number
            log.info("%d objects deleted so far", deleted)
    left = next((key for page in list_pages(client, config) for key in page), None)
    if left is not None:
        raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, f"The store does not delete {left}; see the pod's log."))
    return deleted


def list_pages(client: S3Client, config: DriverConfig) -> Iterator[list[str]]:
    """Yield the keys below the application's prefix, in pages as the store gives them."""
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=config.storage.bucket, Prefix=config.storage.prefix + "/", PaginationConfig={"PageSize": PAGE}
    )
    for page in pages:
        yield [item["Key"] for item in page.get("Contents", [])]


def _is_marker(key: str) -> bool:
    return key.endswith("/")


def _clear(client: S3Client, config: DriverConfig, wanted: Callable[[str], bool]) -> Iterator[int]:
    """Delete what is wanted, pass after pass until one deletes nothing; yield how many went with each request.

    One pass may leave something: a last object of a driver that was just killed, a directory inside which was another.
    """
    for _ in range(PASSES):
        gone = 0
        for number in _sweep(client, config, wanted):
            gone += number
            yield number
        if not gone:
            return


def _sweep(client: S3Client, config: DriverConfig, wanted: Callable[[str], bool]) -> Iterator[int]:
    under_way: deque[Future[int]] = deque()
    with ThreadPoolExecutor(PARALLEL) as pool:
        for page in list_pages(client, config):
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
    existing = preflight.read_claim(client, config)
    if existing is not None and existing[0].get("uid") != config.uid:
        raise FaultError(
            Fault(
                Reason.STORAGE_OWNED,
                f"{config.storage.uri} belongs to another application (uid {existing[0].get('uid')}); "
                "nothing is deleted.",
            )
        )


if __name__ == "__main__":
    sys.exit(main())
