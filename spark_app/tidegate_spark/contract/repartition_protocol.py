"""The contract about repartitions: the order, the result, and what Spark can repartition. No I/O.

The operator judges by the copy's report before anything is stopped; the pod judges again by what it finds. Standard
library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate_spark.contract import repartition_messages as messages
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import StateFacts

REPARTITION_VARIABLE = "TIDEGATE_REPARTITION"
"""Environment variable of the pod's container that holds :class:`Repartition` as JSON."""

REPARTITION_MODULE = "tidegate_spark.repartition_pod"
"""What the pod runs."""

REPARTITION_PREFIX = "repartitions"
"""``repartitions/<lineage>.json``: a lineage that is being made; gone once a driver runs in it, or it is removed."""

FIRST_SPARK = (4, 2)
"""The first that repartitions state."""

ROCKSDB = "RocksDB"
OPERATORS = frozenset(
    {
        "stateStoreSave",
        "dedupe",
        "dedupeWithinWatermark",
        "sessionWindowStateStoreSaveExec",
        "symmetricHashJoin",
        "flatMapGroupsWithState",
        "applyInPandasWithState",
        "transformWithStateExec",
        "transformWithStateInPandasExec",
        "transformWithStateInPySparkExec",
    }
)
"""Spark's names of the operators whose keys it can get from their state (StatePartitionKeyExtractorFactory)."""
WITH_STATE = "transformWithState"
"""How the names begin of operators whose state Spark lets a query start with."""
_RELEASE = re.compile(r"(\d+)\.(\d+)")
BACK = "spec.state.partitions back to the number in status.statePartitions"
"""What somebody sets who wants no other number of partitions after all."""


@dataclass(frozen=True)
class Repartition:
    """What the pod is to do."""

    partitions: int
    """Into so many."""
    pin: str
    """Id of the snapshot that the new lineage is made of; completed first, if it is not complete."""
    of_lineage: int
    """Where the previous version ended."""
    lineage: int
    """Which is to be made; of this attempt alone."""
    image: str = ""
    """Of the version whose state it is, for the pin's manifest."""
    cores: int = 1
    heap_mib: int = 1024
    spark_conf: dict[str, str] = field(default_factory=dict)
    """Settings of the application's by which state is read and its storage reached."""


@dataclass(frozen=True)
class RepartitionedQuery:
    """One query in the new lineage."""

    batch: int
    """The last one of the old lineage."""
    rows: int = 0
    """In all of its state stores, the same before and after."""
    partitions: int = 0
    """That its state had; 0 if it has none."""


@dataclass(frozen=True)
class RepartitionEnd:
    """The part of the pod's termination message that a driver's has not."""

    what: Reason = Reason.NONE
    """None: the lineage is whole."""
    lineage: int = 0
    rows: int = 0
    """Of all queries."""
    queries: dict[str, RepartitionedQuery] = field(default_factory=dict)
    """As many as there is room for in a termination message, the first by name."""
    left_out: int = 0
    """How many there was no room for."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long its parts took: pin, copy, start, spark (Spark's own calls), verify."""


@dataclass(frozen=True)
class RepartitionObstacle:
    """Why state cannot be repartitioned, and what to do about it."""

    what: Reason
    message: str


def without_last(end: RepartitionEnd, number: int) -> RepartitionEnd:
    """Return a termination message without the last ``number`` queries by name, which says so; pure."""
    kept = sorted(end.queries.items())[: max(0, len(end.queries) - number)]
    return replace(end, queries=dict(kept), left_out=end.left_out + len(end.queries) - len(kept))


def needs_repartition(queries: Mapping[str, StateFacts], partitions: int) -> bool:
    """Return whether any query's state has another number of partitions; pure."""
    return any(has_other_partitions(facts, partitions) for facts in queries.values())


def has_other_partitions(facts: StateFacts, partitions: int) -> bool:
    """Return whether a query's state has another number of partitions; one without state has none. Pure."""
    return bool(facts.operators) and facts.partitions != partitions


def find_obstacle(queries: Mapping[str, StateFacts], partitions: int, spark_version: str) -> RepartitionObstacle | None:
    """Return why Spark cannot repartition this state, None if nothing is known against it. Pure.

    Args:
        queries: what is known of each query's state.
        partitions: into so many.
        spark_version: of the image that it would be done in; empty if that is not known.
    """
    concerned = {name: facts for name, facts in sorted(queries.items()) if has_other_partitions(facts, partitions)}
    if not concerned:
        return None
    release = _RELEASE.match(spark_version)
    if release is not None and (int(release[1]), int(release[2])) < FIRST_SPARK:
        first = ".".join(map(str, FIRST_SPARK))
        message = messages.spark_too_old(spark_version, first, BACK, second_way(queries, partitions))
        return RepartitionObstacle(Reason.SPARK_TOO_OLD, message)
    found = (_find_query_obstacle(name, facts) for name, facts in concerned.items())
    return next((obstacle for obstacle in found if obstacle is not None), None)


def second_way(queries: Mapping[str, StateFacts], partitions: int) -> str:
    """Return what else there is for state that a script can start with, empty for any other. Pure.

    By what the state is and nothing else: it is the same answer before anything is stopped and after Spark has failed.

    Args:
        queries: what is known of each query's state.
        partitions: into so many.
    """
    concerned = [facts for facts in queries.values() if has_other_partitions(facts, partitions)]
    if not concerned or not all(name.startswith(WITH_STATE) for facts in concerned for name in facts.operators):
        return ""
    return messages.SECOND_WAY


def _find_query_obstacle(name: str, facts: StateFacts) -> RepartitionObstacle | None:
    if facts.provider != ROCKSDB:
        message = messages.other_provider(name, facts.provider or "of an unknown name", ROCKSDB, BACK)
        return RepartitionObstacle(Reason.UNSUPPORTED_PROVIDER, message)
    unknown = sorted(set(facts.operators) - OPERATORS)
    if unknown:
        message = messages.unknown_operators(name, ", ".join(unknown), BACK)
        return RepartitionObstacle(Reason.UNSUPPORTED_OPERATOR, message)
    if facts.one_place:
        message = messages.no_key(name, BACK)
        return RepartitionObstacle(Reason.STATE_IN_ONE_PLACE, message)
    return None
