"""Whose a port is that is in use is said by the error of who wants it."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.driver.agent.agent import Agent, Commands
from tidegate_spark.driver.script import own_ports
from tidegate_spark.monitoring.metrics import build_registry
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.driver_process import driver_config

HERE = "127.0.0.1"


def nothing(*given: Any) -> Any:
    raise AssertionError(given)


COMMANDS = Commands(nothing, nothing, nothing, nothing, nothing)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server((HERE, 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def named(listening: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """A port of Tidegate's, in a process where that is said."""
    monkeypatch.setattr(socket.socket, "bind", socket.socket.bind)
    own_ports.name_owner((listening,))
    return listening


def test_who_binds_a_port_of_tidegates_is_told_so(named: int) -> None:
    with pytest.raises(OSError, match=f"ports {named} of the driver pod are Tidegate's") as raised:
        socket.create_server((HERE, named))
    assert raised.value.errno == errno.EADDRINUSE


def test_servers_of_asyncio_are_told_so_too(named: int) -> None:
    async def serve() -> None:
        await asyncio.start_server(lambda reader, writer: None, HERE, named)

    with pytest.raises(OSError, match=r"(?i)of the driver pod are tidegate's"):
        asyncio.run(serve())


def test_other_ports_have_the_systems_words(named: int) -> None:
    with socket.create_server((HERE, 0)) as other, pytest.raises(OSError, match="in use") as raised:
        socket.create_server((HERE, other.getsockname()[1]))
    assert "Tidegate" not in str(raised.value)


def test_a_free_port_is_bound(named: int) -> None:
    with socket.create_server((HERE, 0)) as server:
        assert server.getsockname()[1] != named


def test_a_sidecar_that_has_a_port_of_tidegates_is_named_as_a_cause(listening: int) -> None:
    environment = Environment.read({"TIDEGATE_BIND_ADDRESS": HERE, "TIDEGATE_STATUS_PORT": str(listening)})
    config = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))
    progress = Progress(config)
    with pytest.raises(OSError, match=f"Port {listening} of the pod, which is Tidegate's, is in use") as raised:
        Agent(environment, progress, build_registry(config, progress), COMMANDS, Secrets(), None)
    assert raised.value.errno == errno.EADDRINUSE
