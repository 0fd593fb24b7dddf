"""Notes which modules of the product a process runs. In front on PYTHONPATH, Python imports it before anything else.

Reads WALKS_FILE, to which it appends, and WALKS_FOLDERS: those that hold the product's packages, separated by colons.
Without them it does nothing. Two kinds of lines, fields separated by tabs: ``seconds, pid, module``, at most once for a
module in each bucket of time, and ``seconds, pid, "", program`` before the first of a process, a forked one included.
The seconds are those of the machine's monotonic clock, which all its processes share.

What counts is the call of a function, or that a generator or a coroutine goes on. What runs because a module is
imported does not: neither its body nor what that calls. Code that dataclasses make has no file and does not count.
"""

import os
import sys
import threading
import time
from types import FrameType
from typing import Any

BUCKETS_PER_SECOND = 4

_FILE = os.environ.get("WALKS_FILE", "")
_FOLDERS = tuple(f"{folder.rstrip('/')}/" for folder in os.environ.get("WALKS_FOLDERS", "").split(":") if folder)
_names: dict[str, str] = {}
"""File -> module; empty if it is none of the product's."""
_noted: dict[str, int] = {}
"""Module -> the bucket for which it was noted last."""
_process = [0]
"""The process that has noted its program: a fork is another one."""


class _Thread(threading.local):
    imports = 0
    """Bodies of modules of the product that run now, one within the other."""


_thread = _Thread()


def _name(file: str) -> str:
    folder = next((folder for folder in _FOLDERS if file.startswith(folder)), "")
    return file.removeprefix(folder).removesuffix(".py").removesuffix("/__init__").replace("/", ".") if folder else ""


def _append(line: str) -> None:
    # Opened each time: a program may close whatever it has not opened itself.
    try:
        descriptor = os.open(_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _note(module: str) -> None:
    now, pid = time.monotonic(), os.getpid()
    bucket = int(now * BUCKETS_PER_SECOND)
    if pid != _process[0]:
        forked = " (forked)" if _process[0] else ""
        _process[0] = pid
        _noted.clear()
        _append(f"{now:.6f}\t{pid}\t\t{' '.join(sys.orig_argv[1:])}{forked}\n")
    if _noted.get(module) != bucket:
        _noted[module] = bucket
        _append(f"{now:.6f}\t{pid}\t{module}\n")


def _profile(frame: FrameType, event: str, _: Any) -> None:
    if event not in ("call", "return"):
        return
    code = frame.f_code
    module = _names.get(code.co_filename)
    if module is None:
        module = _names[code.co_filename] = _name(code.co_filename)
    if not module:
        return
    if code.co_name == "<module>":
        # The body of the module that is the program lasts as long as the program does.
        if frame.f_globals.get("__name__") != "__main__":
            _thread.imports += 1 if event == "call" else -1
    elif event == "call" and not _thread.imports:
        _note(module)


if _FILE and _FOLDERS:
    threading.setprofile(_profile)
    sys.setprofile(_profile)
