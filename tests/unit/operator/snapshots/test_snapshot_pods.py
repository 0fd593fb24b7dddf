"""Which snapshot pods are asked how far they are, and what becomes of the answers. Asks a real one on 127.0.0.1."""

import asyncio
import contextlib
from typing import Any

import pytest

from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.pods_at_work import INTERVAL
from tidegate.cache.index import Index
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.pods_at_work import SnapshotPods
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotReports, SnapshotState
from tidegate_spark.snapshots.service.progress_server import serve
from tidegate_testing.observations import NOW
from tidegate_testing.snapshot_observations import begun, pod, report, snapshot

KEY = ("shop", "nightly")
COPYING = report(SnapshotState.COPYING, files=3, of_files=8)


class Answers:
    """In the place of the client: pods answer as they are told to."""

    def __init__(self, answer: SnapshotReports | Unanswered) -> None:
        self.answer, self.asked = answer, 0

    async def read_snapshot_pod(self, pod: Any) -> SnapshotReports | Unanswered:
        self.asked += 1
        return self.answer


def pods_that_say(*reports: SnapshotReport) -> tuple[SnapshotPods, Index, Answers, list[Any]]:
    index, woken = Index(), list[Any]()
    index.of(SnapshotIndex).put(snapshot(begun()))
    answers: Any = Answers(SnapshotReports(reports))
    return SnapshotPods(index, answers, woken.append), index, answers, woken


async def test_what_a_pod_tells_wakes_its_snapshot_once() -> None:
    pods, index, _, woken = pods_that_say(COPYING)
    pods.follow(KEY, pod(ip="10.0.0.7"))
    await pods.ask()
    await pods.ask()
    progress = index.of(SnapshotIndex).memory(KEY).progress
    assert progress is not None
    assert (progress.report, woken) == (COPYING, [KEY])


@pytest.mark.parametrize("gone", [None, pod(), pod(ip="10.0.0.7", running=False), pod(ip="10.0.0.7", delete_by=NOW)])
async def test_a_pod_that_can_not_answer_is_not_asked(gone: Any) -> None:
    pods, _, answers, _ = pods_that_say(COPYING)
    pods.follow(KEY, pod(ip="10.0.0.7"))
    pods.follow(KEY, gone)
    await pods.ask()
    assert answers.asked == 0


async def test_silence_changes_nothing() -> None:
    pods, index, answers, woken = pods_that_say()
    pods.follow(KEY, pod(ip="10.0.0.7"))
    await pods.ask()
    answers.answer = Unanswered("nobody there")
    await pods.ask()
    assert (index.of(SnapshotIndex).memory(KEY).progress, woken) == (None, [])


async def test_an_answer_that_nobody_can_make_anything_of_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pods, index, answers, woken = pods_that_say(COPYING)
    pods.follow(KEY, pod(ip="10.0.0.7"))

    async def odd(_: Any) -> SnapshotReports:
        raise RecursionError("too deep")

    monkeypatch.setattr(answers, "read_snapshot_pod", odd)
    await pods.ask()
    assert (index.of(SnapshotIndex).memory(KEY).progress, woken) == (None, [])


async def test_all_are_asked_for_as_long_as_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    pods, _, answers, _ = pods_that_say(COPYING)
    slept, three = list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            three.set()
            await asyncio.Event().wait()

    monkeypatch.setattr("tidegate.agent.pods_at_work.asyncio.sleep", sleep)
    task = asyncio.create_task(pods.run())
    pods.follow(KEY, pod(ip="10.0.0.7"))
    await three.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (slept, answers.asked) == ([INTERVAL] * 3, 2)


async def test_a_real_pods_answer_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve("127.0.0.1", 0, lambda: (COPYING,))
    assert server is not None
    monkeypatch.setattr(agent_client, "STATUS_PORT", server.port)
    nobody: Any = None
    async with AgentClient(nobody, 1) as agents:
        assert await agents.read_snapshot_pod(pod(ip="127.0.0.1")) == SnapshotReports((COPYING,))
    server.close()
