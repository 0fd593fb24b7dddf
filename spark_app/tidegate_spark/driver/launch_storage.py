"""Prepares the storage for one driver process: claimed, fenced, with a filled lineage. Does I/O.

It waits for a storage that does not answer, and ends as soon as the driver is to stop.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable

import pyspark

from tidegate_spark.contract.protocol import DriverConfig, DriverState, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_spark.driver.ending import Ending
from tidegate_spark.process import logs
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults import fault_messages
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.sinks.outputs import Outputs
from tidegate_spark.storage import readiness, s3_client
from tidegate_spark.storage.claim import claiming, fencing
from tidegate_spark.storage.claim.fence import Held
from tidegate_spark.storage.s3_client import Credentials, FaultError

log = logging.getLogger("tidegate")


class LaunchStorage:
    """What a launch has of its storage."""

    def __init__(
        self,
        config: DriverConfig,
        environment: Environment,
        output: logs.OutputTail,
        progress: Progress,
        ending: Ending,
    ) -> None:
        """Prepare; the storage is not looked at yet."""
        self._config, self._environment, self._output = config, environment, output
        self._progress, self._ending = progress, ending
        self.on_fault: Callable[[], None] = lambda: None
        """Called when the storage has to be waited for."""
        self.claimed = False
        """It is known to be the application's."""
        self.credentials: Credentials | None = None
        self.fence: fencing.FenceMonitor | None = None
        self.original: Outputs | None = None
        """Where those write whose snapshot the application began with, if it may not write there."""

    def prepare(self) -> Held | None:
        """Claim it, take the fence, and let the lineage start as it was said to.

        Returns:
            The fence, None if the driver was asked to stop meanwhile.

        Raises:
            FaultError: it cannot be used, and waiting does not help.
            BehindError: it knows another epoch or lineage.
        """
        config, directory, requested = self._config, self._environment.credentials_directory, self._ending.requested
        if config.rehearsal is not None and not self._clear():
            return None
        credentials = readiness.wait_for_storage(config, directory, requested, self._report_fault, pyspark.__version__)
        if requested.is_set():
            return None
        self.claimed = True
        self._keep_secret(credentials)
        held = self._take_fence()
        return held if held is not None and self._fill_lineage() else None

    def _clear(self) -> bool:
        """Let a rehearsal start with nothing of an earlier attempt; False if it was asked to stop meanwhile."""
        return readiness.wait_for(self.forget_rehearsal, self._ending.requested, self._report_fault) is not None

    def forget_rehearsal(self) -> bool:
        """Remove what a rehearsal has written; returns True."""
        from tidegate_spark.snapshots.lineages import rehearsal_copy  # noqa: PLC0415 - only rehearsals need it

        config = self._config
        credentials = s3_client.read_credentials(self._environment.credentials_directory, config.credentials_secret)
        with claiming.faults_of(config):
            rehearsal_copy.forget_own(config, credentials)
        return True

    def _take_fence(self) -> Held | None:
        """Take the fence; None if the driver was asked to stop meanwhile."""
        config, me = self._config, fencing.holder_of(self._config, self._environment.pod_uid)
        held = readiness.wait_for(
            lambda: fencing.take(config, self.credentials, me), self._ending.requested, self._report_fault
        )
        if held is None:
            return None
        directory, place = self._environment.credentials_directory, config.storage

        def connect() -> fencing.FenceObject:
            credentials = s3_client.read_credentials(directory, config.credentials_secret)
            return fencing.FenceObject(s3_client.connect(place, credentials), place)

        self.fence = fencing.FenceMonitor(
            connect,
            held,
            lambda: self._progress.commits,
            lambda found: self._ending.request(fencing.lost_while_running(found, config)),
        )
        self.fence.start()
        return held

    def _fill_lineage(self) -> bool:
        """Start the lineage from what the launch names; False if the driver was asked to stop meanwhile."""
        from tidegate_spark.driver import launch_state, starting_point  # noqa: PLC0415 - not before there is a claim

        requested, notice, config = self._ending.requested, self._progress.notice, self._config

        def fill() -> bool:
            self._renew_credentials()
            starting_point.fill_lineage(config, self.credentials, requested, notice, pyspark.__version__)
            self.original = launch_state.find_original(config, self.credentials)
            return True

        try:
            return readiness.wait_for(fill, requested, self._report_fault) is not None
        except starting_point.StoppedError:
            return False

    def find_pin(self) -> SnapshotOrders | None:
        """Return the order to keep the state that an upgrade goes on with; None if the driver was asked to stop."""
        if self._config.pin is None:
            return SnapshotOrders()
        from tidegate_spark.driver import launch_state  # noqa: PLC0415 - as above

        def find() -> SnapshotOrders:
            self._renew_credentials()
            return launch_state.find_pin(self._config, self.credentials, self._environment.work_directory)

        return readiness.wait_for(find, self._ending.requested, self._report_fault)

    def with_lost_state(self, outcome: Outcome, directory_of: Callable[[], str]) -> Outcome:
        """Return the end of a query that finds no state as the storage's fault, if the query has committed some.

        ``directory_of`` returns that of its checkpoint, empty if it is not known which query it is.
        """
        from tidegate_spark.snapshots.checkpoint import lost_state  # noqa: PLC0415 - few ends need it

        config, path = self._config, ""
        try:
            directory = directory_of()
            if directory:
                client = s3_client.connect(config.storage, self.credentials)
                path = lost_state.lost_of(client, config.storage, config.lineage, directory)
        except Exception as error:  # whatever it is: what Spark says is known already, and the driver has to end
            log.warning("whether state is lost is not known: %s", error, extra={"action": "end"})
        if not path:
            return outcome
        message = fault_messages.state_missing(path, outcome.message)
        return dataclasses.replace(outcome, reason=Reason.CHECKPOINT_FILE_MISSING, message=message)

    def _renew_credentials(self) -> None:
        # They may have been renewed while it was waited for.
        config, directory = self._config, self._environment.credentials_directory
        self._keep_secret(s3_client.read_credentials(directory, config.credentials_secret))

    def _keep_secret(self, credentials: Credentials | None) -> None:
        # S3A in the JVM reads its credentials from the environment that it inherits.
        os.environ.update(credentials.variables() if credentials else {})
        # Those of an imported snapshot are in the same container, whatever they are used for.
        beside = s3_client.mounted_credentials(self._environment.origin_credentials_directory)
        for each in (credentials, beside):
            self._output.secrets.add(*(each.secrets if each else ()))
        self.credentials = credentials

    def _report_fault(self, fault: Fault | None) -> None:
        if fault is not None:
            self.on_fault()
            extra = {"action": "wait", "reason": fault.reason}
            log.warning("waiting: %s: %s", fault.reason, fault.message, extra=extra)
        self._progress.enter(DriverState.STARTING if fault is None else DriverState.WAITING, fault)

    def put_log(self, content: bytes, process: str) -> None:
        """Put a process's log there, and remove old ones; does nothing if the storage is another application's."""
        place, directory = self._config.storage, self._environment.credentials_directory
        if self._config.rehearsal is not None and self._config.start_from is not None:
            place = self._config.start_from.storage  # its own is empty now
            if not self.claimed:
                return
        try:
            # An end that came before the storage was looked at: what is not ours must not be written to.
            credentials = (
                s3_client.read_credentials(directory, self._config.credentials_secret)
                if self.claimed
                else readiness.check_storage(self._config, directory)
            )
        except FaultError:
            return
        client = s3_client.connect(place, credentials, timeout_seconds=3.0)
        self._output.secrets.add(*(credentials.secrets if credentials else ()))
        logs.put_driver_log(client, place, process, self._output.secrets.clean_bytes(content))
        logs.prune_logs(client, place)
