"""Evaluates a table of rules. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Seen = TypeVar("Seen")
Said = TypeVar("Said")


def first_verdict(
    rules: Sequence[Callable[[Seen, float], Said | None]], observation: Seen, now: float
) -> tuple[str, Said]:
    """Return the name of the first rule that applies, and what it says.

    Args:
        rules: the table, of which the last rule applies to everything the others leave.
        observation: everything that is known.
        now: seconds since the epoch.
    """
    for rule in rules:
        verdict = rule(observation, now)
        if verdict is not None:
            return rule.__name__, verdict
    raise AssertionError("the last rule of each table applies to everything the others leave")


def earliest(*seconds: float | None) -> float | None:
    """Return the least of those that are given, None if none is."""
    return min((value for value in seconds if value is not None), default=None)
