"""Counts the application's failures, and notes what it has shown, across the processes of one pod. Does file I/O.

The file is in the pod's work directory, which outlives the container, because the kubelet restarts a driver without the
operator. Each process leaves a mark at its start; one that is still there counts as an end without a message.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_CODES, AgentReport, RestartSettings, Worked
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Fault
from tidegate_spark.contract.reasons.registry import fault_of
from tidegate_spark.monitoring.worked import with_shown
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.outcome import Outcome

ACCOUNT, MARK, WORKED = "failures.json", "process-runs", "worked.json"
NOTED_SECONDS = 10.0
"""Between two notes of what the process has shown."""
_NOTHING_RAN = frozenset({Reason.MAIN_NOT_FOUND})
COUNTED = (
    frozenset(reason for reason, code in EXIT_CODES.items() if code == EXIT_APPLICATION)
    & frozenset(reason for reason in EXIT_CODES if fault_of(reason) is Fault.VERSION)
) - _NOTHING_RAN
"""Ends that are the application's own failure; faults of its surroundings, its data and stops from outside are not."""
SILENT_END = "the process ended without a termination message, as one does that is killed"

log = logging.getLogger("tidegate")


@dataclass(frozen=True)
class Failures:
    """Times in seconds since the epoch, the earliest first, and what the last one was."""

    times: tuple[float, ...] = ()
    last: str = ""

    def within(self, window_seconds: float, now: float) -> Failures:
        """Return those of the last ``window_seconds``."""
        return dataclasses.replace(self, times=tuple(t for t in self.times if now - window_seconds < t <= now))

    def and_one(self, now: float, what: str) -> Failures:
        """Return them with another one."""
        return Failures((*self.times, now), what)


class RestartBudget:
    """The account of one pod's processes."""

    def __init__(
        self, directory: str, settings: RestartSettings, clock: Callable[[], float], steady: Callable[[], float]
    ) -> None:
        """Keep the account in ``directory``.

        Args:
            directory: outlives the process.
            settings: what is too many, and how long a healthy process runs.
            clock: gives seconds since the epoch; failures are reported with it.
            steady: gives seconds that nobody sets; a clock that is put forward must not pass for health.
        """
        self._directory, self._settings, self._clock, self._steady = Path(directory), settings, clock, steady
        self._failures = Failures()
        self._began = self._noted = steady()
        self._since = 0.0
        self.worked: tuple[Worked, ...] = ()
        """What this process and those before it have shown."""
        self._lock = threading.Lock()
        self._ended = False

    @property
    def times(self) -> tuple[float, ...]:
        """When the application failed within the window."""
        return self._failures.within(self._settings.window_seconds, self._clock()).times

    def begin(self) -> Outcome | None:
        """Open the account for this process; return the end if the failures before it are too many already."""
        now, self._began = self._clock(), self._steady()
        self._since, self.worked = now, self._read_worked()
        failures = self._read() or Failures(self._settings.failures)
        if self._load(MARK) is not None:
            failures = failures.and_one(now, SILENT_END)
        self._failures = failures.within(self._settings.window_seconds, now)
        self._write()
        if self._too_many():
            self._remove(MARK)
            return self._exhausted()
        self._put(MARK, str(os.getpid()))
        return None

    def check(self, committed: bool) -> tuple[float, ...]:
        """Clear the account once this process has proven healthy; return when the application failed in the window.

        Not only at the end: a process that is killed after hours of work has no say then, and what came before it must
        not count together with that.

        Args:
            committed: whether this process committed a batch.
        """
        with self._lock:
            if not self._ended and self._failures.times and self._is_healthy(committed):
                self._failures = Failures()
                self._write()
        return self.times

    def note(self, report: Callable[[], AgentReport]) -> None:
        """Note now and then what this process has shown: the next one reports it if this one is killed.

        An operator that was away, or has just begun, knows of a test that is over only from the termination message.
        """
        if self._steady() - self._noted < NOTED_SECONDS:
            return
        self._noted = self._steady()
        worked = with_shown(self.worked, report(), self._since)
        if worked != self.worked:
            self.worked = worked
            self._put(WORKED, json.dumps([dataclasses.astuple(each) for each in worked]))

    def end(self, outcome: Outcome, committed: bool) -> Outcome:
        """Close the account; return how the process ends: as given, or for good if that was one failure too many.

        Args:
            outcome: how the driver ends.
            committed: whether this process committed a batch.
        """
        with self._lock:
            self._ended = True
            now = self._clock()
            if self._is_healthy(committed):
                self._failures = Failures()
            ended = outcome
            if outcome.reason in COUNTED:
                what = f"{outcome.exception}: {outcome.message}" if outcome.exception else outcome.message
                self._failures = self._failures.and_one(now, what).within(self._settings.window_seconds, now)
                if self._too_many():
                    ended = dataclasses.replace(self._exhausted(), exception=outcome.exception)
            self._write()
            self._remove(MARK)
            return ended

    def _is_healthy(self, committed: bool) -> bool:
        return committed and self._steady() - self._began >= self._settings.healthy_seconds

    def _too_many(self) -> bool:
        return len(self._failures.times) > self._settings.max_failures

    def _exhausted(self) -> Outcome:
        number, settings = len(self._failures.times), self._settings
        failures = "1 failure" if number == 1 else f"{number} failures"
        message = messages.budget_exhausted(
            failures, settings.window_seconds, settings.max_failures, self._failures.last or "in a pod before this one"
        )
        return Outcome(Reason.RESTART_BUDGET_EXHAUSTED, message)

    def _read(self) -> Failures | None:
        try:
            known = json.loads(self._load(ACCOUNT) or "")
            return Failures(tuple(float(t) for t in known["times"]), str(known["last"]))
        except (ValueError, TypeError, KeyError):
            return None

    def _read_worked(self) -> tuple[Worked, ...]:
        try:
            known = json.loads(self._load(WORKED) or "[]")
            return tuple(Worked(int(batches), float(since), float(until)) for batches, since, until in known)
        except (ValueError, TypeError):
            return ()

    def _write(self) -> None:
        self._put(ACCOUNT, json.dumps(dataclasses.asdict(self._failures)))

    # --- files ---

    def _load(self, name: str) -> str | None:
        try:
            return (self._directory / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def _put(self, name: str, text: str) -> None:
        path = self._directory / name
        temporary = path.with_suffix(".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            # A full disk must not keep an application from running; it then fails for a better reason.
            log.warning("the account of failures cannot be written: %s", error)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):  # it was never written, then
            (self._directory / name).unlink()
