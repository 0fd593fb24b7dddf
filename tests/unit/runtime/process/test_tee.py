"""What a process wrote before its end is passed on and kept, however the threads that pass it on are scheduled."""

import os
import threading

import pytest

from tidegate_spark.process import logs
from tidegate_spark.process.redaction import Secrets


class Noticed:
    """A lock that sets an event as soon as somebody finds that another one has it, and waits."""

    def __init__(self, lock: threading.Lock, found_taken: threading.Event) -> None:
        self.lock, self.found_taken = lock, found_taken

    def acquire(self, timeout: float = -1) -> bool:
        if self.lock.acquire(blocking=False):
            return True
        self.found_taken.set()
        return self.lock.acquire(timeout=timeout)

    def release(self) -> None:
        self.lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


def test_what_was_taken_from_the_pipe_but_not_passed_on_yet_is_found_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    read, taken, found_taken = os.read, threading.Event(), threading.Event()

    def read_and_be_set_aside(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        taken.set()
        assert found_taken.wait(60)
        return data

    shown, target = os.pipe()
    tail = logs.Tail()
    tee = logs.Tee(target, tail, Secrets())
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", read_and_be_set_aside)
        patched.setattr(tee, "_lock", Noticed(tee._lock, found_taken))
        tee.start()
        os.write(tee.write_end, b"Traceback\nModuleNotFoundError: no module\n")
        assert taken.wait(60)  # the pipe is empty, and nothing is passed on yet
        tee.drain(60)
    assert tail.content() == b"Traceback\nModuleNotFoundError: no module\n"
    assert read(shown, 100) == tail.content()


def test_a_reader_of_our_output_that_went_silent_does_not_hold_up_the_end() -> None:
    _, target = os.pipe()
    tee = logs.Tee(target, logs.Tail(), Secrets())
    tee.start()
    os.write(tee.write_end, b"x" * 65536)
    os.write(tee.write_end, b"x" * 65536)  # more than a pipe that nobody reads takes
    tee.drain(0.2)  # it returns, though whoever copies holds the lock for ever
