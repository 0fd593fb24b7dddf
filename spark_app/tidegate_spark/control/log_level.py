"""The level of Spark's logs that a message asked for: in the driver and in every executor. Talks to Spark.

On Kubernetes an executor that starts is told the level by nobody: Spark's driver sends it along with the configuration
(``SparkAppConfig.logLevel``), but only ``CoarseGrainedExecutorBackend`` looks at it, and ``KubernetesExecutorBackend``
does not. So whoever registers later is told here.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from tidegate_spark.executors import SparkBackend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_NAMES = {"ALL": "DEBUG", "TRACE": "DEBUG", "FATAL": "CRITICAL", "OFF": "CRITICAL", "WARN": "WARNING"}


class LogLevel:
    """One driver's. Thread safe."""

    def __init__(self) -> None:
        """Have no session yet, and no level but the configured one."""
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._level = ""
        self._told: frozenset[str] = frozenset()

    def meet(self, session: SparkSession) -> None:
        """Begin to have a session."""
        with self._lock:
            self._session = session
            self._set()

    def want(self, level: str) -> bool:
        """Set the level, one of log4j's, now and for executors that come later; empty: it stays as it was configured.

        Returns:
            Whether there is a session; if not, it is told as soon as there is.

        Raises:
            Exception: what Spark says to it.
        """
        with self._lock:
            self._level = level
            self._set()
            return self._session is not None

    def tell_new_executors(self) -> None:
        """Tell executors that have come since; asks Spark, so not more often than once a second."""
        with self._lock:
            if not self._level or self._session is None:
                return
            running = self._running(self._session.sparkContext)
            if not running <= self._told:
                self._told = running
                self._tell_executors(self._session.sparkContext)

    def _set(self) -> None:
        """Tell everybody; of Python only the driver's is told."""
        if not self._level or self._session is None:
            return
        context: Any = self._session.sparkContext
        # Whoever registers meanwhile is told again.
        self._told = self._running(context)
        context.setLogLevel(self._level)
        self._tell_executors(context)
        logging.getLogger().setLevel(PYTHON_NAMES.get(self._level, self._level))

    def _tell_executors(self, context: Any) -> None:
        # By itself Spark tells them only under spark.executor.syncLogLevel.enabled, and then of what scripts set, too.
        context._jsc.sc().schedulerBackend().updateExecutorsLogLevel(self._level)

    @staticmethod
    def _running(context: Any) -> frozenset[str]:
        # A local Spark has none, and warns whoever asks.
        return frozenset() if context._jsc.sc().isLocal() else frozenset(SparkBackend(context).registered())
