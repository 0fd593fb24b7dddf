"""Holds the path to the application's own storage, whatever the script sets late. Talks to the JVM.

Hadoop's configuration goes to executors with each batch: what the script sets there while a query runs would be in
force in each executor that comes later. So its calls of Python that would change the path are left out. What code in
jars, or a file that Hadoop was configured to read, changes is put right before each query starts, and each second.

Design: docs/design/settings-of-a-script.md.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaMember
from py4j.protocol import Py4JError

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.spark import s3a_settings

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_UNSET = "unset"


class StoragePath:
    """The settings that lead to the application's own storage, as they were when Spark had started."""

    def __init__(self, storage: Storage, progress: Progress) -> None:
        """Hold nothing yet.

        Args:
            storage: the application's own.
            progress: reports settings that are not used.
        """
        self._storage, self._progress = storage, progress
        self._lock = threading.RLock()
        self._hadoop: Any = None
        self._path: Any = None
        """The JVM's settings of S3A, as they are to be for the application's own bucket."""

    def reach(self, context: SparkContext) -> None:
        """Have the connection to the storage made before the script can say anything about it, and hold the path.

        Hadoop keeps one connection for each bucket, as it was made first.
        """
        hadoop: Any = context._jsc.hadoopConfiguration()
        jvm: Any = context._jvm
        for key, value in s3a_settings.rest_of_path(self._storage, hadoop.get).items():
            hadoop.set(key, value)
        # Whatever is wrong with it, the first query says in its own words.
        with contextlib.suppress(Py4JError):
            jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(self._storage.hadoop_uri), hadoop)
        self._hadoop, self._path = hadoop, hadoop.getPropsWithPrefix(s3a_settings.S3A)
        self._guard()

    def _guard(self) -> None:
        original = JavaMember.__call__

        @functools.wraps(original)
        def call(member: JavaMember, *args: Any) -> Any:
            key = args[0] if args else None
            if isinstance(key, str) and key.startswith(s3a_settings.S3A) and self._leaves_out(member, key, args[1:]):
                return None
            return original(member, *args)

        JavaMember.__call__ = call

    def _leaves_out(self, member: JavaMember, key: str, values: tuple[Any, ...]) -> bool:
        """Return whether a call is one of Hadoop's configuration that would change the path; says so of a setting."""
        name = member.name
        if not (name.startswith("set") or name == _UNSET):
            return False
        value = _text(values[0]) if values else ""
        why = self._why_not(key, value)
        if not why or not self._hadoop.equals(member.container):
            return False
        before = self._path.get(key.removeprefix(s3a_settings.S3A))
        if before == (None if name == _UNSET else value):
            return False
        self._say(key, why)
        return True

    def hold(self, session: SparkSession) -> None:
        """Have the path as it was, before a query of this session starts; asks the JVM."""
        self.hold_context()
        start = s3a_settings.own_start(self._storage)
        of_session: Any = session._jsparkSession.sessionState().conf().settings()
        names = of_session.keySet().toString()
        if start in names or s3a_settings.IMPLEMENTATION in names:
            for key in [str(key) for key in of_session.keySet().toArray()]:
                # Under Spark's name it is the context's, which is right: every session has all of these.
                if key.startswith(s3a_settings.S3A) and (why := self._why_not(key, str(of_session.get(key)))):
                    session.conf.unset(key)
                    self._say(key, why)

    def hold_context(self) -> None:
        """Have the path as it was in Hadoop's configuration; asks the JVM, once if there is nothing to do."""
        with self._lock:
            if self._hadoop is None or self._settings().equals(self._path):
                return
            was, now = dict(self._path), dict(self._settings())
            for name in sorted(was.keys() | now.keys()):
                key = f"{s3a_settings.S3A}{name}"
                if was.get(name) != now.get(name) and (why := self._why_not(key, now.get(name, ""))):
                    # As it was, or not set at all.
                    self._hadoop.set(key, was[name]) if name in was else self._hadoop.unset(key)
                    self._say(key, why)
            self._path = self._settings()

    def _settings(self) -> Any:
        return self._hadoop.getPropsWithPrefix(s3a_settings.S3A)

    def _why_not(self, key: str, value: str) -> str:
        """Return why a setting of S3A that the script made late cannot stay; empty: it can."""
        if s3a_settings.is_of_own_path(key, self._storage):
            return messages.STORAGE_IS_THE_SPECS
        return messages.ONE_CLASS_FOR_ALL_BUCKETS if s3a_settings.is_another_implementation(key, value) else ""

    def _say(self, name: str, why: str) -> None:
        message = messages.setting_ignored(name, "the script", why)
        self._progress.notice(Reason.CONFIGURATION_IGNORED, message)


def _text(value: Any) -> str:
    """Return a value as Hadoop keeps it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
