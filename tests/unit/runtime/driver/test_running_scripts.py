"""A program is run as Python would run it, and is the module ``__main__`` for as long as anything of it goes on."""

import gzip
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import tidegate_spark
from tidegate_spark.driver.preflight import folders_of
from tidegate_spark.process.faults import faults

SOURCES = str(Path(tidegate_spark.__file__).parents[1])
PROGRAM = """
import pickle, sys
from dataclasses import dataclass

@dataclass
class Order:
    number: int

def later():
    return pickle.loads(pickle.dumps(Order(4))).number

sys.later = later
print(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, flush=True)
"""
AFTERWARDS = """
import sys
from tidegate_spark.driver.preflight import Main
from tidegate_spark.driver.script.script import run_script
from tidegate_spark.process.log_lines import log_to_stderr

log_to_stderr()
import multiprocessing  # as the driver does, before there is a program
outcome = run_script(Main({main}), ["--fast"])
print(outcome.reason.value, outcome.message if outcome.exception else sys.later(), flush=True)
"""


def run(main: str, path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS.format(main=main)],
        env={"PYTHONPATH": f"{SOURCES}:{path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_is_the_main_module_after_its_last_line_too(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(PROGRAM)
    assert run(f"path={str(file)!r}", tmp_path) == [
        f"__main__ {file} None None {[str(file), '--fast']}",
        "Completed 4",
    ]


@pytest.mark.parametrize(("name", "place"), [("app", "app.py"), ("shop", "shop/__main__.py")])
def test_so_is_a_module_and_a_package(tmp_path: Path, name: str, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(PROGRAM)
    (tmp_path / "shop").mkdir(exist_ok=True)
    (tmp_path / "shop" / "__init__.py").touch()
    package, known = ("shop", "shop.__main__") if name == "shop" else ("", "app")
    assert run(f"module={name!r}", tmp_path) == [
        f"__main__ {file} {package} {known} {[str(file), '--fast']}",
        "Completed 4",
    ]


POOLS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

@dataclass
class Order:
    number: int

if __name__ == "__main__":
    sys.later = lambda: 4
    for method in ("fork", "forkserver", "spawn"):
        with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
            print(method, list(pool.map(Order, [1])), flush=True)
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_a_worker_of_any_kind_returns_an_object_of_the_programs_own_class(tmp_path: Path, as_module: bool) -> None:
    file = tmp_path / "app.py"
    file.write_text(POOLS)
    said = [f"{method} [Order(number=1)]" for method in ("fork", "forkserver", "spawn")]
    assert run("module='app'" if as_module else f"path={str(file)!r}", tmp_path) == [*said, "Completed 4"]


def test_a_link_to_a_program_imports_what_is_beside_the_program(tmp_path: Path) -> None:
    program, link = tmp_path / "releases" / "2" / "app.py", tmp_path / "current" / "app.py"
    for file in (program, link):
        file.parent.mkdir(parents=True)
    (program.parent / "beside_it.py").write_text("place = 'beside the program'")
    (link.parent / "beside_it.py").write_text("place = 'beside the link'")
    (link.parent / "beside_link.py").write_text("place = 'beside the link'")
    program.write_text(
        "import sys, beside_it, beside_link\n"
        "print(__file__, sys.argv[0], flush=True)\n"
        "sys.later = lambda: f'{beside_it.place}, {beside_link.place}'\n"
    )
    link.symlink_to(Path("..") / "releases" / "2" / "app.py")
    said = run(f"path={str(link)!r}", tmp_path)
    assert said == [f"{link} {link}", "Completed beside the program, beside the link"]
    assert folders_of(str(link)) == [str(program.parent), str(link.parent)]
    assert folders_of(str(program)) == [str(program.parent)]


def archive_of(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.py", text)
    return path


def test_so_is_an_archive_which_imports_its_own_modules_after_its_last_line_too(tmp_path: Path) -> None:
    late = "\nold = later\ndef later():\n    import beside\n    return old() + beside.more\nsys.later = later\n"
    file = archive_of(tmp_path / "app.pyz", __main__=PROGRAM + late, beside="more = 1")
    assert run(f"path={str(file)!r}", tmp_path) == [
        f"__main__ {file}/__main__.py  __main__ {[str(file), '--fast']}",
        "Completed 5",
    ]
    plain = subprocess.run([sys.executable, file, "--fast"], capture_output=True, text=True, check=True)
    assert plain.stdout.splitlines() == run(f"path={str(file)!r}", tmp_path)[:1]


def test_an_archive_without_a_main_module_is_said_not_to_run(tmp_path: Path) -> None:
    file = archive_of(tmp_path / "app.pyz", beside="more = 1")
    (said,) = run(f"path={str(file)!r}", tmp_path)
    assert f"The archive {file} cannot be run: it has no module __main__." in said


def test_a_package_without_a_main_module_is_said_not_to_run(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (said,) = run("module='shop'", tmp_path)
    assert "Module 'shop' cannot be run" in said


@pytest.mark.parametrize(
    ("hook", "said"),
    [("lambda kind, error, trace: print('reported', error, flush=True)", ["reported the cause"]), ("None", [])],
)
def test_an_exception_that_leaves_a_script_goes_to_its_own_hook_and_is_the_reason(
    tmp_path: Path, hook: str, said: list[str]
) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"import sys\nsys.excepthook = {hook}\nraise ValueError('the cause')\n")
    *before, last = run(f"path={str(file)!r}", tmp_path)
    assert before == said
    assert last == f"ApplicationFailed the cause ({file}, line 3)"


BROKER = """
import sys
class NoBrokersAvailable(Exception):
    __module__ = "kafka.errors"
    def __str__(self):
        return "no broker answers"
"""
EXITS = "sys.exit(3)"
RAISES = "raise RuntimeError('the pipeline has failed')"
GROUP = "raise ExceptionGroup('unhandled errors in a TaskGroup', [NoBrokersAvailable()])"


@pytest.mark.parametrize(
    "end",
    [
        f"try:\n    raise NoBrokersAvailable\nexcept Exception:\n    {EXITS}",
        f"try:\n    raise NoBrokersAvailable\nexcept Exception:\n    {RAISES}",
        f"try:\n    raise NoBrokersAvailable\nexcept Exception as error:\n    {RAISES} from error",
        f"try:\n    raise NoBrokersAvailable\nfinally:\n    {EXITS}",
        GROUP,
        f"try:\n    {GROUP}\nexcept BaseException:\n    {EXITS}",
    ],
)
def test_a_fault_of_the_broker_is_that_whatever_the_script_makes_of_it(tmp_path: Path, end: str) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"{BROKER}{end}\n")
    last = run(f"path={str(file)!r}", tmp_path)[-1]
    assert last.startswith("BrokerUnavailable The message broker could not be used. kafka.errors.NoBrokersAvailable")
    assert ("sys.exit(3)" in last) == (EXITS in end)


IN_HANDLER = "try:\n    raise NoBrokersAvailable\nexcept Exception:\n"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (f"{IN_HANDLER}    seed = {{}}['seed']", "'seed'"),
        (f"{IN_HANDLER}    raise ValueError('the seed is not there') from None", "the seed is not there"),
        (
            f"{IN_HANDLER}    try:\n        None.seed\n    except Exception:\n        raise ValueError('no seed')",
            "no seed",
        ),
        ("raise ExceptionGroup('both', [NoBrokersAvailable(), ValueError('no column')])", "no column"),
        (f"{IN_HANDLER}    try:\n        None.seed\n    except Exception:\n        sys.exit(3)", "AttributeError"),
    ],
)
def test_a_mistake_of_a_script_is_its_own_also_while_it_handles_a_fault_of_the_broker(
    tmp_path: Path, end: str, said: str
) -> None:
    """Nobody would roll it back otherwise, and it would be started again for as long as the broker lacks something."""
    file = tmp_path / "app.py"
    file.write_text(f"{BROKER}{end}\n")
    last = run(f"path={str(file)!r}", tmp_path)[-1]
    assert last.startswith("ApplicationFailed ")
    assert said in last


