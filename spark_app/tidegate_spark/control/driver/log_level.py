"""Sets the log level that a message asked for, in the driver and in every executor. Talks to Spark.

Spark sends the level with the configuration (``SparkAppConfig.logLevel``), but ``KubernetesExecutorBackend`` ignores
it, unlike ``CoarseGrainedExecutorBackend``. So executors that register later get it from here.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from tidegate_spark.executors.executors import SparkBackend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_NAMES = {"ALL": "DEBUG", "TRACE": "DEBUG", "FATAL": "CRITICAL", "OFF": "CRITICAL", "WARN": "WARNING"}


class LogLevel:
    """One driver's. Thread safe.

    The call to Spark may hang, and whoever waits for it give up. A later call sets the newest level all the same.
    """

    def __init__(self) -> None:
        """Have no session yet, and no level but the configured one."""
        self._lock = threading.Lock()
        """Held during the call to Spark, however long that takes."""
        self._session: SparkSession | None = None
        self._level = ""
        self._reported: frozenset[str] = frozenset()

    def meet(self, session: SparkSession) -> None:
        """Begin to have a session."""
        with self._lock:
            self._session = session
            self._set()

    def want(self, level: str) -> None:
        """Want a level, one of log4j's, from now on; empty: it stays as it was configured. Asks nobody."""
        self._level = level

    def notify(self) -> bool:
        """Set the level that is wanted last in Spark, now and for executors that come later.

        Returns:
            Whether there is a session; if not, the level is set as soon as there is.

        Raises:
            Exception: what Spark says to it.
        """
        with self._lock:
            self._set()
            return self._session is not None

    def notify_new_executors(self) -> None:
        """Set it in executors that have come since; asks Spark, so at most once a second."""
        # The caller watches the driver, and does not wait for a call that hangs: that sets the level when it ends.
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._level or self._session is None:
                return
            running = self._running(self._session.sparkContext)
            if not running <= self._reported:
                self._reported = running
                self._notify_executors(self._session.sparkContext, self._level)
        finally:
            self._lock.release()

    def _set(self) -> None:
        """Set it everywhere; in Python, only in the driver."""
        level = self._level
        if not level or self._session is None:
            return
        context: Any = self._session.sparkContext
        # An executor that registers meanwhile gets it again.
        self._reported = self._running(context)
        context.setLogLevel(level)
        self._notify_executors(context, level)
        logging.getLogger().setLevel(PYTHON_NAMES.get(level, level))

    @staticmethod
    def _notify_executors(context: Any, level: str) -> None:
        # Spark itself does so only under spark.executor.syncLogLevel.enabled, and then also with what scripts set.
        context._jsc.sc().schedulerBackend().updateExecutorsLogLevel(level)

    @staticmethod
    def _running(context: Any) -> frozenset[str]:
        # A local Spark has none, and warns whoever asks.
        return frozenset() if context._jsc.sc().isLocal() else frozenset(SparkBackend(context).registered())
