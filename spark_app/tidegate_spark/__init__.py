"""The part of Tidegate that runs inside a Spark driver and its executors.

Importing this package does nothing: a script that does not ask for Tidegate does not pay for it. What scripts may ask
for is loaded when they do.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate_spark.exports.errors import ExportError
    from tidegate_spark.exports.start_from_export import exported_state, initial_state, starting_offsets
    from tidegate_spark.exports.use import without_offsets, without_state

__all__ = ("ExportError", "exported_state", "initial_state", "starting_offsets", "without_offsets", "without_state")

_HOMES = {
    "ExportError": "tidegate_spark.exports.errors",
    "exported_state": "tidegate_spark.exports.start_from_export",
    "initial_state": "tidegate_spark.exports.start_from_export",
    "starting_offsets": "tidegate_spark.exports.start_from_export",
    "without_offsets": "tidegate_spark.exports.use",
    "without_state": "tidegate_spark.exports.use",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