def test_what_a_script_made_of_a_fault_of_the_broker_is_said_too(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"{BROKER}{IN_HANDLER}    {RAISES}\n")
    last = run(f"path={str(file)!r}", tmp_path)[-1]
    assert "The application then raised RuntimeError: the pipeline has failed" in last


def test_a_script_that_handles_a_fault_and_ends_well_is_completed(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    later = "sys.later = lambda: 4"
    file.write_text(f"{BROKER}{later}\ntry:\n    raise NoBrokersAvailable\nexcept Exception:\n    sys.exit(0)\n")
    assert run(f"path={str(file)!r}", tmp_path) == ["Completed 4"]


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        ("print('failed:', error); sys.exit(1)", "It did so because of KeyError: 'BROKERS'"),
        ("sys.exit('not set')", "It did so because of KeyError: 'BROKERS'"),
        ("sys.exit('not set: ' + str(error) + chr(10))", ""),
        ("sys.stderr.write(f'no {error}\\n'); sys.exit(1)", "Its last words on standard error: no 'BROKERS'"),
    ],
)
def test_why_a_script_exits_is_in_its_message_once(tmp_path: Path, handler: str, why: str) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"import os, sys\ntry:\n    os.environ['BROKERS']\nexcept KeyError as error:\n    {handler}\n")
    last = run(f"path={str(file)!r}", tmp_path)[-1]
    assert last.startswith("ApplicationFailed The application called sys.exit(")
    assert last.partition(").")[2].strip() == why


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("raise Odd", "<exception str() failed> (FILE, line 5)"),
        ("Odd.__str__ = lambda self: sys.exit(0); raise Odd", "<exception str() failed> (FILE, line 5)"),
        ("raise BaseException", "(FILE, line 5)"),
        ("sys.stderr.close(); sys.exit('closed')", "The application called sys.exit('closed')."),
    ],
)
def test_an_end_without_words_is_the_applications_own_too(tmp_path: Path, end: str, said: str) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"import sys\nclass Odd(Exception):\n    def __str__(self):\n        return 5\n{end}\n")
    last = run(f"path={str(file)!r}", tmp_path)[-1]
    assert last == f"ApplicationFailed {said.replace('FILE', str(file))}"


