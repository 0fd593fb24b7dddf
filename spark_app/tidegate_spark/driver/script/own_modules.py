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
from collections.abc import Mapping, Sequence
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
        self._before = loaded_packages()
        self._undecided = {
            name: origin
            for name, module in list(sys.modules.items())
            if "." not in name and name not in _NEVER | _OF_THE_INTERPRETER and (origin := _file_of(module))
        }
        self._runtimes: dict[str, dict[str, ModuleType]] = {}
        """The runtime's modules that the script has others for, by their top-level name and their name."""
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._lock_of_child)

    def _lock_of_child(self) -> None:
        self._lock = threading.RLock()

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
                    if self._has_own(top, importer):
                        package = _package_of(importer)
                        whole = importlib.util.resolve_name("." * level + name, package) if level else name
                        return self._loaded(top, whole, fromlist)
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
                    if self._has_own(top, importer):
                        return self._load(importlib.util.resolve_name(name, package))
                return by_name(name, package)
            except BaseException as error:
                _leave_out_our_frames(error)
                raise

        builtins.__import__, importlib.import_module = import_here, import_module
        _replace_taken(by_name, import_module)

    def _has_own(self, top: str, importer: Mapping[str, Any]) -> bool:
        """Return whether one who has this namespace has another module of the name than ``sys.modules`` has."""
        if self._is_runtimes(importer):
            return top in self._runtimes
        if top in self._undecided:
            with self._lock:
                self._decide(top)
        return False

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
            compiled = any(_file_of(each).endswith(tuple(EXTENSION_SUFFIXES)) for each in modules.values())
            if compiled and not _is_one_file_of_python(own):
                # Most of these cannot be loaded twice in one process.
                log.warning(messages.module_kept(top, own, its))
            else:
                log.info(messages.own_module(top, own, its))
                self._runtimes[top] = modules
                for name in modules:
                    del sys.modules[name]
        del self._undecided[top]

    def _load(self, name: str) -> ModuleType:
        """Load a further part of the runtime's own; ``sys.modules`` has the script's, and stays as it is."""
        known = self._runtimes[name.partition(".")[0]]
        if name in known:
            return known[name]
        parent, _, child = name.rpartition(".")
        package = self._load(parent)
        # As of any other import, which sees a deadlock of two threads whose modules import each other.
        with importlib._bootstrap._ModuleLockManager(f"{name} of the runtime"):  # type: ignore[attr-defined]
            if name in known:
                return known[name]
            spec = PathFinder.find_spec(name, getattr(package, "__path__", []))
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            module = known[name] = importlib.util.module_from_spec(spec)
            try:
                if spec.loader is not None:
                    spec.loader.exec_module(module)
            except BaseException:
                known.pop(name, None)
                raise
            setattr(package, child, module)
        return module

    def _loaded(self, top: str, name: str, attributes: Sequence[str] | None) -> ModuleType:
        """Return what an import statement of the runtime's is given for ``name``; what is missing of it is loaded."""
        module = self._load(name)
        for each in attributes or ():
            if each != "*" and not hasattr(module, each):
                with contextlib.suppress(ModuleNotFoundError):
                    self._load(f"{name}.{each}")
        return module if attributes else self._runtimes[top][top]


def loaded_packages() -> frozenset[str]:
    """Return the top-level names of what is loaded, but for the program."""
    return frozenset(name.partition(".")[0] for name in list(sys.modules)) - {"__main__"}


def _replace_taken(function: object, other: object) -> None:
    """Replace a function also where a module has it by a name of its own (``from importlib import import_module``)."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for each in [each for each, value in list(names.items()) if value is function]:
            names[each] = other


def _leave_out_our_frames(error: BaseException) -> None:
    """Have a traceback lead from who imports to what is imported: a bare ``raise`` adds no frame again."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace


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


def _file_of(module: ModuleType) -> str:
    """Return where a module was loaded from; empty if that is no file."""
    spec = getattr(module, "__spec__", None)
    return os.path.realpath(spec.origin) if spec is not None and spec.has_location and spec.origin else ""


def _is_one_file_of_python(file: str) -> bool:
    """Return whether a module is no package, and no code in C: it has nothing of a library that it is named like."""
    return file.endswith(".py") and os.path.basename(file) != "__init__.py"


def _file_on_path(name: str) -> str | None:
    """Return where the path leads for a name now; None if nowhere, or to a folder of data that has it."""
    try:
        spec = PathFinder.find_spec(name)
    except Exception:  # an entry's finder is foreign code
        return None
    return os.path.realpath(spec.origin) if spec is not None and spec.has_location and spec.origin else None
