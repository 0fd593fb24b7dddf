"""The driver's HTTP server: health and metrics for anyone, reading by token, orders by signature. Does I/O.

Answers come from memory (:class:`tidegate_spark.process.progress.Progress`) and never wait for Spark. Only inspections
wait, for a bounded time, in threads of their own (:mod:`tidegate_spark.inspect.service`).
"""

from __future__ import annotations

import errno
import hmac
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from tidegate_spark.contract.agent_protocol import (
    CHALLENGE_HEADER,
    GREETING_PATH,
    SCHEME,
    SIGNATURE_HEADER,
    Launch,
    SignedRequest,
    digest_of,
    read_header,
)
from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, LARGEST_CONTROL_ORDERS, ControlOrders
from tidegate_spark.contract.json_form import NewerOrderError
from tidegate_spark.contract.protocol import AGENT_NUMBER_FILE, DriverConfig, ExecutorTarget, from_order, to_json
from tidegate_spark.contract.snapshot_protocol import LARGEST_ORDERS, SNAPSHOT_COMMAND, SnapshotOrders
from tidegate_spark.driver.agent.agent_gate import Gate
from tidegate_spark.inspect.questions import PATHS, is_question
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.newer_orders import why_refused
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets, clean_report
from tidegate_spark.process.serving.framing import Head, Refusal
from tidegate_spark.process.serving.handler import LARGEST_BODY, Handler
from tidegate_spark.process.serving.limits import Lane, Limits
from tidegate_spark.process.serving.server import Server

if TYPE_CHECKING:
    from tidegate_spark.inspect.http import Reply

T = TypeVar("T")
MOST_EXECUTORS = 10_000
COMMANDS = (
    "paths: GET /v1/greeting, GET /v1/progress, POST /v1/stop, POST /v1/executors, POST /v1/snapshots, "
    f"POST /v1/control; {PATHS}"
)
LARGEST_BODIES = {SNAPSHOT_COMMAND: LARGEST_ORDERS, CONTROL_COMMAND: LARGEST_CONTROL_ORDERS}
"""Bytes, of those that may be larger than others."""
AT_ONCE = frozenset({"/healthz", "/readyz"})
STATUS_LIMITS = Limits(connections=128, threads=2)
COMMAND_LIMITS = Limits(connections=128, threads=3, long_threads=4)


@dataclass(frozen=True)
class Commands:
    """What the command port can make the driver do; each returns at once, but for ``look``."""

    stop: Callable[[], None]
    set_executors: Callable[[int], None]
    order_snapshots: Callable[[SnapshotOrders], None]
    """Raises ValueError for orders that cannot be meant."""
    give_messages: Callable[[ControlOrders], None]
    """Likewise."""
    inspect: Callable[[str], Reply]
    """Answers a question about the inside: path and parameters. Others are answered meanwhile."""


class Token:
    """The bearer token, read again when its file changes."""

    def __init__(self, path: str) -> None:
        """Read from ``path`` at the first use."""
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._value = ""

    def value(self) -> str:
        """Return the token now, empty if there is none."""
        with self._lock:
            try:
                status = os.stat(self._path)
                seen = (status.st_mtime_ns, status.st_ino)
                if seen != self._seen:
                    with open(self._path, encoding="utf-8") as file:
                        self._value = file.read().strip()
                    self._seen = seen
            except OSError:
                self._seen, self._value = None, ""
            return self._value

    def accepts(self, header: str | None) -> bool:
        """Return True if ``header``, an Authorization header, carries the token; takes the same time either way."""
        expected = self.value()
        offered = (header or "").removeprefix("Bearer ").strip()
        same = hmac.compare_digest(offered.encode(), expected.encode())
        return bool(expected) and same and (header or "").startswith("Bearer ")


