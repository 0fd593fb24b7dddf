"""Whether the script has asked for the export that it is to begin with. Kept for the life of the process."""

from __future__ import annotations

import threading

_asked = threading.Event()


def note() -> None:
    """Remember that it has."""
    _asked.set()


def has_asked() -> bool:
    """Return whether it has."""
    return _asked.is_set()
