"""The broker in memory keeps the contract, as a topic and as a queue; so does the inbox, and what is behind them."""

from typing import Any

import pytest

from tidegate_spark.control.channels import intake
from tidegate_spark.control.channels.ports import LARGEST_EVENT, Received
from tidegate_testing.channel_contract import ChannelContract, Scene
from tidegate_testing.channels import QUEUE, TOPIC, MemoryBroker, MemoryChannel
from tidegate_testing.inbox_scene import MemoryInbox


class MemoryScene:
    """See :class:`Scene`."""

    def __init__(self, kind: str) -> None:
        self.broker = MemoryBroker(kind)
        self.replays, self.has_content_types = kind == TOPIC, True

    def send(self, body: bytes, content_type: str = "") -> None:
        if len(body) <= LARGEST_EVENT:
            self.broker.send(body, content_type)
            return
        self.broker.send(b"")
        sent = self.broker.messages[-1]
        self.broker.messages[-1] = Received(sent.origin, offset=sent.offset, size=len(body))

    def replies(self) -> list[dict[str, Any]]:
        return list(self.broker.replies)

    def channel(self, *, password: str = "", name: str = "") -> MemoryChannel:
        broker = MemoryBroker(self.broker.kind, is_there=False) if name else self.broker
        return broker.channel(password or "right")

    def stop(self) -> None:
        self.broker.is_up = False

    def start(self) -> None:
        self.broker.is_up = True


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPEN_SECONDS", "FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(intake, name, 0.02)


class TestChannelInMemory(ChannelContract):
    @pytest.fixture(params=[TOPIC, QUEUE])
    def scene(self, request: pytest.FixtureRequest) -> Scene:
        return MemoryScene(request.param)


class TestInboxInMemory(ChannelContract):
    @pytest.fixture
    def scene(self) -> Scene:
        return MemoryInbox()
