"""How many events an application may have; an API server that takes everything, no I/O."""

from typing import Any

import msgspec
import pytest

from tidegate.act.events import BURST, REFILL_SECONDS, EventPublisher
from tidegate.decide.actions import PublishEvent
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
        await publisher.publish(ABOUT, PublishEvent("Reason", "message", False, str(number)), now)
    return len(api.events)


async def test_an_application_has_a_burst_of_events_and_then_one_a_minute() -> None:
    burst = [NOW] * (int(BURST) + 5)
    assert await publish(burst) == BURST
    assert await publish([*burst, NOW + REFILL_SECONDS, NOW + REFILL_SECONDS]) == BURST + 1


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_is_set_takes_no_events_away(jump: float) -> None:
    assert await publish([NOW, *[NOW + jump] * 10]) == 11
