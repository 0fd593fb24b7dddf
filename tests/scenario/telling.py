"""Where the operator's log goes: nowhere, or into the trace of a schedule."""

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from tests.scenario.operators import PROCESS


def quiet() -> None:
    """Have nothing logged: it would cost more than everything else."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=False
    )


def show_log(note: Callable[[float, str, str], None]) -> None:
    """Have the operator's log told with its process's name."""

    def tell(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        if method == "debug":
            raise structlog.DropEvent
        text = str(event.pop("event"))
        details = ", ".join(f"{key}={value}" for key, value in event.items() if key != "namespace")
        note(asyncio.get_running_loop().time(), PROCESS.get(), f"{text} ({details})")
        raise structlog.DropEvent

    structlog.configure(processors=[tell], cache_logger_on_first_use=False)
