"""What the demo prints: a line per step and per thing that happens, with the time since the start. Writes to stdout.

On a terminal there are colours, a line that moves while something is waited for, and text that wraps below itself; into
a file or a pipe go plain lines, one for each thing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

LINES_OF_A_FAILURE = 25


class StepFailedError(Exception):
    """A step of the demo failed.

    ``what`` names it, ``detail`` is the end of what was printed about it, ``remedy`` says what to do.
    """

    def __init__(self, what: str, detail: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.detail, self.remedy = what, detail, remedy


class Narrator:
    """Shows what happens. Methods may be called from several threads."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._started

    def say(self, text: str, style: str = "") -> None:
        """Print one line."""
        minutes, seconds = divmod(int(self.elapsed()), 60)
        time_of_it = Text(f"{minutes:2d}:{seconds:02d}", style="dim")
        if self._console.is_terminal:
            line = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
            indent = len(text) - len(text.lstrip())
            line.add_row(time_of_it, Padding(Text(text.strip(), style=style), (0, 0, 0, indent)))
            self._console.print(line, soft_wrap=False)
        else:
            self._console.print(Text.assemble(time_of_it, "  ", (text, style)))

    def plain(self, text: str) -> None:
        """Print text as it is, without a time."""
        self._console.print(escape(text))

    @contextmanager
    def step(self, title: str, remedy: str, *, moving: bool = True) -> Iterator[None]:
        """Announce a step, and say how long it took.

        Args:
            title: what is done.
            remedy: what to do if it fails.
            moving: show that it goes on; not for steps that show a bar or a wait of their own, of which there is one.

        Raises:
            StepFailedError: with ``remedy``, if anything is raised inside.
        """
        self.say(f"{title} …", "bold")
        before = self.elapsed()
        try:
            with self.waiting(title) if moving else nullcontext():
                yield
        except StepFailedError:
            raise
        except Exception as error:
            detail = str(error) or type(error).__name__
            raise StepFailedError(title, detail, remedy) from error
        self.say(f"  done in {self.elapsed() - before:.1f} s", "green")

    def failure(self, failed: StepFailedError) -> None:
        """Say what failed, the last of what is known about it, and what to do."""
        self.say(f"FAILED: {failed.what}", "bold red")
        for line in failed.detail.splitlines()[-LINES_OF_A_FAILURE:]:
            self.plain(f"       | {line}")
        self.plain(f"       what to do: {failed.remedy}")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show on a terminal, while the context lasts, that ``what`` goes on and for how long; other lines go above."""
        text = TextColumn(escape(what), style="dim", table_column=Column(no_wrap=True, overflow="ellipsis"))
        columns = (TextColumn("     "), SpinnerColumn(), TimeElapsedColumn(Column(no_wrap=True, min_width=7)), text)
        with Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        ) as progress:
            progress.add_task("")
            yield

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[ProgressReporter]:
        """Show the progress of ``total`` things while the context lasts; other lines go on above it."""
        columns = (TextColumn("      {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        ) as progress:
            yield ProgressReporter(self, progress, title, total)


class ProgressReporter:
    """Moves a bar, or, without a terminal, prints a line at each quarter."""

    def __init__(self, narrator: Narrator, progress: Progress, title: str, total: int) -> None:
        self._narrator, self._progress, self._title, self._total = narrator, progress, title, total
        self._task = progress.add_task(title, total=total)
        self._quarters = 0

    def __call__(self, done: int) -> None:
        """Take note that ``done`` of them are done."""
        self._progress.update(self._task, completed=done)
        quarters = 4 * done // self._total
        if self._progress.disable and quarters > self._quarters:
            self._narrator.say(f"  {self._title}: {done:,} of {self._total:,}")
        self._quarters = quarters
