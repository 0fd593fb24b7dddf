"""The limits of Linux for variables and arguments of a process. No I/O.

A container that exceeds them is not started, and leaves neither a message nor a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidegate.api.values.errors import TooLongError
from tidegate.pods import messages

LONGEST_STRING = 128 * 1024 - 1
"""Bytes of one argument, or of one variable with its name and "=": MAX_ARG_STRLEN of include/uapi/linux/binfmts.h, for
pages of 4 KiB, without the zero at the end."""
LONGEST_SETTING = LONGEST_STRING - 4096
"""Of a setting of Spark, which is an argument "key=value" of the driver's JVM. Executors have some in variables, where
Spark puts paths of its own in front."""
LONGEST_ENVIRONMENT = 1536 * 1024
"""Of all variables. Arguments and variables together have a quarter of the stack's limit, which is 8 MiB where nobody
changes it (get_arg_page in fs/exec.c); the rest is for Tidegate's and Spark's own."""


def refuse_long_variables(env: Iterable[Mapping[str, Any]], field: str) -> None:
    """Raise if Linux starts no process with one of a user's variables.

    Args:
        env: the variables of one place in the spec, each with a name.
        field: path of that place.

    Raises:
        TooLongError: naming the first.
    """
    for name, size in _sizes(env):
        if size > LONGEST_STRING:
            raise TooLongError(
                f"{field}[{name}]",
                messages.variable_too_long(size, LONGEST_STRING),
            )


def refuse_long_environment(env: Iterable[Mapping[str, Any]], field: str) -> None:
    """Raise if Linux starts no process with all of a container's variables.

    Args:
        env: those of the container.
        field: path of where most of them are from.

    Raises:
        TooLongError: they are too many.
    """
    whole = sum(size + 1 for _, size in _sizes(env))
    if whole > LONGEST_ENVIRONMENT:
        raise TooLongError(
            field,
            messages.environment_too_long(whole, LONGEST_ENVIRONMENT),
        )


def refuse_long_settings(spark_conf: Mapping[str, str]) -> None:
    """Raise if no JVM can be started with one of the settings of ``spec.sparkConf``.

    Raises:
        TooLongError: naming the first.
    """
    for key, value in spark_conf.items():
        size = len(key.encode()) + 1 + len(value.encode())
        if size > LONGEST_SETTING:
            raise TooLongError(
                f"spec.sparkConf[{key:.100}]",
                messages.setting_too_long(size, LONGEST_SETTING),
            )


def is_too_long(item: Mapping[str, Any]) -> bool:
    """Return whether Linux starts no process with a variable, as far as its own value says."""
    return len(f"{item.get('name', '')}={item.get('value') or ''}".encode()) > LONGEST_STRING


def _sizes(env: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield each variable's name, and the bytes of name, "=" and value as the kubelet hands it over."""
    sizes: dict[str, int] = {}
    for item in env:
        name = str(item["name"])
        sizes[name] = _expanded(str(item.get("value") or ""), sizes)
        yield name, len(name.encode()) + 1 + sizes[name]


def _expanded(value: str, sizes: Mapping[str, int]) -> int:
    """Return the bytes of a value after the kubelet has put those of variables before it in place of ``$(NAME)``."""
    size, at = len(value.encode()), value.find("$(")
    while at >= 0 and (end := value.find(")", at)) >= 0:
        name = value[at + 2 : end]
        escaped = at > 0 and value[at - 1] == "$"
        if name in sizes and not escaped:
            size += sizes[name] - len(f"$({name})".encode())
        at = value.find("$(", end)
    return size
