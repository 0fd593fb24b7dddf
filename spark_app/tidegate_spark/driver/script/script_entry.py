"""Starts Spark when the script first asks for a context or session. Talks to the JVM.

It has the settings of the script's builder or SparkConf, as under ``spark-submit``. Later requests get the same
context; one for another context or another Spark ends the driver with a reason.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.script.own_descriptors import keep_open
from tidegate_spark.driver.script.script_settings import Judged, Unused
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.this_process import InPlaceOf

Refuse = Callable[[str], None]
"""Called with the reason why the driver ends."""


_CONNECT_VARIABLES = frozenset({"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"})
_OF_THE_FIRST = ("spark.app.name", "spark.master")
"""Whoever asks again, with these, has been answered already."""
_CLASSIC = ("spark.api.mode", "classic")
"""What Spark is here, so a script that asks for it has it."""
_OF_SESSIONS = "spark.sql."
_OF_THE_CONTEXT = ("spark.sql.extensions", "spark.sql.catalogImplementation")
"""Taken from the context, whatever its first session asks for."""


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
    end_try: Callable[[], None]
    """Ends the JVM of a try that Spark has refused."""
    fail: Callable[[BaseException], None]
    """Ends the driver, because one of these has failed and the script asks again."""
    refuse: Refuse
    """Ends the driver."""


class Entry:
    """Every way to Spark."""

    def __init__(self, host: Host, progress: Progress, master: str) -> None:
        """Prepare.

        Args:
            host: starts Spark.
            progress: reports settings that are not used.
            master: Spark's, which a script may name without a word of ours.
        """
        self._host, self._progress, self._master = host, progress, master
        self._context: SparkContext | None = None
        self._met = False
        self._failure: BaseException | None = None
        """Why the context or its first session could not be looked after."""
        self._tried: dict[str, str] = {}
        """What the script asked for when Spark was to be started: the JVM may have it since."""
        self._given: set[tuple[str, str]] = set()
        """What the context and the first session were asked for: the JVM makes more of some, such as jars."""
        self._has: set[tuple[str, str]] = set()
        """What the context has, once somebody asks again."""

    def guard(self) -> None:
        """Have every way lead here."""
        self._guard_builder()
        self._guard_jvm()
        self._guard_context()
        self._guard_session()
        self._guard_dstreams()
        self._guard_process()

    def _refused(self, message: str) -> ScriptRefusedError:
        self._host.refuse(message)
        return ScriptRefusedError(message)

    def _judge(self, asked: Mapping[str, str]) -> Judged:
        """Report what is not used. A SparkConf that is made when the JVM is up has all that is there."""
        of_others = self._there() - self._tried.items() if asked else set()
        judged = self._host.judge({key: value for key, value in asked.items() if (key, value) not in of_others})
        for each in judged.unused:
            self._notice(each)
        return judged

    def _there(self) -> set[tuple[str, str]]:
        """Return the settings of the JVM, or those of the context: these are read once, each takes several calls."""
        if self._context is None:
            return set(SparkConf().getAll()) if SparkContext._jvm is not None else set()
        if not self._has:
            self._has = set(self._context._conf.getAll())
        return self._has | self._given

    def _notice(self, each: Unused) -> None:
        if each.value == self._master or (each.key, each.value) == _CLASSIC:
            return
        where = f"the script ({each.shown})" if each.shown else "the script"
        self._progress.notice(Reason.CONFIGURATION_IGNORED, messages.setting_ignored(each.key, where, each.why))

    def _refuse_if_over(self) -> None:
        if self._failure is not None:
            self._host.fail(self._failure)
            raise self._failure
        if self._context is not None and self._context._jsc is None:
            raise self._refused(messages.STOPPED_BEFORE)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _guard_builder(self) -> None:
        get, create = SparkSession.Builder.getOrCreate, SparkSession.Builder.create

        @functools.wraps(get)
        def get_or_create(builder: SparkSession.Builder) -> SparkSession:
            return self._after(get, builder)

        @functools.wraps(create)
        def create_one(builder: SparkSession.Builder) -> SparkSession:
            return self._after(create, builder)

        SparkSession.Builder.getOrCreate = get_or_create  # type: ignore[assignment, method-assign] # where every script gets its session
        SparkSession.Builder.create = create_one  # type: ignore[assignment, method-assign] # likewise

    def _after(
        self, get: Callable[[SparkSession.Builder], SparkSession], builder: SparkSession.Builder
    ) -> SparkSession:
        """Return a session, and say what it was asked for in vain: only then it is known whether it was the first."""
        asked, later = self._check(builder), self._met
        session = get(builder)
        self._report_late({key: value for key, value in asked.items() if self._is_late(key, later)})
        if not later:
            self._given |= asked.items()
        return session

    def _is_late(self, key: str, later: bool) -> bool:
        """Return whether a session cannot take a setting: it takes all of Spark SQL's, those of the first one apart."""
        if not key.startswith(_OF_SESSIONS):
            return key.startswith("spark.")
        return key in _OF_THE_CONTEXT or (later and _is_static(key))

    def _check(self, builder: SparkSession.Builder) -> dict[str, str]:
        """Take what is not used out of the builder; return the rest."""
        options = builder._options
        if _wants_connect(options):
            raise self._refused(messages.NO_CONNECT)
        self._refuse_if_over()
        with SparkContext._lock:  # another thread may be trying, and not be refused yet
            if self._tried and self._context is None:
                # PySpark makes a SparkConf from the JVM's settings: the next try would keep the refused ones.
                self._host.end_try()
                self._tried = {}
        judged = self._judge(_settings(options.items()))
        for each in judged.unused:
            del options[each.key]
        return judged.used

    def _guard_session(self) -> None:
        original = SparkSession.__init__

        @functools.wraps(original)
        def make(session: SparkSession, *args: Any, **kwargs: Any) -> None:
            original(session, *args, **kwargs)
            with SparkContext._lock:
                if self._met:
                    return
                self._met = True
                with self._notes_failure():
                    self._host.meet_session(session)

        SparkSession.__init__ = make  # type: ignore[assignment, method-assign] # the first is looked after before the script has it

    @contextlib.contextmanager
    def _notes_failure(self) -> Iterator[None]:
        """Note a failure: a script that makes something else of it would have a Spark that nobody looks after."""
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    # --- contexts -----------------------------------------------------------------------------------------------------

    def _guard_context(self) -> None:
        original, get = SparkContext.__init__, SparkContext.getOrCreate
        signature = inspect.signature(original)

        @functools.wraps(original)
        def make(new: SparkContext, *args: Any, **kwargs: Any) -> None:
            self._refuse_if_over()
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
                self._given = set(judged.used.items())
                with self._notes_failure():
                    self._host.meet_context(new)

        @functools.wraps(get)
        def get_or_create(cls: type[SparkContext], conf: SparkConf | None = None) -> SparkContext:
            self._refuse_if_over()
            # Where there is one, PySpark does not look at the settings.
            if conf is not None and self._context is not None:
                self._report_late(self._judge(_settings(conf.getAll())).used)
            return get(conf)

        SparkContext.getOrCreate = classmethod(get_or_create)  # type: ignore[assignment, method-assign] # as below
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
        late = {key: value for key, value in asked.items() if not key.startswith(_OF_THE_FIRST)}
        there = self._there() if not late.items() <= self._given else self._given
        for key, value in sorted(late.items() - there):
            self._notice(Unused(key, value, messages.CONTEXT_IS_THERE, False))

    def _guard_process(self) -> None:
        """Let no program take the place of the driver's process, or close what it has open; a child's is its own."""
        own = os.getpid()
        keep_open()

        def guarded(original: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
            def replace_process(*args: Any, **kwargs: Any) -> NoReturn:
                if os.getpid() == own:
                    raise self._refused(messages.NO_EXEC)
                original(*args, **kwargs)

            return InPlaceOf("os", original, replace_process)

        # All others of their kind call these.
        os.execv, os.execve = guarded(os.execv), guarded(os.execve)

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


def _is_static(key: str) -> bool:
    """Return whether Spark takes a setting with the first session alone; asks the JVM."""
    jvm: Any = SparkContext._jvm
    with contextlib.suppress(Py4JError, TypeError):
        return bool(jvm.org.apache.spark.sql.internal.SQLConf.isStaticConfigKey(key))
    return False


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
