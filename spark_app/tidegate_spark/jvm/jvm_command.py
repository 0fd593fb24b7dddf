"""Keeps the command of a JVM that came up for the next process of the pod. Does file I/O; standard library only.

``spark-submit`` starts a JVM just to compute that command, a third of a second of each restart. The command is kept in
the work directory under a digest of all variables, settings and files that it depends on. It serves one start and is
kept again when its JVM has come up, so a command that no longer works is used once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

SUBMIT = "org.apache.spark.deploy.SparkSubmit"
PREFIX, IN_USE = "launch-", "launch.used"
OF_ONE_PROCESS = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "_PYSPARK_DRIVER_CONN_INFO_PATH"})
"""Variables that say nothing about the next process."""
PYSPARK_SHELL = "pyspark-shell"
"""What PySpark has ``spark-submit`` run; all its arguments unless somebody has set ``PYSPARK_SUBMIT_ARGS``."""
FORESEEN = "# Its arguments are those that are foreseen\n"
"""The last line of a script that may be started before PySpark is asked for the arguments."""


def digest_of(home: Path, settings: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return what stands for all that the command depends on, empty if that is more than can be known.

    Args:
        home: Spark's folder.
        settings: of Spark.
        variables: of this process.
    """
    conf = Path(variables.get("SPARK_CONF_DIR") or home / "conf")
    if (conf / "spark-env.sh").exists():
        return ""  # that script may set something else each time
    known = {key: value for key, value in variables.items() if key not in OF_ONE_PROCESS}
    try:
        files = [conf / "spark-defaults.conf", conf / "java-opts"]
        texts = [file.read_text(encoding="utf-8") if file.exists() else None for file in files]
        jars = sorted((jar.name, jar.stat().st_size) for jar in os.scandir(home / "jars"))
        everything = json.dumps([str(home), texts, jars, dict(settings), known], sort_keys=True).encode()
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(everything).hexdigest()[:32]


def script_of(command: Sequence[str], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a script that starts a JVM as one was started, with arguments of its own; empty if that was another one.

    Args:
        command: that JVM's, with Spark's arguments.
        before: the variables of the process that had it started.
        after: the JVM's own.
    """
    if SUBMIT not in command:
        return ""
    java = command[: command.index(SUBMIT) + 1]
    added = {key: value for key, value in after.items() if key not in OF_ONE_PROCESS and before.get(key) != value}
    exports = [f"export {key}={shlex.quote(value)}" for key, value in sorted(added.items()) if key.isidentifier()]
    # PySpark's JVMs do not hear of an interrupt either.
    return "\n".join(["#!/bin/sh", "trap '' INT", *exports, f'exec {shlex.join(java)} "$@"', ""])


def arguments_of(settings: Mapping[str, str]) -> list[str]:
    """Return the arguments that PySpark has for a JVM with ``settings``, all of Spark's, in order; pure."""
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")] + [PYSPARK_SHELL]


class KeptCommand:
    """The command of a JVM that came up, as a script; what goes wrong with it is not worth a word."""

    def __init__(self, directory: Path, digest: str) -> None:
        """Look in ``directory`` for the one that depends on what ``digest`` stands for; empty: for none."""
        self._digest, self._directory = digest, directory
        self._path, self._used = directory / f"{PREFIX}{digest}", directory / IN_USE

    def take(self, foreseen: bool = False) -> Path | None:
        """Return the script if there is one; it is not there for the next process, unless it is kept again.

        Args:
            foreseen: only one for which :func:`arguments_of` returns the arguments.
        """
        if not self._digest:
            return None
        try:
            if foreseen and not self._path.read_text(encoding="utf-8").endswith(FORESEEN):
                return None
            self._path.rename(self._used)
        except (OSError, ValueError):
            return None
        return self._used

    def keep_again(self) -> None:
        """Keep what was taken."""
        with contextlib.suppress(OSError):
            self._used.rename(self._path)

    def keep(self, jvm: int, variables: Mapping[str, str], foreseen: bool = False) -> None:
        """Keep the command of a JVM that came up.

        Args:
            jvm: the process id.
            variables: of the process that had it started.
            foreseen: whether :func:`arguments_of` returns the arguments that it was started with.
        """
        if not self._digest:
            return
        with contextlib.suppress(OSError, ValueError):
            command = _words(Path(f"/proc/{jvm}/cmdline"))
            its = dict(word.split("=", 1) for word in _words(Path(f"/proc/{jvm}/environ")))
            script = script_of(command, variables, its)
            for old in self._directory.glob(f"{PREFIX}*"):
                old.unlink()
            if script:
                self._used.write_text(script + (FORESEEN if foreseen else ""), encoding="utf-8")
                self._used.chmod(0o700)
                self._used.rename(self._path)


def _words(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").rstrip("\0").split("\0")
