"""A thousand clients that never finish a request, on both ports of a driver's agent; a few that do. Real sockets."""

import contextlib
import http.client
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from devcluster.control import free_port
from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, ControlOrder, ControlOrders
from tidegate_spark.contract.protocol import AgentReport, Storage, from_json, to_json
from tidegate_spark.driver.agent.agent import COMMAND_LIMITS, STATUS_LIMITS, Agent
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.agent_commands import commands
from tidegate_testing.driver_process import TOKEN, driver_config
from tidegate_testing.slow_clients import SLOW, SlowClients


@dataclass
class Driver:
    """An agent, and what it had its driver do."""

    status_port: int
    command_port: int
    open_connections: Callable[[], tuple[int, ...]] = tuple
    given: list[Any] = field(default_factory=list)

    def ask(self, port: int, method: str, path: str, body: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            return answer.status, answer.read()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    (tmp_path / "token").write_text(TOKEN)
    made = Driver(free_port(), free_port())
    variables = {
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_COMMAND_PORT": str(made.command_port),
        "TIDEGATE_STATUS_PORT": str(made.status_port),
        "TIDEGATE_AGENT_TOKEN_FILE": str(tmp_path / "token"),
    }
    registry = CollectorRegistry()
    Counter("batches", "Batches.", registry=registry).inc(7)
    given = commands(give_messages=made.given.append, set_executors=made.given.append)
    config = driver_config("orders", "main.py", Storage("s3://bucket/tests/app"))
    agent = Agent(Environment.read(variables), Progress(config), registry, given, Secrets())
    agent.start()
    made.open_connections = lambda: tuple(server.open_connections for server in agent.servers)
    yield made
    agent.close()


def threads_of_ports() -> int:
    return sum(thread.name.startswith("port-") for thread in threading.enumerate())


def test_a_thousand_slow_clients_on_each_port_keep_nobody_from_an_answer(driver: Driver) -> None:
    orders = ControlOrders((ControlOrder("x", "ping"),))
    before, most = threads_of_ports(), 0
    with SlowClients(driver.status_port, driver.command_port) as slow:
        # As long as it takes until each port has closed hundreds of them, and they came again.
        for number in itertools.takewhile(lambda number: number <= 20 or slow.cut <= SLOW, itertools.count(1)):
            assert driver.ask(driver.status_port, "GET", "/healthz") == (200, b"ok\n")
            assert driver.ask(driver.status_port, "GET", "/readyz")[1] == b"not ready\n"
            assert b"batches_total 7.0" in driver.ask(driver.status_port, "GET", "/metrics")[1]
            report = from_json(AgentReport, driver.ask(driver.command_port, "GET", "/v1/progress")[1])
            assert report.app == "orders"
            assert driver.ask(driver.command_port, "POST", CONTROL_COMMAND, to_json(orders)) == (202, b"{}")
            assert len(driver.given) == number
            most = max(most, *driver.open_connections())
        assert most == STATUS_LIMITS.connections == COMMAND_LIMITS.connections
        limits = (STATUS_LIMITS, COMMAND_LIMITS)
        assert threads_of_ports() - before <= sum(each.threads + each.long_threads for each in limits)
