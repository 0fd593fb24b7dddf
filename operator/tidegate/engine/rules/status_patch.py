"""The smallest merge patch between two statuses. No I/O."""

from __future__ import annotations

from typing import Any


def merge_difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that turns ``old`` into ``new``; empty if they are equal.

    A field that is gone must be named with null: leaving it out would leave it in.
    """
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_difference(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
