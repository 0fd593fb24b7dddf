"""Whatever way a script takes to Spark and to its queries, these are looked after; or it is said at once why not."""

from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, EXIT_STOPPED, Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

QUERIES = ("q0", "q1", "q2", "q3")


def test_queries_of_every_session_are_told_of_and_stop_at_a_batch_boundary(start_driver: StartDriver) -> None:
    driver = start_driver("sessions", "many_sessions.py")
    for query in QUERIES:
        driver.await_batch(1, query)
    wait_for("readiness", lambda: driver.status("/readyz")[0] == 200, 180)
    report = driver.report()
    assert report is not None
    assert {query.name: query.input_rows_total > 0 for query in report.queries} == dict.fromkeys(QUERIES, True)
    notices = [notice.message for notice in report.notices]
    assert any("spark.executor.memory" in message and "is not used" in message for message in notices), notices
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert driver.termination.boundary
    assert driver.termination.batches.keys() == set(QUERIES)


def test_of_what_is_asked_again_each_setting_that_comes_too_late_is_named_and_no_other(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("late", "late_settings.py", own_jvm=True)
    driver.await_batch(1)
    report = driver.report()
    assert report is not None
    assert {notice.message.partition(" ")[0] for notice in report.notices if "is not used" in notice.message} == {
        *("spark.hadoop.fs.s3a.threads.max", "spark.sql.warehouse.dir", "spark.executor.extraJavaOptions")
    }


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("again", "after it has stopped it"),
        pytest.param("context", "after it has stopped it", marks=pytest.mark.long),
        pytest.param("connect", "Spark Connect", marks=pytest.mark.long),
        pytest.param("variable", "Spark Connect", marks=pytest.mark.long),
        pytest.param("dstreams", "DStreams", marks=pytest.mark.long),
    ],
)
def test_a_way_to_spark_that_does_not_run_here_is_refused_with_what_to_do_instead(
    start_driver: StartDriver, way: str, said: str
) -> None:
    driver = start_driver("refused", "refused_entries.py", args=(way,))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.SCRIPT_UNSUPPORTED
    assert said in driver.termination.message
    assert "swallowed" not in driver.output


@pytest.mark.long  # tests/unit/runtime/monitoring/test_child_spark.py has it
def test_queries_of_a_childs_spark_are_reported_until_the_script_starts_its_own(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    enough = tmp_path / "enough"
    driver = start_driver("child", "child_spark.py", args=(str(enough),), own_jvm=True)
    fault = wait_for("the report", lambda: driver.ended() or _fault_of(driver), 300)
    assert isinstance(fault, Fault), driver.output[-3000:]
    assert fault.reason is Reason.SCRIPT_UNSUPPORTED
    assert "A child process of the script" in fault.message
    assert "import the program and call it" in fault.message
    enough.touch()
    driver.await_batch(1)
    assert _fault_of(driver) is None
    assert "rows in a child: 40" in driver.output


def _fault_of(driver: DriverProcess) -> Fault | None:
    report = driver.report()
    return report.fault if report is not None else None


def test_an_unnamed_query_that_the_script_starts_again_after_a_failure_goes_on_in_its_checkpoint(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("retrying", "retrying.py", args=("rate-micro-batch",))
    driver.await_batch(4)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert driver.termination.boundary
    assert driver.output.count("again after") == 2
    numbers = [int(line.split()[1]) for line in driver.output.splitlines() if line.startswith("batch ")]
    # Each batch that failed is run once more, and no other one.
    assert numbers == sorted(numbers)
    assert [number for number in set(numbers) if numbers.count(number) > 1] == [1, 2]
