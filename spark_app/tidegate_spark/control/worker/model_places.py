"""Which addresses ``reload-model`` may name. Pure.

A sender of messages need not be allowed to read all that the application's credentials reach. So an address is compared
with allowed prefixes segment by segment, and an ambiguous one is refused first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

LONGEST = 2048
"""Characters of an address: keys of objects have at most 1,024 bytes."""
_SCHEMES = ("s3", "file")
_MOST_ESCAPED = 8
"""Times that an address may be escaped over and over."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\]")
"""Control characters and backslashes: some programs read the latter as slashes."""


class PlaceError(ValueError):
    """An address is not to be read; the message says why."""


def parts_of(uri: str) -> tuple[str, ...]:
    """Return scheme, bucket (empty for files) and the segments of the path; the last one is empty behind a slash.

    Raises:
        PlaceError: it is no plain address of an object or a file.
    """
    scheme, separator, rest = uri.partition("://")
    scheme = "s3" if scheme == "s3a" else scheme
    if len(uri) > LONGEST:
        raise PlaceError(f"{uri[:80]}… has {len(uri)} characters, and at most {LONGEST} are taken")
    if _UNSEEN.search(uri):
        raise PlaceError(f"{uri!r} has a backslash or a character that nobody sees")
    if not separator or scheme not in _SCHEMES:
        raise PlaceError(f"{uri} is neither s3:// nor file://")
    bucket, slash, path = rest.partition("/")
    if bool(bucket) != (scheme == "s3") or not slash or not (bucket or path):
        raise PlaceError(f"{uri} is neither s3://bucket/path nor file:///path")
    segments = path.split("/")
    if "" in segments[:-1] or any(map(_is_detour, (bucket, *segments))):
        raise PlaceError(f"{uri} has an empty segment, '.' or '..', written out or in escapes")
    return (scheme, bucket, *segments)


def _is_detour(segment: str) -> bool:
    """Return whether a segment could lead elsewhere, for whoever takes escapes out of it, be it again and again."""
    plain = segment
    for _ in range(_MOST_ESCAPED):
        before, plain = plain, unquote(plain, errors="surrogateescape")
        if plain == before:
            return plain in (".", "..") or "/" in plain or bool(_UNSEEN.search(plain))
    return True


def is_within(uri: str, prefixes: Iterable[str]) -> bool:
    """Return whether an address names something below one of the prefixes, each of which ends with a slash.

    Raises:
        PlaceError: it is no plain address of an object or a file.
    """
    parts = parts_of(uri)
    return any(_is_below(parts, prefix) for prefix in prefixes)


def _is_below(parts: tuple[str, ...], prefix: str) -> bool:
    try:
        allowed = parts_of(prefix)
    except PlaceError:  # which allows nothing
        return False
    *folder, last = allowed
    return not last and len(parts) >= len(allowed) and parts[: len(folder)] == tuple(folder) and bool(parts[-1])
