"""What the autoscaler remembers from one decision to the next, as one text in the status. No I/O.

Its content changes with the algorithm and is no part of the API.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct


class AutoscalerMemory(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What it learned of a version, and what the last change of the target is judged by.

    ``usable_share`` is that of the time of so many ``executors`` that batches can use. The step from
    ``ineffective_from`` to ``ineffective_executors`` was of no use: what was done before and after it shows that. Then
    come the rows that arrived, if the application kept up all the same (0: it did not), and how often in a row it was.
    ``tasks_at_once`` is 0 unless there were more than partitions. Then come what an executor did in large batches, how
    large they were, and the ``shares`` of the queries, in the order of their names, in those rows.

    ``scaled_rows_per_second`` is what was done in the time in batches before the last change, a share ``scaled_busy``
    of all time (1: it was behind), with ``scaled_executors`` (0: as many as there were to be); 0 if the change is not
    to be judged by that any more.
    """

    version: str = ""
    usable_share: float = 1.0
    executors: int = 0
    ineffective_time: datetime | None = None
    ineffective_executors: int = 0
    ineffective_from: int = 0
    ineffective_rows_per_second_before: float = 0.0
    ineffective_rows_per_second_after: float = 0.0
    ineffective_rows_per_second_arriving: float = 0.0
    ineffective_times: int = 0
    tasks_at_once: int = 0
    rows_per_second_per_executor: float = 0.0
    rows_per_batch: float = 0.0
    shares: tuple[float, ...] = ()
    scaled_rows_per_second: float = 0.0
    scaled_executors: int = 0
    scaled_busy: float = 1.0


def write_memory(memory: AutoscalerMemory) -> str:
    """Return it as a text, empty if there is nothing to remember."""
    return "" if memory == AutoscalerMemory() else msgspec.json.encode(memory).decode()


def read_memory(text: str) -> AutoscalerMemory:
    """Return what a text holds; nothing if another version of the operator wrote it in another way."""
    if not text:
        return AutoscalerMemory()
    try:
        return msgspec.json.decode(text, type=AutoscalerMemory)
    except msgspec.DecodeError:
        return AutoscalerMemory()
