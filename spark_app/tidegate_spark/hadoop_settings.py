"""What goes from Hadoop's settings when a script sets ``fs.s3a.endpoint`` there. Talks to the JVM, by Py4J.

In a builder, the defaults that fit only the storage's own store give way with its endpoint. A script may set the
endpoint of its inputs' store later, by ``hadoopConfiguration().set``: these have to go then, before it reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from py4j.java_gateway import JavaObject

from tidegate_spark import s3a_settings
from tidegate_spark.places import Storage, store_identity
from tidegate_spark.s3a_settings import HADOOP

_CONFIGURATION = "org.apache.hadoop.conf.Configuration"
_BESIDE = ("fs.s3a.endpoint.region", "fs.s3a.connection.ssl.enabled")
"""Of the others, ``path.style.access`` stays: every store takes it, and those in a cluster need it."""


def guard_endpoint(storage: Storage, spec: Mapping[str, str]) -> None:
    """Have what fits only the storage's own store go with its endpoint, in this process.

    Args:
        storage: the application's.
        spec: settings of the spec, which stay.
    """
    guard = _Guard(storage, spec)
    original = JavaObject.__getattr__

    @functools.wraps(original)
    def attribute(java: Any, name: str) -> Any:
        found = original(java, name)
        return functools.partial(guard.set, java, found) if name == "set" else found

    JavaObject.__getattr__ = attribute


class _Guard:
    def __init__(self, storage: Storage, spec: Mapping[str, str]) -> None:
        self._store, self._region = store_identity(storage.endpoint, storage.region), storage.region
        ours = s3a_settings.defaults(storage, has_secret=False)
        self._ours = {key: ours[HADOOP + key] for key in _BESIDE if HADOOP + key in ours and HADOOP + key not in spec}

    def set(self, java: Any, original: Callable[..., Any], *args: Any) -> Any:
        """Do what ``original`` does, which is some object's method ``set``."""
        done = original(*args)
        if not args or args[0] not in (*_BESIDE, f"{s3a_settings.S3A}endpoint") or not _is_configuration(java):
            return done
        if args[0] in _BESIDE:
            self._ours.pop(args[0], None)  # the script's own now
        elif store_identity(str(args[1]), self._region) != self._store:
            for key, value in self._ours.items():
                if java.get(key) == value:
                    java.unset(key)
        return done


def _is_configuration(java: Any) -> bool:
    return str(java.getClass().getName()) == _CONFIGURATION
