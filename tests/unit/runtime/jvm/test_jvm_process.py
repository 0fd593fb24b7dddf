"""How the JVM's process ended is what the system says of it, whatever the script does with ended children."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

from tidegate_spark.jvm import launching, session
from tidegate_spark.jvm.jvm_process import EXIT_NOT_KNOWN, JvmProcess
from tidegate_testing.waiting import wait_for

SECONDS = 20.0
ENDS_IF_ASKED = ["sh", "-c", "read line; kill -KILL $$"]
"""In the place of a JVM: it ends as by the kernel when its input ends."""


@pytest.fixture
def on_child() -> Iterator[Callable[[object], None]]:
    """Set what the script does when a child ends, for one test."""
    before = signal.getsignal(signal.SIGCHLD)

    def act(action: object) -> None:
        signal.signal(signal.SIGCHLD, action)  # type: ignore[arg-type] # a handler, or a disposition

    yield act
    signal.signal(signal.SIGCHLD, before)


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[JvmProcess]:
    process = JvmProcess(ENDS_IF_ASKED, stdin=subprocess.PIPE)

    class Gateway:
        proc = process

    monkeypatch.setattr(SparkContext, "_gateway", Gateway())
    yield process
    process.kill()
    process.wait(SECONDS)
    end(process)


def collect_all(*_: object) -> None:
    """Do what those do who supervise children."""
    while True:
        try:
            ended, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            return


def end(process: JvmProcess) -> None:
    assert process.stdin is not None
    process.stdin.close()


def await_end() -> int | None:
    wait_for("the JVM's end", lambda: session.jvm_exit_code() is not None, SECONDS, 0.01)
    return session.jvm_exit_code()


def test_a_killed_jvm_has_the_signal_as_its_exit_code(jvm: JvmProcess) -> None:
    assert session.jvm_exit_code() is None
    end(jvm)
    assert (await_end(), jvm.wait(), jvm.returncode) == (-9, -9, -9)
    with pytest.raises(ChildProcessError):
        os.waitpid(jvm.pid, os.WNOHANG)  # nothing of it is left


@pytest.fixture
def asks_when_signalled(jvm: JvmProcess) -> Iterator[list[int | None]]:
    """Have a signal handler of the script wait for the JVM's end; return what it found."""
    found: list[int | None] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(jvm.wait(SECONDS)))
    yield found
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("when", ["before the system is asked", "after the system was asked"])
@pytest.mark.timeout(120)
def test_a_signal_handler_may_ask_for_the_end_while_the_main_thread_asks(
    jvm: JvmProcess, asks_when_signalled: list[int | None], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    ask = os.waitid

    def signalled(*arguments: int) -> object:
        monkeypatch.setattr(os, "waitid", ask)
        answer = ask(*arguments) if when.startswith("after") else None
        end(jvm)
        signal.raise_signal(signal.SIGUSR1)
        return answer if when.startswith("after") else ask(*arguments)

    monkeypatch.setattr(os, "waitid", signalled)
    assert jvm.poll() == -9
    assert (asks_when_signalled, jvm.poll(), jvm.wait(SECONDS)) == ([-9], -9, -9)


def test_a_jvm_that_ends_by_itself_has_its_own_exit_code() -> None:
    for code in (0, 3, 137):
        assert JvmProcess(["sh", "-c", f"exit {code}"]).wait(SECONDS) == code


@pytest.mark.parametrize("action", [signal.SIG_IGN, collect_all])
def test_the_end_of_a_jvm_that_the_script_has_collected_is_not_known(
    jvm: JvmProcess, on_child: Callable[[object], None], action: object
) -> None:
    on_child(action)
    assert session.jvm_exit_code() is None, "it runs"
    end(jvm)
    assert await_end() == EXIT_NOT_KNOWN
    assert (jvm.wait(), session.jvm_exit_code(connection_lost=True)) == (EXIT_NOT_KNOWN, EXIT_NOT_KNOWN)


def test_who_waits_for_a_jvm_that_the_script_collects_learns_that_it_is_gone(
    jvm: JvmProcess, on_child: Callable[[object], None]
) -> None:
    on_child(signal.SIG_IGN)
    threading.Timer(0.1, end, (jvm,)).start()
    assert jvm.wait() == EXIT_NOT_KNOWN


def test_waiting_ends_with_its_time(jvm: JvmProcess) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        jvm.wait(0.05)
    assert session.jvm_exit_code() is None


def test_threads_that_ask_at_once_all_learn_how_it_ended() -> None:
    for _ in range(20):
        process = JvmProcess(["sh", "-c", "exit 3"])
        codes: list[int] = []
        threads = [threading.Thread(target=lambda: codes.append(process.wait(SECONDS))) for _ in range(4)]  # noqa: B023
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == [3, 3, 3, 3]


def test_the_childrens_exit_codes_are_left_to_the_script(jvm: JvmProcess) -> None:
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"])
    end(jvm)
    assert await_end() == -9
    assert child.wait(SECONDS) == 5


def test_a_jvm_that_does_not_start_is_reported_also_if_the_script_ignores_the_ends_of_children(
    tmp_path: Path, on_child: Callable[[object], None]
) -> None:
    starter = tmp_path / "starter"
    starter.write_text("#!/bin/sh\nexit 1\n")
    starter.chmod(0o755)
    failures: list[BaseException] = []

    def launch() -> None:
        try:
            launching.launch(SparkConf(loadDefaults=False), str(tmp_path), frozenset(), starter=str(starter))
        except PySparkRuntimeError as error:
            failures.append(error)

    on_child(signal.SIG_IGN)
    thread = threading.Thread(target=launch, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert len(failures) == 1, "its launcher waits for ever"
