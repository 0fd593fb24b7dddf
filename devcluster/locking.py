"""A lock between processes: a file that is locked while a context lasts. Does I/O."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock of ``file``, which is made if it is not there and stays; waits for whoever holds it.

    Args:
        file: in a folder that need not exist.
        kind: ``fcntl.LOCK_EX`` for one at a time, ``fcntl.LOCK_SH`` for many that exclude such a one.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, kind)
        yield
