"""What is told while schedules run: progress; of one schedule the operator's log, of many none of it."""

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.scenario.operators import PROCESS

EVERY = 30.0
"""Seconds between two lines of progress where there is no terminal."""


def quiet(*, for_good: bool = False) -> None:
    """Have nothing logged: it would cost more than everything else. ``for_good`` is for processes of our own."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=for_good
    )


def show_log(note: Callable[[float, str, str], None]) -> None:
    """Have the operator's log told with its process's name."""

    def report(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        if method == "debug":
            raise structlog.DropEvent
        text = str(event.pop("event"))
        details = ", ".join(f"{key}={value}" for key, value in event.items() if key != "namespace")
        note(asyncio.get_running_loop().time(), PROCESS.get(), f"{text} ({details})")
        raise structlog.DropEvent

    structlog.configure(processors=[report], cache_logger_on_first_use=False)


class Reporting:
    """Progress: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, schedules: int) -> None:
        """Prepare for so many schedules."""
        self._console = Console(highlight=False, soft_wrap=True)
        columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.fields[pace]}"), TimeRemainingColumn())
        self._progress = Progress(*columns, console=self._console)
        self._task = self._progress.add_task("", total=schedules, pace="")
        self._began = time.monotonic()
        self._done, self._schedules, self._said = 0, schedules, 0.0

    def __enter__(self) -> "Reporting":
        """Begin."""
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        self._progress.stop()

    def say(self, text: str) -> None:
        """Tell something."""
        self._console.print(text, markup=False)

    def advance(self, schedules: int, failed: int) -> None:
        """So many more were run; so many have failed until now."""
        self._done += schedules
        passed = time.monotonic() - self._began
        pace = f"{self._done / passed:.0f} a second, {failed} failed"
        self._progress.update(self._task, completed=self._done, pace=pace)
        if not self._console.is_terminal and (passed - self._said > EVERY or self._done == self._schedules):
            self._said = passed
            self.say(f"{self._done} of {self._schedules} schedules, {pace}")
