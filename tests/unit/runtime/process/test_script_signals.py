"""A script that takes SIGTERM by a call that waits for it: it gets it once its queries have stopped."""

import subprocess
import sys

import pytest

BEGIN = """
import signal, sys, threading, time
from tidegate_spark.process import signals
signals.watch_signals(lambda: None)
signals.note_waits()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
def stop():
    time.sleep(0.3)
    print("reported", signals.signal_script(), flush=True)
threading.Thread(target=stop).start()
"""
WAYS = {
    "sigwait": "print('got', signal.sigwait({signal.SIGINT, signal.SIGTERM}))",
    "sigwait, by the name of its parameter": "print('got', signal.sigwait(sigset={signal.SIGTERM}))",
    "sigwaitinfo": "print('got', signal.sigwaitinfo([signal.SIGTERM]).si_signo)",
    "sigtimedwait": "print('got', signal.sigtimedwait([signal.SIGTERM], 60).si_signo)",
    "a thread": "t = threading.Thread(target=lambda: print('got', signal.sigwait([signal.SIGTERM])))\nt.start()\n"
    "t.join()",
    # Between two of its calls nothing waits; the next one has it.
    "now and then": "from signal import sigtimedwait\nfound = None\n"
    "while found is None:\n time.sleep(0.5)\n found = sigtimedwait([signal.SIGTERM], 0)\nprint('got', found.si_signo)",
}


def output_of(script: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=60, check=True)
    return sorted(run.stdout.splitlines())


@pytest.mark.parametrize("way", list(WAYS))
def test_a_script_that_waits_for_a_stop_is_told_of_it(way: str) -> None:
    got, reported = output_of(WAYS[way])
    assert got in {"got 15", "got Signals.SIGTERM"}
    assert way == "now and then" or reported == "reported True"


@pytest.mark.parametrize("pause", [0, 0.5], ids=["waits already", "waits later"])
def test_it_gets_one_stop_once_and_can_wait_for_other_signals_afterwards(pause: float) -> None:
    waits = f"time.sleep({pause})\nprint('got', signal.sigwait([signal.SIGTERM]).name)\n"
    got, again, _ = output_of(waits + "print('got then', signal.sigtimedwait([signal.SIGTERM], 0.3))")
    assert (got, again) == ("got SIGTERM", "got then None")


def test_one_that_waits_for_another_signal_is_not() -> None:
    script = "print('got', signal.sigtimedwait([signal.SIGUSR1], 1))"
    assert output_of(script) == ["got None", "reported False"]
