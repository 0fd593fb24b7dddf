"""What a query without a name is called: by its ``checkpointLocation`` and by what is noted of its lineage. Pure.

The rule above all others: no query continues from the state of one with another location. Where nothing tells which of
two a query is, it is refused with what to do. The one exception is a script that starts a single unnamed query, before
and now: that is the same one wherever its location is, as it was before locations were noted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate_spark.contract.secret_shapes import REDACTED, without_shapes
from tidegate_spark.queries import query_messages as messages

UNNAMED = "main"
"""The name of a lineage's first unnamed query."""


class UndecidedError(Exception):
    """Nothing tells which query this is; the message says what to do."""


@dataclass(frozen=True)
class Known:
    """What is known when a query is about to start."""

    noted: Mapping[str, str]
    """Unnamed queries of the lineage: name -> digest of the location."""
    started: frozenset[str]
    """Names of the queries that this process has started, the script's own names too."""
    has_state: Callable[[str], bool]
    """Whether the lineage has a checkpoint of a query's with batches in it."""
    is_only: Callable[[str], bool]
    """Whether the script's text shows that it starts no other query that may be the one of this name."""
    supposed: str = ""
    """The query that this process has started although nothing noted has its location: the only one, then."""


@dataclass(frozen=True)
class Named:
    """What the query is called."""

    name: str
    supposed: bool = False
    """It continues from state that is not noted with its location."""


def plain_location(location: str) -> str:
    """Return a location as it is compared: the same one for each spelling of it."""
    scheme, separator, path = re.sub(r"^file:/+", "/", location.strip()).rpartition("://")
    kind = "s3a" if scheme.lower() in ("s3", "s3n") else scheme.lower()
    return kind + separator + (re.sub("/+", "/", path).rstrip("/") or "/")


def digest_of(location: str) -> str:
    """Return what is noted of a location; of none, nothing."""
    return hashlib.sha256(plain_location(location).encode()).hexdigest()[:32] if location else ""


def name_of(location: str) -> str:
    """Return what a query is called after its location: a plain word, with nothing of a secret in it."""
    shown = without_shapes(plain_location(location)).rpartition("://")[2]
    last = shown.rstrip("/").rpartition("/")[2].replace(REDACTED, "")
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:60] or "query"
    return f"{plain}-{digest_of(location)[:8]}"


def name_for(location: str, known: Known) -> Named:
    """Return what an unnamed query is called.

    Args:
        location: that the script gave it, empty if it gave none.
        known: before it starts.

    Raises:
        UndecidedError: it may be one query or another.
    """
    digest = digest_of(location)
    noted = next((name for name, of in known.noted.items() if of == digest), None)
    if noted is not None:
        return Named(noted)
    if known.supposed:
        raise UndecidedError(messages.not_the_only_one(known.supposed))
    own = name_of(location) if location else ""
    if own and own not in known.noted and known.has_state(own):
        return Named(own)
    candidates = {UNNAMED: None, **known.noted}
    owned = [name for name in candidates if name not in known.started and known.has_state(name)]
    if owned:
        return _only_one(owned, known)
    if UNNAMED not in known.started and not (own and known.started & known.noted.keys()):
        return Named(UNNAMED)
    if not own:
        raise UndecidedError(messages.NEITHER_NAME_NOR_LOCATION)
    if own in known.noted:
        raise UndecidedError(messages.another_location([own]))
    return Named(own)


def _only_one(owned: list[str], known: Known) -> Named:
    """Return the one query whose state there is, if the one that starts is the only one of before and now.

    Raises:
        UndecidedError: there may be others.
    """
    others = [name for name in known.noted if name not in known.started and name not in owned]
    if len(owned) > 1 or others or known.started & known.noted.keys():
        raise UndecidedError(messages.another_location([*owned, *others]))
    name = owned[0]
    # State from before locations were noted is of the first unnamed query, as it was then.
    if name in known.noted and not known.is_only(name):
        raise UndecidedError(messages.another_location(owned))
    return Named(name, supposed=True)
