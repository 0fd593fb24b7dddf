"""The program of the pod that divides state, as the kubelet ends it: a process without Spark, and no storage there."""

import os
import subprocess
import sys
from pathlib import Path

from tidegate_spark.contract.protocol import CONFIG_VARIABLE, EXIT_STOPPED, Storage, to_json
from tidegate_spark.contract.repartition_protocol import REPARTITION_VARIABLE, Repartition
from tidegate_testing.driver_process import DriverProcess, driver_config

NOBODY = Storage("s3://streams/apps/shop/orders", "http://127.0.0.1:9", "us-east-1", True)


def test_a_pod_that_is_asked_to_go_goes_at_once_since_the_application_stands_still(tmp_path: Path) -> None:
    config = driver_config("orders", "local:///main.py", NOBODY)
    pod = DriverProcess(config, tmp_path, tmp_path)
    pod.put_credentials("access", "secret")
    order = {CONFIG_VARIABLE: to_json(config), REPARTITION_VARIABLE: to_json(Repartition(8, "up-1", 1, 2))}
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate_spark.repartition_pod"],
        env={**os.environ, **pod._variables(), **order},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        waits = next((line for line in process.stderr if "waiting" in line), "")
        assert "StorageUnavailable" in waits
        process.terminate()
        # By a handler of its own: process 1 of a container gets no other SIGTERM.
        assert process.wait(60) == EXIT_STOPPED
