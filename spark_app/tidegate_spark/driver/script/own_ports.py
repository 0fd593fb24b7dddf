"""Names the owner of a port that a script wants and Tidegate uses. Changes this process's sockets."""

from __future__ import annotations

import errno
import functools
import socket
from collections.abc import Collection
from typing import Any

from tidegate_spark.jvm import entry_messages as messages


def name_owner(ports: Collection[int]) -> None:
    """Have an error of binding one of ``ports`` in this process say whose it is; class and number stay the same.

    The system's message names neither the port nor its owner.
    """
    original = socket.socket.bind

    @functools.wraps(original)
    def bind(self: socket.socket, address: Any) -> None:
        try:
            original(self, address)
        except OSError as error:
            port = address[1] if isinstance(address, tuple) and len(address) > 1 else 0
            if error.errno != errno.EADDRINUSE or port not in ports:
                raise
            # Without a cause: the end of a chain of causes is what people are shown, and that one says less.
            raise OSError(error.errno, messages.own_port(str(error.strerror), port, sorted(ports))) from None

    # Found by these, and so pickled as the method that it is.
    bind.__module__, bind.__qualname__ = "socket", "socket.bind"
    socket.socket.bind = bind  # type: ignore[assignment, method-assign] # where every server of Python's passes
