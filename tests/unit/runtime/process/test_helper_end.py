"""The end of a helper pod's process when it is asked to stop: by a process without storage, as the kubelet ends it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, EXIT_STOPPED
from tidegate_spark.process.helper_end import HelperEnd

PROGRAM = """
import os, signal, sys, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
if "early" in sys.argv:
    os.kill(os.getpid(), signal.SIGTERM)  # held: nobody could hear it yet
from tidegate_spark.process import helper_end
helper_end.STOP_SECONDS = float(sys.argv[2])
end = helper_end.HelperEnd(sys.argv[1])
end.listen(lambda: print("stopping", flush=True), lambda: "half of it")
print("at work", flush=True)
if "deaf" in sys.argv:
    time.sleep(600)
end.asked.wait(600)
code = end.leave("all of it", 0)
if "threads" in sys.argv:
    threading.Thread(target=time.sleep, args=(600,)).start()
sys.exit(code)
"""


def ended(tmp_path: Path, seconds: float, *how: str) -> tuple[int, str]:
    """Ask a process to stop; return its exit code and termination message."""
    left = tmp_path / "termination"
    command = [sys.executable, "-c", PROGRAM, str(left), str(seconds), *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if "early" not in how:
            assert process.stdout.readline() == "at work\n"
            process.send_signal(signal.SIGTERM)
        return process.wait(60), left.read_text()


def test_work_that_comes_to_a_safe_place_ends_there_with_its_own_message(tmp_path: Path) -> None:
    assert ended(tmp_path, 600) == (EXIT_OK, "all of it")


def test_work_that_comes_to_none_ends_where_it_is_and_says_how_far_it_was(tmp_path: Path) -> None:
    assert ended(tmp_path, 0.1, "deaf") == (EXIT_STOPPED, "half of it")


def test_a_stop_that_came_before_anybody_could_hear_it_is_heard(tmp_path: Path) -> None:
    assert ended(tmp_path, 600, "early") == (EXIT_OK, "all of it")


def test_what_else_runs_in_the_process_does_not_hold_it_up(tmp_path: Path) -> None:
    assert ended(tmp_path, 600, "threads") == (EXIT_OK, "all of it")


def test_the_first_message_and_its_exit_code_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    end = HelperEnd(str(tmp_path / "termination"))
    assert end.leave("all of it", EXIT_OK) == EXIT_OK
    assert end.leave("half of it", EXIT_STOPPED) == EXIT_OK
    assert (tmp_path / "termination").read_text() == "all of it"
