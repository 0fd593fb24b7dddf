"""A world of real processes that are traced: API server, operator, S3 server, and a driver with Spark in local mode.

Only the kubelet is played. Starts processes, does I/O.
"""

import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster import s3
from devcluster.apiserver import ApiServer
from devcluster.demo.application import committed_batches
from devcluster.site import LocalSite
from tests.walks.count import Trace, read
from tests.walks.traced import sitecustomize
from tidegate_testing import class_archive
from tidegate_testing.apps import CREDENTIALS, credentials, streaming_app
from tidegate_testing.crd import install_crds
from tidegate_testing.driver_process import SOURCES
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.operator_process import ROOT, OperatorProcess
from tidegate_testing.process_kubelet import ProcessKubelet
from tidegate_testing.waiting import wait_for

NAMESPACE, APP, BUCKET = "shop", "orders", "walks"
DRIVER = f"{APP}-driver"
SCRIPT = Path(__file__).parent / "scripts" / "walked.py"
TRACED = Path(sitecustomize.__file__).parent
OPERATORS_FOLDER = ROOT / "operator"
PATIENCE = 600.0
AFTERMATH_SECONDS = 10.0
"""What an act leaves to do when its end is seen, such as metrics and records, is done within this time."""
START_SECONDS = 60.0
"""Likewise for the first start, such as the snapshots' catalog: none of that is to be in the frame."""


class World:
    """A context manager; once it is entered, the application runs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Start nothing yet."""
        self._say, self._stack = say, ExitStack()

    def __enter__(self) -> Self:
        """Start everything."""
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End everything."""
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-walks-")))
        self._notes, self.crash_file = folder / "notes", folder / "crash"
        self._site = stack.enter_context(LocalSite())
        s3.up(self._site)
        s3.ensure_bucket(self._site, BUCKET)
        server = stack.enter_context(ApiServer())
        self.kubectl = Kubectl(server.kubectl, server.kubeconfig)
        install_crds(self.kubectl)
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        keys = self._site.s3_keys
        self.kubectl.apply(credentials(NAMESPACE, keys.access_key, keys.secret_key))
        pods, jars = folder / "pods", class_archive.jars()
        self.kubelet = stack.enter_context(
            ProcessKubelet(server.kubeconfig, pods, jars, self._traced(f"{TRACED}:{SOURCES}"))
        )
        traced = self._traced(f"{TRACED}:{OPERATORS_FOLDER}:{SOURCES}")
        operator = OperatorProcess(
            server.kubeconfig, folder / "operator.log", {"TIDEGATE_LEADER_ELECTION": "false", **traced}
        )
        operator.start()
        stack.callback(operator.end, signal.SIGTERM)
        self._say("the operator has been started")
        self.kubectl.apply(self._application())
        self.settle()
        self.rest(START_SECONDS)

    def _traced(self, path: str) -> dict[str, str]:
        folders = f"{OPERATORS_FOLDER}:{SOURCES}"
        return {"PYTHONPATH": path, "WALKS_FILE": str(self._notes), "WALKS_FOLDERS": folders}

    def _application(self) -> dict[str, Any]:
        storage = {
            "uri": f"s3://{BUCKET}/apps",
            "endpoint": self._site.s3_endpoint_host,
            "pathStyleAccess": True,
            "credentialsSecretRef": {"name": CREDENTIALS},
        }
        spec = {"state": {"partitions": 2}, "upgrade": {"mode": "Snapshot"}, "application": {"runtime": "Injected"}}
        main = f"local://{SCRIPT}"
        return streaming_app(
            APP, NAMESPACE, image="shop/orders:1", storage=storage, main=main, args=(str(self.crash_file),), spec=spec
        )

    # --- what there is ------------------------------------------------------------------------------------------------

    def trace(self) -> Trace:
        """Return what all processes have noted until now."""
        with self._notes.open() as notes:
            return read(notes)

    def app(self) -> dict[str, Any]:
        """Return the application."""
        return self.kubectl.get("sapp", APP, NAMESPACE) or {}

    def driver(self) -> dict[str, Any]:
        """Return the driver's pod; empty if there is none, or if it is being deleted."""
        pod = self.kubectl.get("pod", DRIVER, NAMESPACE) or {}
        return {} if pod.get("metadata", {}).get("deletionTimestamp") else pod

    def restarts(self) -> int:
        """Return how often the driver's container was started again."""
        return sum(each["restartCount"] for each in self.driver().get("status", {}).get("containerStatuses", []))

    def last_batch(self) -> int:
        """Return the last batch that is committed in any lineage, -1 before the first."""
        client = s3.client(self._site.s3_endpoint_host, self._site.s3_keys)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"apps/{NAMESPACE}/{APP}/")
        keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
        return max(committed_batches(key for key in keys if "/main/commits/" in key), default=-1)

    def ready(self) -> dict[str, Any]:
        """Return the application's condition Ready."""
        return self.kubectl.condition(self.app(), "Ready")

    def _upgrade(self) -> str:
        return str(self.app().get("status", {}).get("upgrade", {}).get("phase", ""))

    # --- time ---------------------------------------------------------------------------------------------------------

    def begin(self) -> float:
        """Return the time as an act begins: with a bucket, or what its modules did before would hide what they do."""
        step = 1 / sitecustomize.BUCKETS_PER_SECOND
        began = (time.monotonic() // step + 1) * step
        self.rest(began - time.monotonic())
        return began

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(max(seconds, 0.0))

    def until(self, what: str, probe: Callable[[], object]) -> float:
        """Wait until something is so; return when it was seen.

        Raises:
            AssertionError: it does not come about; says what the driver has printed.
        """
        try:
            wait_for(what, probe, PATIENCE, 0.1)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.ready()}\n{self.kubelet.output(DRIVER)[-3000:]}") from late
        return time.monotonic()

    def settle(self) -> None:
        """Wait until the application runs and commits, and nothing of what was done is left to do."""
        self.until("the application to be ready", lambda: self.ready().get("status") == "True")
        batch = self.last_batch()
        self.until("the upgrade to be complete", lambda: self._upgrade() in ("", "Completed"))
        self.until("two batches more", lambda: self.last_batch() >= batch + 2)
        self.rest(AFTERMATH_SECONDS)
        self._say("the application runs")
