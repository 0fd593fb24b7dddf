"""Messages come in at the command port, and what came of them goes out in the report."""

import http.client
import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from devcluster.control import free_port
from tidegate_spark.contract.control_protocol import (
    CONTROL_COMMAND,
    LARGEST_CONTROL_ORDERS,
    ControlOrder,
    ControlOrders,
    ControlReport,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_spark.contract.protocol import AgentReport, Storage, from_json, to_json
from tidegate_spark.driver.agent.agent import Agent
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.agent_commands import commands
from tidegate_testing.driver_process import driver_config

PORT = free_port()


class Office:
    """A desk that remembers."""

    def __init__(self) -> None:
        self.given: list[ControlOrders] = []
        self.progress = Progress(driver_config("app", "local:///main.py", Storage("s3://b/p")))

    def give(self, orders: ControlOrders) -> None:
        if not all(order.id for order in orders.messages):
            raise ValueError("a message needs an id and a type")
        self.given.append(orders)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    folder: Path = tmp_path_factory.mktemp("agent")
    (folder / "token").write_text("word")
    variables = {"TIDEGATE_BIND_ADDRESS": "127.0.0.1", "TIDEGATE_AGENT_TOKEN_FILE": str(folder / "token")}
    ports = {"TIDEGATE_STATUS_PORT": str(free_port()), "TIDEGATE_COMMAND_PORT": str(PORT)}
    made = Office()
    given = commands(give_messages=made.give)
    environment = Environment.read({**variables, **ports})
    Agent(environment, made.progress, CollectorRegistry(), given, Secrets(("hidden-value",))).start()
    return made


def ask(method: str, path: str, body: str = "", token: str = "word", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request(method, path, body, {"Authorization": f"Bearer {token}", **headers})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content


def test_messages_are_taken_in(office: Office) -> None:
    orders = ControlOrders((ControlOrder("x", "ping"),), ("w",))
    assert ask("POST", CONTROL_COMMAND, to_json(orders)) == (202, "{}")
    assert office.given[-1] == orders


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ('{"messages": [{"id": "x"}]}', 400),
        ('{"messages": [{"id": "", "type": "ping"}]}', 400),
    ],
)
def test_what_cannot_be_meant_is_refused(office: Office, body: str, status: int) -> None:
    assert ask("POST", CONTROL_COMMAND, body)[0] == status


def test_what_is_too_long_is_refused_before_it_is_read(office: Office) -> None:
    length = {"Content-Length": str(LARGEST_CONTROL_ORDERS + 1)}
    assert ask("POST", CONTROL_COMMAND, **length)[0] == 413


def test_a_stranger_sends_nothing(office: Office) -> None:
    assert ask("POST", CONTROL_COMMAND, "{}", token="guess")[0] == 401


def test_the_report_says_what_came_of_messages_without_secrets(office: Office) -> None:
    queries = {"main": QueryAcknowledgement(7, 1, 2, ("1/1: hidden-value is wrong",))}
    message = MessageReport("x", MessageState.FAILED, 3, "HandlerFailed", "hidden-value is wrong", queries)
    office.progress.control = lambda: ControlReport(3, {"main": 3}, messages=(message,))
    report = from_json(AgentReport, ask("GET", "/v1/progress")[1]).control
    assert (report.last, report.positions) == (3, {"main": 3})
    assert report.messages[0].message == "[redacted] is wrong"
    assert report.messages[0].queries["main"].errors == ("1/1: [redacted] is wrong",)


def test_the_report_of_an_earlier_agent_says_nothing_of_messages(office: Office) -> None:
    said = json.loads(ask("GET", "/v1/progress")[1])
    del said["control"]
    assert from_json(AgentReport, json.dumps(said)).control == ControlReport()
