"""Messages: why state was not read, and what helps. No I/O."""

from __future__ import annotations

DESCRIPTION = "Look inside a running application; nothing is stopped or changed."


def no_answer(seconds: int, more: str) -> str:
    return (
        f"there is no answer after {seconds} s, and the inspection is being ended: the storage or the executors may be "
        f"slow. Ask again later{more}"
    )


def busy(running: float, most: int, query: str | None) -> str:
    return (
        f"another inspection is under way, for {running:.0f} s (of at most {most}), at query {query!r}: one at a time, "
        "so that batches are not held up. Ask again in a moment"
    )


def cleaned_too_fast(query: str, batch: object, newest: int, cause: str) -> str:
    return (
        f"Spark deletes batches of query {query!r} faster than they are read (batch {batch}, the newest is "
        f"{newest}): raise spec.state.minBatchesToRetain, or ask again. Spark reports: {cause}"
    )


def nothing_read(seconds: int, limit: str, remedy: str) -> str:
    return (
        f"nothing was read within {seconds} s{limit}: {remedy}. An inspection waits for cores that a batch does not "
        "need, and for files of the state from the storage; state that is too large for it is exported from a "
        "snapshot (spec.export of a StreamSnapshot)"
    )
