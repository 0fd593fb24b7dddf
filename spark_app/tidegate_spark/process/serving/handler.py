"""Answers one complete request by the standard library's handler, from bytes to bytes. No I/O."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from typing import Any

from tidegate_spark.process.serving.framing import Head, Refusal
from tidegate_spark.process.serving.limits import Lane

LARGEST_BODY = 4096


class Handler(BaseHTTPRequestHandler):
    """Common to all ports: short answers, and no log of each."""

    protocol_version = "HTTP/1.1"
    server_version = "tidegate"
    sys_version = ""

    def __init__(self, content: bytes) -> None:
        """Answer the request that ``content`` is, whole; what to send is then in :attr:`sent`."""
        self._content = content
        super().__init__(None, ("", 0), None)  # type: ignore[arg-type] # neither socket nor server is used

    @classmethod
    def judge(cls, head: Head) -> Refusal | None:
        """Return why a request is refused whose body is not there yet; called by the thread that reads."""
        return None

    @classmethod
    def largest_body(cls, head: Head) -> int:
        """Return how many bytes a body may have."""
        return LARGEST_BODY

    @classmethod
    def lane(cls, head: Head) -> Lane:
        """Return who is to answer."""
        return Lane.SHORT

    @classmethod
    def reply_to(cls, content: bytes) -> tuple[bytes, bool]:
        """Return the answer to a whole request, and whether the connection is to be closed after it."""
        handler = cls(content)
        return handler.sent, handler.close_connection

    @property
    def sent(self) -> bytes:
        """Return what to send."""
        return self._sent.getvalue()

    def setup(self) -> None:
        """Read from memory, and write to it."""
        self.rfile: Any = io.BytesIO(self._content)
        self._sent = io.BytesIO()
        self.wfile: Any = self._sent

    def finish(self) -> None:
        """Have nothing to close."""

    def handle(self) -> None:
        """Answer one request: there is never a second one in what was read."""
        self.close_connection = True
        self.handle_one_request()

    def handle_expect_100(self) -> bool:
        """Say nothing: the thread that reads has said it, or the body would not be here."""
        return True

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
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, message: str) -> None:
        """Send an error as JSON, and close."""
        self.close_connection = True
        self.answer(status, json.dumps({"error": message}))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Write nothing: probes come every few seconds."""


def refusal_of(refusal: Refusal) -> bytes:
    """Return the answer to a request that no handler sees."""
    body = json.dumps({"error": refusal.message}).encode()
    reason = BaseHTTPRequestHandler.responses.get(refusal.status, ("",))[0]
    lines = (
        f"HTTP/1.1 {refusal.status} {reason}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(("Retry-After: 1",) if refusal.status == 503 else ()),
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body
