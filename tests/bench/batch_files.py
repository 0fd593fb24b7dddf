"""Input whose batches are known beforehand: one file for each, for Spark's file source. Writes files."""

import json
import os
from pathlib import Path

_CHUNK = 10_000
"""Keys in one row: it is made into so many at once."""
_FIRST_TIME = 1_700_000_000


class BatchFiles:
    """Files of rows that name keys, as ``scripts/large_state.py`` reads them."""

    def __init__(self, folder: Path) -> None:
        """Make the folder, which has no file yet."""
        self._folder = folder
        self._number = 0
        folder.mkdir(parents=True)

    def put(self, first: int, last: int, step: int = 1) -> int:
        """Change every ``step``-th key from ``first`` to ``last``; return the number of the batch that does it."""
        number, self._number = self._number, self._number + 1
        rows = [
            {"first": begin, "last": min(begin + (_CHUNK - 1) * step, last), "step": step, "round": number}
            for begin in range(first, last + 1, _CHUNK * step)
        ]
        # Spark leaves names out that begin so.
        written, path = self._folder / f".{number:06}", self._folder / f"{number:06}.json"
        written.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # The source takes the oldest first, by seconds.
        os.utime(written, (_FIRST_TIME + number, _FIRST_TIME + number))
        written.rename(path)
        return number
