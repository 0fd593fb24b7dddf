"""Runs the steps of a gate at once where they may, each line with its step's name before it. Starts processes."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.gate.tiers import Step

CLEAN_UP_SECONDS = 180.0
"""So long an interrupted step may take to remove the servers and clusters that it started."""
NOT_RUN, INTERRUPTED = -1001, -1002
"""The exit codes of a step that never started, and of one that was ended because another failed."""
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a step ended: its exit code (or NOT_RUN, INTERRUPTED), and what it took in seconds."""

    step: Step
    code: int
    seconds: float


async def run(steps: Sequence[Step], write: Callable[[str], None]) -> list[Ended]:
    """Run the steps, each as soon as those before it have succeeded; return how each ended, in their order.

    When one fails that ends the run, the others are interrupted, and clean up. So they are when this task is cancelled.
    """
    width = max(len(step.name) for step in steps)
    tasks: dict[str, asyncio.Task[Ended]] = {}
    for step in steps:
        before, earlier = ([tasks[name] for name in names] for names in (step.after, step.follows))
        tasks[step.name] = asyncio.create_task(
            _one(step, before, earlier, partial(_prefixed, write, f"{step.name:{width}} | "))
        )
    waiting = set(tasks.values())
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(_ends_the_run(task.result()) for task in done):
                for task in waiting:
                    task.cancel()
    except asyncio.CancelledError:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        raise
    return [tasks[step.name].result() for step in steps]


def _ends_the_run(ended: Ended) -> bool:
    return ended.step.ends_the_run and ended.code not in (0, NOT_RUN, INTERRUPTED)


async def _one(
    step: Step,
    before: Sequence[asyncio.Task[Ended]],
    earlier: Sequence[asyncio.Task[Ended]],
    write: Callable[[str], None],
) -> Ended:
    try:
        first = [await asyncio.shield(task) for task in before]
        if not any(ended.code for ended in first):
            await asyncio.gather(*map(asyncio.shield, earlier))
    except asyncio.CancelledError:
        return Ended(step, NOT_RUN, 0.0)
    if any(ended.code for ended in first):
        return Ended(step, NOT_RUN, 0.0)
    begin = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *step.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **dict(step.environment), "PYTHONUNBUFFERED": "1", "COLUMNS": "120"},
        # A group of its own, to be ended whole; not a session, to which Linux gives as much processor time as to each
        # other (sched_autogroup), however nice its processes are.
        process_group=0,
        limit=_LONGEST_LINE,
    )
    printing = asyncio.create_task(_print(process, write))
    try:
        await process.wait()
    except asyncio.CancelledError:
        await _interrupt(process)
        await _finish(printing)
        return Ended(step, INTERRUPTED, time.monotonic() - begin)
    await _finish(printing)
    return Ended(step, 1 if process.returncode is None else process.returncode, time.monotonic() - begin)


async def _print(process: asyncio.subprocess.Process, write: Callable[[str], None]) -> None:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        write(line.decode(errors="replace").rstrip("\n"))


async def _finish(printing: asyncio.Task[None]) -> None:
    """Give what is left to print a moment; a process that was left behind may hold the pipe for ever."""
    done, _ = await asyncio.wait({printing}, timeout=10)
    if not done:
        printing.cancel()


async def _interrupt(process: asyncio.subprocess.Process) -> None:
    """Have a step end as by Ctrl-C, so that it removes what it started; by force if it does not."""
    for sent, patience in ((signal.SIGINT, CLEAN_UP_SECONDS), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, sent)
            await asyncio.wait_for(process.wait(), patience)
        except ProcessLookupError:
            return
        except TimeoutError:
            continue
        return


def _prefixed(write: Callable[[str], None], prefix: str, line: str) -> None:
    write(prefix + line)


def printed(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
