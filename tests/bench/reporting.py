"""Lines that tell how far a long run is. Prints."""

import sys
import time
from collections.abc import Callable


def say(text: str) -> None:
    """Print a line with the time of day beside the output, whose last line is for a program."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def since_now() -> Callable[[str], None]:
    """Return what prints a line with the seconds since this call."""
    began = time.monotonic()

    def report(text: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {text}", flush=True)

    return report
