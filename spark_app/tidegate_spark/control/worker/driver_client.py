"""The client of workers and of the source of control messages for the driver. Does I/O.

The driver's address and token come with each task as local properties of Spark. The source's planner, which runs beside
the driver, finds them in the file that :data:`LINE_VARIABLE` names.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.control_protocol import LINE_VARIABLE

ADDRESS_PROPERTY, TOKEN_PROPERTY = "tidegate.control.address", "tidegate.control.token"
QUERY_PROPERTY = "tidegate.control.query"
"""Spark's local properties of a query's tasks. Spark leaves values out of its event log whose names have `token`."""
STATE, APPLIED, POSITION, MESSAGES = "/state", "/applied", "/position", "/messages"
TIMEOUT_SECONDS = 90.0
"""For an answer: a position waits for the log."""
POSITION_SECONDS = 7200.0
"""For a position: handlers of the driver for several messages may each take their time first. A query that waits longer
than restart.stallTimeoutSeconds counts as stalled anyway."""
LARGEST_QUESTION = 256 * 1024
"""Bytes of a question."""
LONGEST_TEXT = 8 * 1024
"""Characters of an error that the driver gets: it takes secrets out of them before it cuts them further."""
_TOGETHER = LARGEST_QUESTION // 2
"""Bytes of the errors in one question: one that is as long as it may be fits, in whatever script."""


class ControlError(Exception):
    """What a program asks of the control stream cannot be had; the message is for a person."""


class StoreError(ControlError):
    """The driver cannot reach the application's storage; recognized by its name, which is in Spark's own errors."""


@dataclass(frozen=True)
class Line:
    """Where the driver is."""

    address: str
    """``host:port``."""
    token: str

    def __repr__(self) -> str:
        """Hide the token."""
        return f"Line({self.address!r})"


class Caller:
    """Asks the driver, over a connection that is kept. Thread safe."""

    def __init__(self, line: Line, timeout: float = TIMEOUT_SECONDS) -> None:
        """Prepare; nothing is connected yet."""
        self.line, self._timeout = line, timeout
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the driver's answer.

        Raises:
            ControlError: it does not answer, or refuses.
        """
        content = json.dumps(body).encode()
        with self._lock:
            for last in (False, True):
                kept = self._connection is not None
                try:
                    return self._exchange(path, content)
                except (OSError, http.client.HTTPException) as error:
                    self.close()
                    # One that was kept may have been closed meanwhile.
                    if last or not kept:
                        raise ControlError(f"the driver at {self.line.address} does not answer: {error!r}") from error
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
        self._connection = None

    def _exchange(self, path: str, content: bytes) -> dict[str, Any]:
        if self._connection is None:
            host, _, port = self.line.address.rpartition(":")
            self._connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=self._timeout)
        headers = {"Authorization": f"Bearer {self.line.token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, content, headers)
        answer = self._connection.getresponse()
        said = json.loads(answer.read() or b"{}")
        if answer.status == http.client.SERVICE_UNAVAILABLE:
            raise StoreError(str(said.get("error", "")))
        if answer.status != http.client.OK:
            raise ControlError(str(said.get("error", f"HTTP {answer.status}")))
        return dict(said)


def portions(errors: Mapping[int, str]) -> list[dict[str, str]]:
    """Return the errors of messages, by sequence, as the driver gives them: in one request, or in as many as it takes.

    A program's exception may quote anything, and a burst of messages may fail together.
    """
    found, left = [dict[str, str]()], _TOGETHER
    for sequence, message in errors.items():
        text = message[:LONGEST_TEXT]
        size = len(json.dumps({str(sequence): text}))
        if size > left:
            found.append({})
            left = _TOGETHER
        found[-1][str(sequence)] = text
        left -= size
    return found


def line_of_this_machine() -> Line:
    """Return the line of the driver that this process runs beside.

    Raises:
        ControlError: there is none.
    """
    path = os.environ.get(LINE_VARIABLE, "")
    try:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        return Line(said["address"], said["token"])
    except (OSError, ValueError, KeyError) as error:
        raise ControlError(f"no driver of Tidegate's runs here ({LINE_VARIABLE}): {error!r}") from error
