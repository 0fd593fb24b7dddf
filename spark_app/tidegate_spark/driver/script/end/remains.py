"""Ends what a script has left in its modules, as the interpreter's finalization would. Runs foreign code.

A file that nobody closed is written when its object is deleted, and ``__del__`` is called then; the driver's process
ends without either. Source: ``finalize_modules``, ``_PyModule_ClearDict``.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import stat
import sys
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tidegate_spark.driver.script.own_modules import loaded_packages
from tidegate_spark.process import signals

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_KEPT = (ModuleType, type, FunctionType, BuiltinFunctionType)
"""What objects may need when they are ended; none of these has anything to write."""
_OPEN = io.IOBase.__bases__[0]
"""What all files are, in C or in Python; asking an object for its class would call a proxy's own code."""
_BUILTINS = "__builtins__"
_MARK = "__left_by_script__"


class _Mark:
    """Says whether a namespace is still held by somebody, without holding it."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        """Put it into the namespace: it is deleted with it, and not before."""
        self.namespace = namespace
        namespace[_MARK] = self


class Remains:
    """What a script leaves; made before it runs."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        """``places``: folders and files that the script's own modules are in."""
        self._places = [PurePath(os.path.realpath(place)) for place in places]
        self._main = sys.modules.get("__main__")
        self._before = loaded_packages()

    def end(self) -> None:
        """End all of it; to be called in the main thread, once nothing of the script runs that anybody waits for."""
        # First, because a collection may close what is below a file before the file, which then cannot be written.
        _flush_files()
        # They hold the namespace that their functions are in; the interpreter forgets them, too.
        signals.forget_script_handlers()
        # A function that Spark would call for the next batch holds one, for example. The interpreter would leave its
        # objects as they are, and rows would be lost that are in a batch which is committed.
        held = [namespace for namespace in self._still_held() if not _runs_in(namespace)]
        for namespace in held:
            _end_objects(namespace)
        if held:
            gc.collect()
        _flush_files()

    def _still_held(self) -> list[dict[str, Any]]:
        """Take the script's modules away, and return the namespaces that outlive that.

        What only a module holds ends in this call, with everything in its place that its ``__del__`` may use.
        """
        names = self._names()
        marks = [weakref.ref(_Mark(sys.modules.pop(name).__dict__)) for name in names]
        # As the interpreter does: a thread that imports one now would run it once more, and empty its files.
        sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type] # None keeps a name from being imported
        if self._main is not None:
            sys.modules["__main__"] = self._main
        gc.collect()
        return [mark.namespace for mark in (each() for each in marks) if mark is not None]

    def _names(self) -> list[str]:
        """Return the names of the script's own modules, the last one that was imported first."""
        main = sys.modules.get("__main__")
        package = str(getattr(main, "__package__", None) or "").partition(".")[0]
        loaded = reversed(list(sys.modules.items()))
        names = [name for name, module in loaded if self._is_own(name, module, package)]
        if main is not self._main:
            names.insert(0, "__main__")
        return names

    def _is_own(self, name: str, module: ModuleType, package: str) -> bool:
        if type(module) is not ModuleType or name == "__main__":
            return False  # asking what a script has put there for anything would call foreign code
        file = vars(module).get("__file__")
        if not isinstance(file, str):
            return False
        path, top = PurePath(os.path.realpath(file)), name.partition(".")[0]
        if top in self._before:  # libraries may be in a folder beside the script, and in use by the runtime
            return False
        if top == package:
            return True
        return _INSTALLED.isdisjoint(path.parts) and any(path.is_relative_to(place) for place in self._places)


def _runs_in(namespace: dict[str, Any]) -> bool:
    """Return whether another thread is in a function of this namespace: the interpreter would leave it as it is."""
    own = threading.get_ident()
    return any(
        each.f_globals is namespace
        for ident, frame in sys._current_frames().items()
        if ident != own
        for each in _stack(frame)
    )


def _stack(frame: Any) -> Iterable[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _end_objects(namespace: dict[str, Any]) -> None:
    """Take objects out of a namespace, those with a private name first; what they may use stays."""
    names = [name for name in namespace if isinstance(name, str) and name != _BUILTINS]
    for name in sorted(names, key=lambda each: not (each.startswith("_") and not each.startswith("__"))):
        # What the garbage collector does not know, such as a text, refers to nothing.
        if gc.is_tracked(namespace.get(name)) and not isinstance(namespace.get(name), _KEPT):
            namespace[name] = None


def _flush_files() -> None:
    """Write what open files hold back; whoever still holds one may go on with it."""
    for each in gc.get_objects():
        if _OPEN not in type(each).__mro__:
            continue
        with contextlib.suppress(Exception):  # foreign code; a file that is closed, or has no descriptor
            # A pipe or a connection may take nothing for as long as it likes.
            if not each.closed and each.writable() and stat.S_ISREG(os.fstat(each.fileno()).st_mode):
                each.flush()
