"""Errors of an order about snapshots, by what carries it out. No I/O."""

from __future__ import annotations

from typing import ClassVar

from tidegate_spark.contract.reasons import Reason


class OrderFailedError(Exception):
    """The message says for a person what is wrong, and where to fix it."""

    reason: ClassVar[Reason]
    """What is reported of the order."""
    tries: ClassVar[int] = 1
    """Attempts in all that are worth while, if each of them fails so."""


class SnapshotGoneError(OrderFailedError):
    """A snapshot that was complete is not in the storage any more: no other attempt finds it."""

    reason = Reason.SNAPSHOT_GONE
