"""Loads what inspections need, when the first one is asked for. No I/O of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.inspect.last_progress import LastProgress
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.process.spark.sparkconf import lineage_uri
from tidegate_spark.queries.queries import Queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate_spark.inspect.http import Reply
    from tidegate_spark.inspect.reader import CheckpointReader
    from tidegate_spark.inspect.service import InspectionService


class Inside:
    """The inside of one driver's application, for its agent. Thread safe."""

    def __init__(
        self, config: DriverConfig, queries: Queries, session: Callable[[], SparkSession | None], secrets: Secrets
    ) -> None:
        """Prepare.

        Args:
            config: of the driver.
            queries: of the script.
            session: returns Spark's; None while there is none, and once the driver is to end.
            secrets: left out of the words of errors.
        """
        self._config, self._queries, self._session, self._secrets = config, queries, session, secrets
        self._lock = threading.Lock()
        self._service: InspectionService | None = None
        self.last = LastProgress()
        """Called with each batch."""

    def reply(self, target: str) -> Reply:
        """Return the reply to a request: path and parameters."""
        from tidegate_spark.inspect.http import reply_to  # noqa: PLC0415 - see the module's docstring

        return reply_to(target, self._made().ask, self._secrets.clean)

    def _made(self) -> InspectionService:
        from tidegate_spark.inspect.service import InspectionService  # noqa: PLC0415 - likewise

        with self._lock:
            if self._service is None:
                self._service = InspectionService(self.last, self._names, self._reader)
            return self._service

    def _names(self) -> tuple[str, ...] | None:
        return None if self._session() is None else tuple(entry.name for entry in self._queries.entries())

    def _reader(self) -> CheckpointReader | None:
        spark = self._session()
        if spark is None:
            return None
        from tidegate_spark.inspect.reader import CheckpointReader  # noqa: PLC0415 - likewise

        return CheckpointReader(spark, self._places)

    def _places(self) -> dict[str, str]:
        root = lineage_uri(self._config)
        return {entry.name: f"{root}/{entry.directory}" for entry in self._queries.entries()}
