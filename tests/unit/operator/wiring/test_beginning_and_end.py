"""When work begins, and that the process ends whenever it is asked to. Runs a process, and a server for it."""

import asyncio
import base64
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tidegate.access.keys import KEY_BYTES
from tidegate.autoscaling.controller import AutoscalingController
from tidegate.cache.index import Index
from tidegate.control.controller import ControlController
from tidegate.control.index import ControlIndex
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.workqueue import WorkQueue
from tidegate.settings import Settings
from tidegate.snapshots.controller import SnapshotController
from tidegate.snapshots.index import SnapshotIndex
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.running_operator import DRAIN_SECONDS, Operator, drain, start_parts
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.kubectl import write_kubeconfig
from tidegate_testing.observations import NOW, app_with
from tidegate_testing.operator_process import OperatorProcess
from tidegate_testing.scripted_server import Server, talking_to
from tidegate_testing.virtual_time import run_in_virtual_time
from tidegate_testing.waiting import wait_for

ORDERS = app_with(resourceVersion="7")
BILLS = app_with(resourceVersion="8", name="bills", uid="u-2")
ALONE = {"TIDEGATE_LEADER_ELECTION": "false", "POD_NAMESPACE": "system"}
KEY_PATH = "/api/v1/namespaces/system/secrets/tidegate-agent-key"


def operator_with(index: Index, queue: WorkQueue) -> Operator:
    unused: Any = None
    operator = Operator(unused, unused, unused, OperatorMetrics(), index, queue, unused, asyncio.Event())
    operator.note_leading(True)
    return operator


async def let_everything_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_nothing_is_decided_before_all_applications_are_known() -> None:
    """Orders would take the storage, or give the access back, that Bills has."""
    index = Index()
    looked_at: asyncio.Queue[Key] = asyncio.Queue()
    queue = WorkQueue(looked_at.put, OperatorMetrics())
    operator = operator_with(index, queue)
    worker = operator.supervise(partial(operator.lead, queue.run_worker), "worker 0")
    index.replace_pods([], "", "99")
    for key in index.put_app(ORDERS):
        queue.wake(key)
    await let_everything_run()
    assert (looked_at.empty(), operator.missing()) == (True, "applications are not listed yet")
    assert index.deciding_since == 0.0
    index.put_app(BILLS)
    index.keep_apps(["u-1", "u-2"], "", "9")
    async with asyncio.timeout(20):
        assert await looked_at.get() == ("shop", "orders")
    assert operator.missing() == ""
    assert index.deciding_since > 0.0
    worker.cancel()


def test_an_operator_that_is_asked_to_go_while_it_imports_its_parts_ends_as_one_that_was_asked() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tidegate.main"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if line.endswith("| asyncio\n"))
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 0, rest
    assert "| tidegate.app.reconcile\n" not in rest


def test_an_operator_that_has_begun_nothing_ends_at_once() -> None:
    async def seconds_of_the_end() -> float:
        operator = operator_with(Index(), WorkQueue(lambda key: asyncio.sleep(0.0), OperatorMetrics()))
        worker = operator.supervise(partial(operator.lead, operator.queue.run_worker), "worker 0")
        await let_everything_run()
        began = asyncio.get_running_loop().time()
        await drain(operator, [worker])
        return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(seconds_of_the_end()) < DRAIN_SECONDS


KINDS = ("applications", "snapshots", "control messages", "autoscaling")


