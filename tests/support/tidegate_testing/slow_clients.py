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
BEGINNINGS = (
    b"GET /healthz HTTP/1.1\r\nX: ",
    b"POST /v1/control HTTP/1.1\r\nContent-Length: 4000\r\n",
    b"",
    b"GET /met",
)


class SlowClients:
    """Keep ``SLOW`` connections to each port, add a byte to each now and then, and come again when they are cut."""

    def __init__(self, *ports: int) -> None:
        self.cut = 0
        self._ports, self._stop, self.all_there = ports, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._limits[0] < FILES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, self._limits[1]), self._limits[1]))
        self._thread.start()
        assert self.all_there.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)

    def _connect(self, number: int) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._ports[number % len(self._ports)]), timeout=60)
        made.setblocking(False)
        with contextlib.suppress(OSError):
            made.send(BEGINNINGS[number // 2 % len(BEGINNINGS)])
        return made

    def _run(self) -> None:
        clients = [self._connect(number) for number in range(SLOW * len(self._ports))]
        self.all_there.set()
        while not self._stop.wait(0.01):
            for number, client in enumerate(clients):
                if self._stop.is_set():
                    break
                try:
                    client.send(b"a")
                except OSError:
                    client.close()
                    self.cut += 1
                    clients[number] = self._connect(number)
        for client in clients:
            client.close()
