"""Messages: how a repartition ended, and why state is not repartitioned. No I/O."""

from __future__ import annotations

SECOND_WAY = (
    " All of this state is transformWithState's, so there is a second way: export a snapshot of it, and start an "
    "application from that (spec.startFrom.exportedState) with any number of partitions. The commands are in "
    "docs/recipes.md, 'Export, and start from the export'. Tidegate does not do that by itself, because the "
    "script has to define what the old state means."
)


def not_pinned(lineage: int, why: str) -> str:
    return f"The state of lineage {lineage} cannot be pinned: {why}."


def batch_uncommitted(query: str, batch: int, begun: str) -> str:
    """Return the text; ``begun`` is the address of the object that says that the batch was begun."""
    return (
        f"Query {query!r} was ended inside batch {batch}, which has to be run again under that number for sinks "
        "that rely on it, and a repartition takes a number of its own. The previous version runs it now. If "
        "batches take longer than spec.driver.stopGracePeriodSeconds, raise it. If that version has no such query any "
        f"more, nobody will run it: delete {begun}, and change spec.restartNonce."
    )


def lineage_used(lineage: int, key: str) -> str:
    return (
        f"Lineage {lineage} was to be made, and its folder has files already, such as {key}, which belong to no "
        "attempt at a repartition. Move the folder elsewhere."
    )


def lineage_not_started(lineage: int, snapshot: str, why: str) -> str:
    return f"Lineage {lineage} cannot start from {snapshot}: {why}."


def state_differs(query: str, difference: str) -> str:
    return f"The state of query {query!r} is not the same after the repartition: {difference}."


def misplaced(rows: int, store: object) -> str:
    return (
        f"{rows} rows of {store} are not in the partition that the hash of their key says: Spark's repartition "
        "would put them where the query does not look."
    )


def no_whole_checkpoint(query: str, error: Exception) -> str:
    return f"What Spark made of the state of query {query!r} is no whole checkpoint: {error}."


def out_of_memory(why: str) -> str:
    return f"Spark needed more memory than it has ({why}). Raise spec.state.repartition.resources.requests.memory."


def image_lacks(module: str) -> str:
    return f"The image has no {module}: state is repartitioned by the image that wrote it."


def repartitioned(lineage: int, partitions: int, rows: int) -> str:
    return f"Lineage {lineage} has state in {partitions} partitions; {rows} rows, the same as before."


def fenced(epoch: int) -> str:
    """Return the text; ``epoch`` is that of the process which has the storage now, 0 if that is not known."""
    who = f"A process of epoch {epoch}" if epoch else "Somebody"
    return f"{who} took the storage over meanwhile."


def spark_too_old(version: str, first: str, back: str, second_way: str) -> str:
    return (
        f"Spark {version} cannot repartition state; Spark {first} is the first that can. Set {back}. Then set "
        f"spec.application.image to one with Spark {first} or newer, and change spec.state.partitions when that "
        f"version is stable.{second_way}"
    )


def other_provider(query: str, provider: str, rocksdb: str, back: str) -> str:
    return (
        f"The state of query {query!r} is kept by the provider {provider}, and Spark repartitions only that of "
        f"{rocksdb}. Set {back}. Another spark.sql.streaming.stateStore.providerClass (spec.sparkConf) takes "
        "effect only when the application starts without the state that it has (spec.upgrade.mode Stateless)."
    )


def unknown_operators(query: str, operators: str, back: str) -> str:
    return (
        f"Query {query!r} has state of {operators}, and Spark cannot determine the keys there. Set {back}. "
        "Without that operator, the query no longer fits its checkpoint, and has to start without the state that "
        "it has (spec.upgrade.mode Stateless)."
    )


def no_key(query: str, back: str) -> str:
    return (
        f"Query {query!r} aggregates without a key: that state is all in the first partition, and Spark's "
        f"repartition would put it where the query does not look. Set {back}."
    )
