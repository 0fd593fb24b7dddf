"""The operator as a process of this machine, as its image runs it. Runs processes, asks them on 127.0.0.1."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from devcluster.control import free_port, log_tail
from tidegate_testing.waiting import wait_for

ROOT = Path(__file__).parents[3]
_START_SECONDS = 600


class OperatorProcess:
    """One operator; it can be started again after its end."""

    def __init__(self, kubeconfig: Path, log: Path, settings: Mapping[str, str]) -> None:
        self.log = log
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT / 'spark_app'}",
            "TIDEGATE_OPERATOR_IMAGE": "example/tidegate-operator:1",
            **settings,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        self.port = free_port()
        environment = {**self.environment, "TIDEGATE_METRICS_PORT": str(self.port)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tidegate.main"],
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def send(self, what: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(what)

    def end(self, how: signal.Signals) -> int:
        """Send a signal unless the process has ended already, and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=180)

    def is_ready(self) -> bool:
        """Return what the process says of itself; raise RuntimeError, with its last lines, if it has ended."""
        assert self.process is not None
        ended = self.process.poll()
        if ended is not None:
            raise RuntimeError(f"the operator ended with exit status {ended}:\n{log_tail(self.log)}")
        return self._ask("/readyz") == "ok\n"

    def leads(self) -> bool:
        """Return what the process says of itself; False if it says nothing."""
        return bool(re.search(r"^tidegate_leader 1\.0$", self._ask("/metrics"), re.MULTILINE))

    def _ask(self, path: str) -> str:
        assert self.process is not None
        if self.process.poll() is not None:
            return ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                text: bytes = answer.read()
                return text.decode()
        except (urllib.error.URLError, OSError):
            return ""


@contextmanager
def lone_operator(kubeconfig: Path, log: Path) -> Iterator[OperatorProcess]:
    """Run one that needs no Lease; when it is handed over it is ready, and it has to end as it is asked to."""
    process = OperatorProcess(kubeconfig, log, {"TIDEGATE_LEADER_ELECTION": "false"})
    process.start()
    # What tests wait for afterwards does not have to wait for its start.
    wait_for("the operator to be ready", process.is_ready, _START_SECONDS)
    yield process
    assert process.end(signal.SIGTERM) == 0, process.log.read_text()[-3000:]
