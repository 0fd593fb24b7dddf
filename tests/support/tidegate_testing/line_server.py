"""A server of lines on this machine, as ``nc -lk`` is one in Spark's examples. Listens on a port."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Lines(socketserver.BaseRequestHandler):
    """Sends a line now and again, to whoever listens."""

    def handle(self) -> None:
        """Send until nobody listens or the server is over."""
        number = 0
        while not self.server.over.wait(0.05):  # type: ignore[attr-defined] # set by whoever made the server
            number += 1
            try:
                self.request.sendall(f"{self.server.line(number)}\n".encode())  # type: ignore[attr-defined] # likewise
            except OSError:
                return


@contextmanager
def serving_lines(line: Callable[[int], str]) -> Iterator[int]:
    """Serve lines while the context lasts; yield the port.

    Args:
        line: returns the line of a number; each connection begins at 1.
    """
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Lines) as server:
        server.daemon_threads = True
        server.over, server.line = threading.Event(), line  # type: ignore[attr-defined] # for its handlers
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.over.set()  # type: ignore[attr-defined] # likewise
        server.shutdown()
