"""A simulated driver's agent: the runtime's own handler and gate, from bytes to bytes, with the files of its pod."""

import base64
from collections.abc import Callable
from typing import Any

from tests.scenario.api_server import Body
from tidegate_spark.contract.agent_protocol import Launch
from tidegate_spark.contract.protocol import AGENT_NUMBER_FILE, AGENT_TOKEN_FILE, AgentReport, DriverConfig
from tidegate_spark.driver.agent.agent import CommandHandler, Commands, Token
from tidegate_spark.driver.agent.agent_gate import Gate
from tidegate_spark.inspect.http import Reply
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.process.serving.framing import Head, Reading
from tidegate_spark.process.serving.handler import refusal_of

TOKEN_KEY, NUMBER_KEY = (path.rpartition("/")[2] for path in (AGENT_TOKEN_FILE, AGENT_NUMBER_FILE))
Answered = tuple[int, bytes, dict[str, str]]
"""Status, body and headers."""


class MountedToken(Token):
    """A file that was there when the pod started."""

    def __init__(self, value: str) -> None:
        super().__init__("")
        self._mounted = value

    def value(self) -> str:
        """Return the token."""
        return self._mounted


class DriversAgent:
    """The agent of one process."""

    def __init__(  # noqa: PLR0917 - what its handler and its gate need
        self,
        config: DriverConfig,
        secret: Body,
        report: Callable[[], AgentReport],
        commands: Commands,
        clock: Callable[[], float],
        draw: Callable[[int], bytes],
    ) -> None:
        files = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
        launch = Launch(config.namespace, config.app, config.uid, config.epoch)
        given: dict[str, Any] = {
            "progress": type("Progress", (), {"report": staticmethod(report)}),
            "token": MountedToken(files[TOKEN_KEY]),
            "gate": Gate(launch, files[NUMBER_KEY], clock, draw),
            "commands": commands,
            "secrets": Secrets(),
        }
        self._handler: type[CommandHandler] = type("Command", (CommandHandler,), given)

    def answer(self, method: str, path: str, body: bytes, authorization: str) -> Answered:
        """Return what the agent answers to a request."""
        asked = (f"{method} {path} HTTP/1.1", f"Authorization: {authorization}", f"Content-Length: {len(body)}", "", "")
        content = "\r\n".join(asked).encode() + body
        reading = Reading()
        reading.buffer += content
        head = reading.head()
        assert isinstance(head, Head), head
        refusal = self._handler.judge(head)
        sent = refusal_of(refusal) if refusal is not None else self._handler.reply_to(content)[0]
        start, _, text = sent.partition(b"\r\n\r\n")
        first, *lines = start.decode("latin-1").split("\r\n")  # our own, and plain: no parser of mail is needed
        return int(first.split()[1]), text, dict(line.split(": ", 1) for line in lines)


def nothing_to_see(_: str) -> Reply:
    """Look inside a simulated driver: there is nothing."""
    return Reply(404, "{}")
