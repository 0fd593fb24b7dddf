"""``python3 -m tidegate_spark``: the driver's entry point. Reads its configuration from the environment; does I/O."""

from __future__ import annotations

import logging
import os
import sys

from tidegate_spark import logs
from tidegate_spark.driver import Driver
from tidegate_spark.environment import Environment
from tidegate_spark.protocol import CONFIG_VARIABLE, EXIT_APPLICATION, DriverConfig, from_json


def main() -> int:
    """Run the driver; returns only if there is no usable configuration."""
    output = logs.OutputTail()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # it is a TextIOWrapper unless replaced
    log_to_stderr()
    try:
        config = from_json(DriverConfig, os.environ.get(CONFIG_VARIABLE, ""))
    except ValueError as error:
        logging.getLogger("tidegate").error("%s: %s", CONFIG_VARIABLE, error)
        output.content()
        return EXIT_APPLICATION
    Driver(config, Environment.read(os.environ), output).run()
    return EXIT_APPLICATION


def log_to_stderr() -> None:
    """Give the runtime's own messages a handler of their own; the script's logging stays the script's."""
    log = logging.getLogger("tidegate")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s tidegate %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


if __name__ == "__main__":
    sys.exit(main())
