"""The runtime's real entry point as a process on this machine, with Spark in local mode. Starts processes, does I/O."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

from mypy_boto3_s3 import S3Client

from devcluster.control import free_port
from devcluster.processes import ProcessIdentity, descendants
from tidegate_spark.contract.configuration_protocol import (
    LONGEST_IN_VARIABLE,
    REST_FILE_VARIABLE,
    REST_KEY,
    divide,
    with_rest,
)
from tidegate_spark.contract.protocol import (
    ACCESS_KEY,
    AGENT_NUMBER_FILE,
    CONFIG_VARIABLE,
    SECRET_KEY,
    AgentReport,
    DriverConfig,
    ExecutorSettings,
    Storage,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing import class_archive
from tidegate_testing.waiting import wait_for
from tidegate_testing.warm_jvms import WarmJvm, WarmJvms

TOKEN = "token-of-the-tests"
SOURCES = Path(__file__).parents[3] / "spark_app"


@dataclass(frozen=True)
class ObjectStore:
    """An S3 server of the tests' own."""

    endpoint: str
    access_key: str
    secret_key: str

    @cached_property
    def client(self) -> S3Client:
        """A client with the right credentials."""
        place = Storage(uri="s3://any", endpoint=self.endpoint, path_style_access=True)
        return s3_client.connect(place, Credentials(self.access_key, self.secret_key))

    def keys(self, bucket: str, prefix: str) -> list[str]:
        """Return all keys below ``prefix``."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def text(self, bucket: str, key: str) -> str:
        """Return an object's content."""
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()


def driver_config(app: str, main: str, place: Storage, **fields: Any) -> DriverConfig:
    """Return the configuration of a small driver of ``app``."""
    defaults: dict[str, Any] = {
        "app": app,
        "namespace": "tests",
        "uid": f"uid-of-{app}",
        "epoch": 1,
        "lineage": 1,
        "pod_name": f"{app}-driver",
        "main": main,
        "storage": place,
        "executor": ExecutorSettings(1, "image", "IfNotPresent", "account", f"{app}-e1"),
        "driver_heap_mib": 512,
        "state_partitions": 2,
        "stop_grace_seconds": 40,
        "credentials_secret": "storage-keys",
    }
    return DriverConfig(**{**defaults, **fields})


