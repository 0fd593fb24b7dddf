"""Starts Spark when the script first asks for it. Starts the JVM."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from tidegate_spark.contract.protocol import ACCESS_KEY, EXIT_STOPPED, SECRET_KEY, SESSION_TOKEN, DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.ending import Ending
from tidegate_spark.driver.preflight import folders_of
from tidegate_spark.driver.script import script_settings
from tidegate_spark.driver.script.script import outcome_of
from tidegate_spark.driver.script.script_entry import Host, ScriptRefusedError
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.jvm import last_script
from tidegate_spark.jvm import session as spark_session
from tidegate_spark.jvm.jvm_command import OF_ONE_PROCESS
from tidegate_spark.jvm.last_script import Asked
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults import faults
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import values_of_launch
from tidegate_spark.process.spark import s3a_settings
from tidegate_spark.queries.queries import DriverStoppingError
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

CREDENTIALS_OF_SECRET = frozenset({ACCESS_KEY, SECRET_KEY, SESSION_TOKEN})
CREDENTIALS = "AWS_"
"""Variables that start so are S3A's: by those of this process's start it reaches the application's own storage."""


@dataclass(frozen=True)
class Files:
    """What Python workers import from, besides what the image has."""

    python: tuple[str, ...]
    """``pyFiles``."""
    beside: str
    """The program, if executors have it and what is beside it; empty otherwise."""


