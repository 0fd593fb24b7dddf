"""``python3 -m tidegate_spark.executor``: runs the image's own executor, and keeps its last lines. Does I/O.

Spark starts executor containers with the argument ``executor``; the image's ``/opt/entrypoint.sh`` turns that into a
JVM. This process is in between: it gives the JVM the storage credentials, passes signals and output on, puts the last
lines into storage when the JVM has ended, and ends with the JVM's exit code.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from tidegate_spark import logs, storage
from tidegate_spark.environment import Environment
from tidegate_spark.log_lines import log_to_stderr
from tidegate_spark.protocol import EXECUTOR_CONFIG_VARIABLE, PROCESS_VARIABLE, ExecutorConfig, from_json
from tidegate_spark.redaction import Secrets, secret_values
from tidegate_spark.storage import Credentials

ENTRYPOINT = "/opt/entrypoint.sh"
UPLOAD_SECONDS = 8.0
"""Kubernetes gives a pod 30 s to go; the JVM needs most of them."""

log = logging.getLogger("tidegate")


def main(arguments: Sequence[str]) -> int:
    """Run the executor to its end; return its exit code, 128 + n if signal n ended it."""
    secrets = Secrets(secret_values(os.environ))
    output = logs.OutputTail(secrets)
    log_to_stderr(os.environ)
    environment = Environment.read(os.environ)
    credentials = storage.mounted_credentials(environment.credentials_directory)
    secrets.add(*(credentials.secrets if credentials else ()))
    code = run_child([os.environ.get("TIDEGATE_ENTRYPOINT", ENTRYPOINT), *(arguments or ["executor"])], credentials)
    content = output.content()
    if not logs.within(UPLOAD_SECONDS, lambda: _put_log(content, credentials)):
        log.warning("the executor's log could not be put into storage")
    output.content()
    return code


def run_child(command: Sequence[str], credentials: Credentials | None) -> int:
    """Run ``command``, pass SIGTERM and SIGINT on to it, and return its exit code."""
    variables = {**os.environ, **(credentials.variables() if credentials else {})}
    pending: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def forward(number: int, frame: object) -> None:
        if child is None:
            pending.append(number)
        else:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    child = subprocess.Popen(command, env=variables)  # noqa: S603 - the image's own entry point
    for number in pending:
        child.send_signal(number)
    code = child.wait()
    return code if code >= 0 else 128 - code


def _put_log(content: bytes, credentials: Credentials | None) -> None:
    config = from_json(ExecutorConfig, os.environ.get(EXECUTOR_CONFIG_VARIABLE, ""))
    client = storage.connect(config.storage, credentials, timeout_seconds=3.0)
    process = os.environ.get(PROCESS_VARIABLE, f"unknown-e{config.epoch}")
    executor = os.environ.get("SPARK_EXECUTOR_ID", "unknown")
    logs.put_executor_log(client, config.storage, process, executor, content)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
