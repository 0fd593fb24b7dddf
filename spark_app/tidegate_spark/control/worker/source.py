"""The data source ``tidegate-control``: control messages as a stream of records, batch by batch.

Its offset, a position in the control log, is in the query's offset log, so a batch has the same position on each
replay. The records are fetched where the batch is planned, and travel in the only partition. Asks the driver.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tidegate_spark.control.worker.driver_client import (
    MESSAGES,
    POSITION,
    POSITION_SECONDS,
    Caller,
    line_of_this_machine,
)
from tidegate_spark.control_log.offsets import SOURCE

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 does not ask for it

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef] # stands in for Spark's
        """Nothing."""


SCHEMA = "sequence long, id string, type string, time timestamp, source string, payload string"
BEGINNING = -1
"""Where a new query begins: what was sent before its first batch is in force, and no record of its."""


class Records(InputPartition):
    """The messages of one batch."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        """Carry ``rows``."""
        super().__init__(0)
        self.rows = rows


class ControlReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Asks the driver which position a batch is to have, and what comes into force with it."""

    def __init__(self) -> None:
        """Prepare; nothing is asked yet."""
        self._caller: Caller | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint begins."""
        return {SOURCE: BEGINNING}

    def latestOffset(self, *limits: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the position of the next batch; Spark 4.2 says a start and a limit, 4.1 says nothing."""
        position = self._target if self._target is not None else self._position()
        start = limits[0].get(SOURCE, BEGINNING) if limits else BEGINNING
        return {SOURCE: max(position, start)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take no messages in that come later."""
        self._target = self._position()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the one partition of a batch, none if it has no messages."""
        if start[SOURCE] == BEGINNING:
            return []
        said = self._ask(MESSAGES, {"after": start[SOURCE], "upto": end[SOURCE]})
        rows = [row_of(entry) for entry in said["messages"]]
        return [Records(rows)] if rows else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the records of a partition."""
        assert isinstance(partition, Records)
        return iter(partition.rows)

    def _position(self) -> int:
        return int(self._ask(POSITION, {})["position"])

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._caller is None:
            self._caller = Caller(line_of_this_machine(), POSITION_SECONDS)
        return self._caller.ask(path, body)


class ControlSource(DataSource):
    """The source as Spark sees it."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return SOURCE

    def schema(self) -> str:
        """Return the columns of a record."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return what reads."""
        return ControlReader()


def row_of(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return a message as a record."""
    time = datetime.datetime.fromtimestamp(entry["time"], datetime.timezone.utc)  # noqa: UP017 - newer than Spark images
    return (entry["sequence"], entry["id"], entry["type"], time, entry["source"], entry["payload"])
