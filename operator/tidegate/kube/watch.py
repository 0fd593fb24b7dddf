"""Lists and then watches resources for ever, each decoded into a compact record. Does I/O.

A lost connection resumes at the last resource version, an expired one (410) lists again, and any other failure is
retried with back-off. Bookmarks keep the resource version fresh on a quiet cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
import structlog

from tidegate.kube import messages
from tidegate.kube.client import JSON, KubeClient
from tidegate.kube.failures import FAILURES, TooLong
from tidegate.kube.lines import LONGEST_LINE, cut, lines_of

T = TypeVar("T")

_WATCH_SECONDS = 540
_PAGE = 500
"""Objects of one page of a list, as long as they are not too long for it together."""
_LONGEST_PAGE = LONGEST_LINE
"""Bytes of a page: an object of 1.4 MB costs nobody much who makes hundreds, and the next list would have them all."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LIVED = 5.0
"""Seconds after which a stream that ends was a working one: the next is opened as if for the first time."""
# The server sends a bookmark each minute: silence for longer means that the connection is dead without saying so.
_SILENCE = 100.0
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
log = structlog.get_logger()


class EventCounter(Protocol):
    """Where the events of watches are counted."""

    def count_event(self, resource: str) -> None:
        """Count one event; ``resource`` is the plural of its kind."""


class ListMeta(msgspec.Struct):
    """Metadata of a list: where a watch goes on, and the next page."""

    resourceVersion: str = ""  # noqa: N815 - the API's name
    continue_: str = msgspec.field(default="", name="continue")


class Listing(msgspec.Struct, Generic[T]):
    """One page of a list."""

    items: list[T] | None = None
    """None if it is empty and only metadata were asked for: the API server then says null."""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 0
    message: str = ""


class ObjectMetadata(msgspec.Struct):
    """What says which object it is."""

    namespace: str
    name: str
    uid: str


class _BareMetadata(ObjectMetadata):
    resourceVersion: str = ""  # noqa: N815


class _Bare(msgspec.Struct):
    metadata: _BareMetadata


