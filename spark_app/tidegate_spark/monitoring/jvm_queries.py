"""Finds queries that code in the JVM starts (``spark._jvm``, a Java or Scala library). Talks to the JVM.

They do not pass the script's ``DataStreamWriter``, where a query gets its checkpoint in the application's storage.
Spark runs them all the same, and the status would have them as if they were looked after.

Design: docs/design/restarts-and-stops.md.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.monitoring.held_fault import HeldFault
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.queries.queries import Queries

PATIENCE_SECONDS = 30.0
"""Such a query may load first what the script's own queries read: these get time to start, as beside a child's."""
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JvmQueries:
    """Reports them: each with a notice, and as a fault while the script itself has started no query."""

    def __init__(self, session: SparkSession, queries: Queries, progress: Progress) -> None:
        """Prepare.

        Args:
            session: of the context; those of all its sessions are found.
            queries: that the script has started.
            progress: gets the report.
        """
        self._context, self._queries, self._progress = session.sparkContext, queries, progress
        java: Any = session._jsparkSession
        self._active: Any = java.sharedState().activeStreamingQueries()
        self._ours: set[str] = set()
        """Ids of queries of the script, which are asked about once."""
        self._seen: dict[str, str] = {}
        """Run -> name, at the last check."""
        self._last: tuple[str, ...] = ()
        self._since: float | None = None
        self._held = HeldFault(progress)

    def running(self) -> tuple[str, ...]:
        """Return the names of those that run now, after a stop of the context at the last call before; never raises."""
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            if self._context._jsc is not None:
                self._last = tuple(sorted(self._find().values()))
        return self._last

    def check(self, now: float) -> None:
        """Report what ran at the check before, too: a single one may fall between two runs of the script's."""
        before, self._seen = self._seen, self._find()
        sure = [name for run, name in self._seen.items() if run in before]
        for name in sure:
            self._progress.notice(Reason.SCRIPT_UNSUPPORTED, messages.started_in_jvm(name), warning=True)
        if not sure or self._queries.entries() or self._queries.starting:
            self._since = None
            self._held.report(None)
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= PATIENCE_SECONDS:
            self._held.report(Fault(Reason.SCRIPT_UNSUPPORTED, messages.started_in_jvm(sure[0])))

    def _find(self) -> dict[str, str]:
        ids = set(_ID.findall(str(self._active.keySet().toString())))
        self._ours &= ids
        found: dict[str, str] = {}
        for key in list(self._active) if ids - self._ours else ():
            execution, identity = self._active[key], str(key.toString())
            # It may have ended meanwhile. Whose it is, is asked afterwards: the script's are known before they run.
            if execution is None or identity in self._ours:
                continue
            name, run = str(execution.name() or ""), str(execution.runId().toString())
            if self._queries.has_started(name, run):
                self._ours.add(identity)
            elif not self._queries.is_starting(name):
                found[run] = name or identity
        return found
