"""What the interpreter would wait for after a script's last line is known, and what was left for then is done."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.driver.script.end.script_end import OURS, what_goes_on
from tidegate_testing.waiting import wait_for

SOURCES = str(Path(tidegate_spark.__file__).parents[1])


@pytest.fixture
def go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def others() -> set[str]:
    """What runs for the tests themselves."""
    return set(what_goes_on())


def mine(others: set[str]) -> list[str]:
    return [name for name in what_goes_on() if name not in others]


def run_apart(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that ends pools and child processes: not in the process of other tests."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_thread_is_waited_for_and_a_daemon_is_not(go: threading.Event, others: set[str]) -> None:
    threads = [
        threading.Thread(target=go.wait, name="of-the-script"),
        threading.Thread(target=go.wait, name="daemon", daemon=True),
        threading.Thread(target=go.wait, name=f"{OURS}copier"),
    ]
    for thread in threads:
        thread.start()
    assert mine(others) == ["of-the-script"]
    go.set()
    for thread in threads:
        thread.join()
    assert mine(others) == []


def test_a_pool_is_waited_for_until_it_has_done_all_it_was_given(go: threading.Event, others: set[str]) -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="script-pool") as pool:
        first, second = pool.submit(go.wait), pool.submit(str)
        wait_for("the pool's work", lambda: mine(others) == ["script-pool_0"], 60, 0.01)
        go.set()
        assert (first.result(60), second.result(60)) == (True, "")
        wait_for("a pool that nobody has shut down, with nothing to do", lambda: mine(others) == [], 60, 0.01)


def test_child_processes_are_waited_for_at_the_end_and_pools_of_them_end() -> None:
    program = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from tidegate_spark.driver.script.end.script_end import ExitCalls, what_goes_on

def write(connection):
    connection.send("the child's last word")

if __name__ == "__main__":
    calls = ExitCalls()
    calls.install()
    manager, pool = multiprocessing.Manager(), ProcessPoolExecutor(1)
    work = pool.submit(time.sleep, 0.3)
    busy = bool(what_goes_on())
    work.result(60)
    deadline = time.monotonic() + 60
    while what_goes_on() and time.monotonic() < deadline:
        time.sleep(0.01)
    ours, childs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=write, args=(childs,))
    child.start()
    calls.call()
    print(busy, what_goes_on(), child.exitcode, ours.recv(), len(multiprocessing.active_children()), flush=True)
"""
    done = run_apart(program)
    assert (done.stdout, done.returncode) == ("True [] 0 the child's last word 0\n", 0), done.stderr


def test_calls_at_exit_are_made_once_the_last_one_first_and_an_error_keeps_none_from_it() -> None:
    done = run_apart("""
import atexit, sys
from tidegate_spark.driver.script.end.script_end import ExitCalls

calls = ExitCalls()
calls.install()
atexit.register(print, "first", flush=True)
assert atexit.register(sys.exit, 3) is sys.exit

@atexit.register
def failing():
    atexit.register(print, "registered while they are made", flush=True)
    raise ValueError("what it says")

def taken_back():
    print("never", flush=True)

atexit.register(taken_back)
atexit.unregister(taken_back)
calls.call()
print("now", flush=True)
calls.call()
""")
    assert done.stdout.splitlines() == ["registered while they are made", "first", "now"]
    assert "ValueError: what it says" in done.stderr


def test_a_program_that_makes_the_calls_at_exit_itself_has_its_own_made_and_none_of_the_runtimes() -> None:
    done = run_apart("""
import atexit, multiprocessing, os
from tidegate_spark.driver.script.end.script_end import ExitCalls

atexit.register(print, "of the runtime", flush=True)
calls = ExitCalls()
calls.install()
atexit.register(print, "of the script", flush=True)
child = multiprocessing.get_context("fork").Process(target=lambda: atexit._run_exitfuncs())
child.start()
child.join()
print("now", flush=True)
atexit._run_exitfuncs()
calls.call()
os._exit(0)
""")
    # A child is no driver, and calls all that it has, as its interpreter would.
    assert done.stdout.splitlines() == ["of the script", "of the runtime", "now", "of the script"], done.stderr


