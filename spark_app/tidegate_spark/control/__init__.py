"""The control stream: messages to a running application, in its own storage, and what a program makes of them.

Importing this package does nothing: a program that does not ask for it does not pay for it. What programs may ask for
is loaded when they do::

    from tidegate_spark import control

    rows = control.controlled(spark.readStream.format("kafka")…)          # in the driver, once for each query

    limit = control.current().get("limit", 3.0, float)                    # in any function of that query
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate_spark.control.handlers import Message, accept, config, on, on_driver
    from tidegate_spark.control.in_force import Current
    from tidegate_spark.control.line import ControlError
    from tidegate_spark.control.program import controlled, stream
    from tidegate_spark.control.worker import current

__all__ = (
    "ControlError",
    "Current",
    "Message",
    "accept",
    "config",
    "controlled",
    "current",
    "on",
    "on_driver",
    "stream",
)

_HOMES = {
    "ControlError": "tidegate_spark.control.line",
    "Current": "tidegate_spark.control.in_force",
    "Message": "tidegate_spark.control.handlers",
    "accept": "tidegate_spark.control.handlers",
    "config": "tidegate_spark.control.handlers",
    "controlled": "tidegate_spark.control.program",
    "current": "tidegate_spark.control.worker",
    "on": "tidegate_spark.control.handlers",
    "on_driver": "tidegate_spark.control.handlers",
    "stream": "tidegate_spark.control.program",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
