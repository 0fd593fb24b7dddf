"""Carries out an order for an export, in its own pod. Starts Spark, does I/O."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate_spark.contract.snapshot_protocol import ExportOrder, SnapshotReport, SnapshotState
from tidegate_spark.exports import messages
from tidegate_spark.exports.errors import ExportError
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import pyspark_path
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.repository import SnapshotRepository

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "export-"
"""Of the directory in which an export works."""

log = logging.getLogger("tidegate")


def carry_out(repository: SnapshotRepository, order: ExportOrder, copiers: Copiers) -> SnapshotReport:
    """Make an export; return what is to be said of it.

    Args:
        repository: where the snapshot is.
        order: what is to be exported.
        copiers: get its progress.

    Raises:
        ExportError: there is no Spark here.
        Exception: see :meth:`tidegate_spark.exports.job.Exporter.run`.
    """
    try:
        pyspark_path.make_importable(os.environ, sys.path)
        from tidegate_spark.exports.job import Exporter  # noqa: PLC0415 - imports PySpark
    except ModuleNotFoundError as error:
        raise ExportError(
            f"the image has no {error.name or 'PySpark'}: name one of Spark in spec.export.image"
        ) from error
    directory = Environment.read(os.environ).work_directory
    # What a killed process left has the size of the state, and the disk is the pod's: it has one export at a time.
    for left in Path(directory).glob(f"{_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=directory) as work:
        made = Exporter(repository, order, lambda: start_spark(order, Path(work)), Path(work), copiers).run()
    found = made.manifest
    log.info("exported %d rows, %d bytes to %s", found.rows, found.bytes, made.uri, extra={"action": "export"})
    message = messages.written(found.rows, len(found.tables), found.bytes)
    return SnapshotReport(
        order.id,
        SnapshotState.EXPORTED,
        message=message,
        files=len(found.tables),
        bytes=found.bytes,
        rows=found.rows,
        manifest=made.uri,
        digest=made.digest,
    )


def start_spark(order: ExportOrder, work: Path) -> SparkSession:
    """Start Spark in this process, which uses nothing but this machine; once: then the session that runs."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    settings = {
        **order.spark_conf,
        "spark.driver.memory": f"{order.heap_mib}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(work / "spark"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{order.cores}]").appName(f"export-{order.export}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
