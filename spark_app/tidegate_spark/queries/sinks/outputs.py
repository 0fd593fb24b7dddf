"""The outputs of streaming queries, compared for forks. No I/O.

An application notes its outputs (``outputs.json``). A fork copies that note (``origin.json``), and none of its queries
may write to the same place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_spark.queries import query_messages as messages

NOWHERE = frozenset({"console", "memory", "noop", "rate"})
"""Formats that keep nothing that another application could write to as well."""
FUNCTIONS = frozenset({"foreach", "foreachbatch"})
"""What Spark calls the format of a query whose output is a function's affair."""
KAFKA, TABLE, PATH = "kafka", "table", "path"
_S3 = re.compile(r"^s3n?://", re.IGNORECASE)


@dataclass(frozen=True)
class Output:
    """Where one query writes."""

    kind: str
    """``kafka``, ``table``, ``path``, or the format of a sink of which nobody knows where it writes."""
    place: str = ""
    """Topic, table or path; empty if it is not known."""
    through: tuple[str, ...] = ()
    """Kafka's brokers, as the query has them."""

    def __str__(self) -> str:
        """Return it for a person."""
        where = f" of {','.join(self.through)}" if self.through else ""
        return f"{'topic' if self.kind == KAFKA else self.kind} {self.place!r}{where}"


@dataclass(frozen=True)
class Outputs:
    """Where all queries of an application write."""

    application: str
    """Address of its storage."""
    program: str = ""
    """Equal for two applications that run the same program with the same arguments; empty: not known."""
    queries: dict[str, Output] = field(default_factory=dict)


def output_of(kind: str, table: str, options: Mapping[str, str | None]) -> Output | None:
    """Return where a query writes, None if nowhere. Pure.

    Args:
        kind: the format.
        table: the argument of ``toTable``, empty if it is not that.
        options: of the writer, keys in lower case.
    """
    kind = kind.lower()
    if table:
        return Output(TABLE, table.lower())
    if kind in NOWHERE:
        return None
    if kind == KAFKA:
        brokers = (options.get("kafka.bootstrap.servers") or "").split(",")
        return Output(KAFKA, options.get("topic") or "", tuple(sorted(b.strip() for b in brokers if b.strip())))
    path = options.get(PATH)
    return Output(PATH, _plain(path)) if path and kind not in FUNCTIONS else Output(kind)


def _plain(path: str) -> str:
    """Return one spelling of those that a place has."""
    scheme, found, rest = _S3.sub("s3a://", path).partition("://")
    return f"{scheme}{found}{re.sub('/+', '/', rest)}".rstrip("/") or "/"


def is_same(one: Output, other: Output) -> bool:
    """Return whether two queries certainly write to one place. Pure.

    Brokers of one cluster have many names; those that share none are taken for two clusters.
    """
    if not one.place or (one.kind, one.place) != (other.kind, other.place):
        return False
    return one.kind != KAFKA or bool(set(one.through) & set(other.through))


def refusal(name: str, mine: Output, program: str, original: Outputs) -> str:
    """Return why a query of a fork must not start, empty if it may. Pure.

    Args:
        name: the query's.
        mine: where it would write.
        program: of the fork, as :attr:`Outputs.program`.
        original: where the application writes with whose snapshot the fork began.
    """
    whose = f"the application that this one began with (spec.startFrom; {original.application})"
    same = next((theirs for theirs, output in original.queries.items() if is_same(mine, output)), "")
    if same:
        what = f"it would write to {mine}, where query {same!r} of {whose} writes"
        return messages.sent_twice(what, _remedy(mine))
    twin = original.queries.get(name)
    known = twin is not None and (twin.place or twin.kind != mine.kind)
    if mine.place or twin is None or known or not program or program != original.program:
        return ""
    what = f"where its {mine.kind} writes is unknown, and program, arguments and settings are those of {whose}"
    return messages.same_place(what, _remedy(mine))


def _remedy(mine: Output) -> str:
    options = {KAFKA: "topic (option topic of writeStream)", TABLE: "table", PATH: "path"}
    return messages.another_output(options.get(mine.kind, "place, by an argument"))
