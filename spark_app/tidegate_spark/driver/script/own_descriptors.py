"""Keeps open what is the runtime's when a script closes all that is open. Replaces functions of ``os``.

Programs do so that make themselves a daemon, or start children: ``os.closerange(3, 256)``, or ``os.close`` of each
number. Under ``spark-submit`` nothing has those numbers. Here the script's own output passes by a pipe that would have
no reader any more, and the driver's ports and the storage would be cut off; their numbers would be the script's next
files, and be written into.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate_spark.jvm.descriptors import identity
from tidegate_spark.process.this_process import InPlaceOf

STREAMS = 3
"""Standard input, output and error, which are the script's."""


def keep_open() -> None:
    """Have the functions of ``os`` find nothing in the place of what is open now, in this process; streams apart.

    A child that the script forks closes what it likes: it has copies.
    """
    process, close, close_range = os.getpid(), os.close, os.closerange
    numbers = [int(each) for each in os.listdir("/proc/self/fd")]
    which = {
        number: found
        for number in numbers
        if number >= STREAMS and _is_a_connection(number) and (found := identity(number)) is not None
    }

    def is_ours(number: int) -> bool:
        # One that the runtime has closed since may be the script's by now.
        return number in which and identity(number) == which[number] and os.getpid() == process

    def close_one(fd: int) -> None:
        if isinstance(fd, int) and is_ours(fd):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        close(fd)

    def close_others(fd_low: int, fd_high: int, /) -> None:
        begin = fd_low
        for number in sorted(filter(is_ours, range(max(fd_low, 0), min(fd_high, max(which, default=0) + 1)))):
            close_range(begin, number)
            begin = number + 1
        close_range(begin, fd_high)

    os.close, os.closerange = InPlaceOf("os", close, close_one), InPlaceOf("os", close_range, close_others)


def _is_a_connection(number: int) -> bool:
    """Return whether a descriptor is of a socket or a pipe: each of these is a thing of its own.

    Two descriptors of a file, or of ``/dev/null``, look alike. Of those that the runtime has closed since, the script
    may have one of the same number, and has to be able to close it.
    """
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
