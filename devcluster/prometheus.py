"""Prometheus and promtool, which `make setup` finds or unpacks. Reads the file system."""

import shutil
from pathlib import Path

from devcluster import paths


def program(name: str) -> Path:
    """Return the path of ``prometheus`` or ``promtool``: this machine's own, or the one unpacked into the cache.

    Raises:
        FileNotFoundError: there is none.
    """
    own = shutil.which(name)
    found = Path(own) if own else paths.cache() / "prometheus" / "usr" / "bin" / name
    if not found.exists():
        raise FileNotFoundError(f"no {name} here: run `make setup`")
    return found
