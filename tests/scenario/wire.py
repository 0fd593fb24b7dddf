"""The operator's real clients of API server and agents, up to where bytes would go onto the wire."""

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import parse_qsl

import aiohttp
import msgspec

from tests.scenario.api_server import ApiServer, Body, Change, RefusedError, place_of
from tests.scenario.drivers_agent import Answered
from tidegate.access.keys import OperatorKeys
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import Answer
from tidegate.kube.client import KubeClient, require
from tidegate.kube.connection import Connection
from tidegate.kube.failures import Failure, Unavailable, failure_from_response
from tidegate.pods.records.record import PodRecord
from tidegate.wiring.metrics import OperatorMetrics

T = TypeVar("T")
Asked = tuple[str, str, bytes, str]
"""Method, path, body and the header Authorization."""


def quiet_metrics() -> OperatorMetrics:
    """Return figures that count nothing: a tenth of a schedule's time would go there."""
    metrics = OperatorMetrics()
    silent = {
        name: lambda *_, **__: None for name, of in vars(OperatorMetrics).items() if callable(of) and name[0] != "_"
    }
    for name, function in silent.items():
        setattr(metrics, name, function)
    metrics.queue_depth = cast(Any, _Nothing())
    metrics.upgrades = cast(Any, _Nothing())
    metrics.control = cast(Any, _Nothing())
    return metrics


class _Nothing:
    def inc(self) -> None:
        """Show nothing."""

    def dec(self) -> None:
        """Show nothing."""

    def show(self, *_: Any) -> None:
        """Show nothing."""

    def count(self, *_: Any) -> None:
        """Count nothing."""

    def forget(self, *_: Any) -> None:
        """Show nothing."""


METRICS = quiet_metrics()
"""What the operator counts does not steer it."""


class Network(Protocol):
    """What clients need of the process they belong to."""

    name: str

    @property
    def api(self) -> ApiServer:
        """The API server."""

    def holds(self) -> bool:
        """Return whether the process may change something."""

    def is_granted(self, method: str, path: str) -> bool:
        """Return whether the API server lets the process ask this."""

    async def exchange(self, what: str, write: bool, act: Callable[[], T], refuse: Callable[[int, str], T]) -> T:
        """Send a request and return its answer.

        Raises:
            OSError: no answer.
        """

    def stream(self, plural: str, since: int) -> AsyncIterator[Change]:
        """Yield changes."""

    def ask_agent(self, pod: PodRecord, asked: Asked) -> Answered:
        """Return an agent's answer."""


class SimulatedClient(KubeClient):
    """The real client, up to where bytes would go onto the wire."""

    def __init__(self, process: Network) -> None:
        super().__init__(cast(Connection, _Nowhere()), METRICS, guard=process.holds)
        self.process = process

    @property
    def watches(self) -> aiohttp.ClientSession:
        """What the real Watch opens its connections with."""
        return cast(aiohttp.ClientSession, _Watches(self.process))

    async def _send_once(  # noqa: PLR0917 - as the real one's
        self,
        method: str,
        path: str,
        body: bytes | None,
        accept: str = "application/json",
        limits: object = None,
        longest: int = 0,
    ) -> bytes | Failure:
        if method != "GET":
            require(self._guard)
        return await self._send_unguarded(method, path, body)

    async def newest_version(self, path: str) -> str | Failure:
        """Return the version of everything; whether there is a connection, the watch that follows finds out."""
        return str(self.process.api.version)

    async def send_beside(
        self, method: str, path: str, kind: type[T], manifest: Any = None, *, patience: float
    ) -> T | Failure:
        """Send one request without the guard."""
        body = None if manifest is None else msgspec.json.encode(manifest)
        answer = await self._send_unguarded(method, path, body)
        return msgspec.json.decode(answer, type=kind) if isinstance(answer, bytes) else answer

    async def _send_unguarded(self, method: str, path: str, body: bytes | None) -> bytes | Failure:
        write = method != "GET"
        if not self.process.is_granted(method, path):
            return failure_from_response(403, RefusedError(403, "Forbidden", "not granted").body(), {})
        place = place_of(path.partition("?")[0])
        what = " ".join(filter(None, (method, place.plural, place.part)))
        api = self.process.api

        def act() -> tuple[int, bytes]:
            return api.handle(method, path, body, self.process.name)

        def refuse(code: int, reason: str) -> tuple[int, bytes]:
            return code, RefusedError(code, reason, "refused at random").body()

        try:
            status, text = await self.process.exchange(what, write, act, refuse)
        except OSError as error:
            return Unavailable(str(error))
        return failure_from_response(status, text, {}) if status >= 400 else text


class SimulatedAgents(AgentClient):
    """The real client of agents, up to where bytes would go onto the wire."""

    def __init__(self, process: Network, keys: OperatorKeys) -> None:
        super().__init__(keys, 1, process.holds)
        self._process = process

    def take_keys(self, keys: OperatorKeys) -> None:
        """Have the keys that were found."""
        self._keys = keys

    async def _send(  # noqa: PLR0917 - as the real one's
        self, authorization: str, pod: PodRecord, method: str, path: str, body: bytes | None, port: int
    ) -> Answer | Unanswered:
        if body is not None:
            require(self._process.holds)
        process = self._process

        def act() -> Answered:
            return process.ask_agent(pod, (method, path, body or b"", authorization))

        def refuse(code: int, reason: str) -> Answered:
            return code, b"", {}

        try:
            return Answer(*await self._process.exchange(f"{method} agent", body is not None, act, refuse))
        except OSError as error:
            return Unanswered(str(error))


class _Nowhere:
    server = "http://api"


class _Watches:
    """An HTTP session in which only watches are opened."""

    def __init__(self, process: Network) -> None:
        self._process = process

    def get(self, url: str, **_: Any) -> "_Connection":
        return _Connection(self._process, url)


class _Connection:
    """One watch as the real Watch reads it: lines of JSON."""

    status = 200

    def __init__(self, process: Network, url: str) -> None:
        path, _, query = url.removeprefix(_Nowhere.server).partition("?")
        asked = dict(parse_qsl(query))
        self._process, self._plural = process, place_of(path).plural
        self._since = int(asked["resourceVersion"])
        self._key, _, self._value = asked.get("labelSelector", "").partition("=")

    @property
    def content(self) -> "_Connection":
        return self

    async def __aenter__(self) -> "_Connection":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        pass

    async def iter_any(self) -> AsyncIterator[bytes]:
        api = self._process.api
        try:
            async for change in self._process.stream(self._plural, self._since):
                reported = self._reported(change)
                if reported is not None:
                    yield b'{"type":"%s","object":%s}\n' % (reported[0].encode(), api.encoded(reported[1]))
        except RefusedError as refused:
            yield b'{"type":"ERROR","object":%s}\n' % refused.body()

    def _reported(self, change: Change) -> tuple[str, Body] | None:
        """Return as what a change is told. What loses the label is removed, as it was before, in a later version."""
        before, is_chosen = change.before, self._chooses(change.body)
        if change.type != "MODIFIED" or before is None or is_chosen == self._chooses(before):
            return (change.type, change.body) if is_chosen else None
        if is_chosen:
            return "ADDED", change.body
        return "DELETED", {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}

    def _chooses(self, body: Body) -> bool:
        return not self._key or body["metadata"].get("labels", {}).get(self._key) == self._value
