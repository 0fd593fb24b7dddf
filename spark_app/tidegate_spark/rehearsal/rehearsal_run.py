"""Decides when a rehearsal has seen enough, and its result. Starts a thread; no I/O of its own."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

from tidegate_spark.contract.protocol import DEPENDENCY_REASONS, DriverConfig, Fault, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import REHEARSAL_VARIABLE, Rehearsal, RehearsalEnd, RehearsalResult
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.faults import foreign_text
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import query_messages
from tidegate_spark.rehearsal import sink_suppression
from tidegate_spark.rehearsal.child_refusal import ChildRefusal

log = logging.getLogger("tidegate")

PASSED, FAILED, INCONCLUSIVE = RehearsalResult.PASSED, RehearsalResult.FAILED, RehearsalResult.INCONCLUSIVE

_PLAN_CLASSES = ("AnalysisException", "ParseException")
_MEMORY_CLASSES = ("OutOfMemoryError", "MemoryError", "SparkOutOfMemoryError")
_KILLED = (-9, 137)

_AT_THE_START = {
    Reason.MAIN_NOT_FOUND: (FAILED, Reason.START_FAILED),
    Reason.CONNECTOR_MISSING: (FAILED, Reason.START_FAILED),
    Reason.QUERY_REFUSED: (FAILED, Reason.PLAN_INCOMPATIBLE),
    Reason.STATE_SCHEMA: (FAILED, Reason.STATE_SCHEMA),
    Reason.SCRIPT_UNSUPPORTED: (FAILED, Reason.PLAN_INCOMPATIBLE),
    Reason.SNAPSHOT_UNUSABLE: (FAILED, Reason.STATE_INCOMPATIBLE),
    Reason.STATE_MISSING: (FAILED, Reason.STATE_INCOMPATIBLE),
    Reason.STORAGE_OWNED: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.PROTOCOL_MISMATCH: (FAILED, Reason.START_FAILED),
    Reason.NEWER_FORMAT: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.CLAIM_DAMAGED: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.NOTES_DAMAGED: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.NOTHING_TO_ADOPT: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.STORAGE_OLDER: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.STORAGE_EMPTY: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.LINEAGE_NOT_EMPTY: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.STORAGE_UNSUITABLE: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.CHECKPOINT_FILE_MISSING: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    # The running version reads on: it is the new one that lacks records.
    Reason.SOURCE_DATA_LOST: (FAILED, Reason.SOURCE_DATA_LOST),
    Reason.CONFIGURATION_CHANGED: (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE),
    Reason.STOPPED: (INCONCLUSIVE, Reason.STOPPED),
    Reason.FENCED: (INCONCLUSIVE, Reason.STOPPED),
    **dict.fromkeys(DEPENDENCY_REASONS, (INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE)),
}
"""Ends that say the same whatever was done before."""
_PERHAPS_FOR_A_CHILD = frozenset({Reason.APPLICATION_FAILED, Reason.NO_INPUT, Reason.DEADLINE_EXCEEDED})
"""What comes of a version whose child process was refused Spark may come of that."""


class Rehearsing:
    """Looks on, and ends the process when there is a result or no more time for one."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        progress: Progress,
        request_end: Callable[[Outcome], None],
        children: ChildRefusal,
    ) -> None:
        """Prepare; ``request_end`` ends the process, unless it is ending already."""
        self._wanted, self._progress, self._request_end = rehearsal, progress, request_end
        self._children = children
        self.jvm_starter = ""
        """The program that starts Spark's JVM, once it has begun: children have another one."""
        self.hold: Callable[[], object] = threading.Event().wait
        """Does not return."""
        self._enough = self._too_late = False
        self._idle = False
        """When the time was over, all queries ran and had nothing to read."""
        self._fault: Fault | None = None
        """What it waited for then."""

    def begin(self) -> None:
        """Have the time counted from now on, and let the script's functions know; no child starts Spark from now on."""
        os.environ[REHEARSAL_VARIABLE] = "1"
        self.jvm_starter = self._children.begin(os.environ)
        wanted = self._wanted
        details = (wanted.batches, wanted.timeout_seconds)
        log.info("rehearsal: %d batches of each query, in %d s", *details, extra={"action": "rehearse"})
        threading.Thread(target=self._wait, name="rehearsal", daemon=True).start()

    def meet(self, session: Any) -> None:
        """Give Spark's first session what a rehearsal has."""
        sink_suppression.let_files_go(session)
        session.sparkContext.environment.update(self._children.variables)  # of Python workers

    def refusing(self, is_ours: Callable[[str], bool]) -> Callable[[str], bool]:
        """Return a function that asks ``is_ours`` about a query that starts, and ends the process if it is not.

        Spark calls it before the query's first batch, and goes on when it returns, which it does not then: what that
        query writes would be real.
        """

        def ask(name: str) -> bool:
            if is_ours(name):
                return True
            self._request_end(Outcome(Reason.SCRIPT_UNSUPPORTED, query_messages.started_in_jvm(name)))
            self.hold()
            return False

        return ask

    def check(self) -> None:
        """End the process if each query has committed enough: those that run, and those of the previous version."""
        if self._has_shown_enough() and not self._unstarted():
            self._pass()

    def _has_shown_enough(self) -> bool:
        """Return whether all that was started works; what an exception ended, and nobody started again, does not."""
        report = self._progress.report()
        running = [query for query in report.queries if query.active]
        if not running or not report.ready or any(query.failed for query in report.queries):
            return False
        return all(query.committed >= self._wanted.batches for query in running)

    def _unstarted(self) -> tuple[str, ...]:
        started = {query.name for query in self._progress.report().queries}
        return tuple(name for name in self._wanted.queries if name not in started)

    def _pass(self) -> None:
        self._enough = True
        self._request_end(Outcome(Reason.COMPLETED, "Rehearsed."))

    def reported(self, termination: Termination, jvm_exit_code: int | None) -> Termination:
        """Return the termination message with what it says of the version.

        Args:
            termination: as a driver's would be.
            jvm_exit_code: of Spark's JVM, None if it runs or there was none.
        """
        committed = {query.name: query.committed for query in self._progress.report().queries}
        result, what, message = self._judge(termination, committed, jvm_exit_code)
        if self._children.refused and what in _PERHAPS_FOR_A_CHILD:
            result, what, message = INCONCLUSIVE, Reason.SCRIPT_UNSUPPORTED, messages.perhaps_for_child(message)
        reason, fault = termination.reason, self._fault
        if reason is Reason.STOPPED and self._too_late and fault is not None:
            reason, message = fault.reason, fault.message
        end = RehearsalEnd(result, what, committed)
        return dataclasses.replace(termination, reason=reason, message=message, rehearsal=end)

    def _wait(self) -> None:
        time.sleep(self._wanted.timeout_seconds)
        self.run_out_of_time()

    def run_out_of_time(self) -> None:
        """End the process: what was seen until now was all, and a query that was not started counts as dropped."""
        if self._has_shown_enough():
            self._pass()
            return
        report = self._progress.report()
        # A fault of a script without queries may still be reported for seconds after its first query has started.
        self._idle, self._fault = self._progress.ready, report.fault if not report.queries else None
        self._too_late = True
        self._request_end(Outcome(Reason.STOPPED, messages.REHEARSAL_OVER))

    def _judge(
        self, termination: Termination, committed: dict[str, int], jvm_exit_code: int | None
    ) -> tuple[RehearsalResult, Reason, str]:
        reason, message = termination.reason, termination.message
        if reason is Reason.COMPLETED:
            return self._judge_completed(committed)
        if reason is Reason.STOPPED and self._too_late:
            return self._judge_unfinished(committed)
        if reason in _AT_THE_START:
            return (*_AT_THE_START[reason], message)
        killed = reason is Reason.DRIVER_CRASHED and jvm_exit_code in _KILLED
        if killed or termination.exception.rpartition(".")[2] in _MEMORY_CLASSES:
            return INCONCLUSIVE, Reason.OUT_OF_MEMORY, message
        return FAILED, what_failed(termination.exception, message), message

    def _judge_completed(self, committed: dict[str, int]) -> tuple[RehearsalResult, Reason, str]:
        if self._enough:
            rest = f"{self._dropped()}{self._without_child()}{self._uncompared()}"
            return PASSED, Reason.NONE, f"{_words(committed)} without a failure{rest}"
        # A script that reads what there is, and ends.
        if committed and all(committed.values()):
            rest = f"{self._without_child()}{self._uncompared()}"
            return PASSED, Reason.NONE, messages.finished_after(_words(committed)) + rest
        return INCONCLUSIVE, Reason.NO_INPUT, messages.finished_after(_words(committed))

    def _dropped(self) -> str:
        dropped = self._unstarted()
        names = ", ".join(repr(name) for name in dropped)
        return f"; {names} of the previous version was not started, and counts as dropped" if dropped else ""

    def _without_child(self) -> str:
        return f"; {messages.CHILD_REFUSED}" if self._children.refused else ""

    def _uncompared(self) -> str:
        notices = self._progress.report().notices
        return "".join(
            f". {notice.message.rstrip('.')}" for notice in notices if notice.reason == Reason.STATE_NOT_COMPARED
        )

    def _judge_unfinished(self, committed: dict[str, int]) -> tuple[RehearsalResult, Reason, str]:
        wanted = f"{self._wanted.batches} of each were asked for in {self._wanted.timeout_seconds} s"
        if self._fault is not None:
            return (*_AT_THE_START[self._fault.reason], "")
        what = Reason.NO_INPUT if self._idle else Reason.DEADLINE_EXCEEDED
        return INCONCLUSIVE, what, f"{_words(committed)}; {wanted}"


def what_failed(exception: str, message: str) -> Reason:
    """Return which kind of failure an exception is, by its class and by Spark's error conditions. Pure."""
    if foreign_text.names_state_schema(message):
        return Reason.STATE_SCHEMA
    if foreign_text.names_plan(message) or exception.rpartition(".")[2].endswith(_PLAN_CLASSES):
        return Reason.PLAN_INCOMPATIBLE
    return Reason.APPLICATION_FAILED


def rehearsing_of(
    config: DriverConfig, work_directory: str, progress: Progress, request_end: Callable[[Outcome], None]
) -> Rehearsing | None:
    """Return what looks on, None if the process is the application's driver."""
    if config.rehearsal is None:
        return None
    children = ChildRefusal(Path(work_directory), Path(_find_spark_home()))
    return Rehearsing(config.rehearsal, progress, request_end, children)


def _words(committed: dict[str, int]) -> str:
    if not committed:
        return "no query committed a batch"
    return ", ".join(f"query '{name}' committed {number} batches" for name, number in sorted(committed.items()))
