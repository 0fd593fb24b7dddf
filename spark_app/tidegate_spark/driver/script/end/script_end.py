"""Ends a Python program as the interpreter would: threads, pools, children, ``atexit``.

Calls foreign code, and replaces functions of ``atexit``, ``os`` and PySpark. The driver's process goes on after the
script, so the interpreter's own end cannot be used. Source: ``Py_FinalizeEx``, ``threading._shutdown``,
``concurrent.futures.thread``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import thread as thread_pools
from typing import Any, NoReturn

from py4j.java_gateway import JavaClass
from pyspark import SparkContext
from pyspark.sql.utils import ForeachBatchFunction

from tidegate_spark.driver.script.end.remains import Remains
from tidegate_spark.driver.script.script_entry import ScriptRefusedError
from tidegate_spark.driver.script.tracebacks import show
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.faults import faults
from tidegate_spark.process.faults.foreign_text import first_line
from tidegate_spark.process.this_process import InPlaceOf
from tidegate_spark.queries.refusals import DriverStoppingError, QueryRefusedError

log = logging.getLogger("tidegate")

end_process = os._exit
"""The interpreter's own, for those who have left the termination message."""
OURS = "tidegate-"
"""Names of threads of our own that are not daemons begin so: nobody waits for them."""


def what_goes_on() -> list[str]:
    """Return the names of the threads that the interpreter would wait for now; those of pools with nothing to do end.

    Child processes are waited for by :meth:`ExitCalls.call`: they start no queries.
    """
    return [thread.name for thread in threading.enumerate() if _is_waited_for(thread)]


def waiting() -> Callable[[], bool]:
    """Return what says whether anything goes on for which the interpreter would wait; it logs each name once."""
    known: set[str] = set()

    def goes_on() -> bool:
        names = what_goes_on()
        if new := [name for name in names if name not in known]:
            known.update(new)
            log.info("the script has come to its last line, and goes on for its threads: %s", ", ".join(new))
        return bool(names)

    return goes_on


def flush_output() -> None:
    """Pass on what was printed; what a script put in the place of a stream need not have more than ``write``."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # foreign code
            stream.flush()  # type: ignore[union-attr] # None is suppressed, too


def guard_exits(end: Callable[..., NoReturn]) -> None:
    """Have an exit of the script's call ``end`` with code and function, or fail its batch's query."""
    guard_exit(end)
    guard_jvm_exit(functools.partial(end, function="System.exit"))
    guard_batches()


def guard_exit(end: Callable[[int], NoReturn]) -> None:
    """Have ``os._exit`` call ``end`` with the exit code, in this process; a child that it forks ends at once.

    A program ends so where its threads, or those of a library, would keep it from ending. The driver would be gone then
    inside a batch, with an exit code of the script's that means something else to the kubelet, and without a message.
    """
    own = os.getpid()

    def exit_at_once(status: int) -> NoReturn:
        if os.getpid() != own:
            end_process(status)
        end(status & 0xFF)

    os._exit = InPlaceOf("os", end_process, exit_at_once)


def guard_jvm_exit(end: Callable[[int], NoReturn]) -> None:
    """Have ``System.exit`` of the JVM, called from Python, call ``end`` with the exit code instead.

    The JVM would be gone inside a batch, as after a crash. What jars call is theirs.
    """
    own, original = os.getpid(), JavaClass.__getattr__

    @functools.wraps(original)
    def attribute(java_class: JavaClass, name: str) -> Any:
        if name == "exit" and java_class._fqn == "java.lang.System" and os.getpid() == own:
            return lambda status: end(status & 0xFF)
        return original(java_class, name)

    JavaClass.__getattr__ = attribute


class ExitInsideBatchError(Exception):
    """A batch's function has called ``sys.exit``."""


def guard_batches() -> None:
    """Have ``sys.exit`` inside a batch's function fail the query with a sentence.

    The query fails in any case: the exit ends Python's thread for the batch, and the JVM says that it got no answer.
    """
    own, original = os.getpid(), ForeachBatchFunction.call

    @functools.wraps(original)
    def call(function: ForeachBatchFunction, rows: Any, batch_id: int) -> None:
        try:
            original(function, rows, batch_id)
        except (QueryRefusedError, ScriptRefusedError, DriverStoppingError):
            raise  # the driver ends with it
        except SystemExit as error:
            if os.getpid() != own:
                raise
            why, handled = messages.ended_inside("sys.exit", error.code), faults.explain_exit(error)
            if handled is not None:
                why = f"{why} {messages.exited_for(handled.exception, first_line(handled.message))}"
            raise ExitInsideBatchError(why) from error

    ForeachBatchFunction.call = call  # type: ignore[assignment, method-assign] # what the JVM calls for each batch


