"""The list of what can happen, which each module of this package adds to."""

from collections.abc import Callable

from tests.scenario.world import World

Event = Callable[[World], str | None]
"""Looks at the world and does something to it; returns what it did, in words, or nothing if it did not fit."""
EVENTS: list[tuple[float, Event]] = []


def event(weight: float) -> Callable[[Event], Event]:
    """Have a function take part in schedules."""

    def add(function: Event) -> Event:
        EVENTS.append((weight, function))
        return function

    return add
