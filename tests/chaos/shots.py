"""A fault that is aimed, and how two of them become one."""

from collections.abc import Callable
from dataclasses import dataclass


def nothing() -> None:
    """Undo nothing."""


def at_once() -> bool:
    """Return that there is nothing to wait for."""
    return True


class TargetGoneError(AssertionError):
    """What was aimed at went away before the shot: nothing was hit."""


@dataclass(frozen=True)
class Shot:
    """A fault that is aimed.

    Attributes:
        target: what it hits, for the log.
        fire: makes it happen; raises TargetGoneError if there was nothing to hit any more.
        heal: undoes it, after the outage; for what nobody but a person would bring back.
        past: says whether the world has reacted, so that a batch committed afterwards proves recovery.
    """

    target: str
    fire: Callable[[], object]
    heal: Callable[[], object] = nothing
    past: Callable[[], bool] = at_once


def together(first: Shot, second: Shot) -> Shot:
    """Return both as one; where the first one's target is gone, both are aimed again."""

    def fire() -> None:
        first.fire()
        second.fire()

    def heal() -> None:
        first.heal()
        second.heal()

    return Shot(f"{first.target}, {second.target}", fire, heal, lambda: first.past() and second.past())