class SparkStart:
    """Starts Spark for the script."""

    def __init__(  # noqa: PLR0913 - those beyond are by name
        self,
        config: DriverConfig,
        environment: Environment,
        progress: Progress,
        process: spark_session.Process,
        *,
        files: Files,
        ending: Ending,
    ) -> None:
        """Take note of the variables as they are before the script runs.

        Args:
            config: of the driver.
            environment: where it finds things.
            progress: is told what is missing.
            process: of the driver.
            files: for the context.
            ending: of the driver.
        """
        self._config, self._environment, self._progress, self._process = config, environment, progress, process
        self._files, self._ending = files, ending
        self.keep_secret: Callable[..., None] = lambda *values: None
        """Told of secrets that are not to be shown."""
        self._before = dict(os.environ)
        self._process_id = os.getpid()
        self._asked = Asked()
        self._path: Any = None
        """The JVM's settings of S3A, as they are to be for the application's own bucket."""

    def host(self, meet_session: Callable[[SparkSession], None]) -> Host:
        """Return what the driver does about a script that asks for Spark.

        Args:
            meet_session: called with its first session.
        """
        judge = functools.partial(script_settings.judge, config=self._config)
        return Host(
            judge,
            self._prepare,
            self._meet_context,
            meet_session,
            end_try=self._end_try,
            fail=self._fail,
            refuse=self._refuse,
        )

    def _end_try(self) -> None:
        spark_session.end_jvm()
        self._asked = Asked()

    def _fail(self, error: BaseException) -> None:
        self._ending.request(outcome_of(faults.explain(error)))

    def _refuse(self, message: str) -> None:
        self._ending.request(Outcome(Reason.SCRIPT_UNSUPPORTED, message))

    def _prepare(self, script: Mapping[str, str]) -> tuple[SparkConf, Any]:
        """Start the JVM with the script's settings; return those of the context, and the gateway."""
        if os.getpid() != self._process_id:
            # Two of them would have their queries on one checkpoint, with one fence, and nobody would stop them.
            raise ScriptRefusedError(messages.IN_CHILD_PROCESS)
        self._end_if_asked()
        self.keep_secret(*values_of_launch(script, ()))
        self._renew_credentials()
        with self._own_credentials():
            made = last_script.difference(self._before, os.environ)
            changed = {name: value for name, value in made.items() if name not in OF_ONE_PROCESS}
            before, self._asked = self._asked, Asked(dict(script), changed)
            again = before.settings == self._asked.settings
            if before.settings and not again:
                # Spark has not taken these: whoever tries it without them is to have a JVM without them.
                spark_session.end_jvm()
            try:
                prepared = spark_session.prepare_context(
                    self._config, self._environment, self._progress, self._process, script, again=again
                )
            except FaultError as error:  # the script is not to make anything else of it
                self._ending.request(Outcome(error.fault.reason, error.fault.message))
                raise ScriptRefusedError(error.fault.message) from error
        # A JVM takes seconds to start, or minutes with packages; no executor is asked for when nobody wants it.
        self._end_if_asked()
        return prepared

    def _end_if_asked(self) -> None:
        if self._ending.requested.is_set():
            raise DriverStoppingError(EXIT_STOPPED)

    def _renew_credentials(self) -> None:
        """Have the storage's credentials as they are now: a script may work for hours before it asks for Spark."""
        with contextlib.suppress(FaultError):  # with those of the start it is seen soon enough
            directory = self._environment.credentials_directory
            found = s3_client.read_credentials(directory, self._config.credentials_secret)
            if found is not None:
                self.keep_secret(*found.secrets)
                kept = {name: value for name, value in self._before.items() if name not in CREDENTIALS_OF_SECRET}
                self._before = kept | found.variables()

    def _meet_context(self, context: SparkContext) -> None:
        """Give the context what the spec has for it."""
        # The next process of the pod can have its JVM started so. Not before: this one came up.
        last_script.keep(self._environment.work_directory, self._asked)
        self._path = self._reach_storage(context)
        spark_session.add_python_files(context, self._files.python, self._environment.work_directory)
        if self._files.beside:
            spark_session.find_beside(context, folders_of(self._files.beside))

    def _reach_storage(self, context: SparkContext) -> Any:
        """Have the connection to the application's own storage made before the script can say anything about it.

        Hadoop keeps one for each bucket, as it was made first. Returns the settings that it was made with.
        """
        hadoop: Any = context._jsc.hadoopConfiguration()
        jvm: Any = context._jvm
        for key, value in s3a_settings.rest_of_path(self._config.storage, hadoop.get).items():
            hadoop.set(key, value)
        # Whatever is wrong with it, the first query says in its own words.
        with contextlib.suppress(Py4JError):
            jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(self._config.storage.hadoop_uri), hadoop)
        return hadoop.getPropsWithPrefix(s3a_settings.S3A)

    def hold_path(self, session: SparkSession) -> None:
        """Have the path to the application's own storage as it was, before a query starts; asks the JVM."""
        start = s3a_settings.own_start(self._config.storage)
        hadoop: Any = session._jsc.hadoopConfiguration()
        # One answer tells whether there is anything to do: the path has dozens of settings.
        if not hadoop.getPropsWithPrefix(s3a_settings.S3A).equals(self._path):
            self._hold(hadoop)
            self._path = hadoop.getPropsWithPrefix(s3a_settings.S3A)
        of_session: Any = session._jsparkSession.sessionState().conf().settings()
        names = of_session.keySet().toString()
        if start in names or s3a_settings.IMPLEMENTATION in names:
            for key in [str(key) for key in of_session.keySet().toArray()]:
                # Under Spark's name it is the context's, which is right: every session has all of these.
                if key.startswith(s3a_settings.S3A) and (why := self._why_not(key, str(of_session.get(key)))):
                    session.conf.unset(key)
                    self._put_right(key, why)

    def _hold(self, hadoop: Any) -> None:
        was, now = dict(self._path), dict(hadoop.getPropsWithPrefix(s3a_settings.S3A))
        for name in sorted(was.keys() | now.keys()):
            key = f"{s3a_settings.S3A}{name}"
            if was.get(name) != now.get(name) and (why := self._why_not(key, now.get(name, ""))):
                # As it was, or not set at all.
                hadoop.set(key, was[name]) if name in was else hadoop.unset(key)
                self._put_right(key, why)

    def _why_not(self, key: str, value: str) -> str:
        """Return why a setting of S3A that the script made late cannot stay; empty: it can."""
        if s3a_settings.is_of_own_path(key, self._config.storage):
            return messages.STORAGE_IS_THE_SPECS
        return messages.ONE_CLASS_FOR_ALL_BUCKETS if s3a_settings.is_another_implementation(key, value) else ""

    def _put_right(self, name: str, why: str) -> None:
        message = messages.setting_ignored(name, "the script", why)
        self._progress.notice(Reason.CONFIGURATION_IGNORED, message)

    @contextlib.contextmanager
    def _own_credentials(self) -> Iterator[None]:
        """Have the variables of the storage's credentials as they were: a script may have set others for its inputs."""
        scripts = {name: value for name, value in os.environ.items() if name.startswith(CREDENTIALS)}
        ours = {name: value for name, value in self._before.items() if name.startswith(CREDENTIALS)}
        _replace(scripts, ours)
        try:
            yield
        finally:
            _replace(ours, scripts)


def _replace(there: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name in there.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
