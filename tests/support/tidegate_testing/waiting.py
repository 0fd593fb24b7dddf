"""Waiting for a world to come about. Reads the clock and sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class CannotComeError(Exception):
    """What is awaited can no longer come: a probe raises it, and the wait ends at once instead of at its limit."""


def wait_for(what: str, probe: Callable[[], T], timeout: float, interval: float = 0.5) -> T:
    """Call ``probe`` until it returns something true, and return that.

    Args:
        what: the awaited world as a phrase, for the failure's message.
        probe: observes; returns a falsy value while the world is not there yet. An AssertionError from it counts as
            "not yet", and its text is shown if time runs out.
        timeout: seconds, a generous limit and never a measurement.
        interval: seconds between observations.

    Raises:
        AssertionError: the world did not come about; the text holds what was seen last.
        CannotComeError: the probe raised it, because the world can no longer come about.
    """
    end = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            seen = probe()
            if seen:
                return seen
            last = seen
        except AssertionError as not_yet:
            last = not_yet
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:.0f} s for {what}; last seen: {last}")
        time.sleep(interval)
