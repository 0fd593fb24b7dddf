"""How a script comes to Spark: the first way to a context or a session that it takes starts Spark. Talks to the JVM.

Spark is started when the script first asks for it, with the settings of its builder or its SparkConf, as under
``spark-submit``; fence, storage and agent are there before. Whatever else it asks for leads to the context that is
there. What would make another one, or speaks to another Spark, ends the driver with a reason instead of an error of
PySpark's, or a query that nobody looks after.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidegate_spark import entry_messages as messages
from tidegate_spark.progress import Progress
from tidegate_spark.reasons import Reason
from tidegate_spark.script_settings import Judged, Unused

Refuse = Callable[[str], None]
"""Is told why; the driver ends with it."""


_CONNECT_VARIABLES = frozenset({"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"})
_OF_THE_FIRST = ("spark.sql.", "spark.hadoop.", "spark.app.name", "spark.master")
"""Whoever asks for the session again, with these, gets what Spark gives, or has been answered already."""


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


@dataclass(frozen=True)
class Host:
    """What the driver does about a script that asks for Spark."""

    judge: Callable[[Mapping[str, str]], Judged]
    """Says which settings are used."""
    prepare: Callable[[Mapping[str, str]], tuple[SparkConf, Any]]
    """Starts the JVM with the script's settings, and returns all of them and the gateway to it."""
    meet_context: Callable[[SparkContext], None]
    """Called with the one context, before the script has it."""
    meet_session: Callable[[SparkSession], None]
    """Likewise with its first session."""
    refuse: Refuse
    """Ends the driver."""


