"""What is of this process alone: not of a child that it forks, nor of one that gets something of it pickled.

Registers with ``atexit``; standard library only.
"""

from __future__ import annotations

import atexit
import functools
import os
import pkgutil
from collections.abc import Callable
from typing import Any


def at_exit_of_this_process(function: Callable[[], object]) -> None:
    """Have ``function`` called when this process ends, and not when a child that it forks ends as an interpreter."""
    own = os.getpid()

    def call() -> None:
        if os.getpid() == own:
            function()

    atexit.register(call)


class InPlaceOf:
    """A function in the place of a module's own, which it looks like, and as which it is pickled.

    A script may take it into its own names (``from os import _exit``) and have Spark, or a pool of processes, pickle a
    function that uses it. By value it would take along what belongs to this process, which cannot be pickled; whoever
    unpickles it has the function that the module has there. As those of modules in C, it does not become a method of
    a class that has it as an attribute.
    """

    def __init__(self, module: str, original: Callable[..., Any], function: Callable[..., Any]) -> None:
        """Call ``function`` where ``original``, which ``module`` has by its name, would be called."""
        functools.update_wrapper(self, original)
        self._function, self._place = function, f"{module}:{original.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Be found by module and name."""
        return pkgutil.resolve_name, (self._place,)
