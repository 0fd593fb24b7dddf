"""Connects to an application's snapshots with the present credentials. Reads files."""

from __future__ import annotations

from collections.abc import Callable

from tidegate_spark.contract.protocol import DriverConfig, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots import messages
from tidegate_spark.snapshots.copying import USUAL
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage import s3
from tidegate_spark.storage.s3_client import Credentials, EndpointError, FaultError, read_credentials


def reach_repository(place: Storage, credentials: Credentials | None, *, apart: bool = False) -> SnapshotRepository:
    """Return the snapshots in ``place``; ``apart``: other credentials may not read there, and no store copies.

    Raises:
        FaultError: the endpoint is no URL.
    """
    try:
        return SnapshotRepository(s3.reach(place, credentials, USUAL.number, apart=apart), place.prefix)
    except EndpointError as error:
        raise FaultError(
            Fault(Reason.STORAGE_UNAVAILABLE, messages.endpoint_unusable(place.endpoint, error))
        ) from error


def connector(config: DriverConfig, credentials_directory: str) -> Callable[[], SnapshotRepository]:
    """Return what reaches the application's snapshots with the credentials of the moment; it may raise FaultError."""

    def connect() -> SnapshotRepository:
        return reach_repository(config.storage, read_credentials(credentials_directory, config.credentials_secret))

    return connect
