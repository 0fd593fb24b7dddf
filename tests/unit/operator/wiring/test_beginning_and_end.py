"""When work begins, and that the process ends whenever it is asked to. Runs a process, and a server for it."""

import asyncio
import base64
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from tidegate.access.keys import KEY_BYTES
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import WorkQueue
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.running_operator import DRAIN_SECONDS, Operator, drain
from tidegate_testing.kubectl import write_kubeconfig
from tidegate_testing.observations import app_with
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
