"""What a launch needs of the storage besides its starting point. Does I/O.

The batches of an upgrade's rollback snapshot, the outputs of the origin, and batches without output.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tidegate_spark.contract.protocol import DriverConfig, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_spark.process import start_messages as messages
from tidegate_spark.queries.sinks import output_registry
from tidegate_spark.queries.sinks.outputs import Outputs
from tidegate_spark.snapshots.lineages import lineage_mark, upgrade_pin
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.storage import s3_client as store
from tidegate_spark.storage.location_notes import DamagedNotesError
from tidegate_spark.storage.s3_client import Credentials, FaultError
from tidegate_spark.storage.store import NewerStorageError, SnapshotError


def find_pin(config: DriverConfig, credentials: Credentials | None, work_directory: str) -> SnapshotOrders:
    """Return the order for the pin that the launch is to have, if it is to have one. Try once.

    A launch may outlive its pin: the next upgrade has it disposed of while the driver of this one runs. A process that
    the kubelet starts then in the same pod takes no other one under that name, of later batches.

    Args:
        config: the launch's.
        credentials: of the application's storage.
        work_directory: of the pod; what stands there is kept when its process is started again.

    Raises:
        FaultError: STATE_MISSING if there is nothing to go on with, NOTES_DAMAGED, else what is wrong with the storage.
    """
    if config.pin is None:
        return SnapshotOrders()
    repository, seen = (
        reach_repository(config.storage, credentials),
        Path(work_directory) / f"{config.pin.snapshot}.pin",
    )
    try:
        if seen.exists() and not upgrade_pin.is_noted(repository, config.pin.snapshot):
            return SnapshotOrders()
        order = upgrade_pin.order_of(repository, config.pin.snapshot, config.lineage, config.pin.image)
    except DamagedNotesError as error:
        raise as_fault(config, error) from error
    except SnapshotError as error:
        message = messages.no_state(str(error).rstrip("."))
        raise FaultError(Fault(reason_of(error, Reason.STATE_MISSING), message)) from error
    except Exception as error:
        raise as_fault(config, error) from error
    with contextlib.suppress(OSError):
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.touch()
    return SnapshotOrders(take=(order,))


def find_original(config: DriverConfig, credentials: Credentials | None) -> Outputs | None:
    """Return where those write whose snapshot the application began with, None if it may write there. Try once.

    Raises:
        FaultError: what is wrong with the storage.
    """
    if not config.apart or config.rehearsal is not None:
        return None
    try:
        return output_registry.read_outputs(reach_repository(config.storage, credentials), output_registry.ORIGIN_FILE)
    except Exception as error:
        raise as_fault(config, error) from error


def batches_without_output(config: DriverConfig, credentials: Credentials | None) -> dict[str, range]:
    """Return query -> the batches in which its state was repartitioned and nothing ran between. Try once.

    Raises:
        FaultError: SNAPSHOT_UNUSABLE if the lineage's mark says nothing, NEWER_FORMAT if a newer Tidegate wrote it.
        Exception: what the store's client raises.
    """
    try:
        mark = lineage_mark.read(reach_repository(config.storage, credentials), config.lineage)
    except SnapshotError as error:
        message = messages.nothing_started_after(error)
        raise FaultError(Fault(reason_of(error, Reason.SNAPSHOT_UNUSABLE), message)) from error
    return lineage_mark.without_output(mark)


def reason_of(error: SnapshotError, usual: Reason) -> Reason:
    """Return why nothing can start with what is stored: a newer Tidegate wrote it, or what is the reason otherwise."""
    if isinstance(error, DamagedNotesError):
        return Reason.NOTES_DAMAGED
    return Reason.NEWER_FORMAT if isinstance(error, NewerStorageError) else usual


def as_fault(config: DriverConfig, error: Exception) -> Exception:
    """Return what an exception of the store's client means, itself if it is no storage's fault."""
    if isinstance(error, FaultError):
        return error
    if isinstance(error, NewerStorageError):
        return FaultError(Fault(Reason.NEWER_FORMAT, f"{error}."))
    if isinstance(error, DamagedNotesError):
        return FaultError(Fault(Reason.NOTES_DAMAGED, f"{error}."))
    fault = store.fault_of(error, config.storage, config.credentials_secret)
    return error if fault is None else FaultError(fault)
