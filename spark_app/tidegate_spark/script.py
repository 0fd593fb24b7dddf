"""Runs the user's program in this process, as ``python program arguments`` would. Runs foreign code."""

from __future__ import annotations

import dataclasses
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_spark import faults
from tidegate_spark import start_messages as messages
from tidegate_spark.claiming import BehindError
from tidegate_spark.preflight import Main
from tidegate_spark.protocol import Fault
from tidegate_spark.queries import DriverStoppingError, QueryRefusedError
from tidegate_spark.reasons import Reason
from tidegate_spark.script_end import flush_output
from tidegate_spark.script_entry import ScriptRefusedError
from tidegate_spark.stderr_tail import StderrTail


@dataclass(frozen=True)
class Outcome:
    """Why the driver ends."""

    reason: Reason
    message: str
    exception: str = ""
    adopt: tuple[int, int] = (0, 0)
    """Epoch and lineage that the storage knows, if they are not this driver's."""
    adopt_opening: bool = False
    """As in :class:`Termination`."""
    adopt_found: bool = False
    """Likewise."""
    adopted_from: str = ""
    """Likewise."""


CONNECTION_LOST = frozenset({"py4j.protocol.Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"})
"""Exceptions of a script whose JVM has gone, among other things."""
COMPLETED = Outcome(Reason.COMPLETED, messages.FINISHED)


def outcome_of_behind(error: BehindError) -> Outcome:
    """Return the end of a driver that the storage knows otherwise: it says what the operator is to take over."""
    known = error.known
    return Outcome(
        error.fault.reason,
        error.fault.message,
        adopt=(known.epoch, known.lineage),
        adopt_opening=known.otherwise,
        adopt_found=known.found,
        adopted_from=known.adopted_from,
    )


def run_script(main: Main, arguments: Sequence[str]) -> Outcome:
    """Run the program to its end and return how it ended; its exceptions are printed, not raised."""
    stderr = StderrTail()
    stderr.install()
    try:
        _run_in_this_process(main, arguments)
    except (QueryRefusedError, ScriptRefusedError) as error:
        return outcome_of_refusal(error)
    except DriverStoppingError:
        return Outcome(Reason.STOPPED, messages.STOPPED_BEFORE_QUERIES)
    except SystemExit as error:
        return outcome_of_exit(error.code, stderr.last())
    except BaseException as error:  # every end of foreign code must lead to ours
        traceback.print_exc()
        outcome = outcome_of(faults.explain(error))
        place = place_of(error, main)
        if outcome.reason is not Reason.APPLICATION_FAILED or not place:
            return outcome
        return dataclasses.replace(outcome, message=f"{outcome.message} ({place})")
    return COMPLETED


def place_of(error: BaseException, main: Main) -> str:
    """Return where in the script an exception passed last, empty if it did not: its message alone seldom tells."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if main.path and frame.filename == main.path), None)
    return f"{last.filename}, line {last.lineno}" if last is not None else ""


def outcome_of_refusal(error: QueryRefusedError | ScriptRefusedError) -> Outcome:
    """Return the end of a script that was refused a query, or a way to Spark."""
    if isinstance(error, QueryRefusedError):
        return Outcome(error.reason, str(error), "QueryRefused")
    return Outcome(Reason.SCRIPT_UNSUPPORTED, str(error), "ScriptRefused")


def outcome_of(failure: faults.Failure) -> Outcome:
    """Return the end that ``failure`` means."""
    return Outcome(failure.reason, failure.message, failure.exception)


def judge(outcome: Outcome, fault: Fault | None) -> Outcome:
    """Return what ``outcome``, a store's fault met by script or query, means if ``fault`` is our storage's; pure."""
    if fault is not None:
        return dataclasses.replace(outcome, reason=fault.reason, message=f"{fault.message} ({outcome.message})")
    message = messages.another_place(outcome.message)
    return dataclasses.replace(outcome, reason=Reason.APPLICATION_FAILED, message=message)


def outcome_of_exit(code: object, said: str = "", function: str = "sys.exit") -> Outcome:
    """Return the end that ``sys.exit(code)`` means, by Python's rules: None and 0 are success, text is an error.

    Args:
        code: of the exit.
        said: what the script wrote last on standard error: why it exits, often (``argparse``).
        function: that the script called.
    """
    if code is None or code == 0:
        return COMPLETED
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
    return Outcome(Reason.APPLICATION_FAILED, messages.script_exited(function, code, said), "SystemExit")


def _run_in_this_process(main: Main, arguments: Sequence[str]) -> None:
    """Run the program; a child process that it forks ends where the program does, and is no second driver."""
    own = os.getpid()
    try:
        _run(main, arguments)
    except BaseException as error:
        if os.getpid() == own:
            raise
        code = error.code if isinstance(error, SystemExit) else 1
        if not isinstance(error, SystemExit):
            traceback.print_exc()
        _end_child(code if isinstance(code, int) else int(code is not None))
    if os.getpid() != own:
        _end_child(0)


def _end_child(code: int) -> None:
    flush_output()
    os._exit(code)


def _run(main: Main, arguments: Sequence[str]) -> None:
    sys.argv = [main.path or main.module, *arguments]
    if main.path:
        sys.path.insert(0, os.path.dirname(os.path.abspath(main.path)))
        runpy.run_path(main.path, run_name="__main__")
    else:
        runpy.run_module(main.module, run_name="__main__", alter_sys=True)
