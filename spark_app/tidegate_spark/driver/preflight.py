"""Checks launch and image before a JVM starts: protocol, program, files. Does I/O.

:mod:`tidegate_spark.storage.readiness` checks the storage.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import pkgutil
from dataclasses import dataclass
from pathlib import Path

from tidegate_spark.contract.protocol import PROTOCOL, DriverConfig, Fault, works_with
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process import start_messages as messages
from tidegate_spark.storage.s3_client import FaultError


@dataclass(frozen=True)
class Main:
    """The user's program: exactly one of ``path`` and ``module`` is set."""

    path: str = ""
    module: str = ""


def local_path(reference: str) -> str | None:
    """Return the path of a ``local:///`` or ``file:///`` reference or an absolute path, None for anything else."""
    for scheme in ("local://", "file://"):
        if reference.startswith(scheme):
            return reference.removeprefix(scheme)
    return reference if reference.startswith("/") else None


def folders_of(path: str) -> list[str]:
    """Return where a program imports from what is beside it: behind its links first, as Python does.

    Then where the link is: what a volume's links lead to has another name after each of its updates.
    """
    folders = (os.path.dirname(os.path.realpath(path)), os.path.dirname(os.path.abspath(path)))
    return list(dict.fromkeys(folders))


def find_main(reference: str) -> Main:
    """Return where the user's program is.

    Raises:
        FaultError: MAIN_NOT_FOUND, with the nearest names that exist.
    """
    path = local_path(reference)
    if path is not None:
        if Path(path).is_file():
            return Main(path=path)
        raise FaultError(Fault(Reason.MAIN_NOT_FOUND, _missing_file("spec.application.main", path)))
    try:
        found = importlib.util.find_spec(reference) is not None
    except (ImportError, ValueError, AttributeError):
        found = False
    if found:
        return Main(module=reference)
    message = f"spec.application.main: no module {reference!r} in the image or in spec.application.pyFiles"
    raise FaultError(Fault(Reason.MAIN_NOT_FOUND, message + _suggest(reference, _module_names(reference)) + "."))


def find_files(references: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of ``pyFiles``.

    Raises:
        FaultError: MAIN_NOT_FOUND, naming the first entry that is not in the image.
    """
    paths = []
    for index, reference in enumerate(references):
        field = f"spec.application.pyFiles[{index}]"
        path = local_path(reference)
        if path is None:
            message = messages.not_local(field, reference)
            raise FaultError(Fault(Reason.MAIN_NOT_FOUND, message))
        if not Path(path).exists():
            raise FaultError(Fault(Reason.MAIN_NOT_FOUND, _missing_file(field, path)))
        paths.append(path)
    return tuple(paths)


def _missing_file(field: str, path: str) -> str:
    parent = Path(path).parent
    if not parent.is_dir():
        return messages.no_directory(field, parent, path)
    names = sorted(entry.name for entry in parent.iterdir() if entry.is_file())
    return f"{field}: the image has no file {path}" + _suggest(Path(path).name, names, f" in {parent}") + "."


def _suggest(wanted: str, names: list[str], where: str = "") -> str:
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    return f"; nearest{where}: {', '.join(near)}" if near else ""


def _module_names(reference: str) -> list[str]:
    package, _, _ = reference.rpartition(".")
    if not package:
        return [module.name for module in pkgutil.iter_modules()]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        spec = None
    places = list(spec.submodule_search_locations or []) if spec else []
    return [f"{package}.{module.name}" for module in pkgutil.iter_modules(places)]


def refuse_other_protocol(config: DriverConfig) -> None:
    """Start nothing for an operator that is too far from this runtime: what it asks for may be left out unseen.

    Raises:
        FaultError: PROTOCOL_MISMATCH; says which of the two is too old.
    """
    if works_with(config.protocol):
        return
    its = config.protocol
    message = messages.runtime_too_old(PROTOCOL, its) if its > PROTOCOL else messages.operator_too_old(its, PROTOCOL)
    raise FaultError(Fault(Reason.PROTOCOL_MISMATCH, message))
