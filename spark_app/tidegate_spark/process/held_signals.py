"""Holds a stop signal that comes before anything handles it. Changes the process's signal mask; standard library only.

The system gives a container's first process no signal that it has no handler for: a SIGTERM in the moments in which
Python imports modules would be lost, and the kubelet would wait for the whole grace period. A blocked one is kept, also
over an ``exec``, until :mod:`tidegate_spark.driver.first_process` asks for it, or :func:`let_stops_through` is called.
"""

import os
import signal

FIRST = 1
"""The process id of a container's first process."""
STOPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
"""What may stop a container: an image may name another signal than SIGTERM (STOPSIGNAL)."""


def hold_stops() -> None:
    """Keep stops from now on, in a container's first process; elsewhere they end the process, which is right."""
    if os.getpid() == FIRST:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)


def let_stops_through() -> None:
    """Have this thread, and those that it starts, get stops again, at once those that were held."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
