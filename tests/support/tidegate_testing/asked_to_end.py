"""What asks a long run to end: a first signal is a wish, a second one ends the process. Handles signals."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Stop:
    """Whether somebody has asked the run to end."""

    number: int = 0
    """Of the signal; 0: nobody has."""

    def __bool__(self) -> bool:
        """Return whether nothing more is to be begun."""
        return self.number > 0


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Have the first SIGTERM or SIGINT be a wish: what is under way is still run. A second one ends the process."""
    stop, before = Stop(), {each: signal.getsignal(each) for each in _SIGNALS}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.number = number
        restore()

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in _SIGNALS:
        signal.signal(each, ask)
    try:
        yield stop
    finally:
        restore()