class AtWork:
    """An operator that leads, whose reconciles and requests end when they are let; an API server that tells nothing."""

    def __init__(self, index: Index) -> None:
        self.go, self.finished, metrics = asyncio.Event(), list[str](), OperatorMetrics()
        forever, client = asyncio.Event().wait, SimpleNamespace(get=self._silence, create=self._take_event)
        unused: Any = SimpleNamespace(workers=0, run_worker=forever, run=forever, renew_tokens=forever)
        server: Any = client
        self.queues = {kind: WorkQueue(partial(self._reconcile, kind), metrics) for kind in KINDS}
        apps, snapshots, messages, autoscaling = self.queues.values()
        parts = (
            SnapshotController(server, metrics, index, snapshots, unused, lambda key: None),
            ControlController(server, metrics, index, messages),
            AutoscalingController(index, autoscaling),
        )
        settings = Settings("registry.example/operator", concurrency=4)
        self.operator = Operator(settings, unused, server, metrics, index, apps, unused, asyncio.Event(), parts=parts)
        self.operator.events = self.publisher = EventPublisher(server)

    async def _silence(self, *_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async def _take_event(self, *_: Any) -> Any:
        await self._reconcile("events", ("shop", "orders"))
        return msgspec.Raw(b"{}")

    async def _reconcile(self, kind: str, _: Key) -> float | None:
        await self.go.wait()
        self.finished.append(kind)
        return None

    async def begin(self, kind: str) -> list[asyncio.Task[None]]:
        """Start everything, and have one thing under way."""
        self.operator.note_leading(True)
        tasks = start_parts(self.operator)
        await let_everything_run()
        if kind in self.queues:
            self.queues[kind].wake(("shop", "orders"))
        else:
            event = PublishEvent(Reason.DRIVER_STARTING, "It starts.", False, "1")
            await self.publisher.publish_later(ORDERS.metadata, event, NOW)
        await let_everything_run()
        return tasks


def index_without_messages() -> Index:
    """An index in which all lists are but that of control messages."""
    index = Index()
    index.replace_pods([], "", "9")
    index.keep_apps([], "", "9")
    index.of(SnapshotIndex).complete.set()
    return index


@pytest.mark.parametrize("kind", [*KINDS, "events"])
async def test_what_is_under_way_is_finished_before_the_end_whatever_it_is_about(kind: str) -> None:
    index = index_without_messages()
    index.of(ControlIndex).complete.set()
    world = AtWork(index)
    ending = asyncio.create_task(drain(world.operator, await world.begin(kind)))
    await let_everything_run()
    assert (world.finished, ending.done()) == ([], False)
    world.go.set()
    async with asyncio.timeout(20):
        await ending
    assert world.finished == [kind]


def test_a_leader_that_does_not_know_all_messages_yet_has_begun_nothing_and_ends_at_once() -> None:
    async def seconds_of_the_end() -> float:
        world = AtWork(index_without_messages())
        tasks = await world.begin("applications")
        began = asyncio.get_running_loop().time()
        await drain(world.operator, tasks)
        return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(seconds_of_the_end()) < DRAIN_SECONDS


def refusal(code: int) -> web.Response:
    return web.json_response({"kind": "Status", "code": code}, status=code)


def key_secret() -> web.Response:
    return web.json_response({"data": {"key": base64.b64encode(b"k" * KEY_BYTES).decode()}})


async def test_an_operator_that_waits_for_its_crd_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    server = Server(key_secret(), refusal(404))
    async with talking_to(server) as client, asyncio.timeout(60):
        operator = OperatorProcess(write_kubeconfig(tmp_path, client.server), tmp_path / "log", ALONE)
        operator.start()
        await asyncio.to_thread(wait_for, "a question for the CRD", lambda: server.asked[1:], 30, 0.05)
        status = await asyncio.to_thread(operator.end, signal.SIGTERM)
    assert status == 0, operator.log.read_text()
    assert [request.path for request in server.asked][:2] == [KEY_PATH, "/apis/tidegate.dev/v1alpha1"]


async def test_an_operator_that_may_not_read_its_key_says_so_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    server = Server(refusal(403))
    async with talking_to(server) as client, asyncio.timeout(60):
        operator = OperatorProcess(write_kubeconfig(tmp_path, client.server), tmp_path / "log", ALONE)
        operator.start()
        await asyncio.to_thread(wait_for, "a word of the key", lambda: "no key" in operator.log.read_text(), 30, 0.05)
        status = await asyncio.to_thread(operator.end, signal.SIGTERM)
    assert status == 0, operator.log.read_text()
    assert "system/tidegate-agent-key" in operator.log.read_text()
