"""How the JVM's process ended is what the system says of it, whatever the script does with ended children."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

from tidegate_spark.jvm import jvm_parent, jvm_process, launching, session
from tidegate_spark.jvm.jvm_process import EXIT_NOT_KNOWN, JvmParents, JvmProcess
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


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def runs(process: Path) -> bool:
    """Return whether a process is there, and is more than what nobody has collected yet."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ignored_by(status: str) -> int:
    """Return the signals that a process ignores, of its ``/proc/PID/status``; those beyond are the C library's own."""
    return int(next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1], 16) & (1 << 31) - 1


def await_end() -> int | None:
    wait_for("the JVM's end", lambda: session.jvm_exit_code() is not None, SECONDS, 0.01)
    return session.jvm_exit_code()


def test_a_killed_jvm_has_the_signal_as_its_exit_code(jvm: JvmProcess) -> None:
    parent = Path(f"/proc/{parent_of(jvm.pid)}")
    assert session.jvm_exit_code() is None
    end(jvm)
    assert (await_end(), jvm.wait(), jvm.returncode) == (-9, -9, -9)
    wait_for("its parent to go", lambda: not runs(parent), SECONDS, 0.01)


@pytest.fixture
def asks_when_signalled(jvm: JvmProcess) -> Iterator[list[int | None]]:
    """Have a signal handler of the script wait for the JVM's end; return what it found."""
    found: list[int | None] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(jvm.wait(SECONDS)))
    yield found
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("when", ["before its parent is asked", "after its parent was asked"])
@pytest.mark.timeout(120)
def test_a_signal_handler_may_ask_for_the_end_while_the_main_thread_asks(
    jvm: JvmProcess, asks_when_signalled: list[int | None], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    ask = jvm._end

    def signalled() -> int | None:
        monkeypatch.setattr(jvm, "_end", ask)
        answer = ask() if when.startswith("after") else None
        end(jvm)
        signal.raise_signal(signal.SIGUSR1)
        return answer if when.startswith("after") else ask()

    monkeypatch.setattr(jvm, "_end", signalled)
    assert jvm.poll() == -9
    assert (asks_when_signalled, jvm.poll(), jvm.wait(SECONDS)) == ([-9], -9, -9)


def test_a_jvm_that_ends_by_itself_has_its_own_exit_code() -> None:
    for code in (0, 3, 137):
        assert JvmProcess(["sh", "-c", f"exit {code}"]).wait(SECONDS) == code


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL, collect_all])
@pytest.mark.parametrize("started", ["before", "after"])
def test_the_end_of_a_jvm_is_known_whatever_the_script_does_with_ended_children(
    jvm: JvmProcess, on_child: Callable[[object], None], action: object, started: str
) -> None:
    on_child(action)
    process = jvm if started == "before" else JvmProcess(ENDS_IF_ASKED, stdin=subprocess.PIPE)
    assert process.poll() is None, "it runs"
    threading.Timer(0.1, end, (process,)).start()
    with pytest.raises(ChildProcessError):
        os.wait()
    assert process.wait(SECONDS) == -9


def test_a_script_that_waits_for_all_children_waits_for_its_own(jvm: JvmProcess) -> None:
    children = {os.posix_spawnp("sh", ["sh", "-c", f"exit {code}"], os.environ): code for code in range(3)}
    ended = {}
    while True:
        try:
            child, status = os.wait()
        except ChildProcessError:
            break
        ended[child] = os.waitstatus_to_exitcode(status)
    assert ended == children
    assert jvm.poll() is None


def test_the_end_of_a_jvm_whose_parent_had_gone_before_is_not_known(jvm: JvmProcess) -> None:
    os.kill(parent_of(jvm.pid), signal.SIGKILL)
    assert session.jvm_exit_code() is None, "it runs"
    end(jvm)
    assert await_end() == EXIT_NOT_KNOWN
    assert (jvm.wait(), session.jvm_exit_code(connection_lost=True)) == (EXIT_NOT_KNOWN, EXIT_NOT_KNOWN)


def test_a_signal_to_all_processes_leaves_the_parent_to_report_how_the_jvm_ended(jvm: JvmProcess) -> None:
    parent = parent_of(jvm.pid)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        os.kill(parent, number)
        os.kill(parent_of(parent), number)
    assert session.jvm_exit_code() is None
    end(jvm)
    assert await_end() == -9


