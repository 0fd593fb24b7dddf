"""Which of the conditions Ready, Reconciling and Stalled is True. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from tidegate_spark.contract.reasons import AnyReason, Reason


class Health(Enum):
    """Which of the three conditions is true; exactly one is, so that every kstatus client agrees."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


def health_without_start(reason: AnyReason) -> Health:
    """Return which condition is true of something whose pod does not start; one that only takes long is on its way."""
    return Health.RECONCILING if reason is Reason.IMAGE_PULLING else Health.STALLED


class Judged(Protocol):
    """What conditions are made of: the part that verdicts about all kinds of resources share."""

    @property
    def health(self) -> Health:
        """Which condition is true."""

    @property
    def reason(self) -> AnyReason:
        """One word, CamelCase."""

    @property
    def message(self) -> str:
        """For a person."""
