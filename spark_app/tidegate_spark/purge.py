"""``python3 -m tidegate_spark.purge``: deletes every object below the application's prefix. Does I/O.

Idempotent: it can be interrupted and started again at any time. Exit codes: 0 nothing is left, or the storage belongs
to another application; 75 (EXIT_DEPENDENCY) storage does not answer; 1 no usable configuration.
"""

from __future__ import annotations

import concurrent.futures
import logging
import os
import sys
from collections.abc import Iterable, Iterator
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

BATCH = 1000
"""Keys per DeleteObjects request; the service's own limit."""
PARALLEL = 8
PASSES = 5
"""A driver that was just killed may leave a last object behind the first listing."""

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
        message = f"{purge(storage.connect(config.storage, credentials), config)} objects deleted."
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

    Raises:
        FaultError: STORAGE_OWNED if ``app.json`` is another application's; nothing is deleted then.
        Exception: what boto3 raises when storage does not answer.
    """
    _refuse_foreign(client, config)
    deleted = 0
    claim = config.storage.key(APP_FILE)
    for _ in range(PASSES):
        # The claim goes last: until then nobody else can take the place of what is being deleted.
        keys = [key for key in list_keys(client, config) if key != claim]
        deleted += delete_keys(client, config, keys)
        if not keys:
            break
    deleted += delete_keys(client, config, [key for key in list_keys(client, config) if key == claim])
    left = sum(1 for _ in list_keys(client, config))
    if left:
        raise FaultError(Fault(Reason.STORAGE_UNAVAILABLE, f"{left} objects are still below {config.storage.uri}."))
    return deleted


def list_keys(client: S3Client, config: DriverConfig) -> Iterator[str]:
    """Yield every key below the application's prefix."""
    if not config.storage.prefix:
        raise FaultError(Fault(Reason.STORAGE_OWNED, f"{config.storage.uri} is a whole bucket, not an application's."))
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=config.storage.bucket, Prefix=config.storage.prefix + "/"
    )
    for page in pages:
        for item in page.get("Contents", []):
            yield item["Key"]


def delete_keys(client: S3Client, config: DriverConfig, keys: list[str]) -> int:
    """Delete ``keys``, objects first and directory markers after them, the deepest first; return how many went."""
    objects = [key for key in keys if not key.endswith("/")]
    # Stores that keep objects as files refuse to delete a directory's marker while something is in the directory.
    markers = sorted((key for key in keys if key.endswith("/")), key=lambda key: key.count("/"), reverse=True)
    deleted = 0
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for number in pool.map(lambda batch: _delete_batch(client, config, batch), batches(objects)):
            deleted += number
            log.info("%d of %d objects deleted", deleted, len(keys))
    for batch in batches(markers):
        deleted += _delete_batch(client, config, batch)
    return deleted


def batches(keys: list[str], size: int = BATCH) -> Iterable[list[str]]:
    """Return ``keys`` in lists of at most ``size``."""
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _delete_batch(client: S3Client, config: DriverConfig, keys: list[str]) -> int:
    answer = client.delete_objects(
        Bucket=config.storage.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
    )
    errors = answer.get("Errors", [])
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
