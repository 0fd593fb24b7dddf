"""How many events an application may have; an API server that takes everything, no I/O."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from tidegate.api.control_message import CONTROL_KIND
from tidegate.api.stream_snapshot import SNAPSHOT_KIND
from tidegate.api.streaming_app import KIND
from tidegate.engine.events import BURST, REFILL_SECONDS, WAITING, EventPublisher
from tidegate.engine.rules.actions import PublishEvent
from tidegate.kube.failures import Forbidden
from tidegate.kube.leadership import NotLeadingError
from tidegate_spark.contract.reasons import ForeignReason
from tidegate_testing.observations import NOW, app_with

ABOUT = app_with().metadata


class ApiServer:
    """Counts what is created."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any]) -> Any:
        self.events.append(manifest["reason"])
        return msgspec.Raw(b"{}")


async def publish(times: list[float]) -> int:
    """Have as many different events published at these times; return how many were."""
    api: Any = ApiServer()
    publisher = EventPublisher(api)
    for number, now in enumerate(times):
        await publisher.publish(ABOUT, PublishEvent(ForeignReason("Reason"), "message", False, str(number)), now)
    return len(api.events)


async def test_an_application_has_a_burst_of_events_and_then_one_a_minute() -> None:
    burst = [NOW] * (int(BURST) + 5)
    assert await publish(burst) == BURST
    assert await publish([*burst, NOW + REFILL_SECONDS, NOW + REFILL_SECONDS]) == BURST + 1


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_is_set_takes_no_events_away(jump: float) -> None:
    assert await publish([NOW, *[NOW + jump] * 10]) == 11


class FullNamespace:
    """Takes no events."""

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any]) -> Any:
        return Forbidden("exceeded quota")


async def published_about(kind: str, times: int = 1) -> list[dict[str, Any]]:
    """Return what is logged of events about an object ``orders`` while an application ``shop`` is looked at."""
    api: Any = FullNamespace()
    publisher = EventPublisher(api)
    with (
        structlog.contextvars.bound_contextvars(app="shop"),
        capture_logs([structlog.contextvars.merge_contextvars]) as lines,
    ):
        for number in range(times):
            await publisher.publish(
                ABOUT, PublishEvent(ForeignReason("Reason"), "message", False, str(number)), NOW, kind
            )
    return [dict(line) for line in lines]


@pytest.mark.parametrize(
    ("kind", "of_whom"),
    [
        (KIND, {"app": "orders"}),
        (SNAPSHOT_KIND, {"app": "shop", "snapshot": "orders"}),
        (CONTROL_KIND, {"app": "shop", "control_message": "orders"}),
    ],
)
async def test_the_log_says_of_which_object_an_event_was_lost_or_withheld(kind: str, of_whom: dict[str, str]) -> None:
    lines = await published_about(kind, int(BURST) + 1)
    assert [line["event"] for line in (lines[0], lines[-1])] == ["event lost", "event withheld"]
    for line in lines:
        assert {key: line.get(key) for key in of_whom} == of_whom


class SlowApiServer:
    """Answers when it is let; notes what it was asked for, and the most that it was asked for at a time."""

    def __init__(self) -> None:
        self.go, self.leads = asyncio.Event(), True
        self.events: list[str] = []
        self.at_once = self._busy = 0

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any]) -> Any:
        if not self.leads:
            raise NotLeadingError("no more")
        self.events.append(manifest["message"])
        self._busy += 1
        self.at_once = max(self.at_once, self._busy)
        await self.go.wait()
        self._busy -= 1
        return msgspec.Raw(b"{}")


@contextlib.asynccontextmanager
async def publishing() -> AsyncIterator[tuple[SlowApiServer, EventPublisher, asyncio.Task[None]]]:
    """A publisher with somebody who publishes what waits."""
    api: Any = SlowApiServer()
    publisher = EventPublisher(api)
    worker = asyncio.create_task(publisher.run_worker())
    await asyncio.sleep(0)
    yield api, publisher, worker
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def later(publisher: EventPublisher, *numbers: int) -> None:
    for number in numbers:
        # Each of an application of its own, so that none has used up what it may have.
        about = msgspec.structs.replace(ABOUT, uid=f"u-{number}")
        await publisher.publish_later(
            about, PublishEvent(ForeignReason("Reason"), f"{number}", False, f"{number}"), NOW
        )


async def let_everything_run() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_nobody_waits_for_an_event_that_may_come_later_and_they_come_one_by_one_in_order() -> None:
    async with publishing() as (api, publisher, _):
        await later(publisher, *range(9))
        await let_everything_run()
        assert api.events == ["0"]
        api.go.set()
        await let_everything_run()
        assert (api.events, api.at_once) == ([str(n) for n in range(9)], 1)
        await later(publisher, 9)
        await let_everything_run()
        assert api.events[-1] == "9"


async def test_events_do_not_pile_up_without_end_and_none_is_lost() -> None:
    async with publishing() as (api, publisher, worker):
        await later(publisher, *range(WAITING))
        beyond = asyncio.create_task(later(publisher, WAITING, WAITING + 1))
        await let_everything_run()
        assert not beyond.done(), "who has more than may wait, waits"
        publisher.stop()
        api.go.set()
        await asyncio.gather(beyond, worker)
        assert sorted(map(int, api.events)) == list(range(WAITING + 2))


async def test_at_the_end_what_waits_is_published_and_nothing_waits_any_more() -> None:
    async with publishing() as (api, publisher, worker):
        await later(publisher, 1, 2, 3)
        publisher.stop()
        api.go.set()
        await later(publisher, 4)
        assert "4" in api.events
        await worker
        assert sorted(api.events) == ["1", "2", "3", "4"]


async def test_without_anybody_to_publish_it_later_an_event_is_published_at_once() -> None:
    api: Any = SlowApiServer()
    api.go.set()
    await later(EventPublisher(api), 1)
    assert api.events == ["1"]


async def test_who_does_not_lead_any_more_publishes_nothing_and_ends() -> None:
    async with publishing() as (api, publisher, worker):
        api.leads = False
        await later(publisher, 1, 2)
        with pytest.raises(NotLeadingError):
            await worker
        assert api.events == []
