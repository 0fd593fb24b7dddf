"""A server before an S3 server that refuses requests, loses answers or lets others go first. Listens on 127.0.0.1.

Everything else passes unchanged, the Host header too, which S3's signatures cover.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

DENIED = b"<Error><Code>AccessDenied</Code><Message>refused by the test</Message></Error>"
_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


@dataclass(frozen=True)
class Request:
    """What was asked of the store; ``key`` is without the bucket."""

    method: str
    key: str
    headers: dict[str, str]
    """Names in lower case."""


@dataclass
class Rule:
    """What happens to the requests that ``when`` picks, at most ``times`` of them."""

    when: Callable[[Request], bool]
    refuse: bool = False
    answer: tuple[int, str] | None = None
    """Status and S3's code of an answer in place of the store's: what a store that throttles says, for example."""
    lose_answer: bool = False
    first: Callable[[Request], None] = lambda request: None
    times: int = 1_000_000
    hits: int = 0


class StoreFront:
    """Use it as a context manager; ``endpoint`` is to be named to the client instead of the store's own."""

    def __init__(self, store: str) -> None:
        """Describe a front of the S3 server at the URL ``store``."""
        self._store = urlsplit(store).netloc
        self._lock = threading.Lock()
        self.rules: list[Rule] = []
        self.requests: list[Request] = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: front._serve(self)
                raise AttributeError(name)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "StoreFront":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, rule: Rule) -> Rule:
        """Have ``rule`` from now on; the first that picks a request decides."""
        with self._lock:
            self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Let everything pass."""
        with self._lock:
            self.rules.clear()

    def _note(self, request: Request) -> Rule | None:
        with self._lock:
            self.requests.append(request)
            rule = next((rule for rule in self.rules if rule.hits < rule.times and rule.when(request)), None)
            if rule is not None:
                rule.hits += 1
            return rule

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(handler.path).path)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(handler.command, path.lstrip("/").partition("/")[2], headers)
        rule = self._note(request)
        if rule is not None:
            rule.first(request)
        if rule is not None and rule.refuse:
            _answer(handler, 403, [("Content-Type", "application/xml")], DENIED)
            return
        if rule is not None and rule.answer is not None:
            status, code = rule.answer
            _answer(handler, status, [("Content-Type", "application/xml")], _error(code))
            return
        status, answer_headers, answer = self._ask(handler, headers, body)
        if rule is not None and rule.lose_answer:
            handler.close_connection = True
            return
        _answer(handler, status, answer_headers, answer)

    def _ask(
        self, handler: BaseHTTPRequestHandler, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(self._store, timeout=180)
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if name not in _OF_THE_CONNECTION:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>said by the test</Message></Error>".encode()


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    handler.send_response_only(status)
    length = str(len(body))
    for name, value in headers:
        if handler.command == "HEAD" and name.lower() == "content-length":
            length = value
        if name.lower() not in _OF_THE_CONNECTION:
            handler.send_header(name, value)
    handler.send_header("Content-Length", length)
    handler.end_headers()
    handler.wfile.write(body)
