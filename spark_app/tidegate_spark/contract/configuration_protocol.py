"""Splits the configuration of a launch that is too long for one environment variable.

The variable then has what identifies the launch, and name and digest of a Secret with the rest. A runtime that does not
know this finds no ``main`` and refuses to start. Standard library only, no I/O.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.reasons import Reason

LONGEST_IN_VARIABLE = 96 * 1024
"""Bytes of configuration that a variable holds. Linux starts no process with a variable of 128 KiB or more, its name
included (MAX_ARG_STRLEN in include/uapi/linux/binfmts.h, for pages of 4 KiB); the rest is left for what comes."""

REST_KEY = "configuration.json"
"""Of the Secret."""
REST_DIRECTORY = "/var/run/tidegate/configuration"
"""Where the Secret with the rest is mounted."""
REST_FILE_VARIABLE = "TIDEGATE_CONFIGURATION_FILE"
"""Environment variable that says where else the rest is: for processes that are in no pod."""

_REST = "rest"
_WHOLE_FIELDS = ("main", "args", "py_files", "spark_conf", "channel", "control")
"""Fields of a configuration whose length is the user's; ``main`` is among them so that none is without the rest."""


class ConfigurationChangedError(ValueError):
    """What was given as the rest of the configuration is not what the pod was launched with."""

    reason = Reason.CONFIGURATION_CHANGED


@dataclass(frozen=True)
class Rest:
    """Where the rest of a configuration is; the operator and the runtime know it by its digest."""

    secret: str
    """Name of the Secret."""
    sha256: str
    """Of the content, in hexadecimal digits."""


def divide(config: DriverConfig, kept_settings: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """Return what of a configuration stays in the variable, without the place of the rest, and the rest.

    Args:
        config: the whole.
        kept_settings: those of Spark that stay in the variable as well.
    """
    executor = config.executor
    rest = {name: getattr(config, name) for name in _WHOLE_FIELDS} | {"executor": {"template": executor.template}}
    kept = {name: value for name, value in vars(config).items() if name not in _WHOLE_FIELDS}
    kept["spark_conf"] = {key: config.spark_conf[key] for key in kept_settings if key in config.spark_conf}
    kept["executor"] = dataclasses.replace(executor, template={})
    return kept, to_json(rest)


def with_rest(kept: dict[str, Any], secret: str, rest: str) -> str:
    """Return the variable's text: what stays in it, and the place of the rest."""
    return to_json({**kept, _REST: Rest(secret, digest_of(rest.encode()))})


def digest_of(content: bytes) -> str:
    """Return the digest by which the rest is known."""
    return hashlib.sha256(content).hexdigest()


def rest_of(text: str) -> Rest | None:
    """Return where the rest of a configuration is, None if the variable has the whole, or is no configuration.

    Raises:
        ValueError: it says that there is a rest, and not where.
    """
    fields = _fields(text)
    return from_json(Rest, json.dumps(fields[_REST])) if fields is not None and _REST in fields else None


def put_together(text: str, content: bytes) -> DriverConfig:
    """Return the whole configuration.

    Args:
        text: of the variable.
        content: what was found in place of the rest.

    Raises:
        ConfigurationChangedError: that is something else.
        ValueError: there is no usable configuration.
    """
    rest, fields = rest_of(text), _fields(text)
    if rest is None or fields is None:
        return from_json(DriverConfig, text)
    if digest_of(content) != rest.sha256:
        raise ConfigurationChangedError(
            f"Secret {rest.secret} is not the configuration that this pod was launched with: somebody replaced it"
        )
    theirs = json.loads(content)
    executor = {**fields["executor"], **theirs["executor"]}
    return from_json(DriverConfig, json.dumps({**fields, **theirs, "executor": executor}))


def missing(text: str, why: str) -> ConfigurationChangedError:
    """Return the error of a rest that cannot be read."""
    rest = rest_of(text)
    return ConfigurationChangedError(f"Secret {rest.secret if rest else ''} cannot be read: {why}")


def _fields(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
