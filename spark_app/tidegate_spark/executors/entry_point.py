"""Runs the image's own executor, and archives its last lines. Does I/O.

It runs the image's ``/opt/entrypoint.sh`` with the argument ``executor``, gives the JVM the storage credentials, passes
signals and output on, stores the last lines when the JVM ends, and ends with its exit code.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tidegate_spark.contract.protocol import EXECUTOR_CONFIG_VARIABLE, PROCESS_VARIABLE, ExecutorConfig, from_json
from tidegate_spark.process import logs
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.redaction import Secrets, secret_values
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import Credentials

ENTRYPOINT = "/opt/entrypoint.sh"
WORKING_DIRECTORY = "executor"
GRACE_SECONDS, LEAST_UPLOAD_SECONDS = 28.0, 8.0
"""Kubernetes gives a pod 30 s to go. What the JVM does not need of them is for the log; it may need most."""

log = logging.getLogger("tidegate")


def main(arguments: Sequence[str]) -> int:
    """Run the executor to its end; return its exit code, 128 + n if signal n ended it."""
    secrets = Secrets(secret_values(os.environ))
    output = logs.OutputTail(secrets)
    log_to_stderr(os.environ)
    environment = Environment.read(os.environ)
    credentials = s3_client.mounted_credentials(environment.credentials_directory)
    secrets.add(*(credentials.secrets if credentials else ()))
    entry_point = os.environ.get("TIDEGATE_ENTRYPOINT", ENTRYPOINT)
    directory = working_directory(os.getcwd(), environment.work_directory)
    code, asked = run_child([entry_point, *(arguments or ["executor"])], credentials, directory)
    content = output.content()
    if not logs.within(upload_seconds(asked, time.monotonic()), lambda: _put_log(content, credentials)):
        log.warning("the executor's log could not be put into storage")
    output.content()
    return code


def upload_seconds(asked: float | None, now: float) -> float:
    """Return how long the upload of the log may take, by when the pod was asked to go; None if it was not."""
    return max(LEAST_UPLOAD_SECONDS, GRACE_SECONDS - (now - asked if asked is not None else 0.0))


def working_directory(current: str, work_directory: str, can_write: Callable[[str], bool] | None = None) -> str:
    """Return where the executor runs: where it is, or, if that cannot be written, in a folder that leads there.

    Spark puts what an application sends to its executors (``addFile``, ``addPyFile``, archives, ``pyFiles``) into the
    current directory, which is part of the image's root file system in most images.

    Args:
        current: the image's working directory.
        work_directory: can be written.
        can_write: returns whether a directory can be; None: asks the system.
    """
    if (can_write or (lambda directory: os.access(directory, os.W_OK)))(current):
        return current
    folder = Path(work_directory) / WORKING_DIRECTORY
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What is in the image is found by relative names, as before.
        for entry in os.scandir(current):
            with contextlib.suppress(FileExistsError):
                (folder / entry.name).symlink_to(entry.path)
    except OSError as error:
        log.warning("%s cannot be prepared, the executor runs in %s: %s", folder, current, error)
        return current
    return str(folder)


def run_child(command: Sequence[str], credentials: Credentials | None, directory: str) -> tuple[int, float | None]:
    """Run ``command`` in ``directory`` and pass SIGTERM and SIGINT on to it.

    Returns:
        Its exit code, and when the first of these came.
    """
    variables = {**os.environ, **(credentials.variables() if credentials else {})}
    pending: list[int] = []
    asked: list[float] = []
    child: subprocess.Popen[bytes] | None = None

    def forward(number: int, frame: object) -> None:
        asked.append(time.monotonic())
        if child is None:
            pending.append(number)
        else:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    child = subprocess.Popen(command, env=variables, cwd=directory)  # noqa: S603 - the image's own entry point
    for number in pending:
        child.send_signal(number)
    code = child.wait()
    return (code if code >= 0 else 128 - code), (asked[0] if asked else None)


def _put_log(content: bytes, credentials: Credentials | None) -> None:
    config = from_json(ExecutorConfig, os.environ.get(EXECUTOR_CONFIG_VARIABLE, ""))
    client = s3_client.connect(config.storage, credentials, timeout_seconds=3.0)
    process = os.environ.get(PROCESS_VARIABLE, f"unknown-e{config.epoch}")
    executor = os.environ.get("SPARK_EXECUTOR_ID", "unknown")
    logs.put_executor_log(client, config.storage, process, executor, content)
