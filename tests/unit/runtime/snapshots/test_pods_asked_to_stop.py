"""Pods for purges and snapshots that are asked to stop: what they leave, and what the next one does."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import CONFIG_VARIABLE, EXIT_STOPPED, Storage, Termination, from_report, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    ORDERS_VARIABLE,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReports,
    SnapshotState,
)
from tidegate_testing.driver_process import DriverProcess, driver_config

ORDERS = {ORDERS_VARIABLE: to_json(SnapshotOrders(take=(SnapshotOrder("a"), SnapshotOrder("b"))))}
PROGRAM = """
import runpy, sys
from tidegate_spark.process import helper_end
helper_end.STOP_SECONDS = 0.1
runpy.run_module(sys.argv[1], run_name="__main__")
"""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A storage that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def left_by(module: str, silent: socket.socket, folder: Path, variables: Mapping[str, str]) -> str:
    """Let a pod wait for the storage's answer, ask it to stop, and return its termination message."""
    place = Storage("s3://streams/apps/shop/orders", f"http://127.0.0.1:{silent.getsockname()[1]}", "us-east-1", True)
    config = driver_config("orders", "local:///main.py", place)
    pod = DriverProcess(config, folder, folder)
    pod.put_credentials("access", "secret")
    environment = {**os.environ, **pod._variables(), CONFIG_VARIABLE: to_json(config), **variables}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, module], env=environment) as process:
        silent.settimeout(60)
        asking, _ = silent.accept()
        with asking:
            process.terminate()
            # By a handler of its own: process 1 of a container gets no other SIGTERM.
            assert process.wait(60) == EXIT_STOPPED
    return Path(environment["TIDEGATE_TERMINATION_LOG"]).read_text()


def test_a_purge_says_that_it_was_asked_to_stop(silent: socket.socket, tmp_path: Path) -> None:
    left = from_report(Termination, left_by("tidegate_spark.purge", silent, tmp_path, {}))
    assert (left.reason, "0 objects" in left.message) == (Reason.STOPPED, True)


def test_a_snapshot_pod_says_of_each_order_how_far_it_was(silent: socket.socket, tmp_path: Path) -> None:
    left = from_report(SnapshotReports, left_by("tidegate_spark.snapshot_pod", silent, tmp_path, ORDERS)).snapshots
    assert [(report.id, report.reason) for report in left] == [("a", Reason.STOPPED), ("b", Reason.STOPPED)]
    assert {report.state for report in left} <= {SnapshotState.WAITING, SnapshotState.COPYING}
