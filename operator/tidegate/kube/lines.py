"""Splits a stream of chunks into lines of bounded length. No I/O of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import aiohttp
import msgspec

from tidegate.api.values.bounded_json import bounded
from tidegate.kube import messages

T = TypeVar("T")
B = TypeVar("B", bytes, msgspec.Raw)

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one object in a watch; the API server takes 3 MiB."""
_END = b"\n"
_SHORT = 64 * 1024
"""Bytes that are cut in a few hundredths of a second, whatever they hold."""


async def cut(body: bytes) -> bytes:
    """Return JSON as :func:`bounded` does; the event loop goes on meanwhile: a hostile megabyte takes seconds."""
    return await aside(bounded, body)


async def aside(read: Callable[[B], T], body: B) -> T:
    """Return what is read of a body; of a long one, the event loop goes on meanwhile."""
    return read(body) if len(body) <= _SHORT else await asyncio.to_thread(read, body)


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield each line as soon as it is there, and its end: a newline, or nothing if the stream ended within it.

    aiohttp's own readline refuses lines over its buffer's size, and one object can be larger.

    Raises:
        aiohttp.ClientError: a line is longer than any object can be.
    """
    parts: list[bytes] = []  # of a line whose end has not come: joined once, however small they are
    length = 0
    async for chunk in chunks:
        parts.append(chunk)
        length += len(chunk)
        if _END in chunk:
            *lines, rest = b"".join(parts).split(_END)
            parts, length = [rest], len(rest)
            for line in lines:
                yield line, _END
        if length > LONGEST_LINE:
            raise aiohttp.ClientError(messages.LINE_TOO_LONG)
    if length:
        yield b"".join(parts), b""
