"""The entry points of executor and purge pods as processes, against a real S3 server; no JVM is started."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import (
    ACCESS_KEY,
    CONFIG_VARIABLE,
    EXECUTOR_CONFIG_VARIABLE,
    EXIT_DEPENDENCY,
    EXIT_OK,
    PROCESS_VARIABLE,
    SECRET_KEY,
    ExecutorConfig,
    Storage,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim import claiming
from tidegate_testing.driver_process import SOURCES, ObjectStore, driver_config
from tidegate_testing.waiting import wait_for

from .conftest import ACCESS, SECRET


@pytest.fixture
def variables(place: Storage, tmp_path: Path) -> dict[str, str]:
    """The environment of a pod of application ``app``, its Secret mounted."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / ACCESS_KEY).write_text(ACCESS)
    (folder / SECRET_KEY).write_text(SECRET)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "PYTHONPATH": str(SOURCES),
        "TIDEGATE_CREDENTIALS_DIRECTORY": str(folder),
        "TIDEGATE_TERMINATION_LOG": str(tmp_path / "termination"),
        CONFIG_VARIABLE: to_json(driver_config("app", "local:///main.py", place)),
        EXECUTOR_CONFIG_VARIABLE: to_json(ExecutorConfig("app", 3, place)),
        PROCESS_VARIABLE: "process-1",
        "SPARK_EXECUTOR_ID": "5",
    }


def start(module: str, variables: Mapping[str, str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as file:
        command = [sys.executable, "-m", f"tidegate_spark.{module}"]
        return subprocess.Popen(command, env=dict(variables), stdout=file, stderr=subprocess.STDOUT)


def entry_point(folder: Path, *lines: str) -> Path:
    """Write what stands in the place of the image's /opt/entrypoint.sh."""
    script = folder / "entrypoint.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)
    return script


def executor_log(object_store: ObjectStore, place: Storage) -> str:
    return object_store.text(place.bucket, place.key("logs", "process-1", "executor-5.log"))


def test_an_executors_last_lines_are_in_storage_and_its_exit_code_is_the_jvms(
    object_store: ObjectStore, place: Storage, variables: dict[str, str], tmp_path: Path
) -> None:
    script = entry_point(
        tmp_path, 'echo "arguments: $*"', 'echo "key: $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY" >&2', "exit 3"
    )
    executor = start("executor", {**variables, "TIDEGATE_ENTRYPOINT": str(script)}, tmp_path / "output")
    assert executor.wait(300) == 3
    log = executor_log(object_store, place)
    assert "arguments: executor" in log
    assert f"key: {ACCESS} [redacted]" in log
    assert "arguments: executor" in (tmp_path / "output").read_text()


def test_an_executor_that_is_told_to_go_passes_that_on_and_still_keeps_its_last_lines(
    object_store: ObjectStore, place: Storage, variables: dict[str, str], tmp_path: Path
) -> None:
    script = entry_point(
        tmp_path, "trap 'echo decommissioned; exit 7' TERM", "echo up", "while :; do read -r _ <&3; done 3<>$FIFO"
    )
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    executor = start(
        "executor", {**variables, "TIDEGATE_ENTRYPOINT": str(script), "FIFO": str(fifo)}, tmp_path / "output"
    )
    wait_for("the executor", lambda: "up" in (tmp_path / "output").read_text(), 180, 0.05)
    executor.terminate()
    assert executor.wait(300) == 7
    assert "decommissioned" in executor_log(object_store, place)


def test_a_purge_pod_says_how_much_it_deleted_and_is_done_when_started_again(
    object_store: ObjectStore, place: Storage, variables: dict[str, str], tmp_path: Path
) -> None:
    config = driver_config("app", "local:///main.py", place)
    claiming.claim(object_store.client, config)
    for _ in range(2):
        assert start("purge", variables, tmp_path / "output").wait(300) == EXIT_OK
        assert object_store.keys(place.bucket, place.prefix + "/") == []
    reported = from_json(Termination, (tmp_path / "termination").read_text())
    assert reported.reason is Reason.COMPLETED
    assert reported.message == "0 objects deleted."


def test_a_purge_pod_leaves_what_another_application_kept_inside(
    object_store: ObjectStore, place: Storage, variables: dict[str, str], tmp_path: Path
) -> None:
    config = driver_config("app", "local:///main.py", place)
    inner = replace(config, app="inner", uid="another", storage=replace(place, uri=f"{place.uri}/shop/inner"))
    for each in (config, inner):
        claiming.claim(object_store.client, each)
    kept = object_store.keys(place.bucket, inner.storage.prefix + "/")
    assert start("purge", variables, tmp_path / "output").wait(300) == EXIT_OK
    left = object_store.keys(place.bucket, place.prefix + "/")
    assert [key for key in left if not key.endswith("/")] == kept
    reported = from_json(Termination, (tmp_path / "termination").read_text())
    assert reported.message.endswith(
        f"Retained, because other applications have claimed them: {inner.storage.prefix}/."
    )


def test_a_purge_pod_without_its_credentials_asks_to_be_started_again(
    variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "credentials" / SECRET_KEY).unlink()
    assert start("purge", variables, tmp_path / "output").wait(300) == EXIT_DEPENDENCY
    reported = from_json(Termination, (tmp_path / "termination").read_text())
    assert reported.reason is Reason.CREDENTIALS_MISSING
