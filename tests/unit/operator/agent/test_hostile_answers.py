"""An agent's answers are a tenant's: whatever one says, it is read or called unusable, and the operator goes on.

Real HTTP on 127.0.0.1, the real client, and the real decision about what was read.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from aiohttp import web

from tidegate.agent import client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.app.rules.plan import decide
from tidegate.cache.process_state import TimedReport
from tidegate_spark.contract.protocol import AgentReport
from tidegate_spark.contract.secret_shapes import bytes_without_shapes
from tidegate_spark.contract.snapshot_protocol import SnapshotReports
from tidegate_testing.hostile import hostile_documents
from tidegate_testing.observations import NOW, UID, app_with, launched, observe, running_driver
from tidegate_testing.older_agent import older_agent
from tidegate_testing.stored_forms import stored

KEY = ("shop", "orders")
APP = launched(app_with())
DRIVER = running_driver(APP, ip="127.0.0.1")
LONGEST_REASON = 2_000
SEEDS = [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(12)]


def answering(answers: Iterator[bytes], monkeypatch: pytest.MonkeyPatch) -> AbstractAsyncContextManager[AgentClient]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=next(answers), content_type="application/json")

    return older_agent(answer, monkeypatch)


def hostile_answers(name: str, seed: int, **said: Any) -> list[bytes]:
    return list(hostile_documents(json.loads(stored(name)) | said, 200, seed))


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_drivers_hostile_report_is_unusable_or_decided_on(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = hostile_answers("agent-report-with-protocol", seed, app="orders", uid=UID, epoch=1)
    read = 0
    async with answering(iter(answers), monkeypatch) as agents:
        for _ in answers:
            found = await agents.read_progress(KEY, DRIVER)
            if isinstance(found, Unanswered):
                assert found.reason == found.reason[:LONGEST_REASON]
                continue
            assert isinstance(found, AgentReport)
            read += 1
            plan = decide(observe(APP, driver=DRIVER, agent=TimedReport(found, NOW, DRIVER.uid, 0)), NOW)
            assert plan.actions is not None
    assert 0 < read < len(answers)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_snapshot_pods_hostile_report_is_unusable_or_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = hostile_answers("snapshot-reports", seed)
    async with answering(iter(answers), monkeypatch) as agents:
        for _ in answers:
            found = await agents.read_snapshot_pod(DRIVER)
            assert isinstance(found, SnapshotReports | Unanswered)


async def test_a_long_answer_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are looked for in all of it: a megabyte held up everybody else for as long."""
    read_in: list[int] = []

    def noted(answer: bytes) -> bytes:
        read_in.append(threading.get_ident())
        return bytes_without_shapes(answer)

    monkeypatch.setattr(client, "bytes_without_shapes", noted)
    long = stored("agent-report-with-protocol") + b" " * 500_000
    async with answering(iter([long]), monkeypatch) as agents:
        assert isinstance(await agents.read_progress(KEY, DRIVER), AgentReport)
    assert threading.get_ident() not in read_in
    assert len(read_in) == 1


async def test_a_report_of_an_older_runtime_with_half_a_character_in_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python has such for bytes that are no UTF-8, in names of files, say, which an exception may quote."""
    said = json.loads(stored("agent-report-with-protocol"))
    said["fault"] = {"reason": "ApplicationFailed", "message": "no such file: caf\udce9.csv"}
    async with answering(iter([json.dumps(said).encode()]), monkeypatch) as agents:
        found = await agents.read_progress(KEY, DRIVER)
    assert isinstance(found, AgentReport)
    assert found.fault is not None
    assert found.fault.message == "no such file: caf\ufffd.csv"
