"""Serves a snapshot pod's progress as numbers only, without a token. Does I/O: one open port."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import ClassVar

from tidegate_spark.contract.protocol import to_json
from tidegate_spark.contract.snapshot_protocol import PROGRESS_PATH, SnapshotReport, SnapshotReports
from tidegate_spark.process.serving.handler import Handler
from tidegate_spark.process.serving.limits import Limits
from tidegate_spark.process.serving.server import Server

Reports = Callable[[], "tuple[SnapshotReport, ...]"]
_SHOWN = frozenset(("id", "state", "reason", "files", "bytes", "of_files", "of_bytes", "rows", "new_bytes", "seconds"))
log = logging.getLogger("tidegate")


class ProgressHandler(Handler):
    """GET /v1/snapshots."""

    reports: ClassVar[Reports]

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        """Answer."""
        if self.path.partition("?")[0] != PROGRESS_PATH:
            self.refuse(404, f"path: {PROGRESS_PATH}")
            return
        self.answer(200, to_json(SnapshotReports(tuple(map(numbers_of, type(self).reports())))))


def numbers_of(report: SnapshotReport) -> SnapshotReport:
    """Return how far an order is, without where the snapshot is, whose, or of which version; pure.

    Whoever reaches the pod may ask. All the rest is in the termination message.
    """
    kept = {field.name: getattr(report, field.name) for field in dataclasses.fields(report) if field.name in _SHOWN}
    return SnapshotReport(**kept)


def serve(address: str, port: int, reports: Reports) -> Server | None:
    """Answer questions, in a thread, until the process ends; a port in use is only logged.

    Args:
        address: to listen at; may be of IPv6.
        port: likewise.
        reports: how far each order is; called for each question.

    Returns:
        The server, None if there is none.
    """
    handler = type("Progress", (ProgressHandler,), {"reports": staticmethod(reports)})
    try:
        server = Server(address, port, handler, Limits(connections=64, threads=1))
    except OSError as error:
        log.warning("nobody can ask how far it is: %s", error)
        return None
    server.start()
    return server
