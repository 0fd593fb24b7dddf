"""Of two applications whose storage overlaps, and that are launched at the same time, one gets the place."""

import asyncio
from typing import Any

import msgspec

from tests.unit.act.test_carry_out import World
from tidegate.act.outcome import LookAgain, Outcome
from tidegate.decide.actions import Plan, RecordLaunch
from tidegate.kube.failures import Conflict
from tidegate.model.streaming_app import StreamingApp
from tidegate.workqueue import Key
from tidegate_spark.protocol import store_identity
from tidegate_spark.reasons import ForeignReason
from tidegate_testing.observations import NOW, app_with

STORE = store_identity("", "")
OUTER = app_with({"storage.uri": "s3://streams/apps"}, creationTimestamp="2026-01-01T00:00:00Z")
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

    async def merge_patch(self, path: str, change: Any, kind: type[Any]) -> Any:
        return await self.answer

    async def get(self, path: str, kind: type[Any]) -> Any:
        return INNER


def of_both() -> tuple[World, Slow, list[Key]]:
    server, woken = Slow(), list[Key]()
    world = World(server)  # type: ignore[arg-type] # what these tests ask of it
    world.actor._wake = woken.append
    for app in (OUTER, INNER):
        world.index.put_app(app)
    return world, server, woken


async def record(world: World, app: StreamingApp) -> Outcome:
    status = msgspec.structs.replace(app.status, epoch=1, store=STORE)
    plan = Plan("launch", ForeignReason("Reason"), "message", (RecordLaunch(status, unplanned=False),))
    return await world.actor.carry_out(app, plan, NOW)


async def test_who_begins_to_record_a_launch_has_the_place_before_the_answer_has_come() -> None:
    world, server, _ = of_both()
    first = asyncio.create_task(record(world, INNER))
    await asyncio.sleep(0)
    assert isinstance(await record(world, OUTER), LookAgain)
    server.answer.set_result(RECORDED)
    assert await first is None
    assert (world.index.rival(OUTER), world.index.launching) == ("inner", set())


async def test_who_waits_for_a_launch_that_could_not_be_recorded_is_looked_at() -> None:
    world, server, woken = of_both()
    server.answer.set_result(Conflict("changed"))
    assert isinstance(await record(world, INNER), LookAgain)
    assert (woken, world.index.rival(OUTER)) == ([("shop", "orders")], "")