def test_what_python_does_at_exit_for_its_own_modules_is_done_once_and_only_for_the_script() -> None:
    done = run_apart("""
import atexit, logging, logging.handlers, sys, weakref
from tidegate_spark.driver.script.end.script_end import ExitCalls

class Thing:
    pass

runtimes, calls = Thing(), ExitCalls()
weakref.finalize(runtimes, print, "of the runtime: the interpreter's", flush=True)
calls.install()

class Handler(logging.StreamHandler):
    def close(self):
        print("closed", flush=True)
        super().close()

shown = Handler(sys.stdout)
held = logging.handlers.MemoryHandler(1000, logging.ERROR, shown)
logging.getLogger("script").addHandler(held)
things = [Thing() for _ in range(4)]
weakref.finalize(things[0], print, "the first object", flush=True)
weakref.finalize(things[1], print, "the second object", flush=True)
weakref.finalize(things[2], sys.exit, 3)
weakref.finalize(things[3], print, "not at exit", flush=True).atexit = False
atexit.register(logging.getLogger("script").warning, "a record that is held back")
calls.call()
print("now", flush=True)
calls.call()
import os
os._exit(0)
""")
    assert done.stdout.splitlines() == [
        "the second object",
        "the first object",
        "a record that is held back",
        "closed",
        "now",
    ]


def test_a_program_that_ends_at_once_comes_to_us_first_from_any_thread_and_its_child_processes_do_not() -> None:
    done = run_apart("""
import multiprocessing, os, threading
from tidegate_spark.driver.script.end.script_end import end_process, guard_exit

def end(code):
    print("asked for", code, flush=True)
    end_process(7)

guard_exit(end)
child = multiprocessing.get_context("fork").Process(target=os._exit, args=(5,))
child.start()
child.join()
print("the child's", child.exitcode, flush=True)
threading.Thread(target=os._exit, args=(3,)).start()
threading.Event().wait()
""")
    assert (done.stdout, done.returncode) == ("the child's 5\nasked for 3\n", 7), done.stderr


def test_what_was_printed_is_passed_on_whatever_the_script_has_in_the_place_of_a_stream() -> None:
    done = run_apart("""
import os, sys
from tidegate_spark.driver.script.end.script_end import flush_output

class Words:
    write = staticmethod(lambda text: None)

sys.stdout.write("before")
sys.stdout, sys.stderr = Words(), None
flush_output()
os._exit(0)
""")
    assert (done.stdout, done.returncode) == ("before", 0), done.stderr


def test_no_other_program_takes_the_place_of_the_driver_and_a_child_may_become_one() -> None:
    done = run_apart("""
import os
from types import SimpleNamespace
from tidegate_spark.driver.script.script_entry import Entry

refused = []
Entry(SimpleNamespace(refuse=refused.append), None, "local").guard()
for replace in (
    lambda: os.execvp("spark-submit", ["spark-submit", "job.py"]),
    lambda: os.execl("/bin/echo", "echo", "replaced"),
    lambda: os.execle("/bin/echo", "echo", "replaced", {}),
):
    try:
        replace()
    except SystemExit as error:
        print(type(error).__name__, flush=True)
print(len(refused), "os.exec" in refused[0], flush=True)
child = os.fork()
if child == 0:
    os.execl("/bin/echo", "echo", "a child")
os.waitpid(child, 0)
os._exit(0)
""")
    assert done.stdout.splitlines() == [*["ScriptRefusedError"] * 3, "3 True", "a child"], done.stderr


def test_what_the_runtime_has_put_in_the_place_of_pythons_functions_is_pickled_as_these(tmp_path: Path) -> None:
    pickled = tmp_path / "pickled"
    there = f"""
import atexit, os, pickle, signal, socket, sys, threading
from pyspark import cloudpickle
MODULES = (atexit, os, signal, socket, sys, threading)
FOUND = [(each, name) for each in (*MODULES, socket.socket) for name in dir(each) if callable(getattr(each, name))]
PLACE = {str(pickled)!r}
"""
    done = run_apart(f"""{there}
before = {{key: getattr(*key) for key in FOUND}}
from types import SimpleNamespace
from tidegate_spark.driver.script.own_ports import name_owner
from tidegate_spark.driver.script.end.script_end import ExitCalls, end_process, guard_exit
from tidegate_spark.driver.script.script_entry import Entry
from tidegate_spark.process.signals import note_waits

class OfThisProcess:
    def __init__(self):
        self.lock = threading.Lock()
    def end(self, *of_process):
        os._exit(1)

ExitCalls().install()
guard_exit(OfThisProcess().end)
note_waits()
name_owner({{8090}})
Entry(SimpleNamespace(refuse=OfThisProcess().end), None, "local").guard()

def using(function):
    return lambda: function

replaced = [key for key in FOUND if getattr(*key) != before[key]]
print(*sorted(name for _, name in replaced), flush=True)
with open(PLACE, "wb") as file:
    file.write(cloudpickle.dumps([(using(getattr(*key)), key) for key in replaced]))
end_process(0)
""")
    assert done.returncode == 0, done.stderr
    names = ["_exit", "_run_exitfuncs", "bind", "close", "closerange", "execv", "execve", "register"]
    names += ["sigtimedwait", "sigwait", "sigwaitinfo", "unregister"]
    assert done.stdout.split() == names
    elsewhere = run_apart(f"""{there}
print(*(key[1] for use, key in pickle.load(open(PLACE, "rb")) if use() is getattr(*key)))
""")
    assert sorted(elsewhere.stdout.split()) == names, elsewhere.stderr


