"""Chooses the credentials for the snapshot from which a lineage starts. Reads files.

They are the application's own, or those of the mounted Secret of an imported snapshot.
"""

from __future__ import annotations

import os

from tidegate_spark.contract.protocol import Fault, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.environment import Environment
from tidegate_spark.storage import storage_messages as messages
from tidegate_spark.storage.s3_client import Credentials, FaultError, mounted_credentials


def credentials_of_origin(
    start_from: StartFrom, own: Credentials | None, directory: str | None = None
) -> Credentials | None:
    """Return the credentials that reach the snapshot's storage.

    Args:
        start_from: the snapshot.
        own: the application's.
        directory: where the snapshot's Secret is mounted; None: as the process's environment says.

    Raises:
        FaultError: CREDENTIALS_MISSING if the Secret, or a key of it, is not there (yet).
    """
    if not start_from.credentials_secret:
        return own
    found = mounted_credentials(directory or Environment.read(os.environ).origin_credentials_directory)
    if found is None:
        message = messages.origin_secret_missing(start_from.credentials_secret)
        raise FaultError(Fault(Reason.CREDENTIALS_MISSING, message))
    return found


def is_apart(own: Credentials | None, origin: Credentials | None) -> bool:
    """Return whether one of the two may not be able to copy what the other reads: files then go through the process."""
    return (own.access_key if own else "") != (origin.access_key if origin else "")
