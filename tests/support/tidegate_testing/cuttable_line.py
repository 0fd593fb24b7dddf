"""A TCP line to a server that a test can cut without either side being told. Runs a thread; listens on 127.0.0.1."""

import asyncio
import contextlib
import threading
from types import TracebackType

_CHUNK = 256 * 1024


class CuttableLine:
    """Forwards connections to ``127.0.0.1:port``, coming from an address of its own, by which the server knows them."""

    def __init__(self, port: int, source: str) -> None:
        """Describe the line; it is open inside of ``with``.

        Args:
            port: of the server.
            source: any address of 127.0.0.0/8.
        """
        self.port = 0
        self.source = source
        self._target = port
        self._cut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> "CuttableLine":
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def cut(self) -> None:
        """Let nothing through from now on, on any connection; each side sees only silence."""
        self._cut = True

    def break_off(self) -> None:
        """End every connection that is open now; the next ones go through."""
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result(20)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_CHUNK)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _close(self) -> None:
        self._server.close()
        await self._end_all()

    async def _end_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target, limit=_CHUNK, local_addr=(self.source, 0))
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(self._copy(reader, there[1]), self._copy(there[0], writer))
        finally:
            for side in (writer, there[1]):
                side.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # the other side went away
            while chunk := await reader.read(_CHUNK):
                if self._cut:
                    continue  # what was sent is lost, but taken: the sender learns nothing
                writer.write(chunk)
                await writer.drain()
            if not self._cut and writer.can_write_eof():
                writer.write_eof()
