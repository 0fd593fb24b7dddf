"""A port: one thread reads from all its connections, a few threads answer. Does I/O."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable

from tidegate_spark.process.serving.connection import Connection
from tidegate_spark.process.serving.handler import Handler
from tidegate_spark.process.serving.limits import Lane, Limits
from tidegate_spark.process.serving.threads import Threads

log = logging.getLogger("tidegate")
BACKLOG = 512
"""Connections that the kernel keeps until they are accepted."""
ACCEPTED_AT_ONCE = 16
"""Few: whoever is accepted is read from before so many others came that it would have to make room for them."""
PAUSE_SECONDS = 0.1
"""After a connection could not be accepted: the process has no file descriptor left."""


class Server:
    """Listens from the moment it is made; answers once it is started."""

    def __init__(self, address: str, port: int, handler: type[Handler], limits: Limits) -> None:
        """Bind; a port in use raises OSError. ``address`` may be of IPv6; port 0 is one that is free."""
        self.handler, self.limits = handler, limits
        self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((address, port))
            self._socket.listen(BACKLOG)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: dict[Connection, None] = {}
        self._of_address: Counter[str] = Counter()
        self._accepting: set[asyncio.Task[object]] = set()
        self._threads = {
            Lane.SHORT: Threads(f"port-{self.port}", limits.threads, limits.waiting),
            Lane.LONG: Threads(f"port-{self.port}-long", limits.long_threads, limits.waiting),
        }
        self._thread = threading.Thread(target=self._run, name=f"port-{self.port}-reads", daemon=True)

    def start(self) -> None:
        """Serve, in threads that do not keep the process alive."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def close(self) -> None:
        """Close the port and its connections; the process goes on without it."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._socket.close()
        for threads in self._threads.values():
            threads.close()

    @property
    def open_connections(self) -> int:
        """Return how many connections there are, for tests of the bound."""
        return len(self._connections)

    # --- in the thread that reads ---

    @property
    def _here(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "nobody connects before the port is started"
        return self._loop

    def _run(self) -> None:
        loop = self._here
        asyncio.set_event_loop(loop)
        loop.add_reader(self._socket, self._accept)
        loop.run_forever()
        loop.remove_reader(self._socket)
        loop.run_until_complete(self._cut_connections())
        loop.close()

    async def _cut_connections(self) -> None:
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for connection in list(self._connections):
            connection.cut()
        await asyncio.sleep(0)  # connections get to know that they are lost

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("port %d: a connection is not accepted: %s", self.port, error)
                self._here.remove_reader(self._socket)
                self._here.call_later(PAUSE_SECONDS, self._here.add_reader, self._socket, self._accept)
                return
            accepted.setblocking(False)
            with contextlib.suppress(OSError):
                # An answer in two pieces would wait until the first is acknowledged, 40 ms over a kept connection.
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._here.create_task(self._serve(accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            await self._here.connect_accepted_socket(lambda: Connection(self), accepted)
        except OSError:
            accepted.close()

    def admit(self, connection: Connection) -> None:
        """Take note of one more connection, for which another one may have to go."""
        if len(self._connections) >= self.limits.connections:
            self._make_room()
        self._connections[connection] = None
        self._of_address[connection.address] += 1

    def _make_room(self) -> None:
        closable = [each for each in self._connections if each.may_be_closed]
        if closable:
            # Of as many, the first: a dictionary keeps the order in which they came.
            victim = max(closable, key=lambda each: self._of_address[each.address])
            self.forget(victim)
            victim.cut()

    def forget(self, connection: Connection) -> None:
        """Take note of one less."""
        if connection in self._connections:
            del self._connections[connection]
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def hand_over(self, lane: Lane, content: bytes, back: Callable[[bytes, bool], None]) -> bool:
        """Have a request answered, ``back`` here; False if too many are."""
        if lane is Lane.AT_ONCE:
            back(*self.handler.reply_to(content))
            return True

        def answer() -> None:
            sent, last = b"", True  # what no handler answers is closed
            try:
                sent, last = self.handler.reply_to(content)
            finally:
                with contextlib.suppress(RuntimeError):  # the port is closed
                    self._here.call_soon_threadsafe(back, sent, last)

        return self._threads[lane].take(answer)
