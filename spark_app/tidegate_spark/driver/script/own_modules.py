"""Has a script import its own modules although the runtime has loaded others of the same name. Changes imports.

Under ``spark-submit`` the script's folder comes first: its ``secrets.py``, or the library of its own version, is what
it imports. Here the runtime runs in the same process, and has imported ``secrets`` and libraries before the script. So
what a name stands for is decided as the script first imports it. From then on the script, and what it imports, have
their module; the runtime, and what it imported beforehand, keep theirs.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from types import ModuleType
from typing import Any

from tidegate_spark.process import start_messages as messages

log = logging.getLogger("tidegate")

_NEVER = frozenset({"tidegate_spark", "pyspark", "py4j", "__main__", "__mp_main__"})
"""The runtime has changed these, for the script."""
_OF_THE_INTERPRETER = frozenset(
    {"abc", "codecs", "encodings", "genericpath", "io", "os", "posixpath", "site", "sitecustomize", "stat"}
    | {"usercustomize", "zipimport", "_collections_abc", "_sitebuiltins"}
)
"""What Python itself imports, before any script; so its own are there under ``spark-submit``, too."""


class OwnModules:
    """What the names of modules stand for, for the script and for the runtime; made when the runtime is loaded."""

    def __init__(self) -> None:
        """Take note of what is loaded."""
        self._before = frozenset(name.partition(".")[0] for name in sys.modules) - {"__main__"}
        self._undecided = {
            name: origin
            for name, module in list(sys.modules.items())
            if "." not in name and name not in _NEVER | _OF_THE_INTERPRETER and (origin := _file_of(module))
        }
        self._runtimes: dict[str, dict[str, ModuleType]] = {}
        """The runtime's modules that the script has others for, by their top-level name and their name."""
        self._lock = threading.RLock()
        self._in_place_for: int | None = None
        """The thread that has the runtime's modules in the place of the script's for the moment."""

    def install(self) -> None:
        """Decide all imports from now on."""
        by_statement, by_name = builtins.__import__, importlib.import_module

        @functools.wraps(by_statement)
        def import_here(
            name: str,
            globals: Any = None,  # noqa: A002 - by these names, as Python's own
            locals: Any = None,  # noqa: A002
            fromlist: Any = (),
            level: int = 0,
        ) -> ModuleType:
            try:
                top = name.partition(".")[0] if level == 0 else _package_of(globals).partition(".")[0]
                if top in self._runtimes or top in self._undecided:
                    importer = sys._getframe(1).f_globals if globals is None else globals
                    whole = importlib.util.resolve_name("." * level + name, _package_of(importer)) if level else name

                    def run() -> ModuleType:
                        return by_statement(name, globals, locals, fromlist, level)

                    return self._import(top, importer, run, lambda known: _loaded(known, top, whole, fromlist))
                return by_statement(name, globals, locals, fromlist, level)
            except BaseException as error:
                _leave_out_our_frames(error)
                raise

        @functools.wraps(by_name)
        def import_module(name: str, package: str | None = None) -> ModuleType:
            try:
                top = (package or "" if name.startswith(".") else name).partition(".")[0]
                if top in self._runtimes or top in self._undecided:
                    importer = sys._getframe(1).f_globals
                    return self._import(top, importer, lambda: by_name(name, package), lambda known: known.get(name))
                return by_name(name, package)
            except BaseException as error:
                _leave_out_our_frames(error)
                raise

        builtins.__import__, importlib.import_module = import_here, import_module

    def _import(
        self,
        top: str,
        importer: Mapping[str, Any],
        run: Callable[[], ModuleType],
        find: Callable[[Mapping[str, ModuleType]], ModuleType | None],
    ) -> ModuleType:
        """Import for one who has this namespace; ``run`` does it, ``find`` has it of the runtime's loaded modules."""
        if self._in_place_for == threading.get_ident():
            return run()
        if not self._is_runtimes(importer):
            with self._lock:  # nothing is in another one's place then
                self._decide(top)
            return run()
        known = self._runtimes.get(top)
        if known is None:
            return run()
        found = find(known)
        if found is not None:
            return found
        with self._lock, self._runtimes_in_place(top, known):
            return run()

    def _is_runtimes(self, importer: Mapping[str, Any]) -> bool:
        """Return whether a namespace is of the runtime or of what it has imported."""
        name = importer.get("__name__")
        top = name.partition(".")[0] if isinstance(name, str) else ""
        if top in self._runtimes:
            return getattr(self._runtimes[top].get(str(name)), "__dict__", None) is importer
        return top in self._before

    def _decide(self, top: str) -> None:
        """Take the runtime's module away if the script's path leads to another one."""
        its = self._undecided.get(top)
        if its is None:
            return
        own = _file_on_path(top)
        if own is not None and own != its:
            modules = _modules_of(top)
            if any(_file_of(each).endswith(tuple(EXTENSION_SUFFIXES)) for each in modules.values()):
                # Most of these cannot be loaded twice in one process.
                log.warning(messages.module_kept(top, own, its))
            else:
                log.info(messages.own_module(top, own, its))
                self._runtimes[top] = modules
                for name in modules:
                    del sys.modules[name]
        del self._undecided[top]

    @contextlib.contextmanager
    def _runtimes_in_place(self, top: str, known: dict[str, ModuleType]) -> Iterator[None]:
        """Have the runtime's modules in the place of the script's: it loads another part of its own."""
        of_script = _modules_of(top)
        _replace(of_script, known)
        self._in_place_for = threading.get_ident()
        try:
            yield
        finally:
            self._in_place_for = None
            known.update(_modules_of(top))
            _replace(known, of_script)


def _leave_out_our_frames(error: BaseException) -> None:
    """Have a traceback lead from who imports to what is imported: a bare ``raise`` adds no frame again."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace


def _replace(modules: Mapping[str, ModuleType], others: Mapping[str, ModuleType]) -> None:
    for name in modules:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def _modules_of(top: str) -> dict[str, ModuleType]:
    loaded = list(sys.modules.items())
    return {name: module for name, module in loaded if name == top or name.startswith(f"{top}.")}


def _package_of(namespace: Mapping[str, Any] | None) -> str:
    """Return the package that a namespace's relative imports start from."""
    named = namespace or {}
    package = named.get("__package__")
    if isinstance(package, str):
        return package
    name = str(named.get("__name__") or "")
    return name if "__path__" in named else name.rpartition(".")[0]


def _loaded(
    known: Mapping[str, ModuleType], top: str, name: str, attributes: Sequence[str] | None
) -> ModuleType | None:
    """Return what an import statement is given for ``name``, None if something of it is not loaded."""
    module = known.get(name)
    if module is None or not attributes:
        return known.get(top) if module is not None else None
    return module if all(each == "*" or hasattr(module, each) for each in attributes) else None


def _file_of(module: ModuleType) -> str:
    """Return where a module was loaded from; empty if that is no file."""
    spec = getattr(module, "__spec__", None)
    return os.path.realpath(spec.origin) if spec is not None and spec.has_location and spec.origin else ""


def _file_on_path(name: str) -> str | None:
    """Return where the path leads for a name now; None if nowhere, or to a folder of data that has it."""
    try:
        spec = PathFinder.find_spec(name)
    except Exception:  # an entry's finder is foreign code
        return None
    return os.path.realpath(spec.origin) if spec is not None and spec.has_location and spec.origin else None
