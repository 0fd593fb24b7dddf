"""The operator's client and a driver's real agent: what is signed arrives, and what is not its driver's is no answer.

Both sides as they are, over HTTP on 127.0.0.1.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout, web

from tidegate.access.keys import KEY_BYTES, OperatorKeys
from tidegate.agent import client as agent_client
from tidegate.agent.client import OTHER_KEY, AgentClient, Unanswered
from tidegate.agent.session import launch_of
from tidegate.kube.leadership import NotLeadingError
from tidegate_spark.contract.agent_protocol import CHALLENGE_SECONDS, GREETING_PATH
from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_testing.agent_commands import commands
from tidegate_testing.agent_keys import Clock
from tidegate_testing.observations import KEYS, UID, app_with, launched, running_driver
from tidegate_testing.signing_agent import signing_agent

APP, KEY = launched(app_with()), ("shop", "orders")
DRIVER = running_driver(APP, ip="127.0.0.1", signs=True)
LAUNCH = launch_of(DRIVER)
REPORT = AgentReport("orders", UID, 1, DriverState.RUNNING)
PROGRESS = SimpleNamespace(report=lambda: REPORT)
OTHERS = OperatorKeys(b"another operator's key, made when the first was lost")


class Driver:
    """What a driver was told to do."""

    def __init__(self) -> None:
        self.executors: list[int] = []
        self.messages: list[str] = []

    @property
    def commands(self) -> Any:
        return commands(
            set_executors=self.executors.append,
            give_messages=lambda orders: self.messages.extend(order.id for order in orders.messages),
        )


@contextmanager
def running(folder: Path, monkeypatch: pytest.MonkeyPatch, **other: Any) -> Iterator[Driver]:
    driver = Driver()
    launch = other.pop("launch", LAUNCH)
    with signing_agent(folder, launch, PROGRESS, driver.commands, **other) as port:
        monkeypatch.setattr(agent_client, "COMMAND_PORT", port)
        # Of a machine that is busy, no test is to tell anything.
        monkeypatch.setattr(agent_client, "_TIMEOUT", ClientTimeout(total=120))
        yield driver


@asynccontextmanager
async def between(monkeypatch: pytest.MonkeyPatch, change: Any) -> AsyncIterator[list[web.Request]]:
    """Have somebody on the way, who passes on what is asked and answers with what ``change`` makes of the answer."""
    seen: list[web.Request] = []
    real = vars(agent_client)["COMMAND_PORT"]

    async def handle(request: web.Request) -> web.Response:
        seen.append(request)
        url = f"http://127.0.0.1:{real}{request.path_qs}"
        async with (
            ClientSession() as session,
            session.request(request.method, url, data=await request.read(), headers=request.headers) as answer,
        ):
            headers = {name: value for name, value in answer.headers.items() if name.startswith("Tidegate")}
            made = web.Response(status=answer.status, body=await answer.read(), headers=headers)
        changed: web.Response = change(request, made)
        return changed

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setattr(agent_client, "COMMAND_PORT", runner.addresses[0][1])
    yield seen
    await runner.cleanup()


def as_it_is(_: web.Request, answer: web.Response) -> web.Response:
    return answer


async def test_what_the_operator_asks_and_orders_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, monkeypatch) as driver:
        async with AgentClient(KEYS, 4) as client:
            assert await client.read_progress(KEY, DRIVER) == REPORT
            assert await client.set_executors(KEY, DRIVER, 3) is None
            assert await client.order_control(KEY, DRIVER, ControlOrders((ControlOrder("m1", "ping"),))) is None
    assert (driver.executors, driver.messages) == ([3], ["m1"])


async def test_questions_and_orders_to_one_driver_at_once_do_not_spoil_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch) as driver:
        async with AgentClient(KEYS, 16) as client:
            for _ in range(3):
                asked = [client.read_progress(KEY, DRIVER) for _ in range(8)]
                ordered = [client.set_executors(KEY, DRIVER, number) for number in range(1, 9)]
                mixed = [each for pair in zip(asked, ordered, strict=True) for each in pair]
                found = await asyncio.gather(*mixed)
                assert found == [REPORT, None] * 8
                client.forget(KEY)  # all of them begin the session at once, too
    assert sorted(driver.executors) == sorted([*range(1, 9)] * 3)


async def test_a_challenge_that_is_too_old_costs_a_greeting_and_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    with running(tmp_path, monkeypatch, clock=clock) as driver:
        async with between(monkeypatch, as_it_is) as seen, AgentClient(KEYS, 4) as client:
            for number in (1, 2, 3):
                clock.now += CHALLENGE_SECONDS + 1
                assert await client.set_executors(KEY, DRIVER, number) is None
    assert driver.executors == [1, 2, 3]
    assert [request.path for request in seen].count(GREETING_PATH) == 3


async def test_a_process_that_began_anew_is_met_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AgentClient(KEYS, 4) as client:
        for restarts in (0, 0, 1):  # the pod's record may be late
            with running(tmp_path, monkeypatch) as driver:
                pod = dataclasses.replace(DRIVER, restarts=restarts)
                assert await client.set_executors(KEY, pod, 2) is None
            assert driver.executors == [2]


async def test_the_token_never_goes_to_a_driver_that_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, monkeypatch):
        async with between(monkeypatch, as_it_is) as seen, AgentClient(KEYS, 4) as client:
            assert await client.read_progress(KEY, DRIVER) == REPORT
            assert await client.set_executors(KEY, DRIVER, 2) is None
    token = KEYS.inspection_token(LAUNCH)
    assert not [request for request in seen if token in f"{request.headers} {request.path_qs}"]


@pytest.mark.parametrize(
    "other", [dataclasses.replace(LAUNCH, app="billing"), dataclasses.replace(LAUNCH, epoch=2)], ids=["app", "epoch"]
)
async def test_another_driver_behind_the_pods_address_is_not_taken_for_its_own(
    other: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch, launch=other) as driver:
        async with AgentClient(KEYS, 4) as client:
            asked, ordered = await client.read_progress(KEY, DRIVER), await client.set_executors(KEY, DRIVER, 2)
    assert asked == ordered == Unanswered("what answers has not the token of this launch")
    assert driver.executors == []


def another_body(request: web.Request, answer: web.Response) -> web.Response:
    return web.Response(status=answer.status, body=b"{}", headers=answer.headers)


def another_status(request: web.Request, answer: web.Response) -> web.Response:
    return web.Response(status=202, body=answer.body, headers=answer.headers)


def without_signature(request: web.Request, answer: web.Response) -> web.Response:
    return web.Response(status=answer.status, body=answer.body)


@pytest.mark.parametrize("change", [another_body, another_status, without_signature])
async def test_an_answer_that_somebody_changed_on_the_way_is_not_believed(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(request: web.Request, answer: web.Response) -> web.Response:
        return answer if request.path == GREETING_PATH else change(request, answer)

    with running(tmp_path, monkeypatch):
        async with between(monkeypatch, changed), AgentClient(KEYS, 4) as client:
            found = await client.read_progress(KEY, DRIVER)
    assert found == Unanswered("what answers is not the driver's process: its answer is not signed")


async def test_the_answer_to_an_earlier_question_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[web.Response] = []

    def the_first(request: web.Request, answer: web.Response) -> web.Response:
        if request.path == GREETING_PATH:
            return answer
        answers.append(answer)
        return web.Response(status=200, body=answers[0].body, headers=answers[0].headers)

    with running(tmp_path, monkeypatch):
        async with between(monkeypatch, the_first), AgentClient(KEYS, 4) as client:
            found = [await client.read_progress(KEY, DRIVER) for _ in range(2)]
    assert found == [REPORT, Unanswered("what answers is not the driver's process: its answer is not signed")]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_who_answers_with_a_refusal_that_is_not_signed_gets_neither_the_token_nor_believed(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: web.Request, __: web.Response) -> web.Response:
        return web.Response(status=status, body=b'{"error": "no"}')

    with running(tmp_path, monkeypatch):
        async with between(monkeypatch, refuse) as seen, AgentClient(KEYS, 4) as client:
            found = await client.set_executors(KEY, DRIVER, 2)
    assert found == Unanswered(f"HTTP {status}: no", refused=False)
    assert all("Authorization" not in request.headers for request in seen)


async def test_a_refusal_of_the_drivers_own_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, monkeypatch):
        async with AgentClient(KEYS, 4) as client:
            found = await client.set_executors(KEY, DRIVER, 0)
    assert found == Unanswered("HTTP 400: instances: expected 1 to 10000, got 0", refused=True)


async def test_a_driver_of_another_key_is_not_even_asked_and_of_a_key_that_came_back_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch) as driver:
        async with between(monkeypatch, as_it_is) as seen:
            async with AgentClient(OTHERS, 4) as client:
                assert await client.read_progress(KEY, DRIVER) == Unanswered(OTHER_KEY)
                assert await client.set_executors(KEY, DRIVER, 2) == Unanswered(OTHER_KEY)
            assert (seen, driver.executors) == ([], [])
            async with AgentClient(KEYS, 4) as client:
                assert await client.set_executors(KEY, DRIVER, 2) is None


async def test_a_driver_that_an_operator_without_keys_launched_is_not_asked() -> None:
    async with AgentClient(KEYS, 4) as client:
        assert await client.read_progress(KEY, dataclasses.replace(DRIVER, agent_secret="")) == Unanswered(OTHER_KEY)


@pytest.mark.parametrize("answers", [[False], [True, False]], ids=["before a connection", "before the body leaves"])
async def test_an_order_is_not_sent_by_who_does_not_lead(
    answers: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, monkeypatch) as driver:
        async with AgentClient(KEYS, 4, partial(answers.pop, 0)) as client:
            with pytest.raises(NotLeadingError):
                await client.set_executors(KEY, DRIVER, 3)
    assert driver.executors == []


async def test_an_image_with_an_older_runtime_that_was_made_anew_is_met_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, unknown = dataclasses.replace(DRIVER, signs=False), [True]

    def older(_: web.Request, answer: web.Response) -> web.Response:
        return web.Response(status=401) if unknown[0] else answer

    with running(tmp_path, monkeypatch) as driver:
        async with between(monkeypatch, older), AgentClient(KEYS, 4) as client:
            assert isinstance(await client.set_executors(KEY, pod, 2), Unanswered)
            unknown[0] = False
            assert await client.set_executors(KEY, pod, 3) is None
    assert driver.executors == [3]


def test_an_operators_keys_are_the_same_in_each_process_and_others_of_each_key_launch_and_purpose() -> None:
    again = OperatorKeys(b"the operator's key of all tests ..")
    other = dataclasses.replace(LAUNCH, epoch=2)
    made = [of(keys, launch) for keys in (KEYS, OTHERS) for launch in (LAUNCH, other) for of in PURPOSES]
    assert len(set(made)) == len(made)
    assert [of(again, LAUNCH) for of in PURPOSES] == [of(KEYS, LAUNCH) for of in PURPOSES]
    assert again.id == KEYS.id
    assert KEYS.id != OTHERS.id


PURPOSES = (OperatorKeys.inspection_token, OperatorKeys.spark_secret, OperatorKeys.number)


def test_what_is_too_short_is_no_key_and_a_key_is_not_shown() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        OperatorKeys(b"x" * (KEY_BYTES - 1))
    key = b"k" * KEY_BYTES
    assert "kkk" not in f"{OperatorKeys(key)!r} {OperatorKeys(key).id}"
