"""The operator's side of the agent: one question, three commands, and the token for all. Snapshot pods are asked, too.

Does I/O.

Requests go straight to the pod, never through the API server.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from types import TracebackType

import aiohttp
import msgspec

from tidegate.kube.client import Guard, GuardedBody, KubeClient, always, require
from tidegate.kube.failures import FAILURES, NotFound
from tidegate.kube.paths import item
from tidegate.leadership import NotLeadingError
from tidegate.observe.pods import PodRecord
from tidegate.resources.agent_secret import TOKEN_KEY
from tidegate.resources.names import agent_secret_name
from tidegate.workqueue import Key
from tidegate_spark.control_protocol import CONTROL_COMMAND, ControlOrders
from tidegate_spark.protocol import COMMAND_PORT, STATUS_PORT, AgentReport, ExecutorTarget, to_order
from tidegate_spark.secret_shapes import bytes_without_shapes, without_shapes
from tidegate_spark.snapshot_protocol import PROGRESS_PATH, SNAPSHOT_COMMAND, SnapshotOrders, SnapshotReports

_SECONDS = 3.0
_TIMEOUT = aiohttp.ClientTimeout(total=_SECONDS)
_UNAUTHORIZED = 401
_LONGEST_ANSWER = 1024 * 1024
"""Bytes. What answers is a tenant's code: it must neither fill the operator's memory nor send it elsewhere."""

_LONGEST_REFUSAL = 300
"""Characters of what an agent refuses an order with."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The agent gave no usable answer; ``secret_missing`` if there is no token to ask with."""

    reason: str
    secret_missing: bool = False
    refused: bool = False
    """It was asked and refuses, which asking again does not change: it does not know all that the order says."""


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


