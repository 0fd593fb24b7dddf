"""Which of the options of the driver's JVM another pod's needs that reaches the same storage. No I/O."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_REACHING = re.compile(
    r"-D(?:javax\.net\.ssl\.|jdk\.tls\.|java\.net\.|java\.security\.|https?\.|socksProxy|aws\.|com\.amazonaws\.)[^=]*=?"
)
"""Trust and key stores, versions of TLS, proxies, Internet protocols, what the store's client reads."""


def reaching_storage(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with those options alone by which the storage is reached; none where none is.

    All others are for the driver: agents, debuggers, logs in volumes and sizes of memory would keep a pod without them
    from starting, and a time zone changes nothing in state.
    """
    found = {key: _kept(conf.get(key, "")) for key in _OPTIONS}
    return {key: shlex.join(options) for key, options in found.items() if options}


def files_named(conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the options of these settings, each of which may be a file, such as a trust store."""
    return tuple(option.partition("=")[2] for key in _OPTIONS for option in _kept(conf.get(key, "")))


def _kept(options: str) -> list[str]:
    try:
        return [option for option in shlex.split(options) if _REACHING.match(option)]
    except ValueError:  # a quotation mark that nothing ends: Spark refuses it, too
        return []
