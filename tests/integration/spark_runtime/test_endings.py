"""How an application ends decides exit code and termination message."""

import importlib.util
import os
import signal
import sys
import zipfile
from pathlib import Path

import pytest

from tidegate.pods.reserved.exec_limits import LONGEST_SETTING
from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_DEPENDENCY, EXIT_OK
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.spark.sparkconf import CHECKPOINT_FILES_CLASS
from tidegate_testing.driver_process import SOURCES, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

INJECTED = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3", "prometheus_client")
"""What the runtime brings along for Python, as images/operator does."""


def location(package: str) -> Path:
    """Return a package's folder, or a module's file."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def stock_layout(folder: Path) -> dict[str, str]:
    """Lay out what a stock image has and what the init container brings; return the environment of a driver there."""
    home, injected, pyspark = folder / "spark", folder / "injected", location("pyspark")
    (home / "python" / "lib").mkdir(parents=True)
    for name in ("bin", "jars"):
        (home / name).symlink_to(pyspark / name)
    (home / "python" / "pyspark").symlink_to(pyspark)
    for archive in (pyspark / "python" / "lib").glob("*.zip"):
        (home / "python" / "lib" / archive.name).symlink_to(archive)
    injected.mkdir()
    for name in INJECTED:
        (injected / location(name).name).symlink_to(location(name))
    return {"SPARK_HOME": str(home), "PYTHONPATH": f"{SOURCES}:{injected}"}


GREETED = {"GREETED": "world"}


def test_arguments_and_settings_that_no_variable_takes_reach_the_script_and_its_jvm(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    """Forty arguments of 4,000 characters, and the longest setting that is not refused."""
    source = tmp_path / "input"
    source.mkdir()
    (source / "a.txt").write_text("x\ny\nz\n")
    rules = "spark.tests.rules"
    driver = start_driver(
        "talkative",
        "finite.py",
        args=(str(source), "b c", *["x" * 4000] * 40),
        spark_conf={
            "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
            rules: "x" * (LONGEST_SETTING - len(rules) - 1),
        },
        own_jvm=True,
    )
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert driver.output.count("x" * 4000) >= 40
    assert "rows read back: 3" in driver.output


def test_a_module_beside_the_program_is_in_its_workers_too_and_arguments_refer_to_variables(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("beside", "beside.py", args=("hello $(GREETED) $$(GREETED) $(NOBODY)",), variables=GREETED)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert "given: hello world $(GREETED) $(NOBODY)" in driver.output
    assert "doubled: [0, 2, 4]" in driver.output


def test_python_files_of_the_spec_are_imported_by_the_script_and_by_its_workers(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    files, directory = tmp_path / "files", tmp_path / "libraries"
    (directory / "of_directory").mkdir(parents=True)
    files.mkdir()
    (files / "of_file.py").write_text("def doubled(value): return 2 * value\n")
    (files / "of_file_too.py").write_text("ZERO = 0\n")
    with zipfile.ZipFile(files / "archive.zip", "w") as archive:
        archive.writestr("of_archive.py", "def tripled(value): return 3 * value\n")
    (directory / "of_directory" / "__init__.py").touch()
    (directory / "of_directory" / "rules.py").write_text("def increased(value): return value + 1\n")
    paths = [files / "of_file.py", files / "of_file_too.py", files / "archive.zip", directory]
    driver = start_driver("files", "with_python_files.py", py_files=tuple(f"local://{path}" for path in paths))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert "in the driver: 6" in driver.output
    assert "in workers: [6, 12, 18]" in driver.output


def test_a_module_that_only_the_driver_has_is_named_with_what_brings_it_to_the_workers(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    (tmp_path / "of_driver.py").write_text("def one(value): return 1\n")
    driver = start_driver("beside", "beside.py", args=("hello", str(tmp_path)))
    assert driver.exit_code() == EXIT_APPLICATION, driver.output[-3000:]
    assert driver.termination.exception == "ModuleNotFoundError"
    message = driver.termination.message
    assert "No module named 'of_driver'" in message
    assert "name its file in spec.application.pyFiles" in message


def test_a_finite_script_completes_in_an_image_that_has_pyspark_only_in_sparks_own_directory(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    source = tmp_path / "input"
    source.mkdir()
    (source / "a.txt").write_text("x\ny\nz\n")
    driver = start_driver(
        "finite",
        "finite.py",
        args=(str(source), "b c"),
        # The table is not in S3; its sink keeps a log of its own there.
        spark_conf={"spark.sql.warehouse.dir": str(tmp_path / "warehouse")},
        own_jvm=True,
        python=(sys.executable, "-S"),
        variables=stock_layout(tmp_path),
    )
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert f"PySpark is in {tmp_path}" in driver.output
    assert driver.termination.reason is Reason.COMPLETED
    assert driver.termination.batches == {"by option": 0, "by_table": 0}
    assert f"arguments: ['{source}', 'b c']" in driver.output
    assert f"checkpoint files: {CHECKPOINT_FILES_CLASS} and {CHECKPOINT_FILES_CLASS}" in driver.output
    assert "rows read back: 3" in driver.output
    place = driver.config.storage
    directories = {
        key.split("/lineages/1/")[1].split("/")[0]
        for key in object_store.keys(place.bucket, "")
        if "/lineages/1/" in key
    }
    assert "by_table" in directories
    assert any(name.startswith("by-option-") for name in directories)


def test_a_second_unnamed_query_is_refused_even_if_the_script_swallows_exceptions(start_driver: StartDriver) -> None:
    driver = start_driver("unnamed", "two_unnamed.py")
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.QUERY_REFUSED
    assert "two_unnamed.py:7" in driver.termination.message
    assert "two_unnamed.py:9" in driver.termination.message
    assert ".queryName(" in driver.termination.message
    assert "swallowed" not in driver.output


def test_a_jvm_that_is_killed_is_named_and_nothing_waits_for_it(start_driver: StartDriver) -> None:
    driver = start_driver("killed", "counting.py", own_jvm=True)
    driver.await_batch(0)
    os.kill(driver.jvm_pid, signal.SIGKILL)
    assert driver.exit_code() == EXIT_APPLICATION
    assert (driver.termination.reason, driver.termination.exception) == (Reason.DRIVER_CRASHED, "JvmExited")
    assert driver.termination.batches["main"] >= 0
    # What cannot be stopped any more is not tried, in words that look like a fault of ours.
    assert "Exception in thread" not in driver.output


def test_a_script_that_waits_for_all_its_children_waits_for_none_of_tidegates(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    source = tmp_path / "input"
    source.mkdir()
    (source / "a.txt").write_text("x\n")
    driver = start_driver("supervisor", "waits_for_all_children.py", args=(str(source),), own_jvm=True)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert "children ended with [0, 1, 2]" in driver.output
    assert "all is read" in driver.output


def test_a_script_that_wants_a_port_of_tidegates_is_told_whose_it_is(start_driver: StartDriver) -> None:
    driver = start_driver("app", "own_port.py")
    assert driver.exit_code() == EXIT_APPLICATION, driver.output[-3000:]
    message = driver.termination.message
    assert "Address already in use: ports " in message
    assert "of the driver pod are Tidegate's" in message
    assert "Have the script listen on another port than " in message


@pytest.mark.long
def test_a_missing_bucket_of_the_scripts_own_is_not_the_storages_fault(start_driver: StartDriver) -> None:
    driver = start_driver("own", "own_bucket.py")
    assert driver.exit_code() == 1, driver.output[-3000:]
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert "UnknownStoreException" in driver.termination.exception
    assert "s3a://bucket-of-the-scripts-own/" in driver.termination.message
    assert "spec.storage" not in driver.termination.message


def test_a_failed_query_that_nobody_restarts_ends_the_driver_although_another_runs(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    # A batch of the other query is held: the driver ends after that, and is there to be asked until then.
    driver = start_driver("failing", "failing_query.py", args=(str(go),), stop_grace_seconds=1200)

    def failed() -> dict[str, bool]:
        driver.must_run()
        report = driver.report()
        assert report is not None
        said = {query.name: query.failed for query in report.queries}
        assert any(said.values()), said
        return said

    # Reported while the driver still runs: an upgrade must not be called done meanwhile.
    assert wait_for("the failure", failed, 600, 0.2) == {"steady": False, "failing": True}
    go.touch()
    assert driver.exit_code() == 1, driver.output[-3000:]
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert driver.termination.exception == "ValueError"
    assert "'failing'" in driver.termination.message
    assert "batch 2 is not to my liking" in driver.termination.message
    assert driver.termination.batches["failing"] == 1
    assert driver.termination.batches["steady"] >= 2
    assert driver.termination.boundary


@pytest.mark.long
def test_a_broker_that_cannot_be_found_is_the_brokers_fault(start_driver: StartDriver) -> None:
    driver = start_driver("broker", "no_broker.py")
    assert driver.exit_code() == EXIT_DEPENDENCY, driver.output[-3000:]
    assert driver.termination.reason is Reason.BROKER_UNAVAILABLE


def test_a_class_path_without_the_connector_is_refused(start_driver: StartDriver, tmp_path: Path) -> None:
    driver = start_driver("bare", "counting.py", own_jvm=True, class_path=tmp_path)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.CONNECTOR_MISSING
    assert "S3AFileSystem" in driver.termination.message