def test_a_parent_is_distinguished_from_the_process_of_the_script_by_its_name(jvm: JvmProcess) -> None:
    parent = parent_of(jvm.pid)
    assert Path(f"/proc/{parent}/comm").read_text().strip() == jvm_parent.NAME
    assert Path(f"/proc/{parent_of(parent)}/comm").read_text().strip() == jvm_parent.NAME


@pytest.mark.parametrize("limit", [0.0, 5.0])
@pytest.mark.timeout(120)
def test_a_limit_that_the_script_sets_for_its_sockets_is_not_for_the_jvm(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_process, "PARENTS", JvmParents())
    socket.setdefaulttimeout(limit)
    try:
        process = JvmProcess(ENDS_IF_ASKED, stdin=subprocess.PIPE)
        assert not process._report.gettimeout(), "a question waits"
        assert process.poll() is None
        end(process)
        wait_for("its end", lambda: runs(Path(f"/proc/{process.pid}")) is False, SECONDS, 0.01)
        assert Path(f"/proc/{process.pid}").exists(), "its number may be another one's before its end was read"
        assert process.wait(SECONDS) == -9
    finally:
        socket.setdefaulttimeout(None)


class ParentsThatGo(JvmParents):
    """Of those that are asked the first ones are killed while a request is on its way to them."""

    def __init__(self, going: int, *, has_read: bool) -> None:
        super().__init__()
        self.going, self._has_read = going, has_read

    def ask(self, descriptors: Sequence[int]) -> None:
        if not self.going:
            super().ask(descriptors)
            return
        self.going -= 1
        taken = socket.socket(fileno=os.dup(descriptors[0]))
        threading.Thread(target=self._go, args=(taken,)).start()

    def _go(self, taken: socket.socket) -> None:
        with taken:
            taken.recv(1 << 16, 0 if self._has_read else socket.MSG_PEEK)


