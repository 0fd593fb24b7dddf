"""Recognizes secrets by the name of their holder or by their shape. Standard library only, no I/O.

The operator uses it on specs, the runtime on output and reports. Each text is read in time linear in its length: a
shape is searched only where its marker is, and every repetition is bounded or starts at a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

REDACTED = "[redacted]"
"""Stands where a secret value was."""

LONGEST = 16 * 1024
"""Characters of the longest secret that is recognized by its shape: a key of 16,384 bits takes 13,000."""

_TELLING = re.compile(
    r"secret|passw(or)?d|passphrase|(?:^|[_.-])pass$|pwd|token(?!s\b|i[sz])|credential|jaas"
    r"|(access|api|private|account|signing|encryption)[_.-]?key",
    re.IGNORECASE,
)
_STEMS = ("secret", "pass", "pwd", "token", "credent", "jaas", "key")
"""A name without any of them names no secret: the search for these is a hundred times faster."""
_NOT_A_VALUE = re.compile(
    r"(?:[_.-]|(?<=[a-z]))(file|files|path|dir|directory|url|uri|endpoint|name|id|type|provider|providers|class|"
    r"location|enabled|algorithm|interval|lifetime|timeout|ttl|count|limit|length|required|ref)$",
    re.IGNORECASE,
)
_LONGEST_END = 16
"""Characters of the end of a name that say what it is: more than any of these endings has, with what is before it."""
_LONGEST_KNOWN = 256
"""Characters of a name that is remembered."""
_REFERENCES = (
    *("spark.kubernetes.driver.secrets.", "spark.kubernetes.executor.secrets."),
    *("spark.kubernetes.driver.secretKeyRef.", "spark.kubernetes.executor.secretKeyRef."),
    "spark.security.credentials.",
)
"""Spark's settings that name Secrets of Kubernetes, or say where credentials come from."""
_OURS = ("TIDEGATE_", "KUBERNETES_")
_FOLDERS = frozenset({"PWD", "OLDPWD"})
"""Where a shell is and was, which an image's entry point leaves to what it starts: no passwords."""

_REFERENCE = re.compile(r"\$\([\w.-]{1,253}\)|\$\{[^{}]{1,256}\}")
_PATH = re.compile(r"(?:(?:file|local):(?://)?|(?:s3a?|hdfs|gs|abfss?)://[\w.@-]*)?/(?:[\w.@-]+/)+[\w.@-]*")
_NO_SECRET = re.compile(r"\**|true|false|none|null", re.IGNORECASE)


@dataclass(frozen=True)
class Shape:
    """How one kind of secret looks."""

    markers: tuple[str, ...]
    """A text in lower case that has none of them has no such secret."""
    pattern: re.Pattern[str]
    """Its group ``secret`` is what is taken out; without such a group all of it is."""


def _shape(markers: str, pattern: str) -> Shape:
    return Shape(tuple(markers.lower().split()), re.compile(pattern))