class Entry:
    """Every way to Spark."""

    def __init__(self, host: Host, progress: Progress, master: str) -> None:
        """Prepare.

        Args:
            host: starts Spark.
            progress: is told of settings that are not used.
            master: Spark's, which a script may name without a word of ours.
        """
        self._host, self._progress, self._master = host, progress, master
        self._context: SparkContext | None = None
        self._met = False
        self._tried: dict[str, str] = {}
        """What the script asked for when Spark was started, or was to be: the JVM may have it since."""

    def guard(self) -> None:
        """Have every way lead here."""
        self._guard_builder()
        self._guard_jvm()
        self._guard_context()
        self._guard_session()
        self._guard_dstreams()

    def _refused(self, message: str) -> ScriptRefusedError:
        self._host.refuse(message)
        return ScriptRefusedError(message)

    def _judge(self, asked: Mapping[str, str]) -> Judged:
        """Report what is not used. A SparkConf that is made when the JVM is up has all that is there."""
        there = self._there()
        of_others = there - self._tried.items()
        judged = self._host.judge({key: value for key, value in asked.items() if (key, value) not in of_others})
        for each in judged.unused:
            self._notice(each)
        return judged

    def _there(self) -> set[tuple[str, str]]:
        """Return the settings of the JVM, and those of the context."""
        pairs = SparkConf().getAll() if SparkContext._jvm is not None else []
        return {*pairs, *(self._context.getConf().getAll() if self._context is not None else [])}

    def _notice(self, each: Unused) -> None:
        if each.value == self._master:
            return
        where = f"the script ({each.shown})" if each.shown else "the script"
        self._progress.notice(Reason.CONFIGURATION_IGNORED, messages.setting_ignored(each.key, where, each.why))

    def _refuse_if_stopped(self) -> None:
        if self._context is not None and self._context._jsc is None:
            raise self._refused(messages.STOPPED_BEFORE)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _guard_builder(self) -> None:
        get, create = SparkSession.Builder.getOrCreate, SparkSession.Builder.create

        @functools.wraps(get)
        def get_or_create(builder: SparkSession.Builder) -> SparkSession:
            self._look(builder)
            return get(builder)

        @functools.wraps(create)
        def create_one(builder: SparkSession.Builder) -> SparkSession:
            self._look(builder)
            return create(builder)

        SparkSession.Builder.getOrCreate = get_or_create  # type: ignore[assignment, method-assign] # where every script gets its session
        SparkSession.Builder.create = create_one  # type: ignore[assignment, method-assign] # likewise

    def _look(self, builder: SparkSession.Builder) -> None:
        options = builder._options
        if _wants_connect(options):
            raise self._refused(messages.NO_CONNECT)
        self._refuse_if_stopped()
        judged = self._judge(_settings(options.items()))
        for each in judged.unused:
            del options[each.key]
        if self._context is not None:
            self._report_late({key: value for key, value in judged.used.items() if not key.startswith(_OF_THE_FIRST)})

    def _guard_session(self) -> None:
        original = SparkSession.__init__

        @functools.wraps(original)
        def make(session: SparkSession, *args: Any, **kwargs: Any) -> None:
            original(session, *args, **kwargs)
            with SparkContext._lock:
                if self._met:
                    return
                self._met = True
                try:
                    self._host.meet_session(session)
                except BaseException:
                    # A script that goes on all the same is not to have a session that nobody looks after.
                    self._met = False
                    raise

        SparkSession.__init__ = make  # type: ignore[assignment, method-assign] # the first is looked after before the script has it

    # --- contexts -----------------------------------------------------------------------------------------------------

    def _guard_context(self) -> None:
        original = SparkContext.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def make(new: SparkContext, *args: Any, **kwargs: Any) -> None:
            self._refuse_if_stopped()
            bound = signature.bind(new, *args, **kwargs)
            with SparkContext._lock:
                judged = self._judge(_asked_of_context(bound.arguments))
                if self._context is not None:
                    self._report_late(judged.used)
                    # Spark has one context in a JVM: this object is another name of it, also when it is stopped.
                    new.__dict__ = self._context.__dict__
                    return
                self._tried |= judged.used
                bound.arguments["conf"], bound.arguments["gateway"] = self._host.prepare(judged.used)
                original(*bound.args, **bound.kwargs)
                self._tried = {}
                self._context = new
                self._host.meet_context(new)

        SparkContext.__init__ = make  # type: ignore[assignment, method-assign] # the way of every session to Spark, too

    def _guard_jvm(self) -> None:
        """Have a JVM that is started before a context, by ``setSystemProperty``, started as for the context."""
        original = SparkContext._ensure_initialized.__func__  # type: ignore[attr-defined] # it is a class method

        @functools.wraps(original)
        def ensure(cls: type[SparkContext], instance: Any = None, gateway: Any = None, conf: Any = None) -> None:
            with SparkContext._lock:
                if SparkContext._gateway is None and gateway is None:
                    _, gateway = self._host.prepare({})
                original(cls, instance, gateway, conf)

        SparkContext._ensure_initialized = classmethod(ensure)  # type: ignore[assignment, method-assign] # any JVM's start

    def _report_late(self, asked: Mapping[str, str]) -> None:
        """Say which settings come too late: the context is there, and has others."""
        for key, value in asked.items():
            self._notice(Unused(key, value, messages.CONTEXT_IS_THERE, False))

    def _guard_dstreams(self) -> None:
        from pyspark.streaming import StreamingContext  # noqa: PLC0415 - made only to be refused

        def make(new: object, *args: object, **kwargs: object) -> None:
            raise self._refused(messages.NO_DSTREAMS)

        StreamingContext.__init__ = make  # type: ignore[assignment, method-assign] # every way to DStreams


def _wants_connect(options: Mapping[str, Any]) -> bool:
    """Return whether PySpark would make a session of Spark Connect: by the builder, or by the environment."""
    mode = str(options.get("spark.api.mode") or os.environ.get("SPARK_API_MODE", ""))
    named = "spark.remote" in options or not os.environ.keys().isdisjoint(_CONNECT_VARIABLES)
    return named or mode.lower() == "connect"


def _settings(pairs: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in pairs if value is not None}


def _asked_of_context(arguments: dict[str, Any]) -> dict[str, str]:
    """Take the settings out of a context's arguments and return them: Spark is made with all of them at once."""
    conf = arguments.pop("conf", None)
    asked = _settings(conf.getAll()) if conf is not None else {}
    for name, key in (("master", "spark.master"), ("appName", "spark.app.name")):
        value = arguments.pop(name, None)
        if value:
            asked[key] = str(value)
    variables = arguments.pop("environment", None) or {}
    return {**asked, **_settings((f"spark.executorEnv.{name}", value) for name, value in variables.items())}
