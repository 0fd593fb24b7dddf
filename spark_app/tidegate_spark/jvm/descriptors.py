"""What a descriptor stands for: a script may close all that is open, and reuse the number. Asks the system."""

from __future__ import annotations

import os

Identity = tuple[int, int]


def identity(descriptor: int) -> Identity | None:
    """Return what a descriptor stands for, None if for nothing."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
