"""Of two applications whose storage overlaps, and that are launched at the same time, one gets the place."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.unit.operator.app.test_act import APP, KEY, World
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.actions import Plan, RecordLaunch
from tidegate.engine.outcome import ObserveAgain, Outcome
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Conflict, Failure, Unavailable
from tidegate_spark.contract.protocol import store_identity
from tidegate_spark.contract.reasons import ForeignReason
from tidegate_testing.observations import NOW, app_with

STORE = store_identity("", "")
OUTER = app_with({"storage.uri": "s3://streams/apps"}, uid="u-3", creationTimestamp="2026-01-01T00:00:00Z")
INNER = app_with(
    {"storage.uri": "s3://streams/apps/shop/orders"}, name="inner", uid="u-2", creationTimestamp="2026-01-02T00:00:00Z"
)
RECORDED = msgspec.structs.replace(
    INNER,
    metadata=msgspec.structs.replace(INNER.metadata, resource_version="99"),
    status=msgspec.structs.replace(INNER.status, epoch=1, store=STORE),
)


class Slow:
    """An API server whose answer to the one write is given later."""

    def __init__(self) -> None:
        self.answer = asyncio.get_running_loop().create_future()
        self.asked = asyncio.Event()

    async def merge_patch(self, path: str, change: Any, kind: type[Any]) -> Any:
        self.asked.set()
        return await self.answer

    async def get(self, path: str, kind: type[Any]) -> Any:
        return INNER


def with_inner() -> tuple[World, Slow, list[Key]]:
    server, woken = Slow(), list[Key]()
    world = World(server)  # type: ignore[arg-type] # what these tests ask of it
    world.actor._wake = woken.append
    world.index.remove_app(KEY, APP.metadata.uid)
    world.index.put_app(INNER)
    return world, server, woken


async def begin_to_record(world: World, server: Slow) -> asyncio.Task[Outcome]:
    """Have the launch of the inner one begun when the outer one, which is older, is edited to stand around it."""
    first = asyncio.create_task(record(world, INNER))
    await server.asked.wait()
    world.index.put_app(OUTER)
    return first


async def record(world: World, app: StreamingApp) -> Outcome:
    status = msgspec.structs.replace(app.status, epoch=1, store=STORE)
    plan = Plan("launch", ForeignReason("Reason"), "message", (RecordLaunch(status, unplanned=False),))
    return await world.actor.carry_out(app, plan, NOW)


async def test_who_begins_to_record_a_launch_has_the_place_before_the_answer_has_come() -> None:
    world, server, _ = with_inner()
    first = await begin_to_record(world, server)
    assert isinstance(await record(world, OUTER), ObserveAgain)
    server.answer.set_result(RECORDED)
    assert await first is None
    assert (world.index.rival(OUTER), world.index.launching) == ("inner", set())


@pytest.mark.parametrize("answer", [Conflict("changed"), Unavailable("no answer")])
async def test_who_waits_for_a_launch_that_could_not_be_recorded_is_woken(answer: Failure) -> None:
    world, server, woken = with_inner()
    first = await begin_to_record(world, server)
    server.answer.set_result(answer)
    (said,) = await asyncio.gather(first, return_exceptions=True)
    assert isinstance(said, (ObserveAgain, RetryLaterError))
    assert (woken, world.index.rival(OUTER)) == ([("shop", "orders")], "")