class MetadataOnly(msgspec.Struct):
    """Any object, without anything but its metadata; the server leaves the rest out."""

    metadata: ObjectMetadata


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event = msgspec.json.Decoder(_Event)
_versioned = msgspec.json.Decoder(_Versioned)
_bare = msgspec.json.Decoder(_Bare)
_listing: msgspec.json.Decoder[Listing[msgspec.Raw]] = msgspec.json.Decoder(Listing[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """All objects there are; whatever was known before and is not among them is gone."""

    items: Sequence[T]
    version: str
    """The resource version of the list: it knows nothing of what happened later."""
    unread: frozenset[str] = frozenset()
    """The uids of those that are there, and that cannot be read."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """One object was added or modified."""

    item: T


@dataclass(frozen=True, slots=True)
class Removed(Generic[T]):
    """One object is gone; the record is its last state, or who it was if that cannot be read."""

    item: T


class _ExpiredError(Exception):
    """The resource version is too old: list again."""


class Watch(Generic[T]):
    """A watch on one collection, filtered by labels on the server."""

    def __init__(  # noqa: PLR0913 - the last two are the time
        self,
        client: KubeClient,
        path: str,
        selector: str,
        kind: type[T] | Callable[[msgspec.Raw], T],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare a watch; nothing is sent yet.

        Args:
            client: an open client.
            path: of the collection.
            selector: a label selector, so that a busy cluster's other objects cost nothing; empty for all objects.
            kind: what each object is decoded to, or what makes it of its JSON; called at once, so that the JSON of a
                whole list is never in memory. Fields that a type does not name are skipped by the decoder. With
                MetadataOnly the server sends no more than that.
            clock: seconds, monotonic.
            sleep: waits for so many seconds.
        """
        self._client = client
        self._path = path
        self._selector = {"labelSelector": selector} if selector else {}
        self._metadata_only = isinstance(kind, type) and issubclass(kind, MetadataOnly)
        self._clock = clock
        self._sleep = sleep
        self._read = msgspec.json.Decoder(kind).decode if isinstance(kind, type) else kind
        self._version = ""

    async def changes(self) -> AsyncIterator[Listed[T] | Changed[T] | Removed[T]]:
        """Yield a Listed first and after each gap, and every change in between; never ends by itself."""
        pause = 0.0
        while True:
            began = float("inf")
            try:
                if not self._version:
                    items, unread = await self._list()
                    yield Listed(items, self._version, unread)
                began = self._clock()
                async for change in self._stream():
                    yield change
                if self._clock() - began >= _LIVED:
                    pause = 0.0
                    continue  # the server ends each watch after some minutes: go on at once from the last version
            except _ExpiredError:
                self._version = ""
                log.info("watch starts over", path=self._path, reason="ResourceVersionExpired")
            except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
                log.warning("watch interrupted", path=self._path, error=f"{type(error).__name__}: {error}")
            pause = min(_FIRST_PAUSE if self._clock() - began >= _LIVED or not pause else pause * 2, _LONGEST_PAUSE)
            await self._sleep(pause)

    async def _list(self) -> tuple[list[T], frozenset[str]]:
        items: list[T] = []
        unread: set[str] = set()
        token, most = "", _PAGE
        while True:
            query = self._selector | {"limit": str(most)} | ({"continue": token} if token else {})
            path = f"{self._path}?{urlencode(query)}"
            answer = await self._client.get(path, msgspec.Raw, self._accept("List"), longest=_LONGEST_PAGE)
            if isinstance(answer, TooLong) and most > 1:
                most //= 4
                continue
            if isinstance(answer, FAILURES):
                raise aiohttp.ClientError(messages.list_failed(self._path, answer))
            # Cut before it is read, not after a decoder failed: at what depth one fails depends on where it is
            # called, so that what one survived would end the next.
            page = _listing.decode(await cut(bytes(answer)))
            for body in page.items or []:
                item = self._decode_item(body)
                if item is not None:
                    items.append(item)
                else:
                    unread |= _uid_of(body)
            token = page.metadata.continue_
            if not token:
                self._version = page.metadata.resourceVersion
                return items, frozenset(unread)

    async def _stream(self) -> AsyncIterator[Changed[T] | Removed[T]]:
        query = {
            **self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        timeout = aiohttp.ClientTimeout(total=_WATCH_SECONDS + 30, sock_connect=5, sock_read=_SILENCE)
        url = f"{self._client.server}{self._path}?{urlencode(query)}"
        headers = {"Accept": self._accept()}
        async with self._client.watches.get(url, headers=headers, timeout=timeout) as response:
            self._client.count_watch(response.status)
            if response.status == 410:
                raise _ExpiredError
            if response.status >= 400:
                raise aiohttp.ClientError(messages.watch_refused(self._path, response.status))
            async for line, end in lines_of(response.content.iter_any()):
                # A line without an end was cut off with the connection, and comes again.
                change = self._decode(await cut(line)) if line and end else None
                if change is not None:
                    yield change

    def _accept(self, suffix: str = "") -> str:
        return _METADATA.format(suffix) if self._metadata_only else JSON

    def _decode(self, line: bytes) -> Changed[T] | Removed[T] | None:
        event = _event.decode(line)
        about = _versioned.decode(event.object)
        if event.type == "ERROR":
            if about.code == 410:
                raise _ExpiredError
            raise aiohttp.ClientError(messages.watch_ended(self._path, about.message))
        self._version = about.metadata.resourceVersion or self._version
        if event.type == "BOOKMARK":
            return None
        item = self._decode_item(event.object)
        if event.type == "DELETED":
            # That it is gone has to be known whatever it was: what waits for its end would wait until the next list.
            item = self._decode_bare(event.object) if item is None else item
            return None if item is None else Removed(item)
        return None if item is None else Changed(item)

    def _decode_item(self, body: msgspec.Raw) -> T | None:
        """Return an object; None if it is not what it should be, which must not keep the others out."""
        try:
            return self._read(body)
        except Exception as error:
            which = " ".join(_uid_of(body))
            log.error("object left out, because it cannot be read", path=self._path, uid=which, error=f"{error!r:.500}")
            return None

    def _decode_bare(self, body: msgspec.Raw) -> T | None:
        """Return an object of which only is known which one it is; None if not even that is."""
        try:
            return self._read(msgspec.Raw(msgspec.json.encode(_bare.decode(body))))
        except msgspec.MsgspecError:
            return None


def _uid_of(body: msgspec.Raw) -> set[str]:
    try:
        return {_bare.decode(body).metadata.uid}
    except msgspec.MsgspecError:
        return set()
