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
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotFigures

if TYPE_CHECKING:
    from tidegate_spark.snapshots.service.operations import Export
    from tidegate_spark.snapshots.service.worker import SnapshotKeeper

LOOK_AFTER_SECONDS = 60.0
"""From the start to the first look at what there is, if no order comes before."""


class SnapshotDesk:
    """Stands before the keeper of a driver's snapshots. Thread safe."""

    def __init__(self, make: Callable[[], SnapshotKeeper]) -> None:
        """``make`` returns the keeper; it is called once."""
        self._make, self._lock, self._called = make, threading.Lock(), threading.Event()
        self._keeper: SnapshotKeeper | None = None

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
        if self._keeper is not None:
            self._keeper.stop()

    def reports(self) -> tuple[SnapshotReport, ...]:
        """Return how far each order is."""
        return self._keeper.reports() if self._keeper is not None else ()

    def _run(self) -> None:
        self._called.wait(LOOK_AFTER_SECONDS)
        self._made().run()

    def _made(self) -> SnapshotKeeper:
        with self._lock:
            if self._keeper is None:
                self._keeper = self._make()
            return self._keeper


def desk_of(
    config: DriverConfig, environment: Environment, spark_version: str, figures: SnapshotFigures, export: Export
) -> SnapshotDesk:
    """Return the desk of a driver; ``export`` makes exports."""

    def make() -> SnapshotKeeper:
        from tidegate_spark.snapshots.reach import connector  # noqa: PLC0415 - likewise
        from tidegate_spark.snapshots.service import operations, worker  # noqa: PLC0415 - see the module's docstring

        connect = connector(config, environment.credentials_directory)
        carrier = operations.Carrier(config, connect, spark_version, make_export=export)
        return worker.SnapshotKeeper(carrier, runs=True, observer=figures)

    return SnapshotDesk(make)