class AgentClient:
    """Talks to agents; an asynchronous context manager."""

    def __init__(self, client: KubeClient, concurrency: int, guard: Guard = always) -> None:
        """Prepare.

        Args:
            client: reads the Secrets with the tokens.
            concurrency: connections at once.
            guard: asked right before an order is sent.
        """
        self._guard = guard
        self._client = client
        self._concurrency = concurrency
        self._tokens: dict[Key, str] = {}
        self._reports = msgspec.json.Decoder(AgentReport)
        self._snapshot_reports = msgspec.json.Decoder(SnapshotReports)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AgentClient:
        """Open the session."""
        # An agent is mostly asked every 5 to 30 s: a connection kept open in between is a file descriptor for nothing.
        connector = aiohttp.TCPConnector(limit=self._concurrency, force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        assert self._session is not None
        await self._session.close()

    def learn_token(self, key: Key, token: str) -> None:
        """Remember a token that was just written, which saves reading it."""
        self._tokens[key] = token

    def forget(self, key: Key) -> None:
        """Forget the token of an application that is gone."""
        self._tokens.pop(key, None)

    async def read_progress(self, key: Key, pod: PodRecord) -> AgentReport | Unanswered:
        """Ask a driver how it is doing."""
        answer = await self._request(key, pod, "GET", "/v1/progress", None)
        if isinstance(answer, Unanswered):
            return answer
        try:
            return self._reports.decode(bytes_without_shapes(answer))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return Unanswered(f"the report is not understood: {error}")

    async def set_executors(self, key: Key, pod: PodRecord, instances: int) -> Unanswered | None:
        """Have a driver run with so many executors; returns why it did not take the order, or None.

        Raises:
            NotLeadingError: this process does not lead any more, and nothing was sent.
        """
        answer = await self._request(key, pod, "POST", "/v1/executors", to_order(ExecutorTarget(instances)).encode())
        return answer if isinstance(answer, Unanswered) else None

    async def order_snapshots(self, key: Key, pod: PodRecord, orders: SnapshotOrders) -> Unanswered | None:
        """Have a driver take or dispose of snapshots; returns why it did not take the order, or None.

        Raises:
            NotLeadingError: this process does not lead any more, and nothing was sent.
        """
        answer = await self._request(key, pod, "POST", SNAPSHOT_COMMAND, to_order(orders).encode())
        return answer if isinstance(answer, Unanswered) else None

    async def order_control(self, key: Key, pod: PodRecord, orders: ControlOrders) -> Unanswered | None:
        """Give a driver control messages, which its log takes once each; returns why it did not take them, or None.

        Raises:
            NotLeadingError: this process does not lead any more, and nothing was sent.
        """
        answer = await self._request(key, pod, "POST", CONTROL_COMMAND, to_order(orders).encode())
        return answer if isinstance(answer, Unanswered) else None

    async def read_snapshot_pod(self, pod: PodRecord) -> SnapshotReports | Unanswered:
        """Ask a snapshot pod, which wants no token, how far it is."""
        answer, _ = await self._send("", pod, "GET", PROGRESS_PATH, None, STATUS_PORT)
        if isinstance(answer, Unanswered):
            return answer
        try:
            return self._snapshot_reports.decode(bytes_without_shapes(answer))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return Unanswered(f"the report is not understood: {error}")

    async def _request(
        self, key: Key, pod: PodRecord, method: str, path: str, body: bytes | None
    ) -> bytes | Unanswered:
        answer: bytes | Unanswered = Unanswered("not asked")
        for _ in range(2):  # the second time with a token that was read anew
            token = await self._token(key)
            if isinstance(token, Unanswered):
                return token
            answer, status = await self._send(token, pod, method, path, body, COMMAND_PORT)
            if status != _UNAUTHORIZED:
                return answer
            self._tokens.pop(key, None)
        return answer

    async def _send(  # noqa: PLR0913, PLR0917 - what differs between requests
        self, token: str, pod: PodRecord, method: str, path: str, body: bytes | None, port: int
    ) -> tuple[bytes | Unanswered, int]:
        assert self._session is not None, "the agents' client is used outside of its context"
        host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        url = f"http://{host}:{port}{path}"
        if body is not None:
            require(self._guard)
        data = None if body is None else GuardedBody(body, self._guard)
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                text = await _read_short(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error.__cause__, NotLeadingError):
                raise error.__cause__ from None
            return Unanswered(_why_no_answer(error)), 0
        if response.status >= 300:
            refused = 400 <= response.status < 500 and response.status != _UNAUTHORIZED
            return Unanswered(_why_refused(response.status, text), refused=refused), response.status
        if text is None:
            return Unanswered(f"the answer is longer than {_LONGEST_ANSWER} bytes"), response.status
        return text, response.status

    async def _token(self, key: Key) -> str | Unanswered:
        known = self._tokens.get(key)
        if known is not None:
            return known
        found = await self._client.get(item("Secret", key[0], agent_secret_name(key[1])), _Secret)
        if isinstance(found, FAILURES):
            return Unanswered(f"no token: {found}", secret_missing=isinstance(found, NotFound))
        token = decode_token(found.data)
        if token is None:
            return Unanswered(f"the Secret has no key {TOKEN_KEY} with printable ASCII", secret_missing=False)
        self._tokens[key] = token
        return token


class _Error(msgspec.Struct):
    error: str


def _why_refused(status: int, body: bytes | None) -> str:
    """Return what an agent refuses a request with, in a form and of a length that a status can hold."""
    try:
        told = msgspec.json.decode(body or b"", type=_Error).error
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return f"HTTP {status}"
    text = "".join(each if each.isprintable() else " " for each in told[:_LONGEST_REFUSAL])
    return f"HTTP {status}: {without_shapes(text)}"


def _why_no_answer(error: Exception) -> str:
    """Return in words for a status why a request came to nothing."""
    if isinstance(error, TimeoutError):
        return f"no answer within {_SECONDS:.0f} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        # Its own words name the address, which says nothing to anybody and changes with every pod.
        number = error.os_error.errno
        return f"no connection: {os.strerror(number) if number else type(error.os_error).__name__}"
    return f"{type(error).__name__}: {error}"


async def _read_short(response: aiohttp.ClientResponse) -> bytes | None:
    text = bytearray()
    async for chunk in response.content.iter_any():
        text += chunk
        if len(text) > _LONGEST_ANSWER:
            return None
    return bytes(text)


def decode_token(data: dict[str, str]) -> str | None:
    """Return the token in a Secret's data, or None if there is none that an HTTP header can hold.

    Whoever may write Secrets may put anything there: a line break in a header is an error of the HTTP client's caller.
    """
    try:
        token = base64.b64decode(data.get(TOKEN_KEY, "")).decode("ascii")
    except ValueError:
        return None
    return token if token and token.isprintable() else None