CHAINED = "try:\n    int('x')\nexcept ValueError as error:\n    raise RuntimeError('no number') from error\n"


@pytest.mark.parametrize(
    "program",
    [
        CHAINED,
        f"def work():\n    {CHAINED.replace(chr(10), chr(10) + '    ')}\nwork()\n",
        "import json\njson.loads('{')\n",
        "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(lambda: [][0])\n",
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n",
        "x = (\n",
        "import not_there\n",
        "import traceback, sys\nsys.excepthook = lambda kind, error, trace: traceback.print_tb(trace)\n1 / 0\n",
        "import sys\nsys.excepthook = lambda kind, error, trace: sys.stderr.write(str(trace.tb_lineno))\n1 / 0\n",
        "import os\nif os.fork() == 0:\n    1 / 0\nos.wait()\n",
    ],
    ids=["chained", "inside", "library", "at exit", "thread", "syntax", "import", "hook", "hook's trace", "child"],
)
def test_a_traceback_has_the_frames_that_it_has_under_python(tmp_path: Path, program: str) -> None:
    main = tmp_path / "script.py"
    main.write_text(program)

    def frames(*arguments: str) -> list[str]:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.stderr
        # What Python says before a traceback of atexit's depends on its version.
        lines = [line for line in done.stderr.splitlines() if "atexit" not in line or line.startswith("  ")]
        assert "tidegate" not in "".join(lines)
        return lines

    assert frames("-c", AS_DRIVER.format(main=str(main), folder=str(main.parent))) == frames(str(main))


