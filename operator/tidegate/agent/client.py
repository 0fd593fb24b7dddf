"""Sends signed requests to drivers' agents, and progress requests to snapshot pods. Does I/O.

Requests go straight to the pod, not through the API server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import aiohttp
import msgspec

from tidegate.access.keys import OperatorKeys
from tidegate.agent import messages
from tidegate.agent.session import Answer, Session, TokenOnly, UntrustedError, begin, launch_of, new_nonce
from tidegate.engine.resource_key import Key
from tidegate.kube.client import Guard, GuardedBody, always, read_body, require
from tidegate.kube.leadership import NotLeadingError
from tidegate.pods.records.names import agent_secret_name
from tidegate.pods.records.record import PodRecord, process_of
from tidegate_spark.contract.agent_protocol import GREETING_PATH
from tidegate_spark.contract.control_protocol import CONTROL_COMMAND, ControlOrders
from tidegate_spark.contract.json_form import without_halves
from tidegate_spark.contract.protocol import COMMAND_PORT, STATUS_PORT, AgentReport, ExecutorTarget, to_order
from tidegate_spark.contract.secret_shapes import bytes_without_shapes, without_shapes
from tidegate_spark.contract.snapshot_protocol import PROGRESS_PATH, SNAPSHOT_COMMAND, SnapshotOrders, SnapshotReports

T = TypeVar("T")
_SECONDS = 3.0
_TIMEOUT = aiohttp.ClientTimeout(total=_SECONDS)
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_WITHOUT_GREETING = (401, 404)
"""What a runtime from before there were greetings answers to a request for one."""
OTHER_KEY = messages.OTHER_KEY
_LONGEST_ANSWER = 1024 * 1024
"""Bytes. What answers is a tenant's code: it must neither fill the operator's memory nor send it elsewhere."""

_SHORT_ANSWER = 32 * 1024
"""Bytes that are read in a few milliseconds; a report of ten queries has 4,000."""
_LONGEST_REFUSAL = 300
"""Characters of what an agent refuses an order with."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The agent gave no usable answer."""

    reason: str
    refused: bool = False
    """It was asked and refuses, which asking again does not change: it does not know all that the order says."""