@pytest.mark.parametrize("has_read", [True, False])
def test_a_parent_that_is_killed_with_a_request_is_followed_by_another_one(
    has_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_process, "PARENTS", ParentsThatGo(1, has_read=has_read))
    process = JvmProcess(["sh", "-c", "read line; exit 7"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(SECONDS) == 7


def test_where_each_parent_is_killed_the_start_fails_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_process, "PARENTS", ParentsThatGo(100, has_read=False))
    with pytest.raises(OSError, match="the process that was to start sh has gone"):
        JvmProcess(["sh", "-c", "exit 7"], stdin=subprocess.PIPE)


AS_SCRIPT = """
import os, signal, subprocess, sys, threading, time
from tidegate_spark.driver.first_process import go_on_in_child
go_on_in_child()
from tidegate_spark.jvm.jvm_process import JvmProcess

def jvm():
    return JvmProcess(["sh", "-c", "read line; exit 7"], stdin=subprocess.PIPE)

def end(process):
    process.stdin.close()
    print(process.wait(20), flush=True)

CODE
"""
SCRIPTS = {
    "a handler that collects whoever ended": (
        "started = []\n"
        "def collected(*_):\n"
        "    started.append(os.wait()[0])\n"
        "signal.signal(signal.SIGCHLD, collected)\n"
        "child = os.posix_spawnp('sleep', ['sleep', '60'], os.environ)\n"
        "process = jvm()\n"
        "assert started == [], started\n"
        "os.kill(child, 9)\n"
        "while not started: time.sleep(0.01)\n"
        "assert started == [child]\n"
        "end(process)\n"
    ),
    "a thread that collects all that end": (
        "child = os.posix_spawnp('sleep', ['sleep', '60'], os.environ)\n"
        "found = []\n"
        "threading.Thread(target=lambda: found.append(os.wait()[0]), daemon=True).start()\n"
        "for _ in range(5):\n"
        "    end(jvm())\n"
        "assert found == []\n"
        "os.kill(child, 9)\n"
        "while not found: time.sleep(0.01)\n"
        "assert found == [child]\n"
    ),
    "one that closes all that is open before it asks for Spark": "os.closerange(3, 1024)\nend(jvm())\n",
    "one that closes all that is open, and opens others, before it asks for Spark": (
        "os.closerange(3, 1024)\n"
        "import socket\n"
        "others = [socket.socketpair() for _ in range(60)]\n"
        "end(jvm())\n"
        "others[-1][0].send(b'x')\n"
        "assert [other[1].recv(1, socket.MSG_DONTWAIT) for other in others[-1:]] == [b'x']\n"
    ),
    "one that closes all that is open while the JVM runs, and opens others": (
        "process = jvm()\n"
        "os.closerange(3, 1024)\n"
        "import socket\n"
        "others = [socket.socketpair() for _ in range(60)]\n"
        "for one, other in others: one.send(bytes(64))\n"
        "while (code := process.poll()) is None: time.sleep(0.01)\n"
        "print(code)\n"
        "assert [other.recv(64, socket.MSG_DONTWAIT) for _, other in others] == [bytes(64)] * 60\n"
    ),
    "one that closes its streams": "for number in (0, 1): os.close(number)\nend_code = None\nprocess = jvm()\n"
    "process.stdin.close()\nsys.exit(0 if process.wait(20) == 7 else 1)\n",
    "a forked child that outlives the JVM": (
        "process = jvm()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    time.sleep(60)\n"
        "    os._exit(0)\n"
        "process.kill()\n"
        "print(process.wait(20), flush=True)\n"
        "os.kill(child, 9)\n"
    ),
    "one that kills what starts JVMs": (
        "first = jvm()\n"
        "parent = lambda pid: int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
        "os.kill(parent(parent(first.pid)), 9)\n"
        "end(first)\n"
        "end(jvm())\n"
    ),
}
ENDS = {
    "one that closes all that is open while the JVM runs, and opens others": ["256"],
    "a thread that collects all that end": ["7"] * 5,
    "one that closes its streams": [],
    "a forked child that outlives the JVM": ["-9"],
    "one that kills what starts JVMs": ["7", "7"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_does_with_its_processes_and_descriptors_is_about_its_own(script: str) -> None:
    code = AS_SCRIPT.replace("CODE", SCRIPTS[script])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.returncode) == (ENDS.get(script, ["7"]), 0), done.stderr


@pytest.mark.parametrize("before", ["", "its end is read"])
def test_nothing_is_left_of_a_jvm_whose_driver_has_gone(before: str) -> None:
    code = (
        "import os, subprocess, sys\n"
        "from tidegate_spark.jvm.jvm_process import JvmProcess\n"
        "jvm = JvmProcess(['sh', '-c', 'read line'], stdin=subprocess.PIPE)\n"
        "parent = lambda pid: int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
        "print(jvm.pid, parent(jvm.pid), parent(parent(jvm.pid)), flush=True)\n"
        f"{'jvm.kill(); jvm.wait()' if before else ''}\n"
        "os.kill(os.getpid(), 9)\n"
    )
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    processes = [Path(f"/proc/{number}") for number in started.stdout.split()]
    assert len(processes) == 3, started.stderr
    wait_for("the JVM and its parents to go", lambda: not any(map(runs, processes)), SECONDS, 0.01)


def test_a_jvm_has_the_variables_the_folder_and_the_signals_that_it_is_given(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "A": "b=c\nd", "LC_ALL": "", "E": "\udce9"}
    reader, writer = os.pipe()
    command = ["cat", "/proc/self/environ", "/proc/self/status", "here"]
    (tmp_path / "here").write_text("in its folder")
    shown = JvmProcess(command, env={**variables, "": "no name"}, cwd=str(tmp_path), stdout=writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as output:
        found, _, status = output.read().rpartition(b"\0")
    assert shown.wait(SECONDS) == 0
    assert dict(each.split("=", 1) for each in os.fsdecode(found).split("\0")) == variables
    assert status.endswith(b"in its folder")
    ignored = ignored_by(status.decode())
    # What Python ignores is not ignored, and otherwise it is as here: whoever started this may have some ignored.
    own = ignored_by(Path("/proc/self/status").read_text())
    pythons = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert ignored == (own | 1 << signal.SIGINT - 1) & ~pythons


def test_a_long_command_is_passed_on() -> None:
    long = [f"{number}" * 60_000 for number in range(10, 26)]
    assert JvmProcess(["sh", "-c", "test ${#1} = 120000 && test $# = 16 && exit 5", "sh", *long]).wait(SECONDS) == 5


@pytest.mark.parametrize("command", ["/no/such/program", "/", "no-such-program"])
def test_a_program_that_cannot_be_started_is_an_error_that_names_it(command: str) -> None:
    with pytest.raises(OSError, match=f"'{command}'"):
        JvmProcess([command], stdin=subprocess.PIPE)


def test_a_null_byte_is_refused_before_anything_is_started() -> None:
    with pytest.raises(ValueError, match="null byte"):
        JvmProcess(["sh", "a\0b"])


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
