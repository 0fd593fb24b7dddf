"""Runs a plan's actions in order, until one meets a conflict. No I/O of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import structlog

from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import FAILURES, Failure

A = TypeVar("A")
log = structlog.get_logger()


class ActionCounter(Protocol):
    """Where actions are counted."""

    def count_action(self, kind: str) -> None:
        """Count one action that was carried out."""


@dataclass(frozen=True, slots=True)
class ObserveAgain:
    """The world is not the observed one: the rest of the plan is void, and the key is observed again at once."""

    reason: str


Outcome: TypeAlias = ObserveAgain | None


async def carry_out_in_order(
    actions: Iterable[A],
    carry_out_one: Callable[[A], Awaitable[Outcome]],
    counter: ActionCounter,
    bookkeeping: tuple[type, ...],
) -> Outcome:
    """Carry out actions one after the other.

    Args:
        actions: of a plan.
        carry_out_one: does it.
        counter: where they are counted.
        bookkeeping: kinds that change nothing of what the plan is about; in the log of a quiet day there would be
            little else.

    Returns:
        ObserveAgain if the plan was given up half way, else None.

    Raises:
        RetryLaterError: the API server cannot or does not want to; the reason is in the text.
    """
    for action in actions:
        name = type(action).__name__
        # Stays bound if this action ends the plan, so that the log names it.
        structlog.contextvars.bind_contextvars(action=name)
        outcome = await carry_out_one(action)
        counter.count_action(name)
        if outcome is not None:
            return outcome
        (log.debug if isinstance(action, bookkeeping) else log.info)("carried out")
        structlog.contextvars.unbind_contextvars("action")
    return None


def must(answer: bytes | Failure | None, what: str) -> None:
    """Return if the API server did it.

    Raises:
        RetryLaterError: it did not.
    """
    if isinstance(answer, FAILURES):
        raise RetryLaterError(f"{what}: {answer}")
