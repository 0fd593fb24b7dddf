"""Checks a message before it is logged: whether it is valid, and whether what it names exists. Starts threads.

The second check may never end, so it runs beside everything else, and a message that it does not settle in time is
rejected.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.messages.deadlines import Attempt, Deadlines, OverdueError
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.messages.validation import InForce, checked, rejected
from tidegate_spark.control.service.ports import DriverOperations
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.log import ControlLog

log = logging.getLogger("tidegate")


class Inspector:
    """One driver's. Thread safe."""

    def __init__(self, operations: DriverOperations, declared: Declared, seconds: float) -> None:
        """Prepare; each message gets so many seconds."""
        self._operations, self._declared, self._deadlines = operations, declared, Deadlines(seconds)
        self._lock = threading.Lock()
        self._attempts: dict[str, Attempt[Entry]] = {}
        """Id of a message that is being looked at -> the work."""

    def log_in_order(
        self, found: ControlLog, drafts: Sequence[Entry], append: Callable[[Sequence[Entry]], None], seconds: float
    ) -> bool:
        """Have messages logged in their order, none before those that came before it; return whether all are.

        Before one that takes time to look at, those before it are logged.

        Args:
            found: the log.
            drafts: messages.
            append: logs some of them.
            seconds: what is waited for one of them; then the rest waits for another call.
        """
        ready: list[Entry] = []
        for draft in self._understood(found, drafts):
            check = self._operations.inspection(draft) if found.find(draft.id) is None else None
            if check is None:
                ready.append(draft)
                continue
            if ready:
                append(ready)
            entry = self._inspected(draft, check, seconds)
            if entry is None:
                return False
            ready = [entry]
        if ready:
            append(ready)
        return True

    def _understood(self, found: ControlLog, drafts: Sequence[Entry]) -> list[Entry]:
        """Return messages, of which those are rejected that the program does not understand, or has no room for."""
        vocabulary = self._declared.vocabulary()
        state = found.state_at(found.last)
        before = InForce(frozenset(state.last), state.config, frozenset(state.models))
        for waiting in found.undecided():  # they may come to be in force, all of them
            before = before.after(waiting)
        understood = []
        for draft in drafts:
            if found.find(draft.id) is not None:
                understood.append(draft)
                continue
            understood.append(checked(draft, vocabulary, before))
            before = before.after(understood[-1])
        return understood

    def _inspected(self, draft: Entry, check: Callable[[], Entry], seconds: float) -> Entry | None:
        """Return a message as it is to be logged, None if that is not known yet."""
        with self._lock:
            attempt = self._attempts.get(draft.id)
            if attempt is None:
                self._attempts = {name: each for name, each in self._attempts.items() if not each.is_forgotten()}
                what = f"the check of message {draft.id} ({draft.type})"
                attempt = self._attempts[draft.id] = self._deadlines.attempt(what, lambda it: it.repeated(check))
        if not attempt.wait(seconds):
            return None
        with self._lock:
            self._attempts.pop(draft.id, None)
        try:
            return attempt.result()
        except OverdueError as error:
            log.warning("control: %s: it is rejected", error, extra={"action": "control"})
            return rejected(draft, Reason.MESSAGE_TIMED_OUT, f"{error}.")
