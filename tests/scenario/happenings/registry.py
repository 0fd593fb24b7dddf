"""The list of what can happen, which each module of this package adds to."""

from collections.abc import Callable

from tests.scenario.world import World

Happening = Callable[[World], str | None]
"""Looks at the world and does something to it; returns what it did, in words, or nothing if it did not fit."""
HAPPENINGS: list[tuple[float, Happening]] = []


def happening(weight: float) -> Callable[[Happening], Happening]:
    """Have a function take part in schedules."""

    def add(function: Happening) -> Happening:
        HAPPENINGS.append((weight, function))
        return function

    return add
