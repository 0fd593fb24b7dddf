"""Cuts foreign JSON to a depth and to lengths of numbers that every decoder survives. No I/O.

Python's decoders raise RecursionError and ValueError for deep nesting and long numbers, which anybody with a sender's
role can store. What is deeper than :data:`DEEPEST` or longer than :data:`MOST_DIGITS` is replaced by a text that says
so, so the rest of the object can be read and reported to its owner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.api.values import messages

DEEPEST = 100
"""Levels of a whole object: Kubernetes' own objects have less than thirty."""
MOST_DIGITS = 400
"""Digits of a number: a double has less than 330 before its point."""
MOST_VALUES = 40_000
"""Values of a whole object: a pod has less than a thousand. Python needs sixty bytes for one of two bytes of JSON."""
_MARK = "\N{HEAVY BALLOT X} tidegate: "
TOO_DEEP = messages.too_deep(_MARK, DEEPEST)
TOO_MANY = messages.too_many_values_of_object(_MARK, MOST_VALUES)
TOO_LARGE = messages.too_large_beside_others(_MARK)
TOO_LONG = messages.number_too_long(_MARK, MOST_DIGITS)
# A text without an end goes on to the end of all, and a number begins where no digit is before it: whoever tried again
# from each quotation mark, or from each digit, would never be done.
_TEXT = rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_TEXT + rb"|[\[\]{}]|(?<!\d)\d{%d,}+[\d.eE+-]*+" % (MOST_DIGITS + 1), re.DOTALL)
_LONG_NUMBER = b"0" * (MOST_DIGITS + 1)
_ALL_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ALL_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_NO_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_AT_A_TIME = 64 * 1024
"""Bytes that are divided at once: what divides all of sixteen megabytes of short texts needs four hundred for it."""
_MARKED = _MARK.encode()
_WIDE, _WIDEST = re.compile(rb"[\xc4-\xff]|\\u"), re.compile(rb"[\xf0-\xff]|\\u[dD][89abAB]")
_BYTES_OF_VALUE = 160
"""A key and a value of a mapping need them, beside their letters; a value of a list less."""


def is_fit(body: bytes) -> bool:
    """Return whether JSON needs no cut. A megabyte takes a few hundredths of a second, whatever it holds."""
    # As zeros, a number that is too long is one text: to find that is much faster than an expression for digits.
    if _LONG_NUMBER in body.translate(_ALL_AS_ZEROS):
        return False
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return True
    brackets = _structure(body).translate(_ALL_AS_LISTS, b",")
    for _ in range(DEEPEST):  # each time what is innermost goes: as many times as it is deep
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def bounded(body: bytes) -> bytes:
    """Return JSON in which nothing is nested deeper, and no number longer, than every reader survives.

    It is read once from the front, however deep it is. What is no JSON stays as it is where that does no harm. Where
    something has to be cut, a megabyte can take a second or two: see :func:`is_fit`.
    """
    if is_fit(body):
        return body
    parts: list[bytes] = []
    depth, kept_to = 0, 0
    for token in _TOKEN.finditer(body):
        first = token.group()[:1]
        if first in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                parts.append(body[kept_to : token.start()])
        elif first in b"]}":
            if depth == DEEPEST + 1:
                parts.append(msgspec.json.encode(TOO_DEEP))
                kept_to = token.end()
            depth = max(0, depth - 1)
        elif first != b'"' and depth <= DEEPEST:
            start = token.start() - (body[token.start() - 1 : token.start()] == b"-")
            parts += [body[kept_to:start], msgspec.json.encode(TOO_LONG)]
            kept_to = token.end()
    if not parts:
        return body
    if depth <= DEEPEST:
        parts.append(body[kept_to:])
    return b"".join(parts)


def has_too_many_values(body: bytes) -> bool:
    """Return whether an object is one that needs many times its length as soon as it is decoded."""
    # Each takes two bytes, with what separates it from the next.
    return len(body) > MOST_VALUES and _values_in(body) > MOST_VALUES


def decoded_size(body: bytes) -> int:
    """Return how many bytes of memory Python needs at most for what JSON says.

    One letter of another script makes a text that is two or four times as long in memory as it is here.
    """
    width = 1
    if body.isascii() and b"\\u" not in body:
        pass  # nearly every object; the expressions read each byte by itself
    elif _WIDEST.search(body):
        width = 4
    elif _WIDE.search(body):
        width = 2
    return width * len(body) + _BYTES_OF_VALUE * _values_in(body)


def _values_in(body: bytes) -> int:
    found = _structure(body)
    return len(found) - found.count(b"]") - found.count(b"}")


def _structure(body: bytes) -> bytes:
    """Return the brackets and commas of JSON that are in no text."""
    if b"\\" in body:  # then each quotation mark that is left begins a text or ends one
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    found: list[bytes] = []
    within = 0
    for start in range(0, len(body), _AT_A_TIME):
        parts = body[start : start + _AT_A_TIME].split(b'"')
        found.append(b"".join(parts[within::2]).translate(None, _NO_STRUCTURE))
        within ^= (len(parts) - 1) & 1
    return b"".join(found)


def is_cut(body: bytes) -> bool:
    """Return whether :func:`bounded` replaced something in it, or somebody wrote what looks like that."""
    return _MARKED in body


def why_cut(value: Any) -> str:
    """Return which field of a decoded object was cut, and why; empty if none was.

    Args:
        value: what was decoded from JSON that :func:`bounded` returned.
    """
    steps: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    path: list[str] = []
    while steps:
        step = next(steps[-1], None)
        if step is None:
            steps.pop()
            path = path[:-1]
            continue
        name, found = step
        if isinstance(found, str):
            if found.startswith(_MARK):
                where = "".join((*path, name)).removeprefix(".")
                return f"{where or 'the object'}: {found.removeprefix(_MARK)}"
        elif isinstance(found, (Mapping, Sequence)) and not isinstance(found, bytes):
            path.append(name)
            steps.append(_named_parts(found))
    return ""


def _named_parts(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((f".{key}", part) for key, part in value.items())
    return ((f"[{number}]", part) for number, part in enumerate(value))
