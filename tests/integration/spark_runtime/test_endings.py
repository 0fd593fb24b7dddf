"""How an application ends decides exit code and termination message."""

from pathlib import Path

from tidegate_spark.protocol import EXIT_DEPENDENCY, EXIT_OK, DriverState, Reason
from tidegate_testing.driver_process import ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import ACCESS, SECRET, StartDriver


def test_rejected_credentials_are_waited_for_and_a_finite_script_then_completes(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    source = tmp_path / "input"
    source.mkdir()
    (source / "a.txt").write_text("x\ny\nz\n")
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    driver = start_driver("finite", "finite.py", secret="wrong-secret", args=(str(source), "b c"), spark_conf=warehouse)

    def fault() -> bool:
        report = driver.report()
        return report is not None and report.fault is not None and report.state is DriverState.WAITING

    wait_for("the fault", fault, 30, 0.1)
    report = driver.report()
    assert report is not None
    assert report.fault is not None
    assert report.fault.reason is Reason.CREDENTIALS_REJECTED
    assert "'storage-keys' (spec.storage.credentialsSecret.name)" in report.fault.message
    assert driver.status("/healthz")[0] == 200
    assert driver.status("/readyz")[0] == 503

    driver.put_credentials(ACCESS, SECRET)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert driver.termination.batches == {"by option": 0, "by_table": 0}
    assert f"arguments: ['{source}', 'b c']" in driver.output
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


def test_a_script_that_raises_fails_after_its_queries_stopped(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    driver = start_driver("raising", "raising.py")
    assert driver.exit_code() == 1, driver.output[-3000:]
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert driver.termination.exception == "LookupError"
    assert driver.termination.message == "the table of limits is empty"
    assert driver.termination.boundary
    place = driver.config.storage
    log = object_store.text(place.bucket, place.key("logs", "e1", "driver-1.log"))
    assert "LookupError: the table of limits is empty" in log


def test_a_failed_query_that_nobody_restarts_ends_the_driver_although_another_runs(start_driver: StartDriver) -> None:
    driver = start_driver("failing", "failing_query.py")
    assert driver.exit_code() == 1, driver.output[-3000:]
    assert driver.termination.reason is Reason.APPLICATION_FAILED
    assert driver.termination.exception == "ValueError"
    assert "'failing'" in driver.termination.message
    assert "batch 2 is not to my liking" in driver.termination.message
    assert driver.termination.batches["failing"] == 1
    assert driver.termination.batches["steady"] >= 2
    assert driver.termination.boundary


def test_a_broker_that_cannot_be_found_is_the_brokers_fault(start_driver: StartDriver) -> None:
    driver = start_driver("broker", "no_broker.py")
    assert driver.exit_code() == EXIT_DEPENDENCY, driver.output[-3000:]
    assert driver.termination.reason is Reason.BROKER_UNAVAILABLE


def test_a_class_path_without_the_connector_is_refused(start_driver: StartDriver, tmp_path: Path) -> None:
    driver = start_driver("bare", "counting.py", class_path=tmp_path)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.CONNECTOR_MISSING
    assert "S3AFileSystem" in driver.termination.message
