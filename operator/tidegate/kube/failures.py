"""The failures that the API server answers, as values. No I/O.

They are returned, not raised: which one is expected differs from call to call, and the type checker sees whether the
caller handles it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from tidegate.api import foreign_text
from tidegate_spark.contract.secret_shapes import without_shapes


@dataclass(frozen=True, slots=True)
class Conflict:
    """The object is not the one the precondition names: observe again."""

    message: str


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """There is an object of that name."""

    message: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such object, or no such resource."""

    message: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The object is refused for what it says (400, 413, 422); the same request will be refused again."""

    message: str
    in_itself: bool = False
    """The server says so of the object, whatever else there is. Policies and webhooks can change their minds."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Refused by RBAC, by a quota or by admission (401, 403)."""

    message: str
    namespace_terminating: bool = False
    """The namespace is being deleted: nothing can be created in it any more, however often it is tried."""
    limit_range: bool = False
    """A LimitRange keeps such a pod out, whatever else runs; a ResourceQuota counts what does, and may let it in."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The API server asks to come back later; ``retry_after`` in seconds."""

    message: str
    retry_after: float


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No answer, or a fault of the server: whether the request took effect is not known."""

    message: str
    internal_error: bool = False
    """The server says that something within failed, such as an admission webhook. It does not of a storage that fails,
    as while etcd has no leader, nor does a proxy."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """The answer to a question is longer than whoever asked reads; the same question will have the same answer."""

    message: str


Failure: TypeAlias = Conflict | AlreadyExists | NotFound | Invalid | Forbidden | Throttled | Unavailable | TooLong

FAILURES = (Conflict, AlreadyExists, NotFound, Invalid, Forbidden, Throttled, Unavailable, TooLong)
TRANSIENT = (Throttled, Unavailable)

_HTTP_CONFLICT = 409
_BY_CODE: dict[int, type[NotFound] | type[Invalid] | type[Forbidden]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    410: NotFound,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}
_DEFAULT_RETRY_AFTER = 1.0
_INTERNAL_ERROR = "InternalError"
"""The API server's word for what it knows to have failed within, which not every 500 is."""
_TERMINATING_CAUSE = "NamespaceTerminating"
"""The API server's word for it, among the causes of a refusal."""


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    retryAfterSeconds: float = 0.0  # noqa: N815 - the API's name
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


def failure_from_response(code: int, body: bytes, headers: Any) -> Failure:
    """Return what an answer with an HTTP status of 400 or more means.

    Args:
        code: the HTTP status.
        body: usually a Kubernetes ``Status`` in JSON; a proxy's answer may be anything.
        headers: a mapping with ``Retry-After`` (seconds), if the server sent one.
    """
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        status = _Status(message=body[:300].decode(errors="replace"))
    message = without_shapes(status.message) or f"HTTP {code}"
    if code == _HTTP_CONFLICT:
        return AlreadyExists(message) if status.reason == "AlreadyExists" else Conflict(message)
    retry_after = _seconds(headers.get("Retry-After")) or (status.details.retryAfterSeconds if status.details else 0.0)
    if code == 429 or (code >= 500 and retry_after):
        return Throttled(message, retry_after or _DEFAULT_RETRY_AFTER)
    kind = _BY_CODE.get(code)
    if kind is Invalid:
        return Invalid(message, foreign_text.is_about_object(message))
    if kind is Forbidden:
        causes = status.details.causes if status.details else []
        terminating = any(cause.reason == _TERMINATING_CAUSE for cause in causes)
        return Forbidden(message, terminating, foreign_text.is_by_limit_range(message))
    return kind(message) if kind else Unavailable(message, status.reason == _INTERNAL_ERROR)


def is_about_object(failure: Failure) -> bool:
    """Return whether the object is refused for what it is, whatever else there is, by all that the server says."""
    if isinstance(failure, Invalid):
        return failure.in_itself
    return isinstance(failure, Forbidden) and failure.limit_range


def _seconds(header: str | None) -> float:
    try:
        return float(header or 0)
    except ValueError:  # a date is allowed too; the default then serves
        return 0.0
