"""The driver's HTTP server: health, readiness and metrics for anyone; progress and commands for the token's holder.

Answers come from memory (:class:`tidegate_spark.progress.Progress`), and do not wait for Spark. Only who looks inside
the application waits, for a bounded time, in a thread of their own: see :mod:`tidegate_spark.inside.desk`.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from tidegate_spark.control_protocol import CONTROL_COMMAND, LARGEST_CONTROL_ORDERS, ControlOrders
from tidegate_spark.environment import Environment
from tidegate_spark.inside.questions import PATHS, is_question
from tidegate_spark.json_form import NewerOrderError
from tidegate_spark.newer_orders import why_refused
from tidegate_spark.progress import Progress
from tidegate_spark.protocol import ExecutorTarget, from_order, to_json
from tidegate_spark.redaction import Secrets, clean_report
from tidegate_spark.snapshot_protocol import LARGEST_ORDERS, SNAPSHOT_COMMAND, SnapshotOrders

if TYPE_CHECKING:
    from tidegate_spark.inside.http import Reply

T = TypeVar("T")
LARGEST_BODY = 4096
READ_TIMEOUT_SECONDS = 10
MOST_EXECUTORS = 10_000
COMMANDS = f"paths: GET /v1/progress, POST /v1/stop, POST /v1/executors, POST /v1/snapshots, POST /v1/control; {PATHS}"
LARGEST_BODIES = {SNAPSHOT_COMMAND: LARGEST_ORDERS, CONTROL_COMMAND: LARGEST_CONTROL_ORDERS}
"""Bytes, of those that may be larger than others."""


@dataclass(frozen=True)
class Commands:
    """What the command port can make the driver do; each returns at once, but for ``look``."""

    stop: Callable[[], None]
    set_executors: Callable[[int], None]
    order_snapshots: Callable[[SnapshotOrders], None]
    """Raises ValueError for orders that cannot be meant."""
    give_messages: Callable[[ControlOrders], None]
    """Likewise."""
    look: Callable[[str], Reply]
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


class Handler(BaseHTTPRequestHandler):
    """Common to both ports: short answers, bounded bodies, a log only of what went wrong."""

    protocol_version = "HTTP/1.1"
    timeout = READ_TIMEOUT_SECONDS
    # An answer goes out in one piece and at once. In two, the second waits until the first is acknowledged, and over a
    # connection that is kept that takes 40 ms.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server_version = "tidegate"
    sys_version = ""

    def answer(
        self,
        status: int,
        body: str | bytes,
        kind: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Send one whole answer."""
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, message: str) -> None:
        """Send an error as JSON, and close: an unread body must not be taken for the next request."""
        self.close_connection = True
        self.answer(status, json.dumps({"error": message}))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Write nothing: probes come every few seconds."""


class StatusHandler(Handler):
    """GET /healthz, /readyz, /metrics."""

    progress: ClassVar[Progress]
    registry: ClassVar[CollectorRegistry]

    def do_GET(self) -> None:
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
    """GET /v1/progress and what looks inside; POST /v1/stop, /v1/executors, /v1/snapshots, /v1/control."""

    progress: ClassVar[Progress]
    token: ClassVar[Token]
    commands: ClassVar[Commands]
    secrets: ClassVar[Secrets]

    def do_GET(self) -> None:
        """Answer with the report, or with what is inside."""
        if not self.token.accepts(self.headers.get("Authorization")):
            self.refuse(401, "the app's bearer token is needed")
        elif self.path == "/v1/progress":
            self.answer(200, to_json(clean_report(self.progress.report(), self.secrets)))
        elif is_question(self.path):
            reply = self.commands.look(self.path)
            self.answer(reply.status, reply.body, headers=reply.headers)
        else:
            self.refuse(404, COMMANDS)

    def do_POST(self) -> None:
        """Take a command; 202 means that it is under way."""
        if not self.token.accepts(self.headers.get("Authorization")):
            self.refuse(401, "the app's bearer token is needed")
            return
        body = self._body(LARGEST_BODIES.get(self.path, LARGEST_BODY))
        if body is None:
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

    def _body(self, most: int) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or self.headers.get("Transfer-Encoding"):
            self.refuse(411, "a Content-Length is needed")
            return None
        if int(length) > most:
            self.refuse(413, f"at most {most} bytes")
            return None
        return self.rfile.read(int(length))

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
            self.refuse(422, why_refused(error))
        except ValueError as error:
            self.refuse(400, str(error))
        else:
            self.answer(202, "{}")


class Server(ThreadingHTTPServer):
    """A thread per connection, none of which keeps the process alive."""

    daemon_threads = True
    allow_reuse_address = True


class Agent:
    """Both ports."""

    def __init__(
        self,
        environment: Environment,
        progress: Progress,
        registry: CollectorRegistry,
        commands: Commands,
        secrets: Secrets,
    ) -> None:
        """Bind the ports; a port in use raises OSError.

        Args:
            environment: ports, addresses, and where the token is.
            progress: what is reported.
            registry: what Prometheus is given.
            commands: what the command port can do.
            secrets: left out of all words of a report; comes to know the token.
        """
        token = Token(environment.token_file)
        secrets.add(token.value())
        status = type("Status", (StatusHandler,), {"progress": progress, "registry": registry})
        given = {"progress": progress, "token": token, "commands": commands, "secrets": secrets}
        command = type("Command", (CommandHandler,), given)
        family = socket.AF_INET6 if ":" in environment.bind_address else socket.AF_INET
        kind = type("FamilyServer", (Server,), {"address_family": family})
        self.token = token
        self._servers: list[Server] = [
            kind((environment.bind_address, environment.status_port), status),
            kind((environment.bind_address, environment.command_port), command),
        ]

    def start(self) -> None:
        """Serve, in threads, until the process ends."""
        for server in self._servers:
            threading.Thread(target=server.serve_forever, name="agent", daemon=True).start()
