"""The process of the repartition pod. Does I/O.

It runs once: another attempt has another pod and lineage. Exit codes: 0 the lineage is whole; 75 (EXIT_DEPENDENCY)
another attempt may succeed; 1 it cannot be made. The termination message says which, and what was done.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate_spark.contract import repartition_messages as messages
from tidegate_spark.contract.json_form import NewerOrderError
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    DEPENDENCY_REASONS,
    EXIT_APPLICATION,
    EXIT_DEPENDENCY,
    EXIT_OK,
    EXIT_STOPPED,
    DriverConfig,
    Fault,
    Termination,
    from_json,
    from_order,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import REPARTITION_VARIABLE, Repartition, RepartitionEnd
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_spark.process import helper_end
from tidegate_spark.process.environment import Environment, inherited_variables
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.newer_orders import why_refused
from tidegate_spark.process.redaction import Secrets, secret_values
from tidegate_spark.process.spark import pyspark_path
from tidegate_spark.process.termination import write_termination
from tidegate_spark.repartition.errors import RepartitionError
from tidegate_spark.repartition.pod_settings import cause_of, config_for_spark, end_of
from tidegate_spark.snapshots.copying import Progress
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.snapshots.service import progress_server
from tidegate_spark.storage import readiness, s3_client
from tidegate_spark.storage.claim import claiming, fence, fencing
from tidegate_spark.storage.claim.fence import Fenced, Held
from tidegate_spark.storage.s3_client import Credentials, FaultError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tidegate")


def main() -> int:
    """Do it, leave word, and return the exit code."""
    log_to_stderr(os.environ)
    helper_end.hear_stops(_end_at_once)
    environment = Environment.read(os.environ)
    try:
        config = from_json(DriverConfig, os.environ.get(CONFIG_VARIABLE, ""))
        order = from_order(Repartition, os.environ.get(REPARTITION_VARIABLE, ""))
    except NewerOrderError as error:
        log.error("%s: %s", REPARTITION_VARIABLE, error)
        end = end_of(config, Reason.START_FAILED, f"{why_refused(error)}.")
        write_termination(environment.termination_log, end, Secrets(secret_values(os.environ)))
        return exit_code(end)
    except ValueError as error:
        log.error("%s, %s: %s", CONFIG_VARIABLE, REPARTITION_VARIABLE, error)
        return EXIT_APPLICATION
    making = Making(config, order, environment)
    progress_server.serve(environment.bind_address, environment.status_port, lambda: (making.reported,))
    termination = making.make()
    extra = {"action": "repartition", "reason": termination.reason}
    log.info("end: %s: %s", termination.reason, termination.message, extra=extra)
    write_termination(environment.termination_log, termination, making.secrets)
    return exit_code(termination)


def _end_at_once() -> None:
    """Do as the kubelet asks, within the application's standstill: what was made is nobody's, and is removed."""
    log.warning("asked to stop", extra={"action": "repartition"})
    os._exit(EXIT_STOPPED)


def exit_code(termination: Termination) -> int:
    """Return the exit code that goes with the termination message; pure."""
    if termination.reason is Reason.COMPLETED:
        return EXIT_OK
    return EXIT_DEPENDENCY if termination.reason in DEPENDENCY_REASONS else EXIT_APPLICATION


class Making:
    """The one attempt that this process is."""

    def __init__(self, config: DriverConfig, order: Repartition, environment: Environment) -> None:
        """Prepare."""
        self._config, self._order, self._environment = config, order, environment
        self._session: SparkSession | None = None
        self._held: Held | None = None
        self._credentials: Credentials | None = None
        self.secrets = Secrets(secret_values(os.environ))
        self.reported = SnapshotReport(order.pin, SnapshotState.WAITING)
        """How far it is: files of the pin and of the lineage."""

    def make(self) -> Termination:
        """Make the lineage, or say why not."""
        config = self._config
        try:
            return self._make()
        except RepartitionError as error:
            log.exception("no lineage was made")
            return end_of(config, *cause_of(error.what, str(error), self._jvm_exit_code()))
        except claiming.BehindError as error:
            return end_of(config, Reason.FENCED, error.fault.message, Reason.FENCED)
        except FaultError as error:
            fault = error.fault
        except Exception as error:
            found = s3_client.fault_of(error, config.storage, config.credentials_secret)
            if found is None:
                log.exception("no lineage was made")
                message = f"{type(error).__name__}: {error}"
                return end_of(config, *cause_of(Reason.SPARK_FAILED, message, self._jvm_exit_code()))
            fault = found
        what = Reason.DEPENDENCY_UNAVAILABLE if fault.reason in DEPENDENCY_REASONS else Reason.STATE_UNREADABLE
        return end_of(config, what, fault.message, fault.reason)

    def _make(self) -> Termination:
        try:
            pyspark_path.make_importable(os.environ, sys.path)
            import pyspark  # noqa: PLC0415 - where it is, is known only now

            from tidegate_spark.repartition.job import Repartitioner  # noqa: PLC0415 - imports PySpark
        except ModuleNotFoundError as error:
            message = messages.image_lacks(error.name or "PySpark")
            raise RepartitionError(Reason.START_FAILED, message) from error
        config, directory = self._config, self._environment.credentials_directory
        # It is ended from outside when its time is over.
        credentials = readiness.wait_for_storage(config, directory, threading.Event(), _log_fault)
        self._keep(credentials)
        self._held = fencing.take(config, credentials, fencing.holder_of(config, self._environment.pod_uid))
        own = reach_repository(config.storage, credentials)
        maker = Repartitioner(
            config,
            self._order,
            own,
            self._start_spark,
            pyspark.__version__,
            self._check,
            self._report_files,
            self._report_rows,
        )
        queries = maker.run()
        rows = sum(query.rows for query in queries.values())
        message = messages.repartitioned(self._order.lineage, self._order.partitions, rows)
        end = RepartitionEnd(lineage=self._order.lineage, rows=rows, queries=queries, seconds=maker.seconds)
        return Termination(Reason.COMPLETED, message, config.epoch, repartition=end)

    def _keep(self, credentials: Credentials | None) -> None:
        # S3A in the JVM reads its credentials from the environment that it inherits.
        os.environ.update(credentials.variables() if credentials else {})
        self._credentials = credentials
        self.secrets = Secrets((*secret_values(os.environ), *(credentials.secrets if credentials else ())))

    def _report_files(self, progress: Progress) -> None:
        details = (progress.files, progress.bytes, progress.of_files, progress.of_bytes)
        files, size, of_files, of_size = details
        self.reported = SnapshotReport(
            self._order.pin, SnapshotState.COPYING, files=files, bytes=size, of_files=of_files, of_bytes=of_size
        )

    def _report_rows(self, rows: int) -> None:
        self.reported = dataclasses.replace(self.reported, rows=rows)

    def _check(self) -> None:
        """Raise if another one took the storage over; what the store's client raises is raised."""
        assert self._held is not None
        port = fencing.FenceObject(s3_client.connect(self._config.storage, self._credentials), self._config.storage)
        found = fence.check(port, self._held)
        if found is not None:
            raise RepartitionError(Reason.FENCED, _fenced_message(found))

    def _jvm_exit_code(self) -> int | None:
        if self._session is None:
            return None
        from tidegate_spark.jvm import session as spark_session  # noqa: PLC0415 - imports PySpark

        return spark_session.jvm_exit_code(connection_lost=True)

    def _start_spark(self) -> SparkSession:
        if self._session is not None:
            return self._session
        from tidegate_spark.jvm import session as spark_session  # noqa: PLC0415 - imports PySpark
        from tidegate_spark.process.progress import Progress as Notices  # noqa: PLC0415 - needed only to start Spark

        assert self._held is not None
        config = config_for_spark(self._config, self._order)
        os.environ.update(inherited_variables(config, os.environ, sys.executable))
        Path(self._environment.work_directory).mkdir(parents=True, exist_ok=True)
        process = spark_session.Process(f"repartition-{self._order.lineage}", self._held, lambda: None)
        self._session = spark_session.start_session(config, self._environment, Notices(config), process)
        return self._session


def _fenced_message(found: Fenced) -> str:
    return messages.fenced(found.epoch)


def _log_fault(fault: Fault | None) -> None:
    if fault is not None:
        log.warning("waiting: %s: %s", fault.reason, fault.message, extra={"action": "wait"})
