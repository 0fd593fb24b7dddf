"""Starts Spark's JVM first at a restart in place, while PySpark, storage and fence are prepared.

It uses the kept command (:mod:`tidegate_spark.jvm.jvm_command`) with the present settings, variables and credentials
and last time's settings of the script (:mod:`tidegate_spark.jvm.last_script`). It does nothing before the fence is
taken; if other settings are needed then, it is ended and another one started.

It ends with this process, by a pipe. Starts processes, does file I/O. Standard library only, so that it need not wait
for PySpark's import.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.jvm import last_script
from tidegate_spark.jvm.jvm_command import KeptCommand, arguments_of, digest_of
from tidegate_spark.jvm.jvm_process import JvmProcess
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import sparkconf
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import FaultError

GATEWAY_PORT, GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
DOOR_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Where the JVM writes how it is reached; PySpark's name, too."""
LIMIT_SECONDS = 120.0
"""From its start; one that takes longer is given up. They take a second or two."""
POLL_SECONDS = 0.02

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Door:
    """How a JVM is reached; ``repr`` does not show the secret."""

    port: int
    secret: str

    def __repr__(self) -> str:
        """Hide the secret: whoever has it can make the JVM do anything."""
        return f"Door({self.port}, ...)"


def begin(
    config: DriverConfig, environment: Environment, process: str, variables: Mapping[str, str]
) -> HeadStart | None:
    """Start a JVM if this pod has had one like it; return it, None if none was started.

    Args:
        config: of the driver.
        environment: where it finds things.
        process: its name.
        variables: of this process, as they will be when the JVM is used, but for the storage's credentials.
    """
    if config.rehearsal is not None or GATEWAY_PORT in variables:
        return None
    try:
        credentials = s3_client.read_credentials(environment.credentials_directory, config.credentials_secret)
        home = _spark_home(variables)
    except (FaultError, ImportError, ValueError):
        return None  # the start itself reports what is missing
    asked = last_script.read(environment.work_directory)
    its = {**variables, **(credentials.variables() if credentials else {})}
    settings = sparkconf.build_spark_conf(config, environment, process, asked.settings)
    lasting = {key: value for key, value in settings.items() if key not in sparkconf.OF_ONE_PROCESS}
    digest = digest_of(home, lasting, its)
    kept = KeptCommand(Path(environment.work_directory), digest)
    script = kept.take(foreseen=True)
    if script is None:
        return None
    try:
        return HeadStart(script, arguments_of(settings), its, digest, kept)
    except OSError as error:
        log.warning("a JVM could not be started ahead: %s", error)
        return None


class HeadStart:
    """A JVM on its way; somebody may come for it or not."""

    def __init__(
        self, script: Path, arguments: list[str], variables: Mapping[str, str], digest: str, kept: KeptCommand
    ) -> None:
        """Start it.

        Args:
            script: starts it.
            arguments: Spark's.
            variables: the JVM's.
            digest: stands for what it depends on.
            kept: where the script is from.

        Raises:
            OSError: it cannot be started.
        """
        self._digest, self._kept = digest, kept
        self._lock = threading.Lock()
        self._over = False
        self._began = time.monotonic()
        # Readable by this process's user alone.
        self._folder = Path(tempfile.mkdtemp())
        self._door = self._folder / "door"
        try:
            self._process = JvmProcess(
                ["spark-submit", *arguments],
                executable=str(script),
                stdin=subprocess.PIPE,
                env={**variables, DOOR_VARIABLE: str(self._door)},
            )
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def await_up(self, digest: str) -> Door | None:
        """Wait until it is up and return how it is reached; None if it is none that serves, it is ended then.

        Args:
            digest: stands for what the JVM that is wanted depends on.
        """
        came = time.monotonic()
        if digest != self._digest:
            log.info("the JVM that was started ahead has other settings or credentials than are wanted now")
            self.end()
            return None
        while self._process.poll() is None:
            if self._door.exists():
                details = (came - self._began, time.monotonic() - came)
                log.info("a JVM was started %.1f s ahead, and waited for another %.1f s", *details)
                return self._read_door()
            if time.monotonic() - self._began >= LIMIT_SECONDS:
                break
            time.sleep(POLL_SECONDS)
        log.warning("the JVM that was started ahead did not come up: %s", self._process.poll())
        self.end(worked=False)
        return None

    def hand_over(self) -> JvmProcess:
        """Return the process; it is the caller's from now on, and its command is kept for the next one."""
        with self._lock:
            self._over = True
        self._kept.keep_again()
        self._clear()
        return self._process

    def end(self, *, worked: bool = True) -> None:
        """End it unless it was handed over; the command is kept again unless the JVM ended by itself.

        Args:
            worked: whether there is nothing to be said against the command.
        """
        with self._lock:
            if self._over:
                return
            self._over = True
        worked = worked and self._process.poll() is None
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if worked:
            self._kept.keep_again()
        self._clear()

    def _read_door(self) -> Door | None:
        try:
            content = self._door.read_bytes()
            port, length = struct.unpack_from(">ii", content)
            return Door(port, content[8 : 8 + length].decode())
        except (OSError, ValueError, struct.error) as error:
            log.warning("the JVM that was started ahead does not say how it is reached: %s", type(error).__name__)
            self.end(worked=False)
            return None

    def _clear(self) -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)


def _spark_home(variables: Mapping[str, str]) -> Path:
    """Return Spark's folder, where PySpark will find it.

    Raises:
        ImportError: there is no PySpark.
    """
    if "SPARK_HOME" in variables:
        return Path(variables["SPARK_HOME"])
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise ImportError("no PySpark")
    return Path(package.origin).parent
