"""How far ``make autoscaling`` is, said on the error output: the table alone goes to the output.

On a terminal a line moves, with the trace and the rule that is simulated; elsewhere there is one plain line for each
trace that is done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tests.autoscaling.traces import Trace


class Reporter:
    """Tells of each rule that is begun, and of each trace that is done."""

    def __init__(self, progress: Progress, traces: Sequence[Trace]) -> None:
        self._progress, self._left = progress, len(traces)
        # A trace takes about as long as the time that it is of.
        self._task = progress.add_task("", total=sum(trace.seconds for trace in traces))
        self._before, self._began = 0.0, time.monotonic()

    def begins(self, trace: Trace, what: str, share: float) -> None:
        """Tell what of a trace is begun, when that share of it is done."""
        at = self._before + share * trace.seconds
        self._progress.update(self._task, completed=at, description=f"{trace.name}: {what}")

    def is_done(self, trace: Trace) -> None:
        """Tell that all of a trace is done."""
        self._before += trace.seconds
        self._left -= 1
        self._progress.update(self._task, completed=self._before)
        if self._progress.disable:
            seconds = time.monotonic() - self._began
            left = f"; {self._left} to go" if self._left else ""
            self._progress.console.print(f"trace {trace.name}: done after {seconds:.0f} s{left}", highlight=False)


@contextmanager
def reporting(traces: Sequence[Trace], console: Console | None = None) -> Iterator[Reporter]:
    """Tell how far it is while the context lasts; nothing of it stays on a terminal."""
    console = console or Console(stderr=True, soft_wrap=True)
    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Reporter(progress, traces)
