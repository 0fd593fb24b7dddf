"""JVMs that serve one driver of the tests after the other: of Spark's start a warm one costs a fifth. Starts processes.

A driver finds its JVM by PySpark's own variables, as where somebody else started it. So it is no child of the driver:
a test of how a JVM starts or ends, of its output or of what it inherits has its driver start one of its own.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from devcluster.processes import ProcessIdentity, descendants
from tidegate_spark.contract.control_protocol import LINE_FILE, LINE_VARIABLE
from tidegate_testing import class_archive, spark_jars
from tidegate_testing.waiting import wait_for

DOOR_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Where a JVM writes how it is reached: PySpark's java_gateway.py."""
HEAP = "1g"
START_SECONDS = 180.0


class WarmJvm:
    """A JVM with Spark's classes, in which drivers have their sessions."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        """Start it.

        Args:
            folder: for what it writes.
            variables: beside those of this process.
        """
        self._log, door = folder / "output", folder / "door"
        settings = {**class_archive.settings(), "spark.driver.memory": HEAP}
        pairs = [f"--conf={key}={value}" for key, value in settings.items()]
        command = [str(spark_jars.pyspark() / "bin" / "spark-submit"), *pairs, "pyspark-shell"]
        self._work = folder / "work"
        own = {
            "PYSPARK_PYTHON": sys.executable,
            DOOR_VARIABLE: str(door),
            # Of the driver's variables the only one that Python processes of the JVM look at.
            LINE_VARIABLE: str(self._work / LINE_FILE),
        }
        with self._log.open("wb") as output:
            # It ends when its standard input does: with this process, however that ends.
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **variables, **own},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_for("a JVM to be up", lambda: self.runs() and door.exists(), START_SECONDS, 0.05)
        content = door.read_bytes()
        port, length = struct.unpack_from(">ii", content)
        self._port, self._secret = port, content[8 : 8 + length].decode()
        self._reported = 0

    def begin(self, work_directory: Path) -> Mapping[str, str]:
        """Return the variables by which a driver finds it.

        Args:
            work_directory: the driver's.
        """
        self._work.unlink(missing_ok=True)
        self._work.symlink_to(work_directory)
        self._reported = self._log.stat().st_size
        return {"PYSPARK_GATEWAY_PORT": str(self._port), "PYSPARK_GATEWAY_SECRET": self._secret}

    @property
    def output(self) -> str:
        """What it has written for the driver that has it, or had it last."""
        with self._log.open("rb") as log:
            log.seek(self._reported)
            return log.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def clear(self) -> bool:
        """End what a driver left in it; return whether it serves the next one."""
        parameters = GatewayParameters(
            port=self._port, auth_token=self._secret, auto_convert=True, enable_memory_management=False
        )
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            self._clear(gateway.jvm)
        except (Py4JError, OSError):
            self.kill()
            return False
        finally:
            with suppress(Py4JError, OSError):
                gateway.close()
        return True

    def _clear(self, jvm: Any) -> None:
        left = companion(jvm.org.apache.spark, "SparkContext").getActive()
        if left.isDefined():
            left.get().stop()
        companion(jvm.org.apache.spark.sql.execution.streaming.state, "StateStore").stop()
        # They were made with the settings of one application, and are found by the bucket alone.
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setRootLevel(log4j.Level.WARN)
        jvm.java.lang.System.gc()

    def kill(self) -> None:
        """End it at once, with its Python processes."""
        below = []
        for pid in descendants(self._process.pid):
            with suppress(ProcessLookupError):
                below.append(ProcessIdentity.of(pid))
        self._process.kill()
        self._process.wait(60)
        assert self._process.stdin is not None
        self._process.stdin.close()
        for each in below:
            each.kill(60)


def companion(package: Any, name: str) -> Any:
    """Return the object that Scala has beside a class."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


@dataclass
class _Lent:
    jvm: WarmJvm
    is_done: Callable[[], bool]


class WarmJvms:
    """As many as there are drivers at a time."""

    def __init__(self, make_folder: Callable[[], Path], variables: Mapping[str, str]) -> None:
        """Start none yet; see :class:`WarmJvm`."""
        self._make_folder, self._variables = make_folder, variables
        self._free: list[WarmJvm] = []
        self._lent: list[_Lent] = []

    def lend(self, is_done: Callable[[], bool]) -> WarmJvm:
        """Return one that no driver has.

        Args:
            is_done: says whether the driver that gets it has ended; then another one may have it.
        """
        self.reclaim()
        jvm = self._free.pop() if self._free else WarmJvm(self._make_folder(), self._variables)
        self._lent.append(_Lent(jvm, is_done))
        return jvm

    def reclaim(self) -> None:
        """Clear those whose driver has ended: what it left there would run on, and take the time of others."""
        for each in [each for each in self._lent if each.is_done()]:
            self._lent.remove(each)
            if each.jvm.runs() and each.jvm.clear():
                self._free.append(each.jvm)

    def close(self) -> None:
        """End them all."""
        for jvm in [*self._free, *(each.jvm for each in self._lent)]:
            if jvm.runs():
                jvm.kill()
        self._free, self._lent = [], []
