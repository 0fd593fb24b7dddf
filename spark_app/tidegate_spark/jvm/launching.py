"""Starts Spark's JVM: ahead of use, by a kept command, or by Spark's launcher. Starts processes."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from tidegate_spark.jvm.jvm_command import KeptCommand, arguments_of, digest_of
from tidegate_spark.jvm.jvm_gateway import JvmGateway
from tidegate_spark.jvm.jvm_prestart import GATEWAY_PORT, GATEWAY_SECRET, HeadStart
from tidegate_spark.jvm.jvm_process import JvmProcess

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""A variable by which PySpark has more arguments for the JVM's start."""

log = logging.getLogger("tidegate")


def launch(  # noqa: PLR0913 - those beyond are by name
    conf: SparkConf,
    directory: str,
    changing: frozenset[str],
    ahead: HeadStart | None = None,
    *,
    starter: str = "",
    folder: str | None = None,
) -> Any:
    """Start the JVM, or take the one that was started ahead; return PySpark's gateway to it.

    Args:
        conf: the settings; each JVM gets them again.
        directory: where its command is kept.
        changing: settings that differ between processes, and on which the command does not depend.
        ahead: the one that was started ahead.
        starter: the program that starts one in place of ``spark-submit``; empty: none.
        folder: where it runs, and where Spark looks for relative local paths; None: where this process is.

    Raises:
        PySparkRuntimeError: it ended at once.
        OSError: there is nothing to start.
    """
    # What PySpark's launcher makes the process and the gateway with.
    vars(java_gateway).update(Popen=JvmProcess, ClientServer=JvmGateway)
    if starter:
        return _start(conf, cwd=folder, executable=starter)
    settings = {key: value for key, value in conf.getAll() if key not in changing}
    digest = digest_of(Path(_find_spark_home()), settings, os.environ)
    gateway = _attach(ahead, digest) if ahead is not None else None
    if gateway is not None:
        return gateway
    kept = KeptCommand(Path(directory), digest)
    command = kept.take()
    if command is not None:
        try:
            gateway = _start(conf, cwd=folder, executable=str(command))
        except (PySparkRuntimeError, OSError) as error:
            log.warning("the JVM did not start by the command of the one before: %s", error)
        else:
            kept.keep_again()
            return gateway
    gateway = _start(conf, cwd=folder)
    if gateway.proc is not None:
        foreseen = gateway.proc.args[1:] == arguments_of(dict(conf.getAll()))
        kept.keep(gateway.proc.pid, os.environ, foreseen)
    return gateway


def _attach(ahead: HeadStart, digest: str) -> Any:
    """Return PySpark's gateway to the JVM that was started ahead, None if that is not the one that is wanted."""
    door = ahead.await_up(digest)
    if door is None:
        return None
    # PySpark's way to learn of a JVM that runs. The script and its children are not to find these.
    os.environ[GATEWAY_PORT], os.environ[GATEWAY_SECRET] = str(door.port), door.secret
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call] # untyped there
    except (Py4JError, OSError) as error:
        log.warning("the JVM that was started ahead does not answer: %s", error)
        ahead.end()
        return None
    finally:
        del os.environ[GATEWAY_PORT], os.environ[GATEWAY_SECRET]
    gateway.proc = ahead.hand_over()
    return gateway


def _start(conf: SparkConf, **how: Any) -> Any:
    # Its arguments beat the settings, and under spark-submit nobody reads them.
    arguments = os.environ.pop(ARGUMENTS, None)
    try:
        return launch_gateway(conf, popen_kwargs=how)  # type: ignore[no-untyped-call] # untyped there
    finally:
        if arguments is not None:
            os.environ[ARGUMENTS] = arguments
