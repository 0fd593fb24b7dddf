"""The world of the fleet benchmarks: a real API server, kwok nodes, the operator as shipped. Starts processes."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster.apiclient import ApiClient
from devcluster.apiserver import ApiServer
from devcluster.control import free_port
from tests.bench.agents import KEY
from tests.bench.audit import AuditLog, by_client
from tests.bench.load import Load
from tidegate.settings import Settings
from tidegate_testing.apps import credentials, streaming_app
from tidegate_testing.waiting import wait_for

ROOT = Path(__file__).parents[2]
NAMESPACE = "bench"
OPERATOR = "tidegate-operator/"
"""How the operator's user agent begins."""
SETTLE_SECONDS = 5
KINDS_KNOWN_SECONDS = 40.0
"""After so long the garbage collector, which looks for new kinds every 30 s, watches one; before, it reads owners."""


@dataclass(frozen=True)
class Bench:
    """A running API server and operator."""

    kubeconfig: Path
    audit_log: Path
    operator_pid: int
    metrics_port: int

    def metrics(self) -> str:
        """Return what the operator says of itself; raise OSError if it has ended."""
        return _metrics(self.metrics_port)

    async def until_quiet(self) -> None:
        """Wait until the operator has written nothing for a while."""
        # Not the whole log each second, which a long run would make as much work as what is measured.
        log, quiet_since = AuditLog(self.audit_log), time.monotonic()
        for _ in range(600):
            if any(r.writes for r in by_client(log.added(), OPERATOR)):
                quiet_since = time.monotonic()
            if time.monotonic() - quiet_since > SETTLE_SECONDS:
                return
            await asyncio.sleep(1)
        raise TimeoutError("the operator still writes after 600 s")

    async def prepare(self, load: Load) -> None:
        """Make the namespace and what the applications refer to."""
        await load.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        secret = credentials(NAMESPACE, "bench", "bench")
        await load.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)

    def app(self, name: str, spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return one application of the fleet; ``spec`` is what it states besides."""
        storage = {"uri": "s3://bench/apps", "credentialsSecretRef": {"name": "storage-credentials"}}
        main = "local:///opt/app/main.py"
        return streaming_app(name, NAMESPACE, image="bench:1", main=main, storage=storage, spec=spec)


@contextlib.contextmanager
def bench_world(nodes: int, operator: Sequence[str] = ("-m", "tidegate.main")) -> Iterator[Bench]:
    """Start the servers and the operator, and end them.

    Args:
        nodes: how many kwok simulates.
        operator: Python's arguments that start it.
    """
    with ApiServer(kwok_nodes=nodes, audit_log=True) as server:
        assert server.audit_log is not None
        for crd in sorted((ROOT / "crds").glob("*.yaml")):
            subprocess.run(
                [server.kubectl, "--kubeconfig", server.kubeconfig, "apply", "--server-side", "-f", crd],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        ApiClient(server.kubeconfig).create(
            "/api/v1/namespaces/default/secrets",
            {"kind": "Secret", "metadata": {"name": Settings("").key_name}, "stringData": {"key": KEY}},
        )
        installed = time.monotonic()
        with _operator(server.kubeconfig, operator) as (pid, port):
            time.sleep(max(0.0, installed + KINDS_KNOWN_SECONDS - time.monotonic()))
            yield Bench(server.kubeconfig, server.audit_log, pid, port)


@contextlib.contextmanager
def _operator(kubeconfig: Path, arguments: Sequence[str]) -> Iterator[tuple[int, int]]:
    port = free_port()
    environment = {
        **os.environ,
        **_chart_settings(),
        "KUBECONFIG": str(kubeconfig),
        "TIDEGATE_OPERATOR_IMAGE": "bench:1",
        "TIDEGATE_METRICS_PORT": str(port),
        "POD_NAMESPACE": "default",
        "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT / 'spark_app'}",
        "PYTHONSAFEPATH": "1",
    }
    with tempfile.TemporaryFile(mode="w+") as log:
        process = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=log, stderr=log)
        try:
            # Not only ready: the first of a cluster waits before it leads, and that is no part of a launch.
            wait_for("the operator to lead", lambda: _leads(process, port), timeout=60)
            yield process.pid, port
        except BaseException:
            log.seek(0)
            sys.stderr.write("the operator's last lines:\n" + "".join(log.readlines()[-20:]))
            raise
        finally:
            process.terminate()
            process.wait(30)


def _leads(process: subprocess.Popen[bytes], port: int) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the operator ended with exit code {process.returncode}")
    try:
        return "tidegate_leader 1.0" in _metrics(port)
    except OSError:
        return False


def _metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: bytes = answer.read()
        return text.decode()


def _chart_settings() -> dict[str, str]:
    """Return the settings that the chart gives the operator by default."""
    values = yaml.safe_load((ROOT / "charts/tidegate/values.yaml").read_text())
    return {"TIDEGATE_LOG_FORMAT": values["logFormat"], "TIDEGATE_LOG_LEVEL": values["logLevel"]}
