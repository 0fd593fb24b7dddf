"""How an action ends that cannot be carried out as it was decided. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import FAILURES, Failure


class ActionCounter(Protocol):
    """Where actions are counted."""

    def count_action(self, kind: str) -> None:
        """Count one action that was carried out."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """The world is not the observed one: the rest of the plan is void, and the key is observed again at once."""

    reason: str


Outcome: TypeAlias = LookAgain | None


def must(answer: bytes | Failure | None, what: str) -> None:
    """Return if the API server did it.

    Raises:
        RetryLaterError: it did not.
    """
    if isinstance(answer, FAILURES):
        raise RetryLaterError(f"{what}: {answer}")
