"""Shows exceptions of foreign code as plain Python does: from the script's own frames on. Writes to ``sys.stderr``."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import TracebackType

import tidegate_spark

_OURS = str(Path(tidegate_spark.__file__).parent) + "/"
_IMPORTS = "<frozen importlib"
"""Compiles the program, which the interpreter does without a frame."""


def forget_our_frames(error: BaseException) -> None:
    """Have an exception's traceback start where foreign code was called; those that it is chained to start there."""
    error.__traceback__ = _of_foreign_code(error.__traceback__)


def show(error: BaseException) -> None:
    """Write an exception to standard error."""
    forget_our_frames(error)
    traceback.print_exception(type(error), error, error.__traceback__)


def show_by_hook(error: BaseException) -> None:
    """Give an exception that left the script to ``sys.excepthook``, where scripts and libraries have it reported."""
    forget_our_frames(error)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as failure:  # foreign code; with the exception that it was given
        show(failure)


def _of_foreign_code(trace: TracebackType | None) -> TracebackType | None:
    ours = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        ours = ours or file.startswith(_OURS)
        if not file.startswith(_OURS) and not (ours and file.startswith(_IMPORTS)):
            break
        trace = trace.tb_next
    return trace
