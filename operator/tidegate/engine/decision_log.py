"""A decision's line in the operator's log. Writes the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import structlog

log = structlog.get_logger()
A_co = TypeVar("A_co", covariant=True)


class Decided(Protocol[A_co]):
    """The part of a plan that is logged."""

    @property
    def rule(self) -> str:
        """The rule that decided."""

    @property
    def message(self) -> str:
        """The reason as text."""

    @property
    def actions(self) -> Sequence[A_co]:
        """What is to be done."""


def log_decision(plan: Decided[A_co], is_news: Callable[[A_co], bool]) -> None:
    """Log a decision by which anything is done: at debug if none of it is news, as of an application that is well."""
    if plan.actions:
        write = log.info if any(map(is_news, plan.actions)) else log.debug
        write(plan.message, rule=plan.rule, actions=[type(action).__name__ for action in plan.actions])
