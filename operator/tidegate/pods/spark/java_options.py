"""Which options of the driver's JVM a helper pod's JVM needs to reach the same storage. No I/O."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

_VARIABLES = frozenset({"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"})
"""Those from which a JVM, or the program that starts it, takes options."""
_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_REACHING = re.compile(
    r"-D(?:javax\.net\.ssl\.|jdk\.tls\.|java\.net\.|java\.security\.|https?\.|socksProxy|aws\.|com\.amazonaws\.)[^=]*=?"
)
"""Trust and key stores, versions of TLS, proxies, Internet protocols, what the store's client reads."""
_PART = re.compile(
    r"(?P<space>[\x20\t\r\n]+)|(?P<plain>[^\x20\t\r\n'\"\\]+)|'(?P<single>[^']*+)'"
    r"|\"(?P<double>[^\"\\]*+(?:\\.[^\"\\]*+)*+)\"|\\(?P<escaped>.)",
    re.DOTALL,
)
_ESCAPED_IN_DOUBLE = re.compile(r"\\([\"\\])")


def reaching_storage(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with those options alone by which the storage is reached; none where none is.

    All others are for the driver: agents, debuggers, logs in volumes and sizes of memory would keep a pod without them
    from starting, and a time zone changes nothing in state.
    """
    found = {key: _kept(conf.get(key, "")) for key in _OPTIONS}
    return {key: shlex.join(options) for key, options in found.items() if options}


def variable_reaching_storage(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a variable of a JVM's options with those options alone; None if it is another one, or has none of them.

    Of one that comes from a Secret or ConfigMap (``valueFrom``) nobody knows here what is in it.
    """
    options = _kept(str(item.get("value") or "")) if item.get("name") in _VARIABLES else []
    return {**item, "value": shlex.join(options)} if options else None


def files_named(conf: Mapping[str, str], env: Iterable[Mapping[str, Any]] = ()) -> tuple[str, ...]:
    """Return the values of the options of these settings and variables; each may be a file, such as a trust store."""
    variables = [str(item.get("value") or "") for item in env if item.get("name") in _VARIABLES]
    texts = [*(conf.get(key, "") for key in _OPTIONS), *variables]
    return tuple(option.partition("=")[2] for text in texts for option in _kept(text))


def _kept(options: str) -> list[str]:
    return [option for option in _split(options) if _REACHING.match(option)]


def _split(options: str) -> list[str]:
    """Return the options that a text has, as ``shlex.split`` does; none if a quotation mark has no end, as in Spark.

    ``shlex`` copies what it has of an option with each of its characters, and all others wait for a long one.
    """
    found: list[str] = []
    parts: list[str] = []
    at = 0
    while at < len(options):
        part = _PART.match(options, at)
        if part is None:
            return []
        at = part.end()
        if part.lastgroup != "space":
            parts.append(_text_of(part))
        elif parts:
            found.append("".join(parts))
            parts = []
    return [*found, "".join(parts)] if parts else found


def _text_of(part: re.Match[str]) -> str:
    text = part[part.lastgroup or 0]
    return _ESCAPED_IN_DOUBLE.sub(r"\1", text) if part.lastgroup == "double" else text
