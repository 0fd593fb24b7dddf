"""The entry points come up, or say why not, in images that lack what the runtime would like to have."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tidegate_spark
from tidegate_spark.contract.configuration_protocol import ConfigurationChangedError
from tidegate_spark.contract.protocol import (
    EXIT_APPLICATION,
    TERMINATION_MESSAGE_LIMIT,
    DriverConfig,
    ExecutorSettings,
    Storage,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.contract.protocol import TERMINATION_LOG as TERMINATION_LOG_OF_THE_CONTRACT
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.startup_failure import TERMINATION_LOG, startup_termination
from tidegate_spark.process.spark import pyspark_path

SOURCES = str(Path(tidegate_spark.__file__).parents[1])
CONFIG = to_json(
    DriverConfig(
        app="a",
        namespace="n",
        uid="u",
        epoch=7,
        lineage=1,
        pod_name="a-driver",
        main="local:///m.py",
        storage=Storage("s3://b/p"),
        executor=ExecutorSettings(1, "i", "IfNotPresent", "sa", "a-e7"),
    )
)
BARE_PYTHON = (sys.executable, "-S")
"""Without the third-party packages of this environment, as in an image that has none."""


def run_driver(folder: Path, python: tuple[str, ...] = BARE_PYTHON, **variables: str) -> tuple[int, Termination]:
    """Run the driver's entry point to its end; return its exit code and the termination message it left."""
    environment = {
        **os.environ,
        "PYTHONPATH": SOURCES,
        "SPARK_HOME": str(folder),
        "TIDEGATE_TERMINATION_LOG": str(folder / "termination"),
        "TIDEGATE_CONFIG": CONFIG,
        **variables,
    }
    done = subprocess.run(
        [*python, "-m", "tidegate_spark"], env=environment, capture_output=True, text=True, check=False
    )
    termination = from_json(Termination, (folder / "termination").read_text())
    # The log says it too, once.
    assert done.stderr.count(f"{termination.exception}: ") == done.stderr.count("Traceback") > 0
    return done.returncode, termination


def spark_home(folder: Path, *, zipped: bool = False) -> Path:
    """Make the layout of Apache Spark's images, with packages that are empty."""
    repository = folder / "python" / "lib"
    repository.mkdir(parents=True)
    if zipped:
        with zipfile.ZipFile(repository / "pyspark.zip", "w") as archive:
            archive.writestr("pyspark/__init__.py", "")
    else:
        (folder / "python" / "pyspark").mkdir()
        (folder / "python" / "pyspark" / "__init__.py").touch()
    with zipfile.ZipFile(repository / "py4j-0.10-src.zip", "w") as archive:
        archive.writestr("py4j/__init__.py", "")
    return folder


