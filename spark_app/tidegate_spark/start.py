"""From the environment to a running driver: output, configuration, PySpark, and then the driver itself. Does I/O."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

from tidegate_spark import logs, pyspark_path
from tidegate_spark.environment import Environment
from tidegate_spark.log_lines import log_to_stderr
from tidegate_spark.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_spark.redaction import Secrets, secret_values


def start() -> NoReturn:
    """Run the driver, which ends the process.

    Raises:
        ValueError: there is no usable configuration.
        ModuleNotFoundError: there is no PySpark.
        Exception: whatever else kept the driver from coming up.
    """
    output = logs.OutputTail(Secrets(secret_values(os.environ)))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # it is a TextIOWrapper unless replaced
    log_to_stderr(os.environ)
    # If we come back from here, the interpreter ends, and with it the threads that pass our output on.
    atexit.register(output.content)
    config = read_config(os.environ.get(CONFIG_VARIABLE, ""))
    pyspark_path.make_importable(os.environ, sys.path)
    # Not before: the driver's modules import PySpark.
    from tidegate_spark.driver import Driver  # noqa: PLC0415 - see the line above

    Driver(config, Environment.read(os.environ), output).run()


def read_config(text: str) -> DriverConfig:
    """Return the driver's configuration.

    Raises:
        ValueError: naming the variable, what is wrong, and the remedy.
    """
    try:
        return from_json(DriverConfig, text)
    except ValueError as error:
        what = f"{CONFIG_VARIABLE}: {error}" if text else f"{CONFIG_VARIABLE} is not set"
        remedy = "The operator sets it; an image that brings its own runtime must bring one of the operator's version."
        raise ValueError(f"{what}. {remedy}") from None
