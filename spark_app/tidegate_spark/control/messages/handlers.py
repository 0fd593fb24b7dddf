"""The handlers, types and settings that a program declares. Kept for the life of the process; no I/O.

The program declares them in the driver; :mod:`tidegate_spark.control.worker.worker` carries them to workers.
"""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidegate_spark.control.messages.validation import Schema, Vocabulary
from tidegate_spark.control_log.entries import Entry

FAIL, REPORT = "fail", "report"
"""What an exception of a handler does: end the task and so, if it goes on, the query; or only be reported."""

RAISED = (Exception, SystemExit)
"""What counts as an exception of a program's function for a message: one that is to end the process ends neither the
thread that answers the queries nor each attempt at a task."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Message:
    """A control message, as a program sees it."""

    type: str
    payload: Any
    """As JSON has it: dict, list, str, int, float, bool or None."""
    sequence: int
    """Its number in the application's log: a later message has a greater one."""
    id: str = ""
    time: float = 0.0
    """When it was logged, seconds since the epoch."""
    source: str = ""


def message_of(entry: Entry) -> Message:
    """Return an entry as a program sees it."""
    return Message(entry.type, json.loads(entry.payload), entry.sequence, entry.id, entry.time, entry.source)


@dataclass(frozen=True)
class Handler:
    """A function for messages of one type."""

    function: Callable[[Message], Any]
    raises: str = REPORT


@dataclass
class Declared:
    """All that was said."""

    on_worker: dict[str, Handler] = field(default_factory=dict)
    on_driver: dict[str, Handler] = field(default_factory=dict)
    types: dict[str, Schema | None] = field(default_factory=dict)
    config: dict[str, type] = field(default_factory=dict)
    any_type: bool = False
    version: int = 0
    """Grows with each handler for workers."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def vocabulary(self) -> Vocabulary:
        """Return what the application understands."""
        with self.lock:
            return Vocabulary(dict(self.types), self.any_type, dict(self.config))


_declared = Declared()


def declared() -> Declared:
    """Return what was said so far in this process."""
    return _declared


def on(kind: str, *, schema: Schema | None = None, raises: str = REPORT) -> Callable[[F], F]:
    """Have a function called in each Python worker for messages of a type.

    It is called with the :class:`Message` before the worker's first use of :func:`current` in a batch in which the
    message is in force; in a worker that starts later with the newest message of the type, or, where it raises, with
    those before until it does not. What it returns is kept there (``current().made(kind)``). A function of the main
    program is carried to the workers with copies of the globals that it uses; for globals that it shares with other
    functions put them into a module (``pyFiles``).

    Args:
        kind: the type, one's own or a built-in one (``clear-caches``).
        schema: names that a payload must have, and their types; other messages are rejected.
        raises: ``"report"``: an exception is reported in the acknowledgement; ``"fail"``: it ends the task, too.

    Raises:
        ValueError: the type has another function already. The same one, said again, takes its own place.
    """
    _check(kind, schema, raises)

    def declare(function: F) -> F:
        _check_function(function)
        with _declared.lock:
            _set(_declared.on_worker, kind, Handler(function, raises))
            _understand(kind, schema)
            _declared.version += 1
        return function

    return declare


def on_driver(kind: str, *, schema: Schema | None = None, raises: str = REPORT) -> Callable[[F], F]:
    """Have a function called in the driver, once for each message of a type, before the first batch with it.

    If the driver ends before that was noted it is called again. ``raises="fail"`` fails the query that plans the batch.
    It raises what :func:`on` does; a type may have a handler in each worker and one in the driver.
    """
    _check(kind, schema, raises)

    def declare(function: F) -> F:
        _check_function(function)
        with _declared.lock:
            _set(_declared.on_driver, kind, Handler(function, raises))
            _understand(kind, schema)
        return function

    return declare


def accept(kind: str, *, schema: Schema | None = None) -> None:
    """Say that messages of a type are understood without a handler: by ``current().last(kind)``."""
    _check(kind, schema)
    with _declared.lock:
        _understand(kind, schema)


def accept_any() -> None:
    """Say that messages of whatever type are understood."""
    _declared.any_type = True


def config(settings: Mapping[str, type] | None = None, **more: type) -> None:
    """Say of which types settings are; ``reload-config`` with another one is rejected as a whole."""
    said = {**(settings or {}), **more}
    _check_types(said, "settings")
    with _declared.lock:
        _declared.config.update(said)


def _set(handlers: dict[str, Handler], kind: str, handler: Handler) -> None:
    """Have a type handled, by one function: of two the first would never be called, and nobody would notice."""
    before = handlers.get(kind)
    if before is not None and not _is_same(before.function, handler.function):
        raise ValueError(
            f"messages of type {kind!r} have a handler already, {_name(before.function)}, and would not reach it any "
            f"more: call both from one function, or give {_name(handler.function)} another type"
        )
    handlers[kind] = handler


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two objects are one function, perhaps defined again: in a loop, a cell, or a module's reload."""
    place, name = _place(other), _name(other)
    if one is other or (place is not None and _place(one) == place):
        return True
    is_anonymous = name.rpartition(".")[2] in ("<lambda>", "_")
    return _name(one) == name and not is_anonymous


def _place(function: Any) -> tuple[str, Any] | None:
    """Return where a function is written, and what; a script that is imported, too, has it under two names."""
    code = getattr(_function_in(function), "__code__", None)
    return (code.co_filename, code) if code is not None else None


def _name(function: Any) -> str:
    found = _function_in(function)
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"{named.__module__}.{named.__qualname__}"


def _function_in(function: Any) -> Any:
    """Return what a decorator, or ``functools.partial``, was put around."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _understand(kind: str, schema: Schema | None) -> None:
    """Have messages of a type understood; a payload must have all that was said of it, for whichever handler."""
    before = _declared.types.get(kind)
    _declared.types[kind] = before if schema is None else {**(before or {}), **schema}


def _check_function(function: object) -> None:
    """Refuse what would be called and do nothing, while its message is reported as done."""
    of_call = getattr(function, "__call__", None)  # noqa: B004 - an object's own, to see whether it is async
    if any(map(inspect.iscoroutinefunction, (function, of_call))) or inspect.isasyncgenfunction(function):
        raise TypeError(f"a handler is called and not awaited: {function!r:.80} must not be async")
    if not callable(function):
        raise TypeError(f"a handler is a function that takes the message, not {function!r:.80}")


def _check(kind: object, schema: object, raises: str = REPORT) -> None:
    """Refuse what cannot be meant where it is said: a message that is judged by it later would only meet an error."""
    if not isinstance(kind, str):
        raise TypeError(f'a type of messages is a text, as in @control.on("lookup-table"), not {kind!r:.80}')
    if raises not in (FAIL, REPORT):
        raise ValueError(f"raises must be {FAIL!r} or {REPORT!r}, not {raises!r}")
    if schema is not None:
        _check_types(schema, "schema")


def _check_types(types: object, what: str) -> None:
    if not isinstance(types, Mapping):
        raise TypeError(f"{what}: names and their types, as in {{'uri': str}}, not {types!r:.80}")
    for name, kind in types.items():
        if not isinstance(name, str) or not _is_plain(kind):
            raise TypeError(
                f"{what}: {name!r:.80} must have a plain type, such as str, float or list, not {kind!r:.80}"
            )


def _is_plain(kind: Any) -> bool:
    try:
        isinstance(None, kind)  # list[str] and the like refuse to be asked
    except TypeError:
        return False
    return isinstance(kind, type)
