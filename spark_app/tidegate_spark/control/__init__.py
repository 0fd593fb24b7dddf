"""The control stream: messages to a running application, and what a program does with them.

Importing this package loads nothing else; what programs use is loaded on use::

    from tidegate_spark import control

    rows = control.controlled(spark.readStream.format("kafka")…)          # in the driver, once for each query

    limit = control.current().get("limit", 3.0, float)                    # in any function of that query
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate_spark.control.messages.handlers import Message, accept, config, on, on_driver
    from tidegate_spark.control.worker.batch_view import Current
    from tidegate_spark.control.worker.driver_client import ControlError
    from tidegate_spark.control.worker.program import controlled, stream
    from tidegate_spark.control.worker.worker import current

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
    "ControlError": "tidegate_spark.control.worker.driver_client",
    "Current": "tidegate_spark.control.worker.batch_view",
    "Message": "tidegate_spark.control.messages.handlers",
    "accept": "tidegate_spark.control.messages.handlers",
    "config": "tidegate_spark.control.messages.handlers",
    "controlled": "tidegate_spark.control.worker.program",
    "current": "tidegate_spark.control.worker.worker",
    "on": "tidegate_spark.control.messages.handlers",
    "on_driver": "tidegate_spark.control.messages.handlers",
    "stream": "tidegate_spark.control.worker.program",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
