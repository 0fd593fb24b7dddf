"""Redacts secrets in what leaves this process. Pure, but for the values it is given.

Output goes through :class:`Stream`, reports through :meth:`Secrets.clean`. Secret are the variables that the operator
names, other variables with a secret's name, values of settings and arguments, storage credentials and the agent's
token, and any text with the shape of a secret (:mod:`tidegate_spark.contract.secret_shapes`).
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from tidegate_spark.contract.control_protocol import AskedMessage, ControlReport, MessageReport
from tidegate_spark.contract.protocol import ACCESS_KEY, SECRET_VARIABLES, AgentReport
from tidegate_spark.contract.secret_shapes import (
    LONGEST,
    MARKERS,
    REDACTED,
    WITH_SPACES,
    bytes_without_shapes,
    is_literal,
    names_a_secret,
    secrets_of,
    without_shapes,
)

SHORTEST = 6
"""Shorter values would blot out ordinary words."""
SHORTEST_BY_NAME = 8
"""The same for variables that are taken for secret only by their name: such a value may be an ordinary word."""
SHORTEST_LINE = 20
_SETTING = re.compile(
    r"(?i)[+~]{0,2}[\w./@:-]*(?<!/)(?:secret|passw(?:or)?d|passphrase|pass|pwd|token|credentials?|[_.-]key)"
)
"""The name in an argument ``name=value`` that is no option, as ``--conf`` and Hydra have it. It ends in what it is:
``token_column=customer`` and ``secret_scope=production`` are ordinary words."""
_MARKERS = tuple(marker.encode() for marker in MARKERS)
_SPACES = tuple(bytes([each]) for each in b" \t\n\r\f\v")
_OPEN_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,58}"
    rb"(?:-{0,4}|(?<=PRIVATE KEY)-----[^-]*(?:-{1,5}|-----E(?:N(?:D(?: [A-Z0-9 ]{0,58}-{0,4})?)?)?)?)"
)
_OPEN_PASSWORD = re.compile(
    rb"(?i)password\s{0,8}(?:=\s{0,8}(?:\\{0,3}(?:\"[^\"\\\n]{0,1024}|'[^'\\\n]{0,1024})\\{0,3})?)?"
)
_OPEN_HEADER = re.compile(
    rb"(?i)authorization(?:\\{1,3}|\\{0,3}[\"'])?\s{0,8}"
    rb"(?:[:=]\s{0,8}(?:\\{1,3}|\\{0,3}[\"'])?(?:[a-z]{1,6}(?:\s{1,8}[a-z0-9._~+/=-]{0,8192})?)?)?"
)
_OPEN = ((b"-----begin ", _OPEN_KEY), (b"authorization", _OPEN_HEADER), (b"password", _OPEN_PASSWORD))
"""What may go on to a shape with spaces in it: how it begins, in lower case, and all of it so far."""


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of those environment variables that hold secrets.

    Args:
        variables: usually ``os.environ``.
    """
    named = frozenset(filter(None, variables.get(SECRET_VARIABLES, "").split(",")))
    return tuple(
        value
        for name, value in variables.items()
        if (name in named and name != ACCESS_KEY) or (len(value) >= SHORTEST_BY_NAME and names_a_secret(name))
    )


