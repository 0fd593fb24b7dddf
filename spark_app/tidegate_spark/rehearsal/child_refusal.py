"""Keeps Spark from starting in child processes of a rehearsal. Writes files, changes this process's variables.

No line of ours runs in such a child: its queries and jobs would write to the real sinks, into the real checkpoints. But
``spark-submit`` and its like, by which PySpark starts its JVM as well, first read ``spark-env.sh`` of the folder that
``SPARK_CONF_DIR`` names, in the shell that would start it. So a rehearsal names a folder whose file ends that shell.
The rehearsal's own JVM is started by a script that names the original folder.

Design: docs/design/rehearsal-and-forks.md.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

from tidegate_spark.process import start_messages as messages

CONFIGURATION, LOADED = "SPARK_CONF_DIR", "SPARK_ENV_LOADED"
"""Spark's variables: the folder, and that the file in it has been read."""
_FILE = "spark-env.sh"


class ChildRefusal:
    """Refuses Spark to child processes, and knows whether one was refused."""

    def __init__(self, directory: Path, home: Path) -> None:
        """Write nothing yet.

        Args:
            directory: the folder is made in it.
            home: Spark's.
        """
        self._folder = directory / "rehearsal-conf"
        self._home = home
        self._refused = directory / "rehearsal-refused"
        self._own = directory / "rehearsal-submit"

    def begin(self, variables: MutableMapping[str, str]) -> str:
        """Refuse Spark to each child from now on; return the program that starts Spark's JVM for this process itself.

        Args:
            variables: of this process, which its children inherit.

        Raises:
            OSError: the files cannot be written.
        """
        before = {name: variables[name] for name in (CONFIGURATION, LOADED) if name in variables}
        known = Path(before.get(CONFIGURATION) or self._home / "conf")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        with contextlib.suppress(OSError):  # an image need not have any
            for file in known.iterdir():
                if file.name != _FILE:
                    (self._folder / file.name).symlink_to(file.absolute())
        (self._folder / _FILE).write_text("\n".join(self._lines_of_refusal()), encoding="utf-8")
        self._own.write_text("\n".join(self._lines_of_own(before)), encoding="utf-8")
        self._own.chmod(0o700)
        variables.update(self.variables)
        return str(self._own)

    @property
    def variables(self) -> Mapping[str, str]:
        """What a process needs so that its children are refused.

        Spark's Java has a mark that the file was read, and so would its Python workers.
        """
        return {CONFIGURATION: str(self._folder), LOADED: ""}

    @property
    def refused(self) -> bool:
        """Whether a child has asked for Spark."""
        return self._refused.exists()

    def _lines_of_refusal(self) -> Iterator[str]:
        yield f": > {shlex.quote(str(self._refused))}"
        yield f"printf '%s\\n' {shlex.quote(messages.NO_SPARK_IN_CHILDREN)} >&2"
        yield "exit 1\n"

    def _lines_of_own(self, before: Mapping[str, str]) -> Iterator[str]:
        yield "#!/bin/sh"
        yield f"unset {CONFIGURATION} {LOADED}"
        for name, value in before.items():
            yield f"export {name}={shlex.quote(value)}"
        yield f'exec {shlex.quote(str(self._home / "bin/spark-submit"))} "$@"\n'
