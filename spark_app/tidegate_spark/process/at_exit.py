"""Registers with ``atexit`` what only this process is to do. Standard library only."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable


def at_exit_of_this_process(function: Callable[[], object]) -> None:
    """Have ``function`` called when this process ends, and not when a child that it forks ends as an interpreter."""
    own = os.getpid()

    def call() -> None:
        if os.getpid() == own:
            function()

    atexit.register(call)
