"""The broker's jars: fetched by Maven once, checked against the committed hashes, kept in the cache."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from devcluster import paths

_POM = Path(__file__).with_name("pom.xml")
_HASHES = Path(__file__).with_name("jars.sha256")
_MAVEN = paths.ROOT / "images" / "jars" / "maven.sh"
_LOCK = Path(__file__).with_name("maven.lock")


def expected() -> dict[str, str]:
    """Return the hash of each jar by its name."""
    pairs = (line.split() for line in _HASHES.read_text().splitlines())
    return {name: digest for digest, name in pairs}


def folder() -> Path:
    """Return where the jars belong; the name follows their hashes."""
    return paths.cache() / "jars" / f"kafka-{hashlib.sha256(_HASHES.read_bytes()).hexdigest()[:12]}"


def ensure() -> Path:
    """Fetch the jars unless they are there; return their folder.

    Raises:
        RuntimeError: Maven failed, or a jar is missing, unknown or not the one that was pinned.
    """
    target = folder()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _fetch(target)
    return target


def _fetch(target: Path) -> None:
    print("kafka: fetching the broker's jars", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        fetched = Path(work) / "jars"
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fetched}"]
        command: list[str | Path] = ["sh", _MAVEN, _LOCK, "--file", _POM, *goal]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"Maven could not fetch the Kafka broker:\n{done.stdout[-2000:]}{done.stderr[-500:]}")
        problems = differences(expected(), {j.name: _digest(j) for j in fetched.iterdir()})
        if problems:
            raise RuntimeError("the Kafka broker's jars are not the pinned ones: " + "; ".join(problems))
        shutil.move(fetched, target)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def differences(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    """Say how two sets of jars differ; empty if they are the same."""
    return [
        *(f"{name} is missing" for name in sorted(wanted.keys() - found.keys())),
        *(f"{name} is not in the list" for name in sorted(found.keys() - wanted.keys())),
        *(f"{name} has another hash" for name in sorted(wanted.keys() & found.keys()) if wanted[name] != found[name]),
    ]
