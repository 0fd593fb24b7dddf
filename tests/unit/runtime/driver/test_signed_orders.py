"""The command port of a driver whose operator signs: who may look, who may give orders. Real HTTP on 127.0.0.1."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from devcluster.control import free_port
from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_HEADER,
    SIGNATURE_HEADER,
    Launch,
    SignedRequest,
    digest_of,
    order_key,
    prove,
)
from tidegate_spark.contract.protocol import AgentReport, DriverConfig, Storage, from_json
from tidegate_spark.driver.agent.agent import Agent, gate_of
from tidegate_spark.inspect.http import Reply
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.agent_commands import commands
from tidegate_testing.agent_keys import OPERATORS, PRIVATE
from tidegate_testing.driver_process import driver_config

CONFIG = replace(driver_config("app", "main.py", Storage("s3://bucket/app"), epoch=2), agent_secret="app-agent-2")
LAUNCH = Launch(CONFIG.namespace, CONFIG.app, CONFIG.uid, CONFIG.epoch)
TOKEN = "for-looks"
BEARER = f"Bearer {TOKEN}"


@dataclass
class Driver:
    """An agent, and what it was told to do."""

    port: int
    done: list[Any] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: bytes = b"", authorization: str = ""
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body or None, {"Authorization": authorization} if authorization else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer.msg

    def greeting(self) -> dict[str, str]:
        status, content, _ = self.ask("GET", "/v1/greeting?nonce=n0")
        assert status == 200
        said: dict[str, str] = json.loads(content)
        return said

    def key(self) -> bytes:
        number = self.greeting()["number"]
        return order_key(PRIVATE, number, LAUNCH, operators=OPERATORS, drivers=number)

    def signed(self, method: str, path: str, body: bytes, nonce: str, challenge: str = "") -> SignedRequest:
        return SignedRequest(method, path, digest_of(body), challenge or self.greeting()["challenge"], nonce)


def running(folder: Path, config: DriverConfig, files: dict[str, str]) -> tuple[Agent, Driver]:
    for name, content in files.items():
        (folder / name).write_text(content)
    driver = Driver(free_port())
    variables = {
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_COMMAND_PORT": str(driver.port),
        "TIDEGATE_STATUS_PORT": str(free_port()),
        "TIDEGATE_AGENT_TOKEN_FILE": str(folder / "token"),
    }
    environment = Environment.read(variables)
    given = commands(
        stop=lambda: driver.done.append("stop"),
        set_executors=driver.done.append,
        inspect=lambda target: Reply(200, '{"rows": []}'),
    )
    gate = gate_of(config, environment)
    agent = Agent(environment, Progress(config), CollectorRegistry(), given, Secrets(), gate)
    agent.start()
    return agent, driver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    agent, made = running(tmp_path, CONFIG, {"token": TOKEN, "operator": f"{OPERATORS}\n"})
    yield made
    agent.close()


def test_who_has_the_token_can_look_and_not_give_orders(driver: Driver) -> None:
    assert driver.ask("GET", "/v1/progress", authorization=BEARER)[0] == 200
    assert driver.ask("GET", "/v1/state", authorization=BEARER)[:2] == (200, b'{"rows": []}')
    for path, body in (("/v1/stop", b""), ("/v1/executors", b'{"instances": 3}'), ("/v1/control", b"{}")):
        status, content, _ = driver.ask("POST", path, body, BEARER)
        assert (status, "signs" in json.loads(content)["error"]) == (403, True)
    assert driver.done == []


@pytest.mark.parametrize("authorization", ["", "Bearer guess", "Bearer ", "Tidegate", "Tidegate a b c d"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/progress"), ("GET", "/v1/state"), ("POST", "/v1/stop")])
def test_a_stranger_gets_a_greeting_and_nothing_else(
    driver: Driver, authorization: str, method: str, path: str
) -> None:
    assert driver.ask(method, path, authorization=authorization)[0] == 401
    assert driver.done == []
    assert set(driver.greeting()) == {"number", "challenge", "proof"}


def test_the_greeting_proves_that_the_driver_has_the_launchs_token(driver: Driver) -> None:
    said = driver.greeting()
    assert said["proof"] == prove(TOKEN, LAUNCH, said["number"], said["challenge"], "n0")


def test_the_operator_gives_orders_and_knows_by_the_answer_that_they_arrived(driver: Driver) -> None:
    key, body = driver.key(), b'{"instances": 3}'
    request = driver.signed("POST", "/v1/executors", body, "n1")
    status, content, headers = driver.ask("POST", "/v1/executors", body, request.header(key))
    assert (status, driver.done) == (202, [3])
    challenge = headers[CHALLENGE_HEADER]
    assert headers[SIGNATURE_HEADER] == request.answer_signature(key, 202, content, challenge)
    again = driver.signed("GET", "/v1/progress", b"", "n2", challenge)
    status, content, headers = driver.ask("GET", "/v1/progress", b"", again.header(key))
    assert from_json(AgentReport, content).epoch == 2
    assert headers[SIGNATURE_HEADER] == again.answer_signature(key, 200, content, headers[CHALLENGE_HEADER])


@pytest.mark.parametrize(("path", "body", "status"), [("/v1/executors", b'{"instances": 0}', 400), ("/v1/x", b"", 404)])
def test_a_refusal_of_the_operators_is_signed_as_well(driver: Driver, path: str, body: bytes, status: int) -> None:
    key, request = driver.key(), driver.signed("POST", path, body, "n1")
    found, content, headers = driver.ask("POST", path, body, request.header(key))
    assert found == status
    assert headers[SIGNATURE_HEADER] == request.answer_signature(key, status, content, headers[CHALLENGE_HEADER])


def test_another_body_than_the_one_that_was_signed_is_not_carried_out(driver: Driver) -> None:
    key, request = driver.key(), driver.signed("POST", "/v1/executors", b'{"instances": 3}', "n1")
    assert driver.ask("POST", "/v1/executors", b'{"instances": 9}', request.header(key))[0] == 401
    assert driver.done == []


def test_an_order_that_somebody_sends_again_is_carried_out_once(driver: Driver) -> None:
    key, request = driver.key(), driver.signed("POST", "/v1/stop", b"{}", "n1")
    assert [driver.ask("POST", "/v1/stop", b"{}", request.header(key))[0] for _ in range(3)] == [202, 401, 401]
    assert driver.done == ["stop"]


def test_an_order_for_another_address_is_not_carried_out(driver: Driver) -> None:
    key, request = driver.key(), driver.signed("POST", "/v1/executors", b"{}", "n1")
    assert driver.ask("POST", "/v1/stop", b"{}", request.header(key))[0] == 401
    assert driver.done == []


@pytest.mark.parametrize("number", [None, "", "1", "no number", "\xe9"])
def test_without_the_operators_number_nobody_gives_orders_and_who_has_the_token_looks(
    tmp_path: Path, number: str | None
) -> None:
    files = {"token": TOKEN} if number is None else {"token": TOKEN, "operator": number}
    agent, driver = running(tmp_path, CONFIG, files)
    assert driver.ask("GET", "/v1/progress", authorization=BEARER)[0] == 200
    assert driver.ask("POST", "/v1/stop", b"{}", BEARER)[0] == 403
    request = driver.signed("POST", "/v1/stop", b"{}", "n1")
    assert [driver.ask("POST", "/v1/stop", b"{}", request.header(key))[0] for key in (b"", driver.key())] == [401, 401]
    agent.close()
    assert driver.done == []


def test_who_changes_the_operators_number_under_a_driver_that_runs_does_not_become_its_operator(
    driver: Driver, tmp_path: Path
) -> None:
    (tmp_path / "operator").write_text("4")
    request = driver.signed("POST", "/v1/stop", b"{}", "n1")
    assert driver.ask("POST", "/v1/stop", b"{}", request.header(driver.key()))[0] == 202


def test_a_driver_that_an_operator_of_before_launched_takes_orders_with_the_token(tmp_path: Path) -> None:
    agent, driver = running(tmp_path, replace(CONFIG, agent_secret=""), {"token": TOKEN})
    assert driver.ask("POST", "/v1/stop", b"{}", BEARER)[0] == 202
    assert driver.ask("GET", "/v1/greeting")[0] == 401
    agent.close()
    assert driver.done == ["stop"]
