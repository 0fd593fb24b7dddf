"""Messages: what an export wrote, and why an application cannot start from one. No I/O."""

from __future__ import annotations


def no_initial_state(operators: str, query: str) -> str:
    return (
        f"Spark can begin no operator like {operators} of query {query!r} with a state. Start from the snapshot "
        "itself (spec.startFrom.snapshotRef), or read the rows with exported_state() and make of them the "
        "initialState of a transformWithState"
    )


def written(rows: int, tables: int, size: int) -> str:
    return f"{rows} rows of {tables} tables were written, {size} bytes."


def no_kafka_source(query: str, position: str) -> str:
    return (
        f"the source of query {query!r} was no Kafka source: its position was {position!r}. Begin there by the "
        "means of that source"
    )


def export_exists(key: str) -> str:
    return f"{key} is of another export; take another number for spec.export.nonce"


def export_is_not_whole(key: str, file: str, number: int) -> str:
    more = f", and {number - 1} more" if number > 1 else ""
    return (
        f"{key} is of an export whose files are gone or changed: {file}{more}; take another number for "
        "spec.export.nonce, or delete the folder of this export first"
    )
