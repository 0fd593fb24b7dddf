"""Answers of the API server as kopf reads them, cut to what its decoder survives. Does I/O.

kopf decodes each line of a watch with Python's own decoder. One that raises for a single object ends the watch, and
with it the process, for all of them; and one that makes thirty megabytes of an object of one is the end of the process
as soon as there are eight.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec

from tidegate.kube.lines import cut, lines_of
from tidegate.model.bounded_json import MOST_VALUES, TOO_MANY, has_too_many_values

_MOST_FINALIZERS = 64


class _Metadata(msgspec.Struct, omit_defaults=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()


class _Status(msgspec.Struct):
    conditions: list[msgspec.Raw] = []


class _Bare(msgspec.Struct, rename="camel"):
    """What names an object, and what was said of it."""

    metadata: _Metadata
    api_version: str = ""
    kind: str = ""
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


_bare, _event, _list = msgspec.json.Decoder(_Bare), msgspec.json.Decoder(_Event), msgspec.json.Decoder(_List)


def bare_if_too_many(body: bytes) -> bytes:
    """Return an object; of one that has too many values only its names and conditions, and that it has.

    Raises:
        msgspec.MsgspecError: it is one of those, and has no names.
    """
    if not has_too_many_values(body):
        return body
    found = _bare.decode(body)
    names = msgspec.structs.replace(found.metadata, finalizers=found.metadata.finalizers[:_MOST_FINALIZERS])
    about = {"apiVersion": found.api_version, "kind": found.kind, "metadata": names, "status": found.status}
    return msgspec.json.encode(about | {"spec": TOO_MANY})


def _decoded(body: bytes) -> Any:
    """Return what an answer says; of a list, each object is decoded by itself."""
    if len(body) <= MOST_VALUES:
        return json.loads(body)
    try:
        items = _list.decode(body).items
    except msgspec.MsgspecError:  # no list
        return json.loads(body)
    whole = msgspec.json.decode(body, type=dict[str, msgspec.Raw]) | {"items": msgspec.Raw(b"[]")}
    answer = {name: json.loads(bytes(value)) for name, value in whole.items()}
    answer["items"] = [json.loads(bare_if_too_many(bytes(item))) for item in items]
    return answer


def _small(line: bytes) -> bytes:
    """Return a line of a watch whose object has not too many values."""
    try:
        event = _event.decode(line)
        return msgspec.json.encode(_Event(event.type, msgspec.Raw(bare_if_too_many(bytes(event.object)))))
    except msgspec.MsgspecError:
        return line  # it was cut off with the connection


class BoundedResponse(aiohttp.ClientResponse):
    """A response whose JSON is nested no deeper, and whose numbers are no longer, than readers survive."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Begin to read, through a stream that cuts each line."""
        await super().start(connection)
        self.content = BoundedLines(self.content)  # type: ignore[assignment] # what kopf uses of it is there
        return self

    async def json(self, **_: Any) -> Any:
        """Return the decoded body."""
        return await asyncio.to_thread(_decoded, await cut(await self.read()))


class BoundedLines:
    """A stream of lines of JSON, each cut; everything else is the stream's own."""

    def __init__(self, stream: aiohttp.StreamReader) -> None:
        """Wrap a stream."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yield whole lines, as soon as they are there.

        Raises:
            aiohttp.ClientError: a line is longer than any object can be.
        """
        async for line, end in lines_of(self._stream.iter_chunked(size)):
            fit = await cut(line)
            yield (fit if len(fit) <= MOST_VALUES else await asyncio.to_thread(_small, fit)) + end
