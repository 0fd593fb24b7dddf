"""The driver's process is told to stop and its exit code comes out, whatever the script does with signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tidegate_spark
from devcluster.processes import ProcessIdentity
from tidegate_testing.waiting import wait_for

SOURCES = str(Path(tidegate_spark.__file__).parents[1])
BEGIN = """
import os, signal, sys, threading, time
from tidegate_spark.driver.first_process import go_on_in_child
line = go_on_in_child()
"""
AWAIT_STOP = """
asked = threading.Event()
line.listen(asked.set)
print(os.getpid(), flush=True)
asked.wait(60)
"""


Run = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def run() -> Iterator[Run]:
    started: list[subprocess.Popen[str]] = []

    def run_program(program: str, before: str = "") -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", f"{before}\n{BEGIN}{program}"],
                env={**os.environ, "PYTHONPATH": SOURCES},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield run_program
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "signal.signal(signal.SIGTERM, lambda *_: time.sleep(60))",
        "import asyncio; loop = asyncio.new_event_loop(); loop.add_signal_handler(signal.SIGTERM, print)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})",
        "import faulthandler; faulthandler.register(signal.SIGTERM)",
        "signal.set_wakeup_fd(-1)",
    ],
)
def test_a_stop_reaches_the_driver_whatever_the_script_does_with_signals(run: Run, hostile: str) -> None:
    process = run(f"{hostile}\n{AWAIT_STOP}\nprint('stopped', asked.is_set(), flush=True)\nos._exit(143)")
    line_of(process)
    process.send_signal(signal.SIGTERM)
    assert line_of(process) == "stopped True"
    assert process.wait(60) == 143


def test_a_stop_that_comes_before_anybody_listens_is_told_when_somebody_does(run: Run) -> None:
    process = run(
        "print('up', flush=True)\n"
        "while not line._asked: time.sleep(0.01)\n"
        f"{AWAIT_STOP}\nos._exit(7 if asked.is_set() else 1)"
    )
    assert line_of(process) == "up"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 7


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_a_signal_that_the_script_has_a_handler_for_reaches_it(run: Run, name: str) -> None:
    process = run(
        f"signal.signal(signal.{name}, lambda *_: os.write(1, b'dumped\\n') and os._exit(5))\n"
        "print('up', flush=True)\nwhile True: signal.pause()"
    )
    assert line_of(process) == "up"
    process.send_signal(getattr(signal, name))
    assert line_of(process) == "dumped"
    assert process.wait(60) == 5


def test_a_signal_that_nobody_has_a_handler_for_ends_nothing(run: Run) -> None:
    process = run(f"{AWAIT_STOP}\nos._exit(7 if asked.is_set() else 1)")
    line_of(process)
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 7


@pytest.mark.parametrize(
    ("end", "code"),
    [("os._exit(0)", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), signal.SIGKILL)", 137), ("os.abort()", 134)],
)
def test_the_exit_code_is_the_drivers_and_says_which_signal_ended_it(run: Run, end: str, code: int) -> None:
    assert run(end).wait(60) == code


def test_what_ends_in_the_container_without_a_parent_is_collected(run: Run) -> None:
    """Only a first process is given such orphans; here, one that asks the system for them."""
    orphan = "import os; parent = os.getpid(); os.fork() and os._exit(0)\nwhile os.getppid() == parent: pass\n"
    process = run(
        f"import subprocess\nsubprocess.run([sys.executable, '-c', {orphan!r} + 'print(os.getpid(), flush=True)'])\n"
        "threading.Event().wait(60)",
        before="import ctypes; ctypes.CDLL(None).prctl(36, 1)",
    )
    pid = int(line_of(process))
    wait_for("the orphan's end", lambda: not Path(f"/proc/{pid}").exists(), 60, 0.01)


def test_the_driver_ends_with_its_first_process(run: Run) -> None:
    process = run(AWAIT_STOP)
    driver = ProcessIdentity.of(int(line_of(process)))
    process.kill()
    process.wait()
    wait_for("the driver's end", lambda: not driver.alive(), 60, 0.05)
