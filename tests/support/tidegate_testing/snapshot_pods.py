"""A snapshot pod's process, run here to its end."""

import os
import subprocess
import sys
from pathlib import Path

from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json, to_json
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrders, SnapshotReport, SnapshotReports
from tidegate_testing.driver_process import SOURCES


def run_pod(
    config: DriverConfig, orders: SnapshotOrders, folder: Path, *, keys: tuple[str, str], work: Path
) -> tuple[int, dict[str, SnapshotReport]]:
    """Run a snapshot pod to its end; return its exit code and its termination message, by order.

    Args:
        config: the application's.
        orders: what it is to do.
        folder: not there yet; for its credentials and its last words.
        keys: the credentials.
        work: a directory for what it needs meanwhile.
    """
    folder.mkdir()
    (folder / "AWS_ACCESS_KEY_ID").write_text(keys[0])
    (folder / "AWS_SECRET_ACCESS_KEY").write_text(keys[1])
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "PYTHONPATH": str(SOURCES),
        "TIDEGATE_CREDENTIALS_DIRECTORY": str(folder),
        "TIDEGATE_TERMINATION_LOG": str(folder / "termination"),
        "TIDEGATE_STATUS_PORT": "0",
        "TIDEGATE_WORK_DIRECTORY": str(work),
        CONFIG_VARIABLE: to_json(config),
        ORDERS_VARIABLE: to_json(orders),
    }
    command = [sys.executable, "-m", "tidegate_spark.snapshot_pod"]
    code = subprocess.run(command, env=variables, timeout=600, check=False).returncode
    reports = from_json(SnapshotReports, (folder / "termination").read_text()).snapshots
    return code, {report.id: report for report in reports}
