"""Where things live: the cache that outlives a checkout, and the state of running clusters. Reads the environment."""

import itertools
import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")


def cache() -> Path:
    """Return the cache's root: ``$TIDEGATE_CACHE``, or ``~/.cache/tidegate``."""
    return Path(os.environ.get("TIDEGATE_CACHE") or Path.home() / ".cache" / "tidegate").absolute()


def bytecode() -> Path:
    """Return where Python keeps the bytecode of what this checkout starts: outside of it."""
    return cache() / "bytecode"


def state(name: str) -> Path:
    """Return the folder that holds all files of the cluster ``name``; it need not exist.

    Raises:
        ValueError: the name is not a DNS label of at most 30 characters (cgroups, host names and sockets carry it).
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"cluster name {name!r}: use at most 30 lower-case letters, digits and '-', such as 'dev'")
    return cache() / "clusters" / name


_BOUND = re.compile(r"bound-(\d+)-\d+")
_numbers = itertools.count()


def bound_name() -> str:
    """Return a fresh name for what must end with this process."""
    return f"bound-{os.getpid()}-{next(_numbers)}"


def owner_of(name: str) -> int | None:
    """Return the process id in a name that ``bound_name`` made, None for any other name."""
    found = _BOUND.fullmatch(name)
    return int(found[1]) if found else None


def states() -> list[str]:
    """Return the names of all clusters that have state, running or not."""
    folder = cache() / "clusters"
    return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