def gate_of(config: DriverConfig, environment: Environment) -> Gate | None:
    """Return who lets the operator in; None if an earlier operator launched the driver, and has the token alone.

    The operator's number is read once: who can change the file of a driver that runs does not become its operator.
    """
    if not config.agent_secret:
        return None
    try:
        path = Path(environment.token_file).with_name(Path(AGENT_NUMBER_FILE).name)
        number = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        number = ""
    return Gate(Launch(config.namespace, config.app, config.uid, config.epoch), number)


class StatusHandler(Handler):
    """GET /healthz, /readyz, /metrics."""

    progress: ClassVar[Progress]
    registry: ClassVar[CollectorRegistry]

    @classmethod
    def lane(cls, head: Head) -> Lane:
        """Have probes answered whatever else is asked."""
        return Lane.AT_ONCE if head.path in AT_ONCE else Lane.SHORT

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        """Answer."""
        path = self.path.partition("?")[0]
        if path == "/healthz":
            stalled = self.progress.stalled
            self.answer(503 if stalled else 200, f"stalled: {stalled}\n" if stalled else "ok\n", "text/plain")
        elif path == "/readyz":
            ready = self.progress.ready
            self.answer(200 if ready else 503, "ready\n" if ready else "not ready\n", "text/plain")
        elif path == "/metrics":
            self.answer(200, generate_latest(self.registry), CONTENT_TYPE_LATEST)
        else:
            self.refuse(404, "paths: /healthz, /readyz, /metrics")


