"""Reads state, windows and offsets of a running application. Nothing is stopped or written.

Functions for scripts and notebooks are loaded on use. The agent answers the same over HTTP, and ``python3 -m
tidegate_spark.inside`` asks it. :mod:`tidegate_spark.inspect` does the work.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate_spark.inspect.checkpoints import operators, sources, state, windows
    from tidegate_spark.inspect.errors import InspectionError

__all__ = ("InspectionError", "operators", "sources", "state", "windows")


_FORMER = {"LookError": "InspectionError"}
"""Former names of what is here: a notebook that catches one of them goes on."""


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "tidegate_spark.inspect.errors" if name == "InspectionError" else "tidegate_spark.inspect.checkpoints"
    return getattr(importlib.import_module(home), name)
