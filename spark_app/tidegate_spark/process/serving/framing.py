"""Finds the end of a request: head and body, each within bounds. Pure.

The head is judged before the body is read, so a stranger's body is never kept.
"""

from __future__ import annotations

import http.client
import io
import re
from dataclasses import dataclass
from email.message import Message

LARGEST_HEAD = 16 * 1024
"""Bytes of the request line and all headers."""
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_LONGEST_END = 4
_LENGTH = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Head:
    """What comes before the body."""

    method: str
    target: str
    """Path and parameters."""
    headers: Message

    @property
    def path(self) -> str:
        """Return the target without parameters."""
        return self.target.partition("?")[0]


@dataclass(frozen=True)
class Refusal:
    """Why a request is not handled."""

    status: int
    message: str


class Reading:
    """The bytes of one request, as they come in."""

    def __init__(self) -> None:
        """Start with none."""
        self.buffer = bytearray()
        self._seen = 0
        self._end = 0

    def head(self) -> Head | Refusal | None:
        """Return the head, None as long as it is not there as a whole."""
        found = _END_OF_HEAD.search(self.buffer, max(0, self._seen - _LONGEST_END))
        self._seen = len(self.buffer)
        end = found.end() if found is not None else len(self.buffer)
        if end > LARGEST_HEAD:
            return Refusal(431, f"at most {LARGEST_HEAD} bytes before the body")
        if found is None:
            return None
        self._end = end
        return _head_of(bytes(self.buffer[:end]))

    def content(self, length: int) -> bytes | None:
        """Return the whole request, head included, None as long as its body of this length is not there."""
        end = self._end + length
        return bytes(self.buffer[:end]) if len(self.buffer) >= end else None

    def goes_on(self, length: int) -> bool:
        """Return whether more came than the request: no client here sends the next one before the answer."""
        return len(self.buffer) > self._end + length


def length_of(head: Head, most: int) -> int | Refusal:
    """Return the number of bytes of the body; ``most`` of them are taken."""
    lengths = set(head.headers.get_all("Content-Length", ["0"]))
    if head.headers.get("Transfer-Encoding") is not None or len(lengths) > 1:
        return Refusal(411, "a Content-Length is needed")
    (length,) = lengths
    if not _LENGTH.fullmatch(length.strip()):
        return Refusal(411, "a Content-Length is needed")
    return int(length) if int(length) <= most else Refusal(413, f"at most {most} bytes")


def _head_of(text: bytes) -> Head | Refusal:
    line, _, rest = text.partition(b"\n")
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return Refusal(400, "a request of HTTP/1.1 is needed")
    try:
        return Head(words[0], words[1], http.client.parse_headers(io.BytesIO(rest)))
    except http.client.HTTPException as error:
        return Refusal(431, f"headers: {error}")