class CommandHandler(Handler):
    """GET what it is, how it is and what is inside; POST /v1/stop, /v1/executors, /v1/snapshots, /v1/control."""

    progress: ClassVar[Progress]
    token: ClassVar[Token]
    gate: ClassVar[Gate | None]
    commands: ClassVar[Commands]
    secrets: ClassVar[Secrets]

    @classmethod
    def judge(cls, head: Head) -> Refusal | None:
        """Refuse strangers, before anything of theirs is kept."""
        authorization = head.headers.get("Authorization", "")
        if cls.gate is not None:
            if head.method == "GET" and head.path == GREETING_PATH:
                return None
            if authorization.startswith(f"{SCHEME} "):
                return cls.gate.judge(head)
        if not cls.token.accepts(authorization):
            return Refusal(401, "the app's bearer token is needed")
        if cls.gate is not None and head.method != "GET":
            return Refusal(403, "with the token one can look; orders are the operator's, which signs them")
        return None

    @classmethod
    def largest_body(cls, head: Head) -> int:
        """Return how many bytes a command may have."""
        return LARGEST_BODIES.get(head.target, LARGEST_BODY) if head.method == "POST" else LARGEST_BODY

    @classmethod
    def lane(cls, head: Head) -> Lane:
        """Have looks inside, which wait for Spark and the storage, keep nobody else waiting."""
        # Anybody may ask for a greeting: no thread is kept by that.
        if head.method == "GET" and head.path == GREETING_PATH:
            return Lane.AT_ONCE
        return Lane.LONG if head.method == "GET" and is_question(head.target) else Lane.SHORT

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        """Answer with the report, or with what is inside."""
        if self._is_another_body(self.rfile.read()):
            return
        path, _, query = self.path.partition("?")
        if self.path == "/v1/progress":
            self.answer(200, to_json(clean_report(self.progress.report(), self.secrets)))
        elif path == GREETING_PATH and self.gate is not None:
            nonce = parse_qs(query).get("nonce", [""])[0]
            self.answer(200, to_json(self.gate.greet(self.token.value(), nonce)))
        elif is_question(self.path):
            reply = self.commands.inspect(self.path)
            self.answer(reply.status, reply.body, headers=reply.headers)
        else:
            self.refuse(404, COMMANDS)

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        """Take a command; 202 means that it is under way."""
        body = self.rfile.read()
        if self._is_another_body(body):
            return
        if self.path == "/v1/stop":
            self.commands.stop()
            self.answer(202, "{}")
        elif self.path == "/v1/executors":
            self._set_executors(body)
        elif self.path == SNAPSHOT_COMMAND:
            self._take_in(SnapshotOrders, body, self.commands.order_snapshots)
        elif self.path == CONTROL_COMMAND:
            self._take_in(ControlOrders, body, self.commands.give_messages)
        else:
            self.refuse(404, COMMANDS)

    def answer(
        self,
        status: int,
        body: str | bytes,
        kind: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Send one whole answer, signed if the request was."""
        request = self._signed_request()
        if request is not None and self.gate is not None:
            challenge, content = self.gate.challenge(), body.encode() if isinstance(body, str) else body
            signature = self.gate.answer_signature(request, status, content, challenge)
            headers = {**headers, CHALLENGE_HEADER: challenge, SIGNATURE_HEADER: signature}
        super().answer(status, body, kind, headers)

    def _signed_request(self) -> SignedRequest | None:
        """Return what was let in by its signature (:meth:`judge`), None if it was not that which let it in."""
        # With the target as it was judged: the base class's path has no slashes before its first.
        target = self.requestline.split()[1]
        read = read_header(self.headers.get("Authorization", ""), self.command, target)
        return read[0] if read is not None else None

    def _is_another_body(self, body: bytes) -> bool:
        """Refuse a body that is not the one whose digest was signed; return whether it was."""
        request = self._signed_request()
        if request is None or request.digest == digest_of(body):
            return False
        self.refuse(401, "the body is not the one that was signed")
        return True

    def _set_executors(self, body: bytes) -> None:
        self._take_in(ExecutorTarget, body, self._set_number)

    def _set_number(self, target: ExecutorTarget) -> None:
        if not 1 <= target.instances <= MOST_EXECUTORS:
            raise ValueError(f"instances: expected 1 to {MOST_EXECUTORS}, got {target.instances}")
        self.commands.set_executors(target.instances)

    def _take_in(self, kind: type[T], body: bytes, take: Callable[[T], None]) -> None:
        try:
            take(from_order(kind, body))
        except NewerOrderError as error:
            self.refuse(422, self.secrets.clean(why_refused(error)))
        except ValueError as error:
            self.refuse(400, self.secrets.clean(str(error)))
        else:
            self.answer(202, "{}")


class Agent:
    """Both ports."""

    def __init__(  # noqa: PLR0913, PLR0917 - what its handlers share
        self,
        environment: Environment,
        progress: Progress,
        registry: CollectorRegistry,
        commands: Commands,
        secrets: Secrets,
        gate: Gate | None = None,
    ) -> None:
        """Bind the ports; a port in use raises OSError.

        Args:
            environment: ports, addresses, and where the token is.
            progress: what is reported.
            registry: what Prometheus is given.
            commands: what the command port can do.
            secrets: left out of all words of a report; comes to know the token.
            gate: lets the operator in; None: the token is for orders, too (:func:`gate_of`).
        """
        token = Token(environment.token_file)
        secrets.add(token.value())
        status = type("Status", (StatusHandler,), {"progress": progress, "registry": registry})
        given = {"progress": progress, "token": token, "gate": gate, "commands": commands, "secrets": secrets}
        command = type("Command", (CommandHandler,), given)
        self.token = token
        address = environment.bind_address
        self.servers = (
            _bound(address, environment.status_port, status, STATUS_LIMITS),
            _bound(address, environment.command_port, command, COMMAND_LIMITS),
        )

    def start(self) -> None:
        """Serve, in threads, until the process ends or :meth:`close`."""
        for server in self.servers:
            server.start()

    def close(self) -> None:
        """Close both ports; the process goes on without them."""
        for server in self.servers:
            server.close()


def _bound(address: str, port: int, handler: type[Handler], limits: Limits) -> Server:
    try:
        return Server(address, port, handler, limits)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(error.errno, messages.port_taken(port, error)) from error
