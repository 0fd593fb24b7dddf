"""Names an unnamed query by its ``checkpointLocation`` and by the notes of its lineage. Pure.

The rule above all others: no query continues from the state of one with another location. Where it is unknown which of
two queries one is, it is refused, and the message says what to do. There are two exceptions, as before locations were
noted: a script whose text shows a single unnamed query may give that another location, and the only unnamed query of a
lineage need not have one. Both hold for a query that is alone: beside a second unnamed query it is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidegate_spark.contract.secret_shapes import REDACTED, without_shapes
from tidegate_spark.queries import query_messages as messages

UNNAMED = "main"
"""The name of a lineage's first unnamed query."""
_LONGEST_WORD = 60
_MARKS, _RUNS = frozenset("?#&;=%@:"), re.compile(r"[A-Za-z0-9+]{20,}")
"""A location with one of these marks may hold a key, a password or a token anywhere, and so in its last word; so may
one with such a run of characters, unless it is of small letters alone."""
_SMALL = re.compile(r"[a-z]+")


class UndecidedError(Exception):
    """Nothing shows which query this is; the message says what to do."""


@dataclass(frozen=True)
class Known:
    """What is known when a query is about to start."""

    noted: Mapping[str, str]
    """Unnamed queries of the lineage: name -> digest of the location, empty of one without a location."""
    started: frozenset[str]
    """Names of the queries that this process has started, the script's own names too."""
    has_state: Callable[[str], bool]
    """Whether the lineage has a checkpoint of a query's with batches in it."""
    is_only: Callable[[str], bool]
    """Whether the script's text shows that it starts no other query that may be the one of this name."""
    unnamed: Mapping[str, str] = field(default_factory=dict)
    """Those without a name that this process has started: what they are called -> digest of the location."""
    supposed: str = ""
    """The one of them that was taken for the only one."""
    settled: frozenset[str] = frozenset()
    """Those of ``noted`` that were started twice with the location, or are new: state from before locations were noted
    is of the first unnamed query until then, as it was."""


@dataclass(frozen=True)
class Named:
    """What the query is called."""

    name: str
    supposed: bool = False
    """It continues from state of which nothing says that it is its own."""


def plain_location(location: str) -> str:
    """Return a location as it is compared: the same one for each spelling of it, empty for none."""
    stripped = location.strip()
    scheme, separator, path = re.sub(r"^file:/+", "/", stripped).partition("://")
    if not separator:
        scheme, path = "", scheme
    kind = "s3a" if scheme.lower() in ("s3", "s3n") else scheme.lower()
    return kind + separator + (re.sub("/+", "/", path).rstrip("/") or "/") if stripped else ""


def digest_of(location: str) -> str:
    """Return what is noted of a location; of none, nothing."""
    plain = plain_location(location)
    # Whatever a script may have: names of files need not be text.
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:32] if plain else ""


def name_of(location: str) -> str:
    """Return what a query is called after its location: a plain word, with nothing of a secret in it."""
    return f"{_word_of(plain_location(location))}-{digest_of(location)[:8]}"


def _word_of(plain: str) -> str:
    """Return the last word of a location, of one that may hold a secret anywhere a word that says nothing."""
    path = plain.partition("://")[2] or plain
    runs = _RUNS.findall(path)
    if _MARKS & set(path) or not all(map(_SMALL.fullmatch, runs)) or REDACTED in without_shapes(plain):
        return "query"
    last = path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:_LONGEST_WORD].strip("-_") or "query"


def name_for(location: str, known: Known) -> Named:
    """Return what an unnamed query is called of whose location this process has started none.

    Args:
        location: that the script gave it, empty if it gave none.
        known: before it starts.

    Raises:
        UndecidedError: it may be one query or another.
    """
    digest = digest_of(location)
    bare = next((name for name, of in known.unnamed.items() if not of), None)
    if bare is not None:
        raise UndecidedError(messages.beside_one_without(bare))
    if known.supposed:
        raise UndecidedError(messages.not_the_only_one(known.supposed))
    return _located(name_of(location), digest, known) if digest else _bare(known)


def _located(own: str, digest: str, known: Known) -> Named:
    noted = next((name for name, of in known.noted.items() if of == digest), None)
    if noted is not None:
        return Named(noted)
    if own not in known.noted and known.has_state(own):
        return Named(own)
    owned = _owned(known)
    if owned:
        return _only_one(owned, known)
    if UNNAMED not in known.started and not known.started & known.noted.keys():
        return Named(UNNAMED)
    if own in known.noted:
        raise UndecidedError(messages.another_location([own]))
    return Named(own)


def _bare(known: Known) -> Named:
    """Return the name of a query without a location: it cannot be distinguished from another one, so it runs alone."""
    if known.unnamed:
        raise UndecidedError(messages.NEITHER_NAME_NOR_LOCATION)
    owned = _owned(known)
    if not owned:
        return Named(UNNAMED)
    name = owned[0]
    if len(owned) > 1:
        raise UndecidedError(messages.neither_of(owned))
    if known.noted.get(name) and name in known.settled and not known.is_only(name):
        raise UndecidedError(messages.neither_of(owned))
    return Named(name, supposed=True)


def _owned(known: Known) -> list[str]:
    """Return the unnamed queries that have state and were not started: this one may be any of them."""
    candidates = {UNNAMED: None, **known.noted}
    return [name for name in candidates if name not in known.started and known.has_state(name)]


def _only_one(owned: list[str], known: Known) -> Named:
    """Return the one query that has state, if the one that starts is the only one, now as before.

    Raises:
        UndecidedError: there may be others.
    """
    if len(owned) > 1 or known.started & known.noted.keys():
        raise UndecidedError(messages.another_location(owned))
    name = owned[0]
    # State from before locations were noted is of the first unnamed query, as it was then: a script that has another
    # location at each start would be refused at its second one otherwise.
    if name in known.settled and not known.is_only(name):
        raise UndecidedError(messages.another_location(owned))
    return Named(name, supposed=True)