def test_of_a_group_of_exceptions_the_first_one_is_the_message() -> None:
    failure = faults.explain(ExceptionGroup("unhandled errors", [ValueError("no column 'a'"), KeyError("b")]))
    assert (failure.exception, failure.message) == ("ValueError", "no column 'a'")


def test_what_the_runtime_logs_in_the_scripts_thread_is_none_of_its_last_words(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(
        "import logging, sys\n"
        "sys.stderr.write('no such topic\\n')\n"
        "logging.getLogger('tidegate').warning('the script stops Spark')\n"
        "sys.exit(2)\n"
    )
    said = "ApplicationFailed The application called sys.exit(2). Its last words on standard error: no such topic"
    assert run(f"path={str(file)!r}", tmp_path) == [said]


CHILDREN = """
import atexit, multiprocessing, os, sys, threading, time, weakref

class Thing:
    pass

parent, thing = os.getpid(), Thing()

def whose():
    return "parent" if os.getpid() == parent else "child"

def show(text):
    os.write(1, f"{text} in {whose()}\\n".encode())

atexit.register(show, "of the parent")
weakref.finalize(thing, show, "the parent's object")
child = os.fork()
if child == 0:
    atexit.register(show, "of the child")
    threading.Thread(target=lambda: (time.sleep(0.2), show("a thread"))).start()
    END
show(f"ended with {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")
worker = multiprocessing.get_context("fork").Process(target=atexit.register, args=(show, "of a worker"))
worker.start()
worker.join()
show(f"a worker ended with {worker.exitcode}")
"""
AS_DRIVER = """
import sys
from tidegate_spark.driver.preflight import Main
from tidegate_spark.driver.script.script import run_script
from tidegate_spark.driver.script.end.script_end import ExitCalls, end_process
from tidegate_spark.process.this_process import at_exit_of_this_process

at_exit_of_this_process(lambda: print("the driver's own", flush=True))
calls = ExitCalls()
calls.install([{folder!r}])
run_script(Main({main!r}), [])
calls.call()
calls.end_remains()
end_process(0)
"""


@pytest.mark.parametrize("end", ["sys.exit(5)", "sys.exit('why')", "raise ValueError", "os._exit(4)"])
def test_a_forked_child_ends_as_under_python(tmp_path: Path, end: str) -> None:
    main = tmp_path / "script.py"
    main.write_text(CHILDREN.replace("END", end))

    # Parent and child write at once only where neither waits for the other.
    assert as_driver(main).stdout.splitlines() == as_python(main).stdout.splitlines()


def as_driver(main: Path) -> subprocess.CompletedProcess[str]:
    return as_python("-c", AS_DRIVER.format(main=str(main), folder=str(main.parent)))


def as_python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)


class Left(NamedTuple):
    """What a script leaves to the end of its process."""

    program: str
    helper: str = ""


