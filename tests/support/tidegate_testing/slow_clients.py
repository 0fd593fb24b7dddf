"""Clients that never finish a request, as many as a port could be asked to keep. Real sockets."""

import contextlib
import resource
import socket
import threading
from typing import Self

SLOW = 1000
"""To each port."""
FILES = 2 * 2 * SLOW + 500
"""Both ends of each connection may be in this process."""
LIMIT = 300.0
"""Seconds, for what takes a moment."""
BEGINNINGS = (
    b"GET /healthz HTTP/1.1\r\nX: ",
    b"POST /v1/control HTTP/1.1\r\nContent-Length: 4000\r\n",
    b"",
    b"GET /met",
)


class SlowClients:
    """Keep ``SLOW`` connections to each port, add a byte to each now and then, and come again when they are cut.

    They stay, and try again, when nobody listens any more.
    """

    def __init__(self, *ports: int) -> None:
        self.cut = 0
        self._ports, self._stop, self.all_there = ports, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._limits[0] < FILES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, self._limits[1]), self._limits[1]))
        self._thread.start()
        assert self.all_there.wait(LIMIT), "not all clients are connected"
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        were_there = self._thread.is_alive()
        self._stop.set()
        self._thread.join(LIMIT)
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)
        assert failure is not None or were_there, "the clients went away before what they were there for"

    def _connect(self, number: int) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._ports[number % len(self._ports)]), timeout=60)
        made.setblocking(False)
        with contextlib.suppress(OSError):
            made.send(BEGINNINGS[number // 2 % len(BEGINNINGS)])
        return made

    def _come_again(self, number: int, former: socket.socket | None) -> socket.socket | None:
        if former is not None:
            former.close()
            self.cut += 1
        with contextlib.suppress(ConnectionError, TimeoutError):
            return self._connect(number)
        return None

    def _run(self) -> None:
        clients: list[socket.socket | None] = [self._connect(number) for number in range(SLOW * len(self._ports))]
        self.all_there.set()
        while not self._stop.wait(0.01):
            for number, client in enumerate(clients):
                if self._stop.is_set():
                    break
                if client is None or not _add_a_byte(client):
                    clients[number] = self._come_again(number, client)
        for client in clients:
            if client is not None:
                client.close()


def _add_a_byte(client: socket.socket) -> bool:
    """Return whether the connection is still there."""
    try:
        client.send(b"a")
    except OSError:
        return False
    return True
