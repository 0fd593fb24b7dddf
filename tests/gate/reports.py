"""The folder of a run's reports, which one run at a time has. Writes into the cache."""

import fcntl
import shutil
from pathlib import Path
from typing import IO


def take(folder: Path) -> IO[str]:
    """Empty the folder, and keep it from other runs until what is returned is closed, or the process ends.

    Raises:
        ValueError: another run has it, whose reports would be lost: it would say that none of its tests ran.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = (folder.parent / f"{folder.name}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise ValueError(
            f"another run writes its reports to {folder}: wait for its end, or set TIDEGATE_REPORTS to another folder"
        ) from None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return lock
