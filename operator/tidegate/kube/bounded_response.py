"""Answers of the API server as kopf reads them, cut to what its decoder survives. Does I/O.

kopf decodes each line of a watch with Python's own decoder. One that raises for a single object ends the watch, and
with it the process, for all of them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from tidegate.kube.lines import cut, lines_of


class BoundedResponse(aiohttp.ClientResponse):
    """A response whose JSON is nested no deeper, and whose numbers are no longer, than readers survive."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Begin to read, through a stream that cuts each line."""
        await super().start(connection)
        self.content = BoundedLines(self.content)  # type: ignore[assignment] # what kopf uses of it is there
        return self

    async def json(self, **_: Any) -> Any:
        """Return the decoded body."""
        return json.loads(await cut(await self.read()))


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
            yield await cut(line) + end
