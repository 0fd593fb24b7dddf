"""How a script comes to Spark: its ways to a session or a context lead to the ones that are there. Talks to the JVM.

They are made before the script runs, with fence, storage and listeners. What would make others, or speaks to another
Spark, ends the driver with a reason instead of an error of PySpark's, or a query that nobody looks after.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidegate_spark import entry_messages as messages
from tidegate_spark import sparkconf
from tidegate_spark.progress import Progress
from tidegate_spark.reasons import Reason

Refuse = Callable[[str], None]
"""Is told why; the driver ends with it."""


class ScriptRefusedError(SystemExit):
    """The script wants something that does not run here; no Exception, as for a query that is refused."""


class Sessions:
    """The sessions that queries were started in: each has its own listeners."""

    def __init__(self, listen: Callable[[SparkSession], None]) -> None:
        """Have ``listen`` called with each session once, before its first query starts."""
        self._listen = listen
        self._known: list[Any] = []
        self._lock = threading.Lock()

    def meet(self, session: SparkSession) -> None:
        """Take note of a session; one that is known already may be another object of Python."""
        java: Any = session._jsparkSession
        with self._lock:  # two listeners would count everything twice
            if not any(known.equals(java) for known in self._known):
                self._known.append(java)
                self._listen(session)


def guard_entry(context: SparkContext, progress: Progress, master: str, refuse: Refuse) -> None:
    """Lead every way to Spark to ``context`` and its sessions.

    Args:
        context: the one that the script gets, whatever it asks for.
        progress: is told of settings that are not used.
        master: Spark's, which a script may name without a word of ours.
        refuse: is told what does not run here.
    """

    def refused(message: str) -> ScriptRefusedError:
        refuse(message)
        return ScriptRefusedError(message)

    def notice(key: str, value: str) -> None:
        remedy = sparkconf.remedy_for(key)
        # Any other key may have a secret for its value, which nobody here knows to be one.
        where = f"the script ({value})" if remedy else "the script"
        if value != master:
            progress.notice(
                Reason.CONFIGURATION_IGNORED, messages.setting_ignored(key, where, remedy or messages.CONTEXT_IS_THERE)
            )

    _guard_builder(context, notice, refused)
    _guard_context(context, notice, refused)
    _guard_dstreams(refused)


Notice = Callable[[str, str], None]
Refused = Callable[[str], ScriptRefusedError]


def _guard_builder(context: SparkContext, notice: Notice, refused: Refused) -> None:
    get, create = SparkSession.Builder.getOrCreate, SparkSession.Builder.create

    def look(builder: SparkSession.Builder) -> None:
        options = builder._options
        if "spark.remote" in options or options.get("spark.api.mode", "").lower() == "connect":
            raise refused(messages.NO_CONNECT)
        if _is_stopped(context):
            raise refused(messages.STOPPED_BEFORE)
        for key in [key for key in options if sparkconf.remedy_for(key)]:
            notice(key, options.pop(key))

    @functools.wraps(get)
    def get_or_create(builder: SparkSession.Builder) -> SparkSession:
        look(builder)
        return get(builder)

    @functools.wraps(create)
    def create_one(builder: SparkSession.Builder) -> SparkSession:
        look(builder)
        return create(builder)

    SparkSession.Builder.getOrCreate = get_or_create  # type: ignore[assignment, method-assign] # where every script gets its session
    SparkSession.Builder.create = create_one  # type: ignore[assignment, method-assign] # likewise


def _guard_context(context: SparkContext, notice: Notice, refused: Refused) -> None:
    original = SparkContext.__init__

    @functools.wraps(original)
    def make(new: SparkContext, *args: Any, **kwargs: Any) -> None:
        if _is_stopped(context):
            raise refused(messages.STOPPED_BEFORE)
        conf = kwargs.get("conf") or next((each for each in args if isinstance(each, SparkConf)), None)
        ours = dict(context.getConf().getAll()) if conf is not None else {}
        for key, value in conf.getAll() if conf is not None else ():
            if value != ours.get(key):
                notice(key, value)
        # Spark has one context in a JVM: this object is another name of it, also when it is stopped.
        new.__dict__ = context.__dict__

    SparkContext.__init__ = make  # type: ignore[assignment, method-assign] # the script's own comes second, always


def _guard_dstreams(refused: Refused) -> None:
    from pyspark.streaming import StreamingContext  # noqa: PLC0415 - made only to be refused

    def make(new: object, *args: object, **kwargs: object) -> None:
        raise refused(messages.NO_DSTREAMS)

    StreamingContext.__init__ = make  # type: ignore[assignment, method-assign] # every way to DStreams


def _is_stopped(context: SparkContext) -> bool:
    return context._jsc is None
