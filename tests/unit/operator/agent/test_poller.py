"""Whom the poller asks, and which answers wake an application. A real agent's HTTP, on 127.0.0.1 in this process."""

import asyncio
import dataclasses
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.poller import BIRTH_SECONDS, PACES, SILENT_QUESTIONS, AgentPoller
from tidegate.agent.session import launch_of
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.index import Index
from tidegate.cache.process_state import ProcessState
from tidegate.engine.workqueue import WorkQueue
from tidegate.pods.records.record import PodRecord
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import ControlReport, MessageReport, MessageState
from tidegate_spark.contract.protocol import AgentReport, DriverState, QueryReport, to_json
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState
from tidegate_testing.hostile import nested
from tidegate_testing.observations import KEYS, NOW, UID, app_with, launched, running_driver
from tidegate_testing.older_agent import older_agent
from tidegate_testing.upgrades import stable

APP = launched(app_with())
KEY = ("shop", "orders")


@asynccontextmanager
async def agent(report: AgentReport, monkeypatch: Any) -> AsyncIterator[tuple[AgentClient, PodRecord, list[Any]]]:
    """A running agent of an older runtime, and a client; the list gets what the agent is asked for and the orders."""
    taken: list[Any] = []
    driver = running_driver(APP, ip="127.0.0.1")
    expected = f"Bearer {KEYS.inspection_token(launch_of(driver))}"

    async def handle(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != expected:
            return web.Response(status=401)
        if request.path == "/v1/executors":
            taken.append(await request.json())
            return web.Response(status=204)
        return web.Response(text=to_json(report))

    async with older_agent(handle, monkeypatch) as client:
        yield client, driver, taken


REPORT = AgentReport("orders", UID, 1, DriverState.RUNNING, queries=(QueryReport("main", batch_id=3),))


async def test_a_report_comes_over_as_it_was_sent(monkeypatch: Any) -> None:
    async with agent(REPORT, monkeypatch) as (client, driver, _):
        assert await client.read_progress(KEY, driver) == REPORT


async def test_an_order_for_executors_arrives(monkeypatch: Any) -> None:
    async with agent(REPORT, monkeypatch) as (client, driver, orders):
        assert await client.set_executors(KEY, driver, 3) is None
    assert orders == [{"instances": 3}]


async def test_an_agent_that_is_not_there_is_silent(monkeypatch: Any) -> None:
    async with agent(REPORT, monkeypatch) as (_, driver, _):
        await asyncio.sleep(0)
    async with AgentClient(KEYS, 4) as another:
        answer = await another.read_progress(KEY, driver)
    # The words are shown in the application's status: without an address, which changes with every pod.
    assert isinstance(answer, Unanswered)
    assert answer.reason.startswith("no connection: ")
    assert "127.0.0.1" not in answer.reason


async def test_of_an_application_that_is_gone_nothing_is_known_any_more(monkeypatch: Any) -> None:
    async with agent(REPORT, monkeypatch) as (client, driver, _):
        queue = WorkQueue(None, OperatorMetrics())  # type: ignore[arg-type] # nothing is worked on
        assert await client.read_progress(KEY, driver) == REPORT
        AgentPoller(Index(), client, queue, OperatorMetrics(), 1).forget(KEY)
        assert client._known == {}


LONG = to_json(REPORT).encode() + b" " * 1024 * 1024
ODD_ANSWERS = {
    "too deep": lambda: web.Response(body=nested(100_000).encode()),
    "too many digits": lambda: web.Response(body=b'{"epoch":' + b"9" * 100_000 + b"}"),
    "elsewhere": lambda: web.Response(status=307, headers={"Location": "/elsewhere"}),
    "too long": lambda: web.Response(body=LONG),
    "packed": lambda: web.Response(body=gzip.compress(LONG), headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("how", ODD_ANSWERS)
async def test_an_agent_can_neither_fill_the_memory_nor_end_or_misdirect_the_operator(
    how: str, monkeypatch: Any
) -> None:
    asked: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request)
        return ODD_ANSWERS[how]()

    async with older_agent(handle, monkeypatch) as client:
        assert isinstance(await client.read_progress(KEY, running_driver(APP, ip="127.0.0.1")), Unanswered)
    assert [(request.path, request.headers["Accept-Encoding"]) for request in asked] == [("/v1/progress", "identity")]


class Agents:
    """Agents that answer what they are told to; None is silence, an exception is raised."""

    def __init__(self, *answers: AgentReport | Exception | None) -> None:
        self.answers = list(answers)
        self.asked_at: list[float] = []
        self.now = 1000.0

    async def read_progress(self, key: Any, pod: PodRecord) -> AgentReport | Unanswered:
        self.asked_at.append(self.now)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer or Unanswered("silent")


async def poll(agents: Agents, app: StreamingApp | None = None, index: Index | None = None, **pod: Any) -> list[float]:
    """Let the poller ask until there are no answers left; return after which of them an application was woken."""
    woken: list[float] = []
    index, metrics = index or Index(), OperatorMetrics()

    async def work(_: Any) -> None:
        woken.append(agents.now)

    index.put_pod(running_driver(APP, **pod))
    if app is not None:
        index.put_app(app)
    queue = WorkQueue(work, metrics, clock=lambda: agents.now)
    poller = AgentPoller(index, agents, queue, metrics, 1, lambda: agents.now)  # type: ignore[arg-type] # no HTTP
    worker = asyncio.create_task(queue.run_worker())
    poller.follow(KEY, running_driver(APP))
    while agents.answers:
        due = poller._next_due()
        if due is None:
            agents.now += 0.5
        else:
            await poller._ask(*due)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    worker.cancel()
    return woken


async def test_a_silent_agent_is_asked_with_growing_pauses() -> None:
    agents = Agents(*[None] * 9)
    await poll(agents)
    pauses = [later - earlier for earlier, later in zip(agents.asked_at, agents.asked_at[1:], strict=False)]
    assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert PACES["silent"][1] == 60.0


async def test_an_agent_that_the_kubelet_reaches_and_the_operator_does_not_is_known_after_three_questions() -> None:
    agents, index = Agents(*[None] * SILENT_QUESTIONS * 2), Index()
    woken = await poll(agents, index=index, ready=True)
    assert woken == [agents.asked_at[SILENT_QUESTIONS - 1]]
    assert index.silences == {KEY: "silent"}


async def test_an_agent_that_answers_again_is_news_and_its_silence_forgotten() -> None:
    agents, index = Agents(REPORT, *[None] * SILENT_QUESTIONS, REPORT), Index()
    woken = await poll(agents, index=index, ready=True)
    assert woken == [agents.asked_at[0], *agents.asked_at[-2:]]
    assert index.silences == {}


async def test_nothing_is_said_of_an_agent_that_the_kubelet_does_not_reach_either() -> None:
    agents, index = Agents(*[None] * SILENT_QUESTIONS * 2), Index()
    assert await poll(agents, index=index) == []
    assert index.silences == {}


async def test_the_first_committed_batch_wakes_the_application_and_the_next_one_does_not() -> None:
    def at(batch: int) -> AgentReport:
        return AgentReport("orders", UID, 1, DriverState.RUNNING, queries=(QueryReport("main", batch_id=batch),))

    agents = Agents(at(-1), at(0), at(1))
    woken = await poll(agents)
    assert woken == agents.asked_at[:2]


async def test_the_batch_that_makes_a_version_stable_wakes_the_application_and_no_other_one() -> None:
    def after(committed: int) -> AgentReport:
        queries = (QueryReport("main", batch_id=committed, committed=committed), QueryReport("more", 9, committed=9))
        return AgentReport("orders", UID, 1, DriverState.RUNNING, queries=queries)

    agents = Agents(*(after(committed) for committed in range(3, 8)))
    woken = await poll(agents, APP)
    assert woken == [agents.asked_at[0], agents.asked_at[2]]


async def test_batches_of_a_version_that_is_stable_are_no_news() -> None:
    def after(committed: int) -> AgentReport:
        return AgentReport("orders", UID, 1, DriverState.RUNNING, queries=(QueryReport("a", 9, committed=committed),))

    agents = Agents(*(after(committed) for committed in range(3, 8)))
    woken = await poll(agents, stable(APP))
    assert woken == agents.asked_at[:1]


async def test_a_driver_that_lacks_executors_is_looked_at_each_time_as_long_as_its_access_is_unknown() -> None:
    lacking = AgentReport("orders", UID, 1, DriverState.RUNNING, executors_wanted=2, executors_running=0)
    agents = Agents(lacking, lacking, lacking)
    assert await poll(agents) == agents.asked_at


@pytest.mark.parametrize(("jump", "wait"), [(-3600.0, 60.0), (0.0, 50.0), (3600.0, 0.0)])
async def test_progress_is_told_within_a_minute_whatever_happens_to_the_clock(jump: float, wait: float) -> None:
    def at(batch: int) -> AgentReport:
        return AgentReport("orders", UID, 1, DriverState.RUNNING, queries=(QueryReport("main", batch_id=batch),))

    agents, index, waits = Agents(at(0), at(1)), Index(), list[float]()
    no_http: Any = agents
    queue: Any = SimpleNamespace(wake=lambda key: None, wake_after=lambda key, seconds: waits.append(seconds))
    index.put_pod(running_driver(APP))
    index.memories[KEY] = ProcessState(status_written_at=NOW - 10)
    poller = AgentPoller(index, no_http, queue, OperatorMetrics(), 1, lambda: agents.now, lambda: NOW + jump)
    poller.follow(KEY, running_driver(APP))
    while agents.answers:
        agents.now += 1.0
        due = poller._next_due()
        if due is not None:
            await poller._ask(*due)
    assert [max(0.0, seconds) for seconds in waits] == [wait]


async def test_an_exception_while_asking_is_silence_and_the_agent_is_asked_again() -> None:
    agents = Agents(ValueError("odd"), None, REPORT)
    assert await poll(agents) == agents.asked_at[2:]
    assert agents.asked_at[1] - agents.asked_at[0] == 2.0


async def test_an_answer_that_cannot_be_taken_in_keeps_nobody_from_asking_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, taken = AgentPoller._take_in, list[Any]()

    def take_in(self: AgentPoller, *given: Any) -> None:
        taken.append(given)
        if len(taken) == 1:
            raise ValueError("odd")
        whole(self, *given)

    monkeypatch.setattr(AgentPoller, "_take_in", take_in)
    agents = Agents(REPORT, REPORT)
    await poll(agents)
    assert len(agents.asked_at) == len(taken) == 2


async def test_an_agent_that_is_at_a_snapshot_is_asked_every_two_seconds_and_its_progress_is_news() -> None:
    def at(files: int, state: SnapshotState = SnapshotState.COPYING) -> AgentReport:
        order = SnapshotReport("nightly-1", state, files=files, of_files=9)
        return AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True, snapshots=(order,))

    done = at(9, SnapshotState.READY)
    agents = Agents(at(1), at(2), at(2), at(5), done, done)
    woken = await poll(agents)
    pauses = [later - earlier for earlier, later in zip(agents.asked_at, agents.asked_at[1:], strict=False)]
    assert pauses[:4] == [2.0] * 4
    assert pauses[4] > 2.0
    assert woken == [agents.asked_at[number] for number in (0, 1, 3, 4)]


async def asked_after(age: float, ready_after: float | None = None, **fields: Any) -> list[float]:
    """Return after how many seconds a driver is asked, whose process began ``age`` seconds before it is followed."""
    agents, index = Agents(None, None), Index()
    no_http: Any = agents
    driver = running_driver(APP, start_time=agents.now - age, **fields)
    index.put_pod(driver)
    queue = WorkQueue(lambda key: asyncio.sleep(0.0), OperatorMetrics())
    poller = AgentPoller(index, no_http, queue, OperatorMetrics(), 1, lambda: agents.now, lambda: agents.now)
    poller.follow(KEY, driver)
    while agents.answers and agents.now < 1060.0:
        due = poller._next_due()
        if due is not None:
            await poller._ask(*due)
            continue
        agents.now += 0.25
        if ready_after is not None and agents.now - 1000.0 >= ready_after:
            poller.follow(KEY, dataclasses.replace(driver, ready=True))
    return [at - 1000.0 for at in agents.asked_at]


async def test_an_agent_is_given_the_time_to_come_up_before_it_is_asked() -> None:
    assert await asked_after(0.5) == [BIRTH_SECONDS, BIRTH_SECONDS + 2.0]
    assert await asked_after(BIRTH_SECONDS) == [0.0, 2.0]


async def test_an_agent_that_the_kubelet_found_ready_is_asked_at_once() -> None:
    assert await asked_after(0.5, ready=True) == [0.0, 2.0]
    assert await asked_after(0.5, ready_after=1.0) == [1.0, 3.0]
    assert await asked_after(0.5, ready_after=3.0) == [BIRTH_SECONDS, BIRTH_SECONDS + 2.0]


@pytest.mark.parametrize("age", [-30.0, 30.0])
async def test_a_nodes_clock_that_is_wrong_keeps_nobody_from_asking(age: float) -> None:
    assert (await asked_after(age))[0] == 0.0


async def test_news_of_control_messages_is_asked_for_soon_and_one_that_nothing_comes_of_is_not() -> None:
    def at(state: MessageState) -> AgentReport:
        reported = ControlReport(messages=(MessageReport("uid-1", state, 1),))
        return AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True, control=reported)

    quiet = AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True)
    logged, done = at(MessageState.LOGGED), at(MessageState.DONE)
    agents = Agents(quiet, quiet, logged, logged, logged, done, done)
    woken = await poll(agents)
    pauses = [later - earlier for earlier, later in zip(agents.asked_at, agents.asked_at[1:], strict=False)]
    assert pauses[2] == 2.0
    assert pauses[3] < pauses[4]
    assert pauses[5] == 2.0
    assert woken == [agents.asked_at[number] for number in (0, 2, 5)]


async def test_that_executors_have_gone_is_heard_within_seconds() -> None:
    def at(leaving: int) -> AgentReport:
        counts: dict[str, Any] = {"executors_wanted": 2, "executors_running": 2, "executors_leaving": leaving}
        return AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True, **counts)

    agents = Agents(*[at(0)] * 9, *[at(6)] * 4, at(0), at(0), at(0))
    woken = await poll(agents)
    pauses = [later - earlier for earlier, later in zip(agents.asked_at, agents.asked_at[1:], strict=False)]
    assert pauses[8] == 30.0
    assert pauses[9:13] == [5.0] * 4
    assert pauses[14] > 5.0
    assert woken == [agents.asked_at[number] for number in (0, 9, 13)]


async def test_an_application_that_is_paused_is_news() -> None:
    def paused(value: bool) -> AgentReport:
        return AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True, control=ControlReport(paused=value))

    agents = Agents(paused(False), paused(True), paused(True), paused(False))
    assert await poll(agents) == [agents.asked_at[number] for number in (0, 1, 3)]
