"""Applications on this machine alone: drivers with a Spark of their own, and a real S3 server. Starts processes."""

import json
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster import s3
from devcluster.site import LocalSite
from tidegate_spark.contract.protocol import Storage, application_uri, to_json
from tidegate_spark.contract.snapshot_protocol import SNAPSHOT_COMMAND, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_spark.snapshots.reach import reach_repository
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing import class_archive
from tidegate_testing.apps import QUICK_JAVA
from tidegate_testing.commit_log import CommitLog
from tidegate_testing.driver_process import DriverProcess, ObjectStore, driver_config
from tidegate_testing.waiting import wait_for

BUCKET = "local"
NAMESPACE = "tests"
QUIET = {"spark.ui.enabled": "false"}
ENDED = (SnapshotState.READY, SnapshotState.FAILED, SnapshotState.DISPOSED)


class LocalApps:
    """A context manager; whatever was started in it is gone afterwards, with all files."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.site = LocalSite()
        """Where a broker can be started, too."""
        self._temporary = tempfile.TemporaryDirectory(prefix="tidegate-local-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        """For files of whoever uses it."""
        self.drivers: list[DriverProcess] = []

    def __enter__(self) -> Self:
        """Start the S3 server."""
        self.site.__enter__()
        try:
            s3.up(self.site)
            s3.ensure_bucket(self.site, BUCKET)
            self._jars = class_archive.jars()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        keys = self.site.s3_keys
        self.store = ObjectStore(self.site.s3_endpoint_host, keys.access_key, keys.secret_key)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End everything."""
        for driver in self.drivers:
            driver.kill()
        self.site.__exit__(kind, error, at)
        self._temporary.cleanup()

    def place(self, app: str) -> Storage:
        """Return the storage of an application."""
        uri = application_uri(f"s3://{BUCKET}/apps", NAMESPACE, app)
        return Storage(uri, self.site.s3_endpoint_host, s3.REGION, True)

    def start(
        self, app: str, script: Path, args: tuple[str, ...], *, briefly: bool = False, **fields: Any
    ) -> DriverProcess:
        """Start a driver of ``app``, which may live ``briefly``; ``fields`` are those of its configuration."""
        conf = {**QUIET, **fields.pop("spark_conf", {})}
        config = driver_config(app, f"local://{script}", self.place(app), args=args, spark_conf=conf, **fields)
        folder = self.folder / f"{app}-{len(self.drivers)}"
        driver = DriverProcess(config, folder, self._jars, python=(sys.executable,))
        driver.put_credentials(self.store.access_key, self.store.secret_key)
        self.drivers.append(driver)
        return driver.start(**({"JAVA_TOOL_OPTIONS": QUICK_JAVA} if briefly else {}))

    def repository(self, app: str) -> SnapshotRepository:
        """Return the snapshots of an application."""
        keys = Credentials(self.store.access_key, self.store.secret_key)
        return reach_repository(self.place(app), keys)

    def commit_log(self, app: str, query: str = "main") -> CommitLog:
        """Return where the first lineage of an application keeps a query's batches."""
        data = self.site.folder / "s3" / "data" / BUCKET / "apps" / NAMESPACE / app
        return CommitLog(data / "lineages" / "1" / query)


def order(driver: DriverProcess, orders: SnapshotOrders) -> None:
    """Give orders to a driver's agent.

    Raises:
        AssertionError: it does not accept them.
    """
    status, answer = driver.command("POST", SNAPSHOT_COMMAND, json.loads(to_json(orders)))
    assert status == 202, f"{status} {answer}"


def await_end(
    driver: DriverProcess, name: str, ended: tuple[SnapshotState, ...] = ENDED, timeout: float = 300, every: float = 0.1
) -> SnapshotReport:
    """Wait until an order has ended; return what came of it.

    Raises:
        AssertionError: it does not end, or the driver did.
    """

    def probe() -> SnapshotReport:
        if driver.ended():
            return SnapshotReport(name, SnapshotState.WAITING, message=f"the driver ended: {driver.output[-2000:]}")
        report = driver.report()
        found = next((each for each in report.snapshots if each.id == name), None) if report is not None else None
        assert found is not None, "no report"
        assert found.state in ended, found
        return found

    report = wait_for(f"snapshot {name} to be {[state.value for state in ended]}", probe, timeout, every)
    assert report.state in ended, report.message
    return report


def until_committed(log: CommitLog, batch: int, timeout: float, driver: DriverProcess) -> float:
    """Wait until a batch is committed; return when it was.

    Raises:
        AssertionError: it is not, or the driver ended.
    """

    def probe() -> float:
        return -1.0 if driver.ended() else log.committed().get(batch, 0.0)

    committed = wait_for(f"batch {batch}", probe, timeout, 0.02)
    assert committed > 0, driver.output[-2000:]
    return committed
