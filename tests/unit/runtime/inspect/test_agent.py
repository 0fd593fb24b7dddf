"""The agent's command port, asked over HTTP for what is inside; and the program that asks it. No Spark."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from devcluster.control import free_port
from tidegate_spark import inside
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.driver.agent.agent import Agent
from tidegate_spark.inside.__main__ import TOKEN_VARIABLE, main, parser, path_of
from tidegate_spark.inspect.answers import Read, rows_answer
from tidegate_spark.inspect.errors import BusyError, InspectionError, NotThereError
from tidegate_spark.inspect.http import reply_to
from tidegate_spark.inspect.last_progress import LastProgress
from tidegate_spark.inspect.questions import Question, question_of
from tidegate_spark.inspect.service import InspectionService
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_testing.agent_commands import commands
from tidegate_testing.driver_process import TOKEN, driver_config

CONFIG = driver_config("app", "main.py", Storage("s3://bucket/tests/app"))


@dataclass
class Running:
    """An agent, and what it was asked."""

    port: int
    status_port: int
    asked: list[Question] = field(default_factory=list)
    answer: Callable[[Question], dict[str, Any]] = lambda question: {"query": "main", "rows": []}

    def check(self, target: str) -> Any:
        def ask(question: Question) -> dict[str, Any]:
            self.asked.append(question)
            return self.answer(question)

        return reply_to(target, ask, Secrets(("hush-hush-hush",)).clean)

    def get(self, path: str, token: str = TOKEN, port: int = 0) -> tuple[int, Any, Message]:
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.port}{path}")
        request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}"), error.headers


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "token").write_text(TOKEN)
    made = Running(free_port(), free_port())
    variables = {
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_COMMAND_PORT": str(made.port),
        "TIDEGATE_STATUS_PORT": str(made.status_port),
        "TIDEGATE_AGENT_TOKEN_FILE": str(tmp_path / "token"),
    }
    given = commands(inspect=made.check)
    agent = Agent(Environment.read(variables), Progress(CONFIG), CollectorRegistry(), given, Secrets())
    agent.start()
    yield made
    agent.close()


def test_a_question_is_answered_to_who_has_the_token(running: Running) -> None:
    path = "/v1/state/main/0?key=to&limit=3"
    assert running.get(path, "another")[0] == 401
    assert running.asked == []
    status, body, headers = running.get(path)
    assert (status, body, headers["Content-Type"]) == (200, {"query": "main", "rows": []}, "application/json")
    assert running.asked == [question_of(path)]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v1/state/main/0?limit=x", 400, "limit: is a number from 1 to 1000"),
        ("/v1/windows", 404, "GET /v1/state, /v1/state/<query>"),
        ("/v1/nothing", 404, "GET /v1/progress"),
    ],
)
def test_what_can_not_be_answered_is_told_with_the_remedy(
    running: Running, path: str, status: int, message: str
) -> None:
    found, body, _ = running.get(path)
    assert (found, message in body["error"]) == (status, True)
    assert running.asked == []


def raising(error: InspectionError) -> Callable[[Question], dict[str, Any]]:
    def answer(question: Question) -> dict[str, Any]:
        raise error

    return answer


def test_a_look_that_has_to_wait_says_for_how_long_and_shows_no_secret(running: Running) -> None:
    running.answer = raising(BusyError("another look, of hush-hush-hush"))
    status, body, headers = running.get("/v1/state/main/0")
    assert (status, headers["Retry-After"]) == (429, "5")
    assert "hush" not in body["error"]
    running.answer = raising(NotThereError("there is no query"))
    status, body, headers = running.get("/v1/state/main/0")
    assert (status, body, headers["Retry-After"]) == (404, {"error": "there is no query"}, None)


def test_a_look_that_takes_its_time_holds_up_neither_probes_nor_progress_nor_the_next_question(
    running: Running,
) -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow:
        def answer(self, question: object) -> dict[str, Any]:
            begun.set()
            go.wait(30)
            return {}

    service = InspectionService(LastProgress(), lambda: ("main",), Slow)
    running.answer = service.ask
    found: list[int] = []
    first = threading.Thread(target=lambda: found.append(running.get("/v1/state/main/0")[0]), daemon=True)
    first.start()
    assert begun.wait(30)
    assert running.get("/v1/progress")[0] == 200
    with urllib.request.urlopen(f"http://127.0.0.1:{running.status_port}/healthz", timeout=20) as health:
        assert health.read() == b"ok\n"
    assert running.get("/v1/sources")[0] == 200
    assert running.get("/v1/state/main/0")[0] == 429
    go.set()
    first.join(30)
    assert found == [200]


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("state", "/v1/state"),
        ("state a/b", "/v1/state/a%2Fb"),
        ("state main 0 --key to --limit 3", "/v1/state/main/0?key=to&limit=3"),
        ("state main 0 --count --name by+kind", "/v1/state/main/0?name=by%2Bkind&count=true"),
        ("windows main --which all --rows 0", "/v1/windows/main?rows=0&which=all"),
        ("sources", "/v1/sources"),
        ("sources main", "/v1/sources/main"),
    ],
)
def test_the_program_asks_what_its_arguments_say(message: str, path: str) -> None:
    given = path_of(parser().parse_args(message.split()))
    assert given == path
    question_of(given)


def test_the_program_prints_the_answer_or_the_reason(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    agent = ("--agent", f"http://127.0.0.1:{running.port}")
    assert main([*agent, "--token-file", str(tmp_path / "token"), "state", "main", "0"]) == 0
    assert json.loads(capsys.readouterr().out) == {"query": "main", "rows": []}
    monkeypatch.setenv(TOKEN_VARIABLE, "another")
    assert main([*agent, "sources"]) == 1
    assert capsys.readouterr().err == "HTTP 401: the app's bearer token is needed\n"
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert main([*agent, "state", "main", "0", "--limit", "0"]) == 1
    assert "limit: is a number from 1 to 1000" in capsys.readouterr().err
    assert main(["--agent", f"http://127.0.0.1:{free_port()}", "sources"]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert main(["--agent", "file:///etc/passwd", "sources"]) == 1
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert main([*agent, "--token-file", "/nowhere", "sources"]) == 1
    assert TOKEN_VARIABLE in capsys.readouterr().err


@pytest.mark.parametrize(
    "number", ["12345678901234567.89", "-0.123456789012345678", "1.0E10", "0.1", "5.6843418860808015E-14", "1E+400"]
)
def test_a_number_of_the_state_is_answered_and_printed_with_all_its_digits(
    running: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, number: str
) -> None:
    texts = ('{"k":1}', f'{{"value":{{"sum":{number}}}}}', 0)
    running.answer = lambda question: rows_answer([texts], 1, Read(1, 1))
    answered = running.check("/v1/state/main/0").body
    agent = ("--agent", f"http://127.0.0.1:{running.port}", "--token-file", str(tmp_path / "token"))
    assert main([*agent, "state", "main", "0"]) == 0
    for body in (answered, capsys.readouterr().out):
        (row,) = json.loads(body, parse_float=Decimal)["rows"]
        assert row["value"]["sum"] == Decimal(number)


def test_a_notebook_that_catches_the_former_name_of_the_error_goes_on() -> None:
    assert inside.LookError is InspectionError
