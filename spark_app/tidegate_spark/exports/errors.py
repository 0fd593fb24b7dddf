"""Errors of making or using an export. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots.service.order_errors import OrderFailedError


class ExportError(OrderFailedError):
    """The message says for a person what is wrong, and where to fix it."""

    reason = Reason.EXPORT_FAILED


class StateNotFoundError(ExportError):
    """What is to be exported is not among the state."""

    reason = Reason.STATE_NOT_FOUND


class UnsuitableFormatError(ExportError):
    """A format cannot hold the state."""

    reason = Reason.FORMAT_UNSUITABLE


class StateUnreadableError(ExportError):
    """Spark cannot read the state."""

    reason = Reason.STATE_UNREADABLE
    tries = 2


class ExportExistsError(ExportError):
    """Another export has this id."""

    reason = Reason.EXPORT_EXISTS
