"""Keeps what libraries log of the runtime's own work out of the script's logging. Replaces a method of ``logging``.

The runtime shares its process with the script, and Py4J and botocore log whatever they do: with ``basicConfig(INFO)`` a
script would have a line of Py4J's for each event of our listener, with DEBUG hundreds that are none of its business.
What these libraries do for the script is logged as under ``spark-submit``.
"""

from __future__ import annotations

import functools
import logging
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import tidegate_spark

_OURS = str(Path(tidegate_spark.__file__).parent) + "/"
_CLIENTS = {"py4j", "botocore", "boto3", "s3transfer", "urllib3", "pika", "prometheus_client"}
_PYSPARK = "pyspark"
LIBRARIES = frozenset({*sys.stdlib_module_names, *_CLIENTS, _PYSPARK})
"""What runs for whoever has called it."""


_PACKAGE = f"{tidegate_spark.__name__}."
_THREADS = frozenset({"run", "wait_for_commands"})
"""Functions of Py4J that its own threads run."""


def keep_apart() -> None:
    """Have no logger but our own take a record below WARNING that comes of the runtime's work, from now on.

    Where a logger says whether it takes a record, no frame of ours is on the stack when the record is handled: handlers
    find there who has logged (loguru's recipe for ``logging``).
    """
    original = logging.Logger.isEnabledFor

    @functools.wraps(original)
    def is_enabled_for(logger: logging.Logger, level: int) -> bool:
        enabled = original(logger, level)
        return enabled and (level >= logging.WARNING or not is_own_work(sys._getframe(1)))

    logging.Logger.isEnabledFor = is_enabled_for  # type: ignore[assignment, method-assign] # all loggers of all libraries ask it


def is_own_work(frame: FrameType | None) -> bool:
    """Return whether a call is the runtime's: the nearest caller that is no library.

    What PySpark does for a function of ours that has taken the place of PySpark's is the script's work, if the script
    has called that.

    Args:
        frame: from which the callers are looked through.
    """
    for_pyspark = own = False
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        # By the file: the first module of our program is called __main__.
        if frame.f_code.co_filename.startswith(_OURS):
            if not for_pyspark:
                return True
            own = True
        elif package not in LIBRARIES:
            return False
        elif package == "py4j" and frame.f_code.co_name in _THREADS:
            return _serves_us(frame)
        for_pyspark = for_pyspark or package == _PYSPARK
        frame = frame.f_back
    return own


def _serves_us(frame: FrameType) -> bool:
    """Return whether one of Py4J's own threads works for the runtime; nothing else is on its stack.

    One that serves calls of the JVM works for the object that is called, in between for all that can be. The one that
    ends objects in the JVM knows nobody: most of them are ours, which ask each second.
    """
    called = frame.f_locals
    pool: Any = getattr(called.get("self"), "pool", None)
    if pool is None:
        return True
    name, objects = called.get("obj_id"), dict(pool.dict)
    concerned = [objects[name]] if name in objects else objects.values()
    return all(type(each).__module__.startswith(_PACKAGE) for each in concerned)
