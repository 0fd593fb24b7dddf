"""Starts the JVM, checks its class path, and makes the script's SparkSession. Does I/O."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidegate_spark.contract.owned_settings import for_executors_alone
from tidegate_spark.contract.protocol import DriverConfig, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.jvm import entry_messages, launching
from tidegate_spark.jvm.jvm_prestart import HeadStart
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import without_secrets
from tidegate_spark.process.spark import sparkconf
from tidegate_spark.storage.claim.fence import Held
from tidegate_spark.storage.s3_client import FaultError

_CLASS_MISSING = messages.checkpoint_class_missing(sparkconf.CHECKPOINT_FILES_CLASS)

END_SECONDS = 2.0
"""What a JVM that closed its connections gets to be gone."""


@dataclass(frozen=True)
class Process:
    """The driver process that starts Spark."""

    name: str
    held: Held
    """The fence."""
    before_executors: Callable[[], object]
    """Called when the JVM runs and no executor is asked for yet."""
    ahead: HeadStart | None = None
    """The JVM that was started ahead."""
    starter: str = ""
    """The program that starts a JVM in place of ``spark-submit``; empty: none."""
    folder: str = field(default_factory=os.getcwd)
    """Where the JVM runs, wherever a script goes: under ``spark-submit`` it runs before the script does."""


RESOLVED = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles")
"""What the JVM has made more of when it is up: packages are resolved to jars, and what is far away is fetched."""
OF_THE_COMMAND = (
    *("spark.jars", "spark.jars.packages", "spark.jars.repositories", "spark.jars.excludes"),
    *("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"),
    *("spark.driver.extraClassPath", "spark.driver.extraLibraryPath"),
)
"""What the driver's JVM takes from its command alone."""


def start_session(config: DriverConfig, environment: Environment, progress: Progress, process: Process) -> SparkSession:
    """Start Spark for a process that holds the fence and runs no script, and return the session.

    Raises:
        FaultError: CONNECTOR_MISSING if the class path lacks Hadoop's S3A connector.
    """
    conf, gateway = prepare_context(config, environment, progress, process)
    SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.getOrCreate()


def prepare_context(  # noqa: PLR0913 - those beyond are by name
    config: DriverConfig,
    environment: Environment,
    progress: Progress,
    process: Process,
    script: Mapping[str, str] = sparkconf.NOTHING,
    *,
    again: bool = False,
) -> tuple[SparkConf, Any]:
    """Start the JVM, unless it runs, and return what a context is made of: its settings, and the gateway to the JVM.

    Args:
        config: of the driver.
        environment: where it finds things.
        progress: reports what is missing, and what has no effect.
        process: of the driver.
        script: what of the script's own settings is used.
        again: whether a JVM that runs was started with the same settings.

    Raises:
        FaultError: CONNECTOR_MISSING if the class path lacks Hadoop's S3A connector.
    """
    _write_template(config, environment)
    settings = sparkconf.build_spark_conf(config, environment, process.name, script)
    gateway = SparkContext._gateway
    new = gateway is None
    # Whoever sees the pod's processes sees their commands.
    hidden = script.keys() - without_secrets(script).keys()
    if gateway is None:
        conf = SparkConf().setAll([(key, value) for key, value in settings.items() if key not in hidden])
        directory, how = environment.work_directory, {"starter": process.starter, "folder": process.folder}
        gateway = launching.launch(conf, directory, sparkconf.OF_ONE_PROCESS, process.ahead, **how)
    if (new or again) and gateway.proc is not None:  # it was started with all of them
        settings = {key: value for key, value in settings.items() if key not in RESOLVED or key in hidden}
    for key in sorted(hidden.intersection(OF_THE_COMMAND)):
        progress.notice(Reason.CONFIGURATION_IGNORED, entry_messages.hidden_from_the_command(key))
    if not _has_class(gateway.jvm, sparkconf.S3A_CLASS):
        raise FaultError(Fault(Reason.CONNECTOR_MISSING, _connector_message(config, environment.jars_directory)))
    available = _has_class(gateway.jvm, sparkconf.CHECKPOINT_FILES_CLASS)
    if not available:
        progress.notice(Reason.CHECKPOINT_CLASS_MISSING, _CLASS_MISSING, warning=True)
    settings |= sparkconf.checkpoint_files(settings, available)
    settings |= sparkconf.fence_settings(config, process.held.etag)
    process.before_executors()
    for key in sparkconf.ignored_keys(config):
        progress.notice(Reason.CONFIGURATION_IGNORED, _ignored_message(key))
    return SparkConf().setAll(list(settings.items())), gateway


def end_jvm() -> None:
    """End the JVM, if this process has started one: what it was started with would be in the next context, too."""
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    process.kill()
    process.wait()
    process.stdin.close()
    gateway.close()
    SparkContext._gateway = SparkContext._jvm = None


def add_python_files(context: SparkContext, paths: tuple[str, ...], work_directory: str) -> None:
    """Make ``pyFiles`` importable in the driver and in the executors' Python workers; a directory is zipped first."""
    for number, path in enumerate(paths):
        sent = path
        if Path(path).is_dir():
            sent = shutil.make_archive(f"{work_directory}/pyfiles-{number}", "zip", path)
        context.addPyFile(sent)


def find_beside(context: SparkContext, folders: Sequence[str]) -> None:
    """Let Python workers import what is beside the program, as the driver can: executors have the same image."""
    variables = context.environment
    known = [path for path in variables.get("PYTHONPATH", "").split(":") if path]
    variables["PYTHONPATH"] = ":".join([*known, *folders])


def python_path_entry(path: str) -> str:
    """Return what of a ``pyFiles`` entry belongs on ``sys.path``: a module's directory, or the archive or directory."""
    return str(Path(path).parent) if path.endswith(".py") else path


def jvm_exit_code(*, connection_lost: bool = False) -> int | None:
    """Return the exit code of Spark's JVM, None while it runs or if there is none.

    If the connection to it was lost, its end is waited for a little: the system closes a process's connections first.
    If its parent was killed before, this is :data:`~tidegate_spark.jvm.jvm_process.EXIT_NOT_KNOWN`.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    if connection_lost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    code: int | None = process.poll()
    return code


def _write_template(config: DriverConfig, environment: Environment) -> None:
    Path(environment.work_directory).mkdir(parents=True, exist_ok=True)
    # JSON is YAML, and Spark reads the template as YAML.
    template = Path(environment.work_directory) / sparkconf.TEMPLATE_NAME
    content = sparkconf.executor_template(config, environment.pod_uid)
    template.write_text(json.dumps(content), encoding="utf-8")


def _has_class(jvm: Any, name: str) -> bool:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, True, loader)
    except Py4JError:
        return False
    return True


def _connector_message(config: DriverConfig, directory: str) -> str:
    if config.injected:
        found = f"the jars that the init container copies are not in {directory}"
    else:
        found = "Spark's jars have no hadoop-aws with what it needs, and spec.application.runtime is not Injected"
    return messages.s3a_class_missing(sparkconf.S3A_CLASS, found)


def _ignored_message(key: str) -> str:
    """Say it of a key of the spec, which an older CRD let pass."""
    if for_executors_alone(key):
        return entry_messages.reaches_executors_alone(key, sparkconf.remedy_for(key))
    return entry_messages.setting_ignored(key, "spec.sparkConf", sparkconf.remedy_for(key))
