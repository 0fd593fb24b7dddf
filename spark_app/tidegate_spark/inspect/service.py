"""Receives inspections: one at a time, in a thread of its own, for a bounded time. No I/O of its own.

What Spark reported of each batch is answered from memory at once. Everything else runs Spark jobs, so a second
inspection is refused meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from tidegate_spark.inspect import last_progress, messages
from tidegate_spark.inspect.errors import BusyError, InspectionError, NotThereError, TooSlowError, UnavailableError
from tidegate_spark.inspect.last_progress import LastProgress
from tidegate_spark.inspect.questions import Operators, Question, Rows, Sources, Windows, more_time

GRACE_SECONDS = 5.0
"""How long an answer may come after its time: jobs are cancelled, and what was read is put together."""

NOT_RUNNING = "the driver is starting or ending, and Spark does not run: see GET /v1/progress for what it waits for"

Answer = dict[str, Any]
Inspection = Operators | Rows | Windows

log = logging.getLogger("tidegate")


class CheckpointReader(Protocol):
    """What looks: see :class:`tidegate_spark.inspect.reader.CheckpointReader`."""

    def answer(self, question: Inspection) -> Answer:
        """Return the answer; raises InspectionError if there is none."""


@dataclass
class _Errand:
    question: Inspection
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer = field(default_factory=dict)
    error: InspectionError | None = None


class InspectionService:
    """Stands before the looks of one driver. Thread safe."""

    def __init__(
        self,
        last: LastProgress,
        queries: Callable[[], tuple[str, ...] | None],
        reader: Callable[[], CheckpointReader | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; no thread runs and nothing is loaded before the first look.

        Args:
            last: Spark's reports of batches.
            queries: the names of all queries that were started; None while Spark does not run, and once it is to end.
            reader: returns what looks, None while Spark does not run; called in the thread of the looks.
            clock: for the seconds that are waited.
        """
        self._last, self._queries, self._make, self._clock = last, queries, reader, clock
        self._errands: SimpleQueue[_Errand] = SimpleQueue()
        self._lock = threading.Lock()
        self._busy: tuple[float, Inspection] | None = None
        self._thread: threading.Thread | None = None
        self._reader: CheckpointReader | None = None

    def ask(self, question: Question) -> Answer:
        """Return the answer to a question.

        Raises:
            InspectionError: there is none.
        """
        names = self._queries()
        if names is None:
            raise UnavailableError(NOT_RUNNING)
        if question.query is not None and question.query not in names:
            known = ", ".join(sorted(names)) or "none has started yet"
            raise NotThereError(f"there is no query {question.query!r}; there are: {known}")
        if isinstance(question, Sources) or (isinstance(question, Operators) and question.query is None):
            return self._from_memory(question, names)
        errand = _Errand(question)
        self._admit(errand)
        if not errand.done.wait(question.seconds + GRACE_SECONDS):
            more = more_time(question.seconds)
            raise TooSlowError(messages.no_answer(question.seconds, f", with {more}" if more else ""))
        if errand.error is not None:
            raise errand.error
        return errand.answer

    # --- from memory ---

    def _from_memory(self, question: Sources | Operators, names: tuple[str, ...]) -> Answer:
        if isinstance(question, Sources):
            wanted = [question.query] if question.query is not None else list(names)
            return {"queries": [self._sources(name) for name in wanted]}
        return {"queries": [self._operators(name) for name in names]}

    def _sources(self, name: str) -> Answer:
        event = self._last.of(name)
        head = {"query": name, **last_progress.batch_of(event), "watermark": last_progress.watermark_of(event)}
        return {**head, "sources": last_progress.sources_of(event)}

    def _operators(self, name: str) -> Answer:
        event = self._last.of(name)
        head = {"query": name, **last_progress.batch_of(event), "watermark": last_progress.watermark_of(event)}
        return {**head, "operators": last_progress.operators_of(event)}

    # --- looks ---

    def _admit(self, errand: _Errand) -> None:
        with self._lock:
            if self._busy is not None:
                began, other = self._busy
                raise BusyError(messages.busy(self._clock() - began, other.seconds, other.query))
            self._busy = (self._clock(), errand.question)
            if self._thread is None:
                # Always the same: Spark's job groups and pools belong to a thread, here and in the JVM.
                self._thread = threading.Thread(target=self._run, name="inside", daemon=True)
                self._thread.start()
        self._errands.put(errand)

    def _run(self) -> None:
        while True:
            errand = self._errands.get()
            try:
                errand.answer = self._looked(errand.question)
            except InspectionError as error:
                errand.error = error
            except Exception as error:  # whatever it is: the next question is to be answered
                log.exception("a look inside failed")
                errand.error = InspectionError(f"the look failed: {type(error).__name__}: {error}")
            with self._lock:
                self._busy = None
            errand.done.set()

    def _looked(self, question: Inspection) -> Answer:
        if self._reader is None:
            self._reader = self._make()
        if self._reader is None:
            raise UnavailableError(NOT_RUNNING)
        answer = self._reader.answer(question)
        if isinstance(question, Operators) and question.query is not None:
            reported = {each["operator"]: each for each in last_progress.operators_of(self._last.of(question.query))}
            for operator in answer["operators"]:
                of = reported.get(operator["operator"], {})
                # Spark numbers them in the same order; should that change, no figures are better than another's.
                operator.update(of if of.get("operatorName") == operator["operatorName"] else {})
            answer["figuresOfBatch"] = last_progress.batch_of(self._last.of(question.query))["batch"]
        return answer
