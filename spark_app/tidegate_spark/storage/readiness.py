"""Checks that the storage answers, honours conditional writes and is the application's. Does I/O.

A dependency's fault is waited for, visible in the agent's report; any other fault ends the process.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from tidegate_spark.contract.protocol import DEPENDENCY_REASONS, DriverConfig, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process import start_messages as messages
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.claim.claiming import claim, faults_of, read_claim
from tidegate_spark.storage.s3_client import Credentials, FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")
LONGEST_WAIT_SECONDS = 30.0
_ETAG_OF_NOTHING = '"00000000000000000000000000000000"'


def check_storage(config: DriverConfig, credentials_directory: str, spark_version: str = "") -> Credentials | None:
    """Check that storage answers, honours conditional writes and is this application's; claim it. Try once.

    ``spark_version`` is left there for those who look at the state without Spark.

    Returns:
        The credentials it was reached with, None for the environment's own.

    Raises:
        FaultError: what is wrong, with the spec's field.
    """
    credentials = store.read_credentials(credentials_directory, config.credentials_secret)
    with faults_of(config):
        claim(_reach(config, credentials), config, spark_version)
    return credentials


def find_fault(config: DriverConfig, credentials: Credentials | None) -> Fault | None:
    """Return what keeps the application from using its own storage with ``credentials``, None if nothing does.

    Not with those mounted now: what runs may have begun with others.
    """
    try:
        with faults_of(config):
            read_claim(_reach(config, credentials), config.storage)
    except FaultError as error:
        return error.fault
    return None


def _reach(config: DriverConfig, credentials: Credentials | None) -> S3Client:
    client = store.connect(config.storage, credentials)
    client.list_objects_v2(Bucket=config.storage.bucket, Prefix=config.storage.prefix, MaxKeys=1)
    probe_conditional_writes(client, config)
    return client


def probe_conditional_writes(client: S3Client, config: DriverConfig) -> None:
    """Check that the store refuses to overwrite when asked to.

    Raises:
        FaultError: STORAGE_UNSUITABLE if it overwrites: two drivers could then own one checkpoint.
    """
    key = config.storage.key("probe", uuid.uuid4().hex)
    store.create_object(client, config.storage, key, b"1")
    try:
        ignored = []
        if store.create_object(client, config.storage, key, b"2"):
            ignored.append("If-None-Match")
        if store.replace_object(client, config.storage, key, b"3", etag=_ETAG_OF_NOTHING):
            ignored.append("If-Match")
    finally:
        client.delete_object(Bucket=config.storage.bucket, Key=key)
    if ignored:
        raise FaultError(
            Fault(
                Reason.STORAGE_UNSUITABLE,
                messages.writes_not_conditional(config.storage.bucket, " and ".join(ignored)),
            )
        )


# --- waiting ---------------------------------------------------------------------------------------------------------


def delays(longest: float = LONGEST_WAIT_SECONDS) -> Iterator[float]:
    """Yield the seconds to wait before each next attempt: 1, 2, 4 … up to ``longest``, for ever."""
    delay = 1.0
    while True:
        yield min(delay, longest)
        delay = min(delay * 2, longest)


def wait_for_storage(
    config: DriverConfig,
    credentials_directory: str,
    stopping: threading.Event,
    report: Callable[[Fault | None], None],
    spark_version: str = "",
) -> Credentials | None:
    """Repeat :func:`check_storage` until it succeeds or ``stopping`` is set; faults in between go to ``report``.

    Raises:
        FaultError: for a fault that waiting does not cure.
    """
    return wait_for(lambda: check_storage(config, credentials_directory, spark_version), stopping, report)


def wait_for(attempt: Callable[[], T], stopping: threading.Event, report: Callable[[Fault | None], None]) -> T | None:
    """Repeat ``attempt`` until it succeeds or ``stopping`` is set (None); faults in between go to ``report``.

    Raises:
        FaultError: for a fault that waiting does not cure.
    """
    for delay in delays():
        try:
            result = attempt()
        except FaultError as error:
            if error.fault.reason not in DEPENDENCY_REASONS:
                raise
            report(error.fault)
            if stopping.wait(delay):
                return None
        else:
            report(None)
            return result
    raise AssertionError("delays() does not end")
