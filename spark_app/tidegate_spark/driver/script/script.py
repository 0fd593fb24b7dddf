"""Runs the user's program in this process, as ``python program arguments`` would. Runs foreign code."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib.util
import os
import sys
import traceback
import zipfile
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.preflight import Main, folders_of
from tidegate_spark.driver.script import tracebacks
from tidegate_spark.driver.script.end.main_thread import guard_main_thread
from tidegate_spark.driver.script.end.script_end import end_child
from tidegate_spark.driver.script.own_modules import OwnModules
from tidegate_spark.driver.script.script_entry import ScriptRefusedError
from tidegate_spark.driver.script.stderr_tail import StderrTail
from tidegate_spark.monitoring.watch import COMPLETED
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.faults import faults
from tidegate_spark.process.faults.foreign_text import first_line
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.queries.refusals import DriverStoppingError, NotContinuedError, QueryRefusedError
from tidegate_spark.storage.claim.claiming import BehindError

CONNECTION_LOST = frozenset({"py4j.protocol.Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"})
"""Exceptions of a script whose JVM has gone, among other things."""


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
    end_main_thread = guard_main_thread()
    OwnModules().install()
    try:
        _run_in_this_process(main, arguments)
    except (QueryRefusedError, ScriptRefusedError) as error:
        return outcome_of_refusal(error)
    except DriverStoppingError:
        return Outcome(Reason.STOPPED, messages.STOPPED_BEFORE_QUERIES)
    except SystemExit as error:
        return outcome_of_exit(error.code, stderr.last(), handled=faults.explain_exit(error))
    except BaseException as error:  # every end of foreign code must lead to ours
        tracebacks.show_by_hook(error)
        outcome = outcome_of(faults.explain(error))
        place = place_of(error, main)
        if outcome.reason is not Reason.APPLICATION_FAILED or not place:
            return outcome
        return dataclasses.replace(outcome, message=f"{outcome.message} ({place})".strip())
    finally:
        end_main_thread()
    return COMPLETED


def place_of(error: BaseException, main: Main) -> str:
    """Return where in the script an exception passed last, empty if it did not: its message alone seldom says it."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if main.path and frame.filename == main.path), None)
    return f"{last.filename}, line {last.lineno}" if last is not None else ""


def outcome_of_refusal(error: QueryRefusedError | ScriptRefusedError) -> Outcome:
    """Return the end of a script that was refused a query, or a way to Spark."""
    if isinstance(error, NotContinuedError):
        return error.outcome
    if isinstance(error, QueryRefusedError):
        return Outcome(error.reason, str(error), "QueryRefused")
    return Outcome(Reason.SCRIPT_UNSUPPORTED, str(error), "ScriptRefused")


def outcome_of(failure: faults.Failure) -> Outcome:
    """Return the end that ``failure`` means."""
    return Outcome(failure.reason, failure.message, failure.exception, failure.own_storage)


def judge(outcome: Outcome, fault: Fault | None) -> Outcome:
    """Return what ``outcome``, a store's fault met by script or query, means; ``fault``: of our storage, now. Pure."""
    if fault is not None:
        return dataclasses.replace(outcome, reason=fault.reason, message=f"{fault.message} ({outcome.message})")
    if outcome.own_storage:
        return dataclasses.replace(outcome, message=messages.answers_again(outcome.message))
    message = messages.another_place(outcome.message)
    return dataclasses.replace(outcome, reason=Reason.APPLICATION_FAILED, message=message)


def outcome_of_exit(
    code: object, said: str = "", function: str = "sys.exit", handled: faults.Failure | None = None
) -> Outcome:
    """Return the end that ``sys.exit(code)`` means, by Python's rules: None and 0 are success, text is an error.

    Args:
        code: of the exit.
        said: what the script wrote last on standard error: why it exits, often (``argparse``).
        function: that the script called.
        handled: the failure that the script handled when it called it.
    """
    if code is None or (isinstance(code, int) and code == 0):
        return COMPLETED
    if not isinstance(code, int):
        with contextlib.suppress(Exception):  # foreign code; the script may have closed the stream
            sys.stderr.write(f"{code}\n")
    message = messages.script_exited(function, code, said)
    if handled is None:
        return Outcome(Reason.APPLICATION_FAILED, message, "SystemExit")
    if handled.reason is not Reason.APPLICATION_FAILED:
        return Outcome(handled.reason, f"{handled.message} {message}", handled.exception, handled.own_storage)
    what = first_line(handled.message)
    if not any((what or handled.exception) in text for text in (said, code) if isinstance(text, str)):
        message = f"{message} {messages.exited_for(handled.exception, what)}"
    # Whether the JVM has gone is looked at by this name.
    exception = handled.exception if handled.exception in CONNECTION_LOST else "SystemExit"
    return Outcome(Reason.APPLICATION_FAILED, message, exception)


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
            tracebacks.show(error)
        if code is not None and not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
        end_child(code if isinstance(code, int) else int(code is not None))
    if os.getpid() != own:
        end_child(0)


def _run(main: Main, arguments: Sequence[str]) -> None:
    sys.argv = [main.path or main.module, *arguments]
    if not main.path:
        spec = _spec_of_module(main.module)
        sys.argv[0] = (spec.origin if spec is not None else None) or main.module
        _run_as_main(*_code_of(spec, messages.module_not_run(main.module)))
        return
    sys.path[:0] = folders_of(main.path)
    if zipfile.is_zipfile(main.path):
        sys.path.insert(0, main.path)
        spec = PathFinder.find_spec("__main__", [main.path])
        _run_as_main(*_code_of(spec, messages.archive_not_run(main.path)))
        return
    loader = SourceFileLoader("__main__", main.path)
    code = loader.source_to_code(loader.get_data(main.path), main.path)
    _run_as_main(code, {"__file__": main.path, "__loader__": loader, "__package__": None, "__cached__": None})


def _run_as_main(code: CodeType, attributes: Mapping[str, object]) -> None:
    """Run a program as the module ``__main__``, which it stays.

    ``runpy`` puts ours back after the last line, while the program's threads and functions of its queries go on:
    ``pickle``, and with it pools of processes, would not find the program's own functions and classes any more.
    """
    module = ModuleType("__main__")
    module.__dict__.update({"__builtins__": builtins, **attributes})
    # By the second name, what a worker of ``multiprocessing`` returns is looked for, unless that was forked.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    exec(code, module.__dict__)  # noqa: S102 - the program that was to be run


def _spec_of_module(name: str) -> ModuleSpec | None:
    """Return what ``python -m name`` runs."""
    spec = importlib.util.find_spec(name)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return importlib.util.find_spec(f"{name}.__main__") if is_package else spec


def _code_of(spec: ModuleSpec | None, otherwise: str) -> tuple[CodeType, Mapping[str, object]]:
    """Return what is run of a module, and the attributes of ``__main__``.

    Args:
        spec: of the module, None if there is none.
        otherwise: what to say if it cannot be run.

    Raises:
        ImportError: it cannot be run.
    """
    loader: Any = spec.loader if spec is not None else None
    # By its name, which not every loader has: that of archives is of no class that says so.
    code = loader.get_code(spec.name) if spec is not None and hasattr(loader, "get_code") else None
    if spec is None or code is None:
        raise ImportError(otherwise)
    attributes = {"__file__": spec.origin, "__cached__": spec.cached, "__loader__": loader, "__package__": spec.parent}
    return code, {**attributes, "__spec__": spec}
