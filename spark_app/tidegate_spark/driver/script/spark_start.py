"""Starts Spark when the script first asks for it. Starts the JVM."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.protocol import ACCESS_KEY, EXIT_STOPPED, SECRET_KEY, SESSION_TOKEN, DriverConfig
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.ending import Ending
from tidegate_spark.driver.preflight import folders_of
from tidegate_spark.driver.script import script_settings
from tidegate_spark.driver.script.script import outcome_of
from tidegate_spark.driver.script.script_entry import Host, ScriptRefusedError
from tidegate_spark.driver.script.storage_path import StoragePath
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.jvm import last_script
from tidegate_spark.jvm import session as spark_session
from tidegate_spark.jvm.jvm_command import PYSPARK_SHELL
from tidegate_spark.jvm.last_script import Asked
from tidegate_spark.jvm.launching import ARGUMENTS
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults import faults
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import values_of_launch
from tidegate_spark.queries.refusals import DriverStoppingError
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

CREDENTIALS_OF_SECRET = frozenset({ACCESS_KEY, SECRET_KEY, SESSION_TOKEN})


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
            progress: reports what is missing.
            process: of the driver.
            files: for the context.
            ending: of the driver.
        """
        self._config, self._environment, self._progress, self._process = config, environment, progress, process
        self._files, self._ending = files, ending
        self.keep_secret: Callable[..., None] = lambda *values: None
        """Called with secrets that are not to be shown."""
        self._before = dict(os.environ)
        self._process_id = os.getpid()
        self._asked = Asked()
        self.path = StoragePath(config.storage, progress)

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
        if os.environ.get(ARGUMENTS, "").split() not in ([], [PYSPARK_SHELL]):
            self._progress.notice(Reason.CONFIGURATION_IGNORED, messages.SUBMIT_ARGUMENTS_IGNORED)
        with self._own_variables():
            before, self._asked = self._asked, Asked(dict(script))
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
        self.path.reach(context)
        spark_session.add_python_files(context, self._files.python, self._environment.work_directory)
        if self._files.beside:
            spark_session.find_beside(context, folders_of(self._files.beside))

    @contextlib.contextmanager
    def _own_variables(self) -> Iterator[None]:
        """Have the variables as they were before the script: under ``spark-submit`` the JVM runs by then.

        A tutorial's ``JAVA_HOME`` need not exist here, and keys for the script's inputs do not open the storage.
        """
        scripts = _difference(self._before, os.environ)
        _replace({name: self._before.get(name) for name in scripts})
        try:
            yield
        finally:
            _replace(scripts)


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return what was set or, None, removed in an environment."""
    names = before.keys() | after.keys()
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _replace(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
