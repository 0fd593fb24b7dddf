"""Answers of the API server as kopf reads them, cut to what its decoder survives. Does I/O.

kopf decodes each line of a watch with Python's own decoder. One that raises for a single object ends the watch, and
with it the process, for all of them; and one that makes thirty megabytes of an object of one is the end of the process
as soon as there are eight. kopf also holds on to each object for a while. So it is given of each what the operator
reads, and of one that is not to be kept whole only names and conditions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec

from tidegate.api.streaming_app import own_annotations
from tidegate.api.values.bounded_json import MOST_VALUES, TOO_LARGE, TOO_MANY, decoded_size, has_too_many_values
from tidegate.kube.lines import cut, lines_of

_MOST_FINALIZERS = 64
_MOST_CONDITIONS, _LONGEST_CONDITION = 16, 4096


class Names(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What of an object's metadata is read of applications."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


class _Conditions(msgspec.Struct):
    conditions: list[msgspec.Raw] = []


Admits = Callable[[Names, int], bool]
"""Told of each version of an object and of the bytes that it needs in memory; says whether it is to be kept whole."""

_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_names, _event, _list = msgspec.json.Decoder(Names), msgspec.json.Decoder(_Event), msgspec.json.Decoder(_List)
_conditions = msgspec.json.Decoder(_Conditions)


def admit_all(names: Names, size: int) -> bool:
    """Keep each whole, whatever it needs."""
    return True


def kept_of(body: bytes, admits: Admits, gone: bool = False) -> bytes:
    """Return what is kept of an object: all that is read, or only its names and conditions, and why.

    Args:
        body: the object, as JSON.
        admits: asked whether it may be kept whole.
        gone: it was deleted, so that its names say everything.
    """
    try:
        parts = _parts.decode(body)
        names = _names.decode(parts["metadata"])
    except (msgspec.MsgspecError, KeyError):  # nothing that the API server has stored
        return body if len(body) <= MOST_VALUES else msgspec.json.encode({"metadata": {}, "spec": TOO_MANY})
    names.annotations = own_annotations(names.annotations)
    names.finalizers = names.finalizers[:_MOST_FINALIZERS]
    parts["metadata"] = msgspec.Raw(msgspec.json.encode(names))
    if gone or has_too_many_values(body):
        admits(names, 0)
        return _bare(parts, TOO_MANY)
    kept = msgspec.json.encode(parts)
    return kept if admits(names, decoded_size(kept)) else _bare(parts, TOO_LARGE)


def _bare(parts: dict[str, msgspec.Raw], why: str) -> bytes:
    try:
        conditions = _conditions.decode(parts.get("status", b"{}")).conditions
    except msgspec.MsgspecError:
        conditions = []
    short = [condition for condition in conditions if len(condition) <= _LONGEST_CONDITION][:_MOST_CONDITIONS]
    about = {name: parts[name] for name in ("apiVersion", "kind", "metadata") if name in parts}
    return msgspec.json.encode({**about, "status": {"conditions": short}, "spec": why})


def _decoded(body: bytes, admits: Admits) -> Any:
    """Return what an answer says; of a list, each object is decoded by itself."""
    try:
        items = _list.decode(body).items
    except msgspec.MsgspecError:  # no list
        return json.loads(body)
    whole = _parts.decode(body) | {"items": msgspec.Raw(b"[]")}
    answer = {name: json.loads(bytes(value)) for name, value in whole.items()}
    answer["items"] = [json.loads(kept_of(bytes(item), admits)) for item in items]
    return answer


def _small(line: bytes, admits: Admits) -> bytes:
    """Return a line of a watch whose object is what is kept of it."""
    try:
        event = _event.decode(line)
    except msgspec.MsgspecError:
        return line  # it was cut off with the connection
    if event.type in {"BOOKMARK", "ERROR"}:
        return line
    kept = kept_of(bytes(event.object), admits, gone=event.type == "DELETED")
    return msgspec.json.encode(_Event(event.type, msgspec.Raw(kept)))


class BoundedResponse(aiohttp.ClientResponse):
    """A response whose JSON is nested no deeper, and whose numbers are no longer, than readers survive."""

    admits: Admits = staticmethod(admit_all)

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Begin to read, through a stream that cuts each line."""
        await super().start(connection)
        self.content = BoundedLines(self.content, self.admits)  # type: ignore[assignment] # what kopf uses is there
        return self

    async def json(self, **_: Any) -> Any:
        """Return the decoded body."""
        return await asyncio.to_thread(_decoded, await cut(await self.read()), self.admits)


def bounded_by(admits: Admits) -> type[BoundedResponse]:
    """Return what answers are read through where not all objects may be kept whole."""
    return type("BoundedByAdmission", (BoundedResponse,), {"admits": staticmethod(admits)})


class BoundedLines:
    """A stream of lines of JSON, each cut; everything else is the stream's own."""

    def __init__(self, stream: aiohttp.StreamReader, admits: Admits) -> None:
        """Wrap a stream."""
        self._stream = stream
        self._admits = admits

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
            small = len(fit) <= MOST_VALUES
            yield (_small(fit, self._admits) if small else await asyncio.to_thread(_small, fit, self._admits)) + end