_WORD = r"(?<![A-Za-z0-9_-])"
SHAPES: tuple[Shape, ...] = (
    _shape(
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^-]{0,16384}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?",
    ),
    _shape("akia asia", _WORD + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("eyj", _WORD + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _shape("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", _WORD + r"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,255}"),
    _shape("glpat-", _WORD + r"glpat-[A-Za-z0-9_-]{20,255}"),
    _shape("xox", _WORD + r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    _shape("aiza", _WORD + r"AIza[A-Za-z0-9_-]{35}"),
    _shape("npm_ hf_ dapi sk_live_ sk-ant-", _WORD + r"(?:npm_|hf_|dapi|sk_live_|sk-ant-)[A-Za-z0-9_-]{24,255}"),
    _shape("accesskey= accountkey=", r"(?i:AccessKey|AccountKey)=(?P<secret>[A-Za-z0-9+/%]{16,512}={0,2})"),
    _shape("://", r"://[^\s/?#@:'\"<>]{0,256}:(?P<secret>[^\s/?#'\"<>]{1,1024})@"),
    _shape("jdbc:oracle:", r"(?i:jdbc:oracle):\w{1,16}:[^\s/@:'\"<>]{1,128}/(?P<secret>[^\s@'\"<>]{1,1024})@"),
    _shape(
        "password= pwd= passwd= secret= token= key= sig=",
        r"(?i)[?&;](?:password|pwd|passwd|secret|token|(?:access|refresh|id)_token|(?:api|secret)_?key|sig)="
        r"(?P<secret>[^&;\s\"']{1,4096})",
    ),
    _shape(
        "authorization",
        r"(?i)\bauthorization(?:\\{0,3}[\"'])?\s{0,8}[:=]\s{0,8}(?:\\{0,3}[\"'])?(?:bearer|basic|token)\s{1,8}"
        r"(?P<secret>[A-Z0-9._~+/=-]{6,8192})",
    ),
    _shape(
        "password",
        r"(?i)\bpassword\s{0,8}=\s{0,8}\\{0,3}[\"']"
        r"(?P<secret>(?<=\")[^\"\\\n]{1,1024}(?=\\{0,3}\")|(?<=')[^'\\\n]{1,1024}(?=\\{0,3}'))\\{0,3}[\"']",
    ),
)
"""Keys in PEM; keys and tokens of AWS, GitHub, GitLab, Slack, Google and others; JSON Web Tokens; keys of Azure; the
password of an address; parameters of a connection (JDBC, Oracle's as well, signed addresses); what an HTTP header has
after its scheme; the quoted password of a JAAS line, in either kind of quotes, as Kafka reads it."""

WITH_SPACES = (SHAPES[0], *SHAPES[-2:])
"""Those with spaces or line ends in them: keys in PEM, HTTP headers, and JAAS."""
MARKERS = tuple(marker for shape in SHAPES for marker in shape.markers)
_ENCODED_MARKERS = tuple(marker.encode() for marker in MARKERS)


def names_a_secret(name: str) -> bool:
    """Return whether a variable, setting or option of this name is taken to hold a secret."""
    return _names_a_secret(name) if len(name) <= _LONGEST_KNOWN else _names_a_secret.__wrapped__(name)


@lru_cache(1024)
def _names_a_secret(name: str) -> bool:
    if name.startswith(_OURS) or name.startswith(_REFERENCES) or name in _FOLDERS:
        return False
    folded = name.casefold()
    if not any(stem in folded for stem in _STEMS):
        return False
    return bool(_TELLING.search(name)) and not _NOT_A_VALUE.search(name[-_LONGEST_END:])


def is_literal(value: str) -> bool:
    """Return whether a value named as a secret is the secret itself: no reference, file, switch or placeholder."""
    text = value.strip()
    if not text or text == REDACTED or _NO_SECRET.fullmatch(text):
        return False
    return not (_REFERENCE.search(text) or _PATH.fullmatch(text))


def secrets_of(text: str) -> tuple[str, ...]:
    """Return the parts of a text that have the shape of a secret, in their order."""
    return split_shapes(text)[1]


def without_shapes(text: str) -> str:
    """Return a text with what has the shape of a secret redacted."""
    return split_shapes(text)[0]


def split_shapes(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text with what has the shape of a secret redacted, and these parts of it in their order."""
    found = _found(text)
    if not found:
        return text, ()
    parts, at = [], 0
    for start, end in found:
        parts += [text[at:start], REDACTED]
        at = end
    return "".join([*parts, text[at:]]), tuple(text[start:end] for start, end in found)


def bytes_without_shapes(content: bytes) -> bytes:
    """Return the same of text as bytes, whatever their encoding."""
    lower = content.lower()
    if not any(marker in lower for marker in _ENCODED_MARKERS):
        return content
    return without_shapes(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _found(text: str) -> list[tuple[int, int]]:
    if not text:
        return []  # most messages of pods are
    lower = text.lower()
    spans = [
        found.span("secret" if "secret" in shape.pattern.groupindex else 0)
        for shape in SHAPES
        if any(marker in lower for marker in shape.markers)
        for found in shape.pattern.finditer(text)
    ]
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not is_literal(text[start:end]):
            continue
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
