"""Starts a driver from its environment: output, configuration, PySpark, the driver itself. Does I/O."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from typing import NoReturn

from tidegate_spark.contract.configuration_protocol import REST_FILE_VARIABLE, ConfigurationChangedError
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig
from tidegate_spark.driver.configuration import REST_FILE, read_launch
from tidegate_spark.driver.first_process import StopLine
from tidegate_spark.driver.script.own_records import keep_apart
from tidegate_spark.jvm import jvm_prestart
from tidegate_spark.jvm.jvm_prestart import HeadStart
from tidegate_spark.process import logs
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.environment import Environment, expanded, inherited_variables
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.redaction import Secrets, secret_values, values_of_launch
from tidegate_spark.process.spark import pyspark_path
from tidegate_spark.process.this_process import at_exit_of_this_process
from tidegate_spark.storage import s3_client, start_variables


def start(stops: StopLine) -> NoReturn:
    """Run the driver, which ends the process.

    Args:
        stops: reports them.

    Raises:
        ConfigurationChangedError: the configuration is not the one that the pod was launched with.
        ValueError: there is no usable configuration.
        ModuleNotFoundError: there is no PySpark.
        Exception: whatever else kept the driver from coming up.
    """
    output = logs.OutputTail(Secrets(secret_values(os.environ)))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # it is a TextIOWrapper unless replaced
    log_to_stderr(os.environ)
    keep_apart()
    # If we come back from here, the interpreter ends, and with it the threads that pass our output on.
    at_exit_of_this_process(output.content)
    config = read_config(os.environ.get(CONFIG_VARIABLE, ""), os.environ.get(REST_FILE_VARIABLE, REST_FILE))
    # Before any variable of ours is added.
    config = dataclasses.replace(config, args=expanded(config.args, os.environ))
    output.secrets.add(*values_of_launch(config.spark_conf, config.args))
    pyspark_path.make_importable(os.environ, sys.path)
    environment = Environment.read(os.environ)
    os.environ.update(inherited_variables(config, os.environ, sys.executable))
    name = logs.process_name(time.time(), config.epoch, rehearsal=config.rehearsal is not None)
    ahead = _start_jvm(config, environment, name, output.secrets)
    # What the script sets later is for its own inputs, not for the application's storage.
    start_variables.note()
    # Not before: the driver's modules import PySpark.
    from tidegate_spark.driver.driver import Driver  # noqa: PLC0415 - see the line above

    Driver(config, environment, output, name, ahead).run(stops)


def _start_jvm(config: DriverConfig, environment: Environment, name: str, secrets: Secrets) -> HeadStart | None:
    # First of all what must not be seen in its output.
    for directory in (environment.credentials_directory, environment.origin_credentials_directory):
        mounted = s3_client.mounted_credentials(directory)
        secrets.add(*(mounted.secrets if mounted else ()))
    ahead = jvm_prestart.begin(config, environment, name, os.environ)
    if ahead is not None:
        at_exit_of_this_process(ahead.end)
    return ahead


def read_config(text: str, rest_file: str = REST_FILE) -> DriverConfig:
    """Return the driver's configuration.

    Raises:
        ConfigurationChangedError: a part of it is missing, or is not what the pod was launched with.
        ValueError: naming the variable, what is wrong, and the remedy.
    """
    try:
        return read_launch(text, rest_file)
    except ConfigurationChangedError:
        raise
    except ValueError as error:
        what = f"{CONFIG_VARIABLE}: {error}" if text else f"{CONFIG_VARIABLE} is not set"
        remedy = messages.CONFIGURATION_MISSING
        raise ValueError(f"{what}. {remedy}") from None