LEAVES = """
import atexit, csv, gzip, signal, sys, threading
from pathlib import Path
place = Path(sys.argv[0]).parent / "left"
place.mkdir()

class Sink:
    def __init__(self, name):
        self.name, self.rows = name, ["a row"]
    def __del__(self):
        write(self.name, "".join(self.rows))

def write(name, text):
    (place / name).write_text(text)
"""
LEFT = {
    "a file that nobody closed": Left("file = open(place / 'file', 'w'); file.write('a row')"),
    "a writer of rows": Left("rows = csv.writer(open(place / 'rows.csv', 'w')); rows.writerow([1, 2])"),
    "a compressed file": Left("packed = gzip.GzipFile(place / 'rows.gz', 'w'); packed.write(b'a row')"),
    "an object that writes when it is deleted, with a function and a folder of the module": Left("sink = Sink('sink')"),
    "a cycle of objects": Left("one = Sink('one'); one.other = Sink('two'); one.other.other = one"),
    "a handler of a signal": Left("sink = Sink('sink'); signal.signal(signal.SIGTERM, lambda *_: sink)"),
    "an error": Left("sink = Sink('sink'); raise ValueError"),
    "an exit": Left("sink = Sink('sink'); sys.exit(3)"),
    "a file that a call at exit writes": Left(
        "file = open(place / 'file', 'w'); atexit.register(file.write, 'called at exit')"
    ),
    "an object whose end fails beside another one": Left(
        "class Bad:\n    def __del__(self):\n        sys.exit(4)\nbad, sink = Bad(), Sink('sink')"
    ),
    "modules of its own": Left(
        "import beside",
        "import __main__\nsink = __main__.Sink('sink')\nfile = open(__main__.place / 'file', 'w')"
        "\nfile.write('a row')\ndef held():\n    pass",
    ),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_a_script_leaves_to_the_end_of_its_process_is_written_as_under_python(tmp_path: Path, what: str) -> None:
    left: dict[str, dict[str, bytes]] = {}
    ways: list[tuple[str, Callable[[Path], object]]] = [("python", as_python), ("driver", as_driver)]
    for name, run_main in ways:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "beside.py").write_text(LEFT[what].helper)
        (folder / "script.py").write_text(f"{LEAVES}{LEFT[what].program}\n")
        run_main(folder / "script.py")
        left[name] = {each.name: content_of(each) for each in (folder / "left").iterdir()}
    assert left["driver"] == left["python"]
    assert left["driver"]


def content_of(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def test_a_file_is_written_though_functions_that_are_called_later_hold_it(tmp_path: Path) -> None:
    """Python would lose its last rows, which are of a batch that is committed."""
    script = tmp_path / "script.py"
    program = "file = open(place / 'file', 'w'); file.write('a row')\nimport builtins\nbuiltins.batch = lambda: file"
    script.write_text(f"{LEAVES}{program}\n")
    assert as_driver(script).returncode == 0
    assert (tmp_path / "left" / "file").read_text() == "a row"


def test_a_file_that_a_thread_goes_on_with_is_written_and_stays_open(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""{LEAVES}
import os
file = open(place / 'file', 'w')
file.write('a row')
begun, goes_on = threading.Event(), threading.Event()
def wait():
    begun.set()
    goes_on.wait()
threading.Thread(target=wait, daemon=True).start()
begun.wait()
end = os._exit
os._exit = lambda code: end(int(file.closed))
""")
    done = as_driver(script)
    assert (tmp_path / "left" / "file").read_text() == "a row"
    assert done.stderr == ""


OUTLIVES = """
import os, sys, threading
main = threading.main_thread()

def say(text):
    os.write(1, f"{text}\\n".encode())

def while_alive():
    while main.is_alive():
        threading.Event().wait(0.01)
    say("not alive")

def until_joined():
    main.join(0)
    main.join(timeout=-1)
    main.join()
    say(f"joined, alive: {main.is_alive()}")

try:
    main.join()
except RuntimeError as error:
    say(error)
say(f"alive: {main.is_alive()}, {main is threading.current_thread()}")
child = os.fork()
if child == 0:
    thread = threading.Thread(target=until_joined)
    thread.start()
    sys.exit(0)
os.waitpid(child, 0)
thread = threading.Thread(target=THREAD)
thread.start()
say("the last line")
END
"""


@pytest.mark.parametrize("thread", ["while_alive", "until_joined"])
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise ValueError"])
def test_the_main_thread_has_ended_for_a_scripts_threads_after_its_last_line(
    tmp_path: Path, thread: str, end: str
) -> None:
    main = tmp_path / "script.py"
    main.write_text(OUTLIVES.replace("THREAD", thread).replace("END", end))
    wait = (
        "import threading\n[each.join(60) for each in threading.enumerate() if each is not threading.main_thread()]\n"
    )
    driver = AS_DRIVER.replace("calls.call()", f"{wait}calls.call()")
    done = as_python("-c", driver.format(main=str(main), folder=str(tmp_path)))
    assert done.stdout.splitlines() == as_python(main).stdout.splitlines()
    assert done.stdout
