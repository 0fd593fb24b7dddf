"""What the attacked application's state has to be after each batch, computed from its input alone. Pure."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator

Row = tuple[int, int, int]
"""Key, how many values it had, and the largest of them."""
FACTOR = 7919


def states(rows: int, keys: int) -> Iterator[tuple[dict[int, Row], list[Row]]]:
    """Yield the state after each batch, by key, and the rows that the batch changed, sorted; the first batch is 0.

    Args:
        rows: in each batch; their values count up from 0.
        keys: how many different ones there are.
    """
    state: dict[int, Row] = {}
    batch = 0
    while True:
        changed = set()
        for value in range(batch * rows, (batch + 1) * rows):
            key = value * FACTOR % keys
            _, count, _ = state.get(key, (key, 0, 0))
            state[key] = (key, count + 1, value)
            changed.add(key)
        yield state, sorted(state[key] for key in changed)
        batch += 1


def digest(state: Iterable[Row]) -> str:
    """Return the hash of a state, in whatever order its rows come."""
    return hashlib.sha256(json.dumps(sorted(map(list, state))).encode()).hexdigest()


def digests(rows: int, keys: int, batches: Collection[int]) -> dict[int, str]:
    """Return batch -> hash of the state after it."""
    found: dict[int, str] = {}
    for batch, (state, _) in enumerate(states(rows, keys)):
        if batch > max(batches, default=-1):
            return found
        if batch in batches:
            found[batch] = digest(state.values())
    raise AssertionError("there is always a next batch")


def changes(rows: int, keys: int, first: int, last: int) -> dict[int, list[Row]]:
    """Return batch -> what it changed, from ``first`` to ``last``."""
    found: dict[int, list[Row]] = {}
    for batch, (_, changed) in enumerate(states(rows, keys)):
        if batch > last:
            return found
        if batch >= first:
            found[batch] = changed
    raise AssertionError("there is always a next batch")