@dataclass
class DriverProcess:
    """One driver; ``start`` it, look at it, ``stop`` it."""

    config: DriverConfig
    folder: Path
    jars: Path
    status_port: int = field(default_factory=free_port)
    command_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    python: tuple[str, ...] = (sys.executable,)
    token: str = TOKEN
    """For looks, and for orders of an operator that does not sign."""
    operator: str = ""
    """The public number of the operator whose signed orders it takes; none if this is empty."""
    jvms: WarmJvms | None = None
    """Where its JVM is from; it starts one of its own if this is None."""
    jvm: WarmJvm | None = None
    """The one that it was lent."""

    def put_credentials(self, access_key: str, secret_key: str) -> None:
        """Write the files that the kubelet would mount."""
        directory = self.folder / "credentials"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / ACCESS_KEY).write_text(access_key)
        (directory / SECRET_KEY).write_text(secret_key)

    def start(self, **variables: str) -> "DriverProcess":
        """Start ``python -m tidegate_spark``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "token").write_text(self.token + "\n")
        if self.operator:
            (self.folder / Path(AGENT_NUMBER_FILE).name).write_text(self.operator)
        environment = {**os.environ, **self._variables(), **variables}
        if self.jvms is not None:
            self.jvm = self.jvms.lend(self.ended)
            environment |= self.jvm.begin(Path(environment["TIDEGATE_WORK_DIRECTORY"]))
        with (self.folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [*self.python, "-m", "tidegate_spark"], env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        return self

    def _variables(self) -> Mapping[str, str]:
        return {
            "PYTHONPATH": str(SOURCES),
            **self._configuration(),
            "TIDEGATE_MASTER": "local[2]",
            "TIDEGATE_POD_IP": "127.0.0.1",
            "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
            "TIDEGATE_STATUS_PORT": str(self.status_port),
            "TIDEGATE_COMMAND_PORT": str(self.command_port),
            "TIDEGATE_CREDENTIALS_DIRECTORY": str(self.folder / "credentials"),
            "TIDEGATE_AGENT_TOKEN_FILE": str(self.folder / "token"),
            "TIDEGATE_TERMINATION_LOG": str(self.folder / "termination"),
            "TIDEGATE_WORK_DIRECTORY": str(self.folder / "work"),
            "TIDEGATE_JARS_DIRECTORY": str(self.jars),
            "SPARK_CONF_DIR": str(class_archive.conf()),
        }

    def _configuration(self) -> dict[str, str]:
        """Hand the configuration over as the operator does: what is too long for a variable, in a file as well."""
        text = to_json(self.config)
        if len(text) <= LONGEST_IN_VARIABLE:
            return {CONFIG_VARIABLE: text}
        kept, rest = divide(self.config, ())
        file = self.folder / REST_KEY
        file.write_text(rest)
        return {CONFIG_VARIABLE: with_rest(kept, "configuration", rest), REST_FILE_VARIABLE: str(file)}

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def output(self) -> str:
        """What the process has written so far, and its JVM."""
        own = (self.folder / "output").read_text(errors="replace")
        return own if self.jvm is None else f"{self.jvm.output}{own}"

    @property
    def jvm_pid(self) -> int:
        """The process of Spark's JVM."""
        assert self.process is not None
        if self.jvm is not None:
            return self.jvm.pid
        below = descendants(self.process.pid)
        return next(pid for pid in below if Path(os.readlink(f"/proc/{pid}/exe")).name == "java")

    @property
    def termination(self) -> Termination:
        """The termination message."""
        return from_json(Termination, (self.folder / "termination").read_text())

    def status(self, path: str) -> tuple[int, str]:
        """GET from the open port; return status and body."""
        return self._request("GET", self.status_port, path, None, "")

    def command(self, method: str, path: str, body: object = None, token: str | None = None) -> tuple[int, str]:
        """Call the command port, with another token if one is given; return status and body."""
        return self._request(method, self.command_port, path, body, self.token if token is None else token)

    def _request(self, method: str, port: int, path: str, body: object, token: str) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def report(self) -> AgentReport | None:
        """Return the agent's report, None while the agent does not answer."""
        try:
            return from_json(AgentReport, self.command("GET", "/v1/progress")[1])
        except (OSError, HTTPException):
            return None

    def batch(self, query: str = "main") -> int:
        """Return the last committed batch of ``query``, -1 before the first."""
        report = self.report()
        return next((q.batch_id for q in report.queries if q.name == query), -1) if report else -1

    # --- waiting and ending -------------------------------------------------------------------------------------------

    def await_batch(self, batch: int, query: str = "main") -> None:
        """Wait until ``query`` has committed ``batch``."""
        wait_for(f"batch {batch} of {query}", lambda: self.ended() or self.batch(query) >= batch, 600, 0.2)
        assert not self.ended(), self.output[-3000:]

    def ended(self) -> bool:
        """Return True if the process has ended."""
        assert self.process is not None
        return self.process.poll() is not None

    def must_run(self) -> None:
        """Raise what ends a wait if the process has ended: an AssertionError would be taken for "not yet".

        Raises:
            RuntimeError: it has; says what it printed last.
        """
        if self.ended():
            raise RuntimeError(f"the driver has ended: {self.output[-3000:]}")

    def terminate(self) -> None:
        """Send SIGTERM, as the kubelet does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self) -> int:
        """Wait for the end and return the exit code."""
        assert self.process is not None
        return self.process.wait(1500)

    def kill(self) -> None:
        """End it at once, if it still runs, with all that it started: as a container ends, where no JVM goes on."""
        if self._end_processes() and self.jvm is not None:
            self.jvm.kill()

    def release(self) -> None:
        """End it at once, if it still runs; a JVM that it was lent is left for the next driver, with nothing in it."""
        self._end_processes()
        if self.jvms is not None:
            self.jvms.reclaim()

    def _end_processes(self) -> bool:
        """End the process and those that it started; return whether it still ran."""
        if self.process is None or self.process.poll() is not None:
            return False
        below = []
        for pid in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                below.append(ProcessIdentity.of(pid))
        self.process.kill()
        self.process.wait(60)
        for each in below:
            each.kill(60)
        return True
