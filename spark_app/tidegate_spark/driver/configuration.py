"""Reads the configuration of a launch from its variable, and its long part from a file. Does I/O."""

from __future__ import annotations

from pathlib import Path

from tidegate_spark.contract.configuration_protocol import REST_DIRECTORY, REST_KEY, missing, put_together, rest_of
from tidegate_spark.contract.protocol import DriverConfig

REST_FILE = f"{REST_DIRECTORY}/{REST_KEY}"


def read_launch(text: str, rest_file: str = REST_FILE) -> DriverConfig:
    """Return the configuration of the pod's launch.

    Args:
        text: of the variable.
        rest_file: where the rest is, if the variable says that there is one.

    Raises:
        ConfigurationChangedError: the rest is missing, or is not what the pod was launched with.
        ValueError: there is no usable configuration.
    """
    if rest_of(text) is None:
        return put_together(text, b"")
    try:
        content = Path(rest_file).read_bytes()
    except OSError as error:
        raise missing(text, str(error)) from None
    return put_together(text, content)