class AgentClient:
    """Talks to agents; an asynchronous context manager."""

    def __init__(self, keys: OperatorKeys, concurrency: int, guard: Guard = always) -> None:
        """Prepare.

        Args:
            keys: the operator's.
            concurrency: connections at once.
            guard: asked right before an order is sent.
        """
        self._guard = guard
        self._keys = keys
        self._concurrency = concurrency
        self._known: dict[Key, Session | TokenOnly] = {}
        self._reports = msgspec.json.Decoder(AgentReport)
        self._snapshot_reports = msgspec.json.Decoder(SnapshotReports)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AgentClient:
        """Open the session."""
        # Most agents are polled every 5 to 30 s: an open connection in between would waste a file descriptor.
        connector = aiohttp.TCPConnector(limit=self._concurrency, force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        assert self._session is not None
        await self._session.close()

    def forget(self, key: Key) -> None:
        """Forget what is known of the driver of an application that is gone."""
        self._known.pop(key, None)

    async def read_progress(self, key: Key, pod: PodRecord) -> AgentReport | Unanswered:
        """Ask a driver how it is doing."""
        answer = await self._request(key, pod, "GET", "/v1/progress", None)
        if isinstance(answer, Unanswered):
            return answer
        try:
            return await _aside(lambda text: self._reports.decode(_clean(text)), answer)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return Unanswered(messages.report_unreadable(error))

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
        """Ask a snapshot pod for its progress, which needs no token: the pod takes no orders."""
        answer = await self._send("", pod, "GET", PROGRESS_PATH, None, STATUS_PORT)
        if isinstance(answer, Unanswered):
            return answer
        if not answer.is_good:
            return _unusable(answer, trusted=False)
        try:
            read = self._snapshot_reports.decode
            return await _aside(lambda text: read(_clean(text)), answer.body or b"")
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return Unanswered(messages.report_unreadable(error))

    async def _request(
        self, key: Key, pod: PodRecord, method: str, path: str, body: bytes | None
    ) -> bytes | Unanswered:
        if pod.agent_secret != agent_secret_name(pod.app, pod.app_uid, pod.epoch, self._keys.id):
            return Unanswered(OTHER_KEY)
        found: bytes | Unanswered = Unanswered("not asked")
        for _ in range(2):  # the second time with a new session: its challenge may be too old
            known = await self._meet(key, pod)
            if isinstance(known, Unanswered):
                return known
            if isinstance(known, TokenOnly):
                found, stale = await self._ask_with_token(known, pod, method, path, body)
            else:
                found, stale = await self._ask_signed(known, pod, method, path, body)
            if not stale:
                return found
            if self._known.get(key) is known:
                self.forget(key)
        return found

    async def _meet(self, key: Key, pod: PodRecord) -> Session | TokenOnly | Unanswered:
        """Return the session with the process that runs in a pod, a new one if there is none."""
        known, process, launch = self._known.get(key), process_of(pod), launch_of(pod)
        if known is not None and known.process == process:
            return known
        nonce = new_nonce()
        answer = await self._send("", pod, "GET", f"{GREETING_PATH}?nonce={nonce}", None, COMMAND_PORT)
        if isinstance(answer, Unanswered):
            return answer
        if answer.status in _WITHOUT_GREETING and not pod.signs:
            met: Session | TokenOnly = TokenOnly(process, self._keys.inspection_token(launch))
        elif not answer.is_good:
            return _unusable(answer, trusted=False)
        else:
            try:
                met = begin(self._keys, launch, process, nonce, answer.body or b"")
            except UntrustedError as error:
                return Unanswered(str(error))
        self._known[key] = met
        return met

    async def _ask_signed(
        self, session: Session, pod: PodRecord, method: str, path: str, body: bytes | None
    ) -> tuple[bytes | Unanswered, bool]:
        """Return the answer, and whether the session is of no use any more; nothing was done then."""
        request = session.sign(method, path, body)
        answer = await self._send(request.header(session.key), pod, method, path, body, COMMAND_PORT)
        if isinstance(answer, Unanswered):
            return answer, False
        if session.is_answer(request, answer):
            return (answer.body or b"" if answer.is_good else _unusable(answer, trusted=True)), False
        if answer.status >= 300 or answer.body is None:
            # Answers to unsigned requests, and faults of the server, are not signed.
            return _unusable(answer, trusted=False), answer.status == _UNAUTHORIZED
        return Unanswered(messages.NOT_SIGNED), False

    async def _ask_with_token(
        self, known: TokenOnly, pod: PodRecord, method: str, path: str, body: bytes | None
    ) -> tuple[bytes | Unanswered, bool]:
        """Return the answer, and whether something else runs there by now."""
        answer = await self._send(f"Bearer {known.token}", pod, method, path, body, COMMAND_PORT)
        if isinstance(answer, Unanswered):
            return answer, False
        # A runtime that signs refuses orders with the token: it has replaced the one that did not.
        stale = answer.status in (_UNAUTHORIZED, _FORBIDDEN)
        return (answer.body or b"" if answer.is_good else _unusable(answer, trusted=True)), stale

    async def _send(  # noqa: PLR0913, PLR0917 - what differs between requests
        self, authorization: str, pod: PodRecord, method: str, path: str, body: bytes | None, port: int
    ) -> Answer | Unanswered:
        assert self._session is not None, "the agents' client is used outside of its context"
        host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if authorization:
            headers["Authorization"] = authorization
        url = f"http://{host}:{port}{path}"
        if body is not None:
            require(self._guard)
        data = None if body is None else GuardedBody(body, self._guard)
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                text = await read_body(response, _LONGEST_ANSWER)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error.__cause__, NotLeadingError):
                raise error.__cause__ from None
            return Unanswered(_why_no_answer(error))
        return Answer(response.status, text, response.headers)


def _clean(answer: bytes) -> bytes:
    """Return an answer without what has the shape of a secret, and without halves of characters of an older runtime."""
    return without_halves(bytes_without_shapes(answer).decode("utf-8", "surrogateescape")).encode(
        "utf-8", "surrogateescape"
    )


async def _aside(read: Callable[[bytes], T], answer: bytes) -> T:
    """Return what is read of an answer; the event loop goes on meanwhile: in a megabyte secrets are looked for long."""
    return read(answer) if len(answer) <= _SHORT_ANSWER else await asyncio.to_thread(read, answer)


class _Error(msgspec.Struct):
    error: str


def _unusable(answer: Answer, *, trusted: bool) -> Unanswered:
    """Return what is made of an answer that is none; a refusal counts as the driver's if it is known to be its own."""
    if answer.status < 300:
        return Unanswered(messages.answer_too_long(_LONGEST_ANSWER))
    refused = trusted and 400 <= answer.status < 500 and answer.status != _UNAUTHORIZED
    return Unanswered(_why_refused(answer.status, answer.body), refused=refused)


def _why_refused(status: int, body: bytes | None) -> str:
    """Return what an agent refuses a request with, in a form and of a length that a status can hold."""
    try:
        reported = msgspec.json.decode(body or b"", type=_Error).error
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return f"HTTP {status}"
    text = "".join(each if each.isprintable() else " " for each in reported[:_LONGEST_REFUSAL])
    return messages.refused(status, without_shapes(text))


def _why_no_answer(error: Exception) -> str:
    """Return why a request failed, as text for a status."""
    if isinstance(error, TimeoutError):
        return messages.no_answer(_SECONDS)
    if isinstance(error, aiohttp.ClientConnectorError):
        # The exception's text names the address, which changes with every pod.
        number = error.os_error.errno
        return messages.no_connection(os.strerror(number) if number else type(error.os_error).__name__)
    return f"{type(error).__name__}: {error}"
