"""Lists and then watches resources for ever, each decoded into a compact record. Does I/O.

A lost connection resumes at the last resource version, an expired one (410) lists again, and any other failure is
retried with back-off. Bookmarks keep the resource version fresh on a quiet cluster. If the API server is at an earlier
version than before (:mod:`tidegate.kube.history`), the watch is over.
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
from tidegate.kube.history import NewestVersion
from tidegate.kube.lines import LONGEST_LINE, aside, cut, lines_of

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
_AT_ONCE = 16
"""Objects of a list after which others get a turn: a page of 500 is seconds, in which no agent would be asked."""
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
    """None if it is empty: some API servers say null then."""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 0
    message: str = ""


class _BareMetadata(msgspec.Struct):
    namespace: str
    name: str
    uid: str
    resourceVersion: str = ""  # noqa: N815


class _Bare(msgspec.Struct):
    metadata: _BareMetadata


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
    """Empty where each was yielded as soon as it was read."""
    version: str
    """The resource version of the list: it knows nothing of what happened later."""
    unread: frozenset[str] = frozenset()
    """The uids of those that are there, and that cannot be read."""
    uids: frozenset[str] = frozenset()
    """The uids of all that are there; given where each was yielded by itself."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """One object was added or modified, or is in a list of which each is yielded by itself."""

    item: T


@dataclass(frozen=True, slots=True)
class Removed(Generic[T]):
    """One object is gone; the record is its last state, or who it was if that cannot be read."""

    item: T


class _ExpiredError(Exception):
    """The resource version is too old: list again."""


class Watch(Generic[T]):
    """A watch on one collection, filtered by labels on the server."""

    def __init__(  # noqa: PLR0913 - what differs between the kinds, and the time
        self,
        client: KubeClient,
        path: str,
        selector: str,
        kind: type[T] | Callable[[msgspec.Raw], T],
        *,
        gone: Callable[[msgspec.Raw], T] | None = None,
        one_by_one: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare a watch; nothing is sent yet.

        Args:
            client: an open client.
            path: of the collection.
            selector: a label selector, so that a busy cluster's other objects cost nothing; empty for all objects.
            kind: what each object is decoded to, or what makes it of its JSON; called at once, so that the JSON of a
                whole list is never in memory. Fields that a type does not name are skipped by the decoder. A long
                object is decoded in another thread.
            gone: what makes the record of an object that is gone; as of any other if it is not given.
            one_by_one: yield each object of a list as soon as it is read, and then a list that only says which there
                are, so that not all are in memory at once.
            clock: seconds, monotonic.
            sleep: waits for so many seconds.
        """
        self._client = client
        self._path = path
        self._selector = {"labelSelector": selector} if selector else {}
        self._clock = clock
        self._sleep = sleep
        self._read: Callable[[msgspec.Raw], T]
        self._read = msgspec.json.Decoder(kind).decode if isinstance(kind, type) else kind
        self._read_gone = gone if gone is not None else self._read
        self._one_by_one = one_by_one
        self._version = ""
        self._newest = NewestVersion()

    async def changes(self) -> AsyncIterator[Listed[T] | Changed[T] | Removed[T]]:
        """Yield a Listed first and after each gap, and every change in between; never ends by itself.

        One by one, each object of a list is yielded as Changed before its Listed; if the list fails meanwhile, it
        begins again.

        Raises:
            RestoredError: what was yielded so far is of later versions than what there is.
        """
        pause = 0.0
        while True:
            began = float("inf")
            try:
                if self._version:
                    await self._check_history()
                else:
                    async for listed in self._list():
                        yield listed
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

    async def _list(self) -> AsyncIterator[Listed[T] | Changed[T]]:
        items: list[T] = []
        unread, uids = set[str](), set[str]()
        token, most = "", _PAGE
        while True:
            query = self._selector | {"limit": str(most)} | ({"continue": token} if token else {})
            path = f"{self._path}?{urlencode(query)}"
            answer = await self._client.get(path, msgspec.Raw, longest=_LONGEST_PAGE)
            if isinstance(answer, TooLong) and most > 1:
                most //= 4
                continue
            if isinstance(answer, FAILURES):
                raise aiohttp.ClientError(messages.list_failed(self._path, answer))
            # Cut before it is read, not after a decoder failed: at what depth one fails depends on where it is
            # called, so that what one survived would end the next.
            page = _listing.decode(await cut(bytes(answer)))
            for body in page.items or []:
                item = await self._decode_item(body, self._read)
                if item is None:
                    unread |= _uid_of(body)
                if not self._one_by_one:
                    items += () if item is None else (item,)
                    continue
                uids |= _uid_of(body)
                if item is not None:
                    yield Changed(item)
                if len(uids) % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            token = page.metadata.continue_
            if not token:
                self._newest.require_order(self._path, page.metadata.resourceVersion)
                self._version = page.metadata.resourceVersion
                yield Listed(items, self._version, frozenset(unread), frozenset(uids))
                return

    async def _check_history(self) -> None:
        # A watch from a version that the server has not reached is accepted, and says nothing until it has.
        answer = await self._client.newest_version(self._path)
        if isinstance(answer, FAILURES):
            raise aiohttp.ClientError(messages.list_failed(self._path, answer))
        self._newest.require_order(self._path, answer)

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
        headers = {"Accept": JSON}
        async with self._client.watches.get(url, headers=headers, timeout=timeout, allow_redirects=False) as response:
            self._client.count_watch(response.status)
            if response.status == 410:
                raise _ExpiredError
            if response.status >= 300:
                raise aiohttp.ClientError(messages.watch_refused(self._path, response.status))
            async for line, end in lines_of(response.content.iter_any()):
                # A line without an end was cut off with the connection, and comes again.
                change = await self._decode(await cut(line)) if line and end else None
                if change is not None:
                    yield change

    async def _decode(self, line: bytes) -> Changed[T] | Removed[T] | None:
        event = _event.decode(line)
        about = _versioned.decode(event.object)
        if event.type == "ERROR":
            if about.code == 410:
                raise _ExpiredError
            raise aiohttp.ClientError(messages.watch_ended(self._path, about.message))
        self._version = about.metadata.resourceVersion or self._version
        self._newest.note(self._version)
        if event.type == "BOOKMARK":
            return None
        gone = event.type == "DELETED"
        item = await self._decode_item(event.object, self._read_gone if gone else self._read)
        if gone:
            # That it is gone has to be known whatever it was: what waits for its end would wait until the next list.
            item = self._decode_bare(event.object) if item is None else item
            return None if item is None else Removed(item)
        return None if item is None else Changed(item)

    async def _decode_item(self, body: msgspec.Raw, read: Callable[[msgspec.Raw], T]) -> T | None:
        """Return an object; None if it is not what it should be, which must not keep the others out."""
        try:
            return await aside(read, body)
        except Exception as error:
            which = " ".join(_uid_of(body))
            log.error("object left out, because it cannot be read", path=self._path, uid=which, error=f"{error!r:.500}")
            return None

    def _decode_bare(self, body: msgspec.Raw) -> T | None:
        """Return an object of which only is known which one it is; None if not even that is."""
        try:
            return self._read_gone(msgspec.Raw(msgspec.json.encode(_bare.decode(body))))
        except msgspec.MsgspecError:
            return None


def _uid_of(body: msgspec.Raw) -> set[str]:
    try:
        return {_bare.decode(body).metadata.uid}
    except msgspec.MsgspecError:
        return set()