def query_of_this_batch() -> str | None:
    """Return the id of the query whose batch waits for the function that this thread is in; None if none does.

    Empty: it is a batch of some query. Talks to the JVM.
    """
    frame = sys._getframe()
    while frame.f_code is not ForeachBatchFunction.call.__code__:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    context = SparkContext._active_spark_context
    with contextlib.suppress(Exception):  # whatever Py4J raises: the batch is waited for then
        # The function's thread has its batch's in the JVM, and the properties of that.
        return str(context.getLocalProperty("sql.streaming.queryId") or "") if context is not None else ""
    return ""


def end_child(code: int) -> NoReturn:
    """End a forked child as the interpreter would: its threads are waited for, and ``atexit`` is called."""
    _call("threading", "_shutdown")
    _call("atexit", "_run_exitfuncs")
    flush_output()
    end_process(code)


class ExitCalls:
    """What the script, and the libraries that it imports, register with ``atexit``; those of our own stay there."""

    def __init__(self) -> None:
        """Nothing is registered."""
        self._calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
        self._finalizers_of_others: frozenset[Any] = frozenset()
        self._logging_ends = True
        self._remains: Remains | None = None

    def install(self, places: Sequence[str] = ()) -> None:
        """Take the place of the functions of ``atexit`` from now on; ``places``: where the script's modules are.

        One of them is called by scripts that end by ``os._exit``, which would leave out what they registered.
        """
        register, unregister, run = atexit.register, atexit.unregister, atexit._run_exitfuncs
        self._finalizers_of_others = frozenset(_finalizers())
        self._remains = Remains(places)

        def register_here(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
            self._calls.append((function, args, kwargs))
            return function

        def unregister_here(function: Callable[..., Any], /) -> None:
            self._calls[:] = [call for call in self._calls if call[0] != function]
            unregister(function)

        def leave_to_interpreter() -> None:
            # A child has what its parent registered, and calls it if it ends as an interpreter does.
            atexit.register, atexit.unregister, atexit._run_exitfuncs = register, unregister, run
            for function, args, kwargs in self._calls:
                register(function, *args, **kwargs)
            self._calls.clear()
            for each in self._finalizers_of_others:
                each.atexit = False

        atexit.register = InPlaceOf("atexit", register, register_here)
        atexit.unregister = InPlaceOf("atexit", unregister, unregister_here)
        atexit._run_exitfuncs = InPlaceOf("atexit", run, self._call_registered)
        os.register_at_fork(after_in_child=leave_to_interpreter)

    def call(self) -> None:
        """Call them, the last one first, each once; what they raise is printed, as the interpreter does.

        Before that, pools of processes are ended. After it, objects with a finalizer (``weakref.finalize``) are ended,
        child processes waited for, and handlers of ``logging``, which may hold records back, flushed and closed: their
        modules have registered that before our time.
        """
        _call("concurrent.futures.process", "_python_exit")
        self._call_registered()
        while left := [each for each in _finalizers() if each not in self._finalizers_of_others]:
            _call_guarded(left[-1])
        # Twice does no harm.
        _call("multiprocessing.util", "_exit_function")
        if self._logging_ends:
            self._logging_ends = False
            _call("logging", "shutdown")

    def end_remains(self) -> None:
        """End what the script has left in its modules; to be called in the main thread, after :meth:`call`."""
        if self._remains is not None:
            self._remains.end()

    def _call_registered(self) -> None:
        while self._calls:
            function, args, kwargs = self._calls.pop()
            _call_guarded(lambda: function(*args, **kwargs))  # noqa: B023 - called before the next turn


def _finalizers() -> list[Any]:
    """Return the finalizers that the interpreter would call, the oldest first."""
    return [each for each in list(getattr(weakref.finalize, "_registry", ())) if each.atexit]


def _is_waited_for(thread: threading.Thread) -> bool:
    ours = thread is threading.main_thread() or thread.name.startswith(OURS)
    return not thread.daemon and not ours and not _waits_for_work(thread)


def _waits_for_work(thread: threading.Thread) -> bool:
    """Say whether this is a pool's thread that has nothing to do."""
    if (unfinished := getattr(thread, "pending_work_items", None)) is not None:
        return not unfinished  # looks after a pool of processes
    # The pool's own function is the innermost on its stack.
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_code is not thread_pools._worker.__code__:
        return False
    # It is on the stack between two pieces of work, too.
    queue: Any = getattr(thread_pools, "_threads_queues", {}).get(thread)
    return queue is None or bool(queue.empty())


def _call(module: str, name: str) -> None:
    """Call a module's own end, if anybody has imported it."""
    function = getattr(sys.modules.get(module), name, None)
    if function is not None:
        _call_guarded(function)


def _call_guarded(function: Callable[[], object]) -> None:
    try:
        function()
    except BaseException as error:  # foreign code: neither an error nor an exit keeps the others from being called
        show(error)