def values_of_launch(settings: Mapping[str, str], arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the secrets that an application has as plain text in Spark's settings and in its arguments."""
    found = [value for name, value in settings.items() if names_a_secret(name) and is_literal(value)]
    option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        is_set = argument.startswith("-") or (_SETTING.fullmatch(name) is not None and not value.isdecimal())
        if equals and is_set and names_a_secret(name) and is_literal(value):
            found.append(value)
        elif option and not argument.startswith("--") and is_literal(argument):
            found.append(argument)
        option = argument if argument.startswith("-") and not equals and names_a_secret(argument) else ""
    shapes = [secret for text in (*settings.values(), *arguments) for secret in secrets_of(text)]
    return tuple(value for value in (*found, *shapes) if len(value) >= SHORTEST_BY_NAME)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of which neither name nor value indicates a secret."""
    return {key: value for key, value in settings.items() if not values_of_launch({key: value}, ())}


def spellings(value: str) -> set[str]:
    """Return the ways in which a value may appear: as it is, inside JSON, inside a URL, and line by line."""
    stripped = value.strip()
    lines = [line for line in map(str.strip, stripped.splitlines()) if not line.startswith("-----")]
    single = [line for line in lines if len(line) >= SHORTEST_LINE] if len(lines) > 1 else []
    found = {stripped, json.dumps(stripped)[1:-1], quote(stripped, safe="", errors="surrogateescape"), *single}
    return {each for each in found if len(each) >= SHORTEST}


class Secrets:
    """The values known so far; thread safe, and only ever more."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Start with these."""
        self._lock = threading.Lock()
        self._known: tuple[str, ...] = ()
        self._encoded: tuple[bytes, ...] = ()
        self.add(*values)

    def __repr__(self) -> str:
        """Hide the values."""
        return "Secrets(...)"

    def add(self, *values: str) -> None:
        """Take in further values; empty and very short ones are left out."""
        with self._lock:
            known = set(self._known).union(*map(spellings, values)) if values else set(self._known)
            # Longest first: a value that is part of another must not leave the rest of that one behind.
            self._known = tuple(sorted(known, key=len, reverse=True))
            self._encoded = tuple(each.encode("utf-8", "surrogateescape") for each in self._known)

    @property
    def encoded(self) -> tuple[bytes, ...]:
        """The values as they are written, longest first."""
        return self._encoded

    def clean(self, text: str) -> str:
        """Return the text without them, and without what has the shape of one."""
        for each in self._known:
            text = text.replace(each, REDACTED)
        return without_shapes(text)

    def clean_bytes(self, content: bytes) -> bytes:
        """Return the content without them, and without what has the shape of one."""
        return bytes_without_shapes(self.clean_known(content))

    def clean_known(self, content: bytes) -> bytes:
        """Return the content without the values that are known."""
        for each in self._encoded:
            content = content.replace(each, REDACTED.encode())
        return content


def clean_report(report: AgentReport, secrets: Secrets) -> AgentReport:
    """Return the report with no secret in its words: they become conditions and events."""
    fault = report.fault
    return dataclasses.replace(
        report,
        control=_clean_control(report.control, secrets),
        fault=None if fault is None else dataclasses.replace(fault, message=secrets.clean(fault.message)),
        notices=tuple(dataclasses.replace(each, message=secrets.clean(each.message)) for each in report.notices),
        snapshots=tuple(dataclasses.replace(each, message=secrets.clean(each.message)) for each in report.snapshots),
    )


def _clean_control(report: ControlReport, secrets: Secrets) -> ControlReport:
    channel = report.channel
    return dataclasses.replace(
        report,
        messages=tuple(clean_message(each, secrets) for each in report.messages),
        channel=None if channel is None else dataclasses.replace(channel, message=secrets.clean(channel.message)),
        asked=None if report.asked is None else tuple(_clean_asked(each, secrets) for each in report.asked),
    )


def _clean_asked(asked: AskedMessage, secrets: Secrets) -> AskedMessage:
    return dataclasses.replace(asked, report=clean_message(asked.report, secrets))


def clean_message(report: MessageReport, secrets: Secrets) -> MessageReport:
    """Return what is said of a control message with no secret in its words."""
    queries = {
        name: dataclasses.replace(each, errors=tuple(map(secrets.clean, each.errors)))
        for name, each in report.queries.items()
    }
    return dataclasses.replace(report, message=secrets.clean(report.message), queries=queries)


class Stream:
    """Text that comes in pieces, without secrets, however the pieces cut them."""

    def __init__(self, secrets: Secrets) -> None:
        """Leave out what ``secrets`` holds whenever a piece comes."""
        self._secrets = secrets
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what may be shown; what may be the beginning of a secret is held until the next piece."""
        content = self._secrets.clean_known(self._held + piece)
        shown = len(content) - max(self._longest_beginning(content), _open_shape(content))
        self._held = content[shown:]
        return bytes_without_shapes(content[:shown])

    def flush(self) -> bytes:
        """Return what is held: nothing follows that would make more of a secret of it."""
        held, self._held = self._held, b""
        return bytes_without_shapes(held)

    def _longest_beginning(self, content: bytes) -> int:
        return max((_overlap(content, secret) for secret in self._secrets.encoded), default=0)


def _open_shape(content: bytes) -> int:
    """Return the length of the end of ``content`` that may go on to a secret by its shape: a word, as a rule."""
    tail = content[-LONGEST:]
    word = tail[max(tail.rfind(space) for space in _SPACES) + 1 :]
    lower = word.lower()
    held = 0
    if len(word) < LONGEST and any(marker in lower or _overlap(lower, marker) for marker in _MARKERS):
        held = len(word)
    lower, begun = tail.lower(), False
    for marker, is_open in _OPEN:
        beginning = lower.rfind(marker)
        begun = begun or beginning >= 0
        if beginning >= 0 and is_open.fullmatch(tail[beginning:]):
            held = max(held, len(tail) - beginning)
    # A complete secret that ends in such a word is not cut.
    for shape in WITH_SPACES if held and begun else ():
        for found in shape.pattern.finditer(tail.decode("latin-1")):
            if found.start() < len(tail) - held < found.end():
                held = len(tail) - found.start()
    return held


def _overlap(content: bytes, secret: bytes) -> int:
    """Return the length of the longest end of ``content`` that is a beginning of ``secret``, and not all of it."""
    start = max(0, len(content) - len(secret) + 1)
    while (start := content.find(secret[:1], start)) >= 0:
        if secret.startswith(content[start:]):
            return len(content) - start
        start += 1
    return 0
