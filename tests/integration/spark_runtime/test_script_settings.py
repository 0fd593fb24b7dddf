"""Settings of a script, and of the spec, are in force as under spark-submit; what Tidegate needs stays as it is."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.spark import sparkconf
from tidegate_testing.driver_process import DriverProcess, ObjectStore

from .conftest import StartDriver


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({sparkconf.STATE_STORE: sparkconf.HDFS_BACKED_CLASS}, ()),
        pytest.param({}, ("session",), marks=pytest.mark.long),
    ],
    ids=["of the spec", "of the script"],
)
def test_the_state_store_that_spark_has_by_default_works_for_whoever_names_it(
    start_driver: StartDriver, settings: dict[str, str], arguments: tuple[str, ...]
) -> None:
    start_driver("hdfs", "hdfs_store.py", spark_conf=settings, args=arguments).await_batch(2)


def found_by(driver: DriverProcess) -> dict[str, Any]:
    lines = [line for line in driver.output.splitlines() if line.startswith("found ")]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("found "))
    return found


def test_the_settings_of_a_scripts_builder_are_in_force_and_the_spec_beats_them(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    jar = tmp_path / "asked.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("asked/for.txt", "")
    driver = start_driver(
        "own",
        "own_settings.py",
        own_jvm=True,
        args=(str(jar), "elsewhere"),
        spark_conf={"spark.sql.session.timeZone": "Europe/Rome"},
    )
    # Its checkpoint is where the spec says, with the spec's credentials, whatever the script says of S3A.
    driver.await_batch(2)
    found = found_by(driver)
    assert jar.name in found.pop("jars")
    assert found == {
        "name": "own settings",
        "serializer": "KryoSerializer",
        "java": "script",
        "resource": True,
        "hidden": True,
        "id": False,
        "variable": "of-the-script",
        "extensions": "org.example.Nope",
        "catalog.mine": "org.example.Catalog",
        "session.timeZone": "Europe/Rome",
        "streaming.stopTimeout": "7s",
    }
    # Spark says so itself, before or after that line: stdout and stderr are two pipes.
    assert [line for line in driver.output.splitlines() if "org.example.Nope" in line and not line.startswith("found ")]
    report = driver.report()
    assert report is not None
    said = {each.message.partition(" ")[0]: each.message for each in report.notices if "is not used" in each.message}
    own = f"fs.s3a.bucket.{driver.config.storage.bucket}"
    assert said.keys() == {
        *("spark.sql.session.timeZone", "spark.kubernetes.driverEnv.A", "spark.app.id", "spark.master"),
        *(f"{own}.endpoint", f"{own}.server-side-encryption-algorithm", f"{own}.path.style.access"),
    }
    assert "hunter2" not in Path(f"/proc/{driver.jvm_pid}/cmdline").read_text() + driver.output
    assert "use application.env" in said["spark.kubernetes.driverEnv.A"]
    assert "which beats the script" in said["spark.sql.session.timeZone"]

    # The next process of the pod has its JVM started ahead, with what the script asked for.
    driver.kill()
    driver.start()
    driver.await_batch(4)
    assert "a JVM was started" in driver.output
    assert found_by(driver)["serializer"] == "KryoSerializer"


def test_an_executor_reaches_the_storage_whatever_the_script_says_of_s3a_before_and_after_its_query_starts(
    start_driver: StartDriver, place: Storage
) -> None:
    driver = start_driver("app", "late_path.py", args=(place.hadoop_uri,))
    driver.await_batch(3)
    found = found_by(driver)
    assert found == {"connected": True, "inputs": "http://127.0.0.1:1"}
    report = driver.report()
    assert report is not None
    said = {each.message.partition(" ")[0]: each.message for each in report.notices if "is not used" in each.message}
    own = f"fs.s3a.bucket.{place.bucket}"
    path = ("acl.default", "proxy.host", "proxy.port", "endpoint")
    assert said.keys() == {"fs.s3a.impl", *(f"{own}.{name}" for name in path)}
    assert "set it in spec.sparkConf" in said["fs.s3a.impl"]


def test_inputs_are_read_by_the_usual_recipes_from_the_store_that_each_is_in(
    start_driver: StartDriver, object_store: ObjectStore, other_store: ObjectStore
) -> None:
    near = "near-the-applications-own"
    for store, name in ((object_store, near), (other_store, "named"), (other_store, "common")):
        store.client.create_bucket(Bucket=name)
        store.client.put_object(Bucket=name, Key="inputs/a.txt", Body=f"of {name}".encode())
    keys = (other_store.endpoint, other_store.access_key, other_store.secret_key)
    driver = start_driver("inputs", "other_stores.py", args=(near, *keys))
    # Its checkpoint is in the application's own store all the same.
    driver.await_batch(2)
    assert found_by(driver) == {"near": f"of {near}", "named": "of named", "common": "of common"}


def test_a_script_that_spark_refuses_a_setting_may_try_another_one(start_driver: StartDriver) -> None:
    driver = start_driver("second", "second_try.py", own_jvm=True)
    driver.await_batch(1)
    # Of the tries before nothing is left, and the JVM is one of the last.
    assert found_by(driver) == {"serializer": "KryoSerializer", "name": "second try", "log": None, "java": "third"}
    report = driver.report()
    assert report is not None
    # What is in force already is not said to be unused.
    assert [each.message.partition(" ")[0] for each in report.notices] == ["spark.executor.extraJavaOptions"]


def test_threads_that_ask_for_spark_at_once_share_the_one_that_the_first_of_them_starts(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("together", "two_at_once.py", own_jvm=True)
    driver.await_batch(1, "left")
    driver.await_batch(1, "right")


def test_a_script_that_sets_a_property_of_the_jvm_first_has_the_jvm_of_its_context(start_driver: StartDriver) -> None:
    start_driver("property", "system_property.py", own_jvm=True).await_batch(1)


def test_variables_of_a_tutorial_have_no_effect_on_the_jvm_as_under_spark_submit(start_driver: StartDriver) -> None:
    driver = start_driver("tutorial", "tutorial_variables.py", own_jvm=True)
    driver.await_batch(1)
    assert found_by(driver) == {"kept": True, "java": False, "case": "false"}
    report = driver.report()
    assert report is not None
    assert [each.message.partition(" is not used")[0] for each in report.notices] == [
        "The variable PYSPARK_SUBMIT_ARGS"
    ]


def test_a_child_process_has_no_spark_of_its_own(start_driver: StartDriver) -> None:
    driver = start_driver("forking", "forking.py", own_jvm=True)
    assert driver.exit_code() == 1, driver.output[-3000:]
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert "A child process of the script asks for Spark." in driver.output
    assert "the child process ended with 1" in driver.termination.message


def test_a_script_that_never_asks_for_spark_ends_as_it_would_and_no_jvm_is_left(start_driver: StartDriver) -> None:
    driver = start_driver("none", "no_spark.py", own_jvm=True)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert "done without Spark" in driver.output
