"""Receives orders about snapshots in a driver. No I/O of its own.

The worker is loaded with the first order, or some time after the start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport
from tidegate_spark.process.environment import Environment
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotMetrics

if TYPE_CHECKING:
    from tidegate_spark.snapshots.service.operations import Export
    from tidegate_spark.snapshots.service.worker import SnapshotWorker

CHECK_SECONDS = 60.0
"""From the start to the first look at what there is, if no order comes before."""


class SnapshotService:
    """Stands before the keeper of a driver's snapshots. Thread safe."""

    def __init__(self, make: Callable[[], SnapshotWorker]) -> None:
        """``make`` returns the keeper; it is called once."""
        self._make, self._lock, self._called = make, threading.Lock(), threading.Event()
        self._worker: SnapshotWorker | None = None

    def give(self, orders: SnapshotOrders) -> None:
        """Take orders in.

        Raises:
            ValueError: they cannot be meant.
        """
        self._made().give(orders)
        self._called.set()

    def start(self) -> None:
        """Have orders carried out from now on, in a thread."""
        threading.Thread(target=self._run, name="snapshots", daemon=True).start()

    def stop(self) -> None:
        """End the work that is under way at its next step, and begin none."""
        if self._worker is not None:
            self._worker.stop()

    def reports(self) -> tuple[SnapshotReport, ...]:
        """Return how far each order is."""
        return self._worker.reports() if self._worker is not None else ()

    def _run(self) -> None:
        self._called.wait(CHECK_SECONDS)
        self._made().run()

    def _made(self) -> SnapshotWorker:
        with self._lock:
            if self._worker is None:
                self._worker = self._make()
            return self._worker


def service_of(
    config: DriverConfig, environment: Environment, spark_version: str, metrics: SnapshotMetrics, export: Export
) -> SnapshotService:
    """Return the service of a driver; ``export`` makes exports."""

    def make() -> SnapshotWorker:
        from tidegate_spark.snapshots.reach import connector  # noqa: PLC0415 - likewise
        from tidegate_spark.snapshots.service import operations, worker  # noqa: PLC0415 - see the module's docstring

        connect = connector(config, environment.credentials_directory)
        carrier = operations.Carrier(config, connect, spark_version, make_export=export)
        return worker.SnapshotWorker(carrier, runs=True, observer=metrics)

    return SnapshotService(make)
