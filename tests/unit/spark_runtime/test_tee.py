"""What a process wrote before its end is passed on and kept, however the threads that pass it on are scheduled."""

import os
import time

import pytest

from tidegate_spark import logs
from tidegate_spark.redaction import Secrets


def test_what_was_taken_from_the_pipe_but_not_passed_on_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.read

    def read_and_be_set_aside(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        time.sleep(0.2)
        return data

    shown, target = os.pipe()
    tail = logs.Tail()
    tee = logs.Tee(target, tail, Secrets())
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", read_and_be_set_aside)
        tee.start()
        os.write(tee.write_end, b"Traceback\nModuleNotFoundError: no module\n")
        while logs._ready(tee._read_end):
            time.sleep(0.001)
        tee.drain(10)
    assert tail.content() == b"Traceback\nModuleNotFoundError: no module\n"
    assert read(shown, 100) == tail.content()


def test_a_reader_of_our_output_that_went_silent_does_not_hold_up_the_end() -> None:
    _, target = os.pipe()
    tee = logs.Tee(target, logs.Tail(), Secrets())
    tee.start()
    os.write(tee.write_end, b"x" * 65536)
    os.write(tee.write_end, b"x" * 65536)  # more than a pipe that nobody reads takes
    began = time.monotonic()
    tee.drain(0.2)
    assert time.monotonic() - began < 5
