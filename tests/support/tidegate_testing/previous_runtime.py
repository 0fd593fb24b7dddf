"""The runtime of the last landing, from git: a process that has its package, and nothing of this checkout.

``tests/last_landing`` names the commit; whoever lands a release moves it. Nothing is fetched: a clone that was made
without history does not have the commit, and the tests are left out there, by name.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
COMMIT_FILE = ROOT / "tests" / "last_landing"
PROGRAM = Path(__file__).with_name("previous_runtime_process.py")
PACKAGE = "spark_app/tidegate_spark"
FORMATS = "FORMATS_OF_DUMPS"
"""Variable of the process: the formats of dumps that the operator knows, with blanks between them."""
LAUNCH = "CONFIG_OF_A_LAUNCH"
"""Another one: a driver's configuration as the operator writes it now."""


def commit() -> str:
    """Return the commit of the last landing."""
    return COMMIT_FILE.read_text().strip()


def git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Return what git answers about this checkout."""
    return subprocess.run(["git", *arguments], check=False, cwd=ROOT, capture_output=True)


def has_history() -> bool:
    """Return whether this checkout has all of its history: then it has the commit, or its name is wrong."""
    return git("rev-parse", "--is-shallow-repository").stdout.strip() == b"false"


def unpack(folder: Path) -> Path:
    """Return the folder below which the last landing's runtime is; leaves the test out where there is no history."""
    unpack_paths(folder, PACKAGE)
    return (folder / PACKAGE).parent


def unpack_paths(folder: Path, *paths: str) -> None:
    """Have these paths of the last landing below a folder; leaves the test out where there is no history."""
    archive = git("archive", commit(), *paths)
    if archive.returncode and not has_history():
        pytest.skip(f"this clone has no commit {commit()} (tests/last_landing): git fetch --unshallow brings it")
    assert archive.returncode == 0, archive.stderr.decode()
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")


class PreviousRuntime:
    """Such a process, with its agent."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Read what it reports at its start."""
        self._process = process
        self.reported: dict[str, Any] = self.next_line()

    def next_line(self) -> Any:
        """Return what it reports next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the previous runtime ended; its stderr is above"
        return json.loads(line)


@contextmanager
def running(package: Path, environment: Mapping[str, str]) -> Iterator[PreviousRuntime]:
    """Run an unpacked runtime with these variables, until it is left."""
    variables = {**os.environ, **environment, "PYTHONPATH": str(package)}
    # -P: the folder of the program is this checkout's.
    command = [sys.executable, "-P", str(PROGRAM)]
    process = subprocess.Popen(
        command, cwd=package, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield PreviousRuntime(process)
    finally:
        process.communicate()
