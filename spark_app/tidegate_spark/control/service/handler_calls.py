"""Calls a program's handlers in the driver. I/O by the messages' accounts."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.secret_shapes import without_shapes
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control.messages.deadlines import Deadlines, OverdueError
from tidegate_spark.control.messages.handlers import FAIL, RAISED, Handler, message_of
from tidegate_spark.control_log.entries import ControlLogError, Entry
from tidegate_spark.snapshots.repository import SnapshotRepository

log = logging.getLogger("tidegate")


def call_handlers(
    handlers: Mapping[str, Handler],
    entries: Iterable[Entry],
    store: AckStore,
    repository: SnapshotRepository,
    deadlines: Deadlines,
) -> None:
    """Call what a program has for each message that comes into force, unless its account says that it was called.

    Args:
        handlers: by type.
        entries: messages, in the order of the log.
        store: records their results.
        repository: where it has its accounts.
        deadlines: limit what each call may take; one that is given up has failed.

    Raises:
        ControlLogError: one failed whose exceptions are to fail the query.
        Exception: what the store's client raises.
    """
    for entry in entries:
        handler = handlers.get(entry.type)
        if handler is None or store.is_over(entry):
            continue
        account = store.get(repository, entry.sequence)
        if account.done:
            continue
        try:
            called = functools.partial(handler.function, message_of(entry))
            deadlines.run(f"the handler for {entry.type} (message {entry.sequence})", called)
        except RAISED as error:
            overdue = isinstance(error, OverdueError)
            if not overdue:
                log.exception("control: the handler for %s (%d) failed", entry.type, entry.sequence)
            message = f"{error}." if overdue else f"{type(error).__name__}: {error}"
            if handler.raises == FAIL:
                raise ControlLogError(f"the handler for {entry.type!r} failed: {message}") from error
            reason = Reason.MESSAGE_TIMED_OUT if overdue else Reason.HANDLER_FAILED
            account = replace(account, failed=True, reason=reason, message=without_shapes(message))
        store.put(replace(account, done=True))
