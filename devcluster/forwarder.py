"""TCP from a listening socket to an address: the socket may come from another network namespace. Does I/O."""

import asyncio
import contextlib
import socket

_CHUNK = 256 * 1024


async def forward(listener: socket.socket, host: str, port: int) -> asyncio.Server:
    """Forward each connection of ``listener`` to ``host:port``, as seen from this process's network namespace.

    A connection whose target refuses is closed at once, so that a stopped service looks stopped, not slow.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target_reader, target_writer = await asyncio.open_connection(host, port, limit=_CHUNK)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
        finally:
            for side in (writer, target_writer):
                side.close()

    return await asyncio.start_server(serve, sock=listener, limit=_CHUNK)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, then pass the end on: half-closed connections are usual with exec and attach."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