def hashes(program: str, folder: Path, **variables: str) -> str:
    """Return what a program prints of its hashes, in a process that no seed is inherited by."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return subprocess.run(
        [sys.executable, "-c", program, "--fast"],
        env={**environment, "PYTHONPATH": SOURCES, "TIDEGATE_TERMINATION_LOG": str(folder / "end"), **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout


def test_texts_hash_the_same_in_each_process_as_under_spark_submit_unless_a_seed_is_set(tmp_path: Path) -> None:
    show = "print(hash('orders'), os.environ['PYTHONHASHSEED'], sys.argv, flush=True)"
    starts = (
        "import os, sys\n"
        "from tidegate_spark.driver import first_process\n"
        f"first_process.go_on_in_child = lambda: {show}\n"
        "from tidegate_spark.__main__ import main\n"
        "main()\n"
    )
    plain = f"import os, sys; {show}"
    submitted = hashes(plain, tmp_path, PYTHONHASHSEED="0")
    assert [hashes(starts, tmp_path) for _ in range(2)] == [submitted] * 2
    assert hashes(starts, tmp_path, PYTHONHASHSEED="7") == hashes(plain, tmp_path, PYTHONHASHSEED="7") != submitted


def test_an_image_without_pyspark_is_named_in_the_termination_message(tmp_path: Path) -> None:
    code, termination = run_driver(tmp_path)
    assert code == EXIT_APPLICATION
    assert termination.reason is Reason.APPLICATION_FAILED
    assert "no PySpark in spec.application.image" in termination.message
    assert str(tmp_path) in termination.message
    assert termination.epoch == 7


def test_a_package_that_is_missing_or_broken_is_named_in_the_termination_message(tmp_path: Path) -> None:
    code, termination = run_driver(spark_home(tmp_path))
    assert code == EXIT_APPLICATION
    assert termination.exception in {"ImportError", "ModuleNotFoundError"}
    assert termination.message.startswith("The driver could not start: ")


@pytest.mark.parametrize("config", ["", "{", '{"app": "a"}', "[]"])
def test_an_unusable_configuration_is_named_in_the_termination_message(tmp_path: Path, config: str) -> None:
    code, termination = run_driver(tmp_path, TIDEGATE_CONFIG=config)
    assert code == EXIT_APPLICATION
    assert "TIDEGATE_CONFIG" in termination.message
    assert termination.epoch == 0


@pytest.mark.parametrize("zipped", [False, True])
def test_pyspark_is_found_in_sparks_own_directory_here_and_in_child_processes(tmp_path: Path, zipped: bool) -> None:
    home = spark_home(tmp_path, zipped=zipped)
    program = (
        "import os, subprocess, sys\n"
        "from tidegate_spark.process.spark import pyspark_path\n"
        "pyspark_path.make_importable(os.environ, sys.path)\n"
        "child = [sys.executable, '-S', '-c', 'import pyspark, py4j; print(pyspark.__file__, py4j.__file__)']\n"
        "import pyspark, py4j\n"
        "print(pyspark.__file__, py4j.__file__, flush=True)\n"
        "subprocess.run(child, check=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCES, "SPARK_HOME": str(home)}
    done = subprocess.run([*BARE_PYTHON, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here, child = done.stdout.splitlines()
    assert here == child
    assert all(path.startswith(str(home)) for path in here.split())


def test_an_installed_pyspark_is_left_alone(tmp_path: Path) -> None:
    variables = {"SPARK_HOME": str(spark_home(tmp_path))}
    path: list[str] = []
    pyspark_path.make_importable(variables, path)
    assert path == []
    assert "PYTHONPATH" not in variables


@pytest.mark.parametrize("module", ["executor", "purge"])
def test_executors_and_purges_need_nothing_of_pyspark(module: str) -> None:
    program = f"import sys; sys.modules.update(pyspark=None, py4j=None); import tidegate_spark.{module}"
    subprocess.run([*BARE_PYTHON, "-c", program], env={"PYTHONPATH": SOURCES}, check=True)


def test_the_last_words_fit_and_are_the_contracts() -> None:
    message = startup_termination(ValueError("é" * 9000), '{"epoch": "three"}')
    assert len(message.encode()) <= TERMINATION_MESSAGE_LIMIT
    reported = from_json(Termination, message)
    assert set(json.loads(message)) == set(json.loads(to_json(reported)))
    assert reported.epoch == 0
    assert TERMINATION_LOG == TERMINATION_LOG_OF_THE_CONTRACT


def test_an_end_that_has_a_reason_of_its_own_names_no_class_beside_it() -> None:
    replaced = json.loads(startup_termination(ConfigurationChangedError("Secret c is not the configuration"), "{}"))
    assert (replaced["reason"], replaced["exception"]) == ("ConfigurationChanged", "")
    other = json.loads(startup_termination(ModuleNotFoundError("No module named 'pyspark'"), "{}"))
    assert (other["reason"], other["exception"]) == ("ApplicationFailed", "ModuleNotFoundError")


STOPPED_WHILE_IMPORTING = """
import os, runpy, signal, sys
process, os.getpid = os.getpid(), lambda: 1

class Stop:
    def find_spec(name, path=None, target=None):
        if name == "tidegate_spark.contract.secret_shapes":
            os.kill(process, signal.SIGTERM)

sys.meta_path.insert(0, Stop)
runpy.run_module("tidegate_spark", run_name="__main__")
"""


def test_a_stop_that_comes_while_the_first_process_imports_its_modules_is_kept(tmp_path: Path) -> None:
    """Here the system would end the process by it; in a container it drops the signal."""
    log = tmp_path / "termination"
    environment = {"PYTHONPATH": SOURCES, "PYTHONHASHSEED": "0", "TIDEGATE_TERMINATION_LOG": str(log)}
    done = subprocess.run(
        [*BARE_PYTHON, "-c", STOPPED_WHILE_IMPORTING], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode >= 0, done.stderr
    assert "TIDEGATE_CONFIG is not set" in log.read_text()


HELD = """
import os, signal
from tidegate_spark.process import held_signals
held_signals.FIRST = os.getpid()
held_signals.hold_stops()
os.kill(os.getpid(), signal.SIGTERM)
from tidegate_spark.driver.first_process import go_on_in_child
line = go_on_in_child()
import threading
asked = threading.Event()
line.listen(asked.set)
print(asked.wait(60), signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
os._exit(7)
"""


def test_a_stop_that_was_held_reaches_the_driver_and_nothing_is_blocked_there() -> None:
    done = subprocess.run(
        [*BARE_PYTHON, "-c", HELD], env={"PYTHONPATH": SOURCES}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("True set()\n", 7), done.stderr