def test_as_pythons_own_they_are_no_methods_of_a_class_that_has_them() -> None:
    done = run_apart("""
import os, signal
from tidegate_spark.driver.script.end.script_end import end_process, guard_exit

guard_exit(end_process)

class Worker:
    end = os._exit

print(os._exit.__name__, os._exit.__module__, flush=True)
Worker().end(6)
""")
    assert (done.stdout.split(), done.returncode) == (["_exit", "posix"], 6), done.stderr


CLOSES_ALL = {
    "by its range": "os.closerange(3, 256)",
    "by a range that begins at one of ours": "os.closerange(ours, ours + 1); os.closerange(3, 256)",
    "one by one": """
for number in range(3, 256):
    try:
        os.close(number)
    except OSError as error:
        assert error.errno == errno.EBADF
""",
}


@pytest.mark.parametrize("closes", CLOSES_ALL)
def test_a_program_that_closes_all_that_is_open_closes_its_own(closes: str) -> None:
    done = run_apart(f"""
import errno, os, socket, sys
from tidegate_spark.driver.script.own_descriptors import keep_open
from tidegate_spark.process.logs import OutputTail
from tidegate_spark.process.redaction import Secrets

output = OutputTail(Secrets())
server = socket.create_server(("127.0.0.1", 0))
released, its = os.pipe()
keep_open()
ours = server.fileno()
os.fdopen(released).close()  # as the runtime closes
own = os.open("/dev/null", os.O_RDONLY)
assert own == released
{CLOSES_ALL[closes]}
socket.create_connection(server.getsockname()).close()
server.accept()
for closed in (own, 200):
    try:
        os.fstat(closed)
    except OSError:
        print("closed", flush=True)
print("x" * 300_000, flush=True)
if os.fork() == 0:
    os.closerange(3, 256)
    try:
        server.accept()
    except OSError:
        os.write(1, b"closed in the child")
    os._exit(0)
os.wait()
output.content()
os._exit(0)
""")
    assert done.stdout.replace("x", "").split("\n") == ["closed", "closed", "", "closed in the child"], done.stderr
    assert done.stdout.count("x") == 300_000


def test_a_file_that_a_program_opens_under_a_number_of_before_is_its_own_to_close() -> None:
    """Two descriptors of /dev/null look alike, and ``subprocess`` closes what it has opened by its number."""
    done = run_apart("""
import os
from tidegate_spark.driver.script.own_descriptors import keep_open

before = os.fdopen(os.open(os.devnull, os.O_RDONLY))
number = before.fileno()
keep_open()
before.close()  # as the runtime closes
assert os.open(os.devnull, os.O_RDONLY) == number
os.close(number)
print("closed", flush=True)
os._exit(0)
""")
    assert done.stdout == "closed\n", done.stderr


def test_what_a_script_has_put_in_the_place_of_a_module_is_asked_for_nothing_and_no_module_runs_once_more(
    tmp_path: Path,
) -> None:
    (tmp_path / "out.py").write_text("print('runs', flush=True)\n")
    done = run_apart(f"""
import sys
from tidegate_spark.driver.script.end.remains import Remains

class Settings:
    def __getattr__(self, name):
        raise KeyError(name)

sys.path.insert(0, {str(tmp_path)!r})
remains = Remains([{str(tmp_path)!r}])
import out
sys.modules["settings"] = Settings()
remains.end()
try:
    import out
except ImportError:
    print("not once more", flush=True)
""")
    assert done.stdout.splitlines() == ["runs", "not once more"], done.stderr
