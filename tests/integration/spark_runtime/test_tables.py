"""Tables of ``toTable`` in the catalog that a script has: after a restart and a rollback; real S3 server, real Spark.

The warehouse is in the bucket, and the catalog in the memory of the driver. The launches are those that the operator
makes.
"""

import pytest

from tidegate_spark.contract.protocol import EXIT_OK, Notice, Pin, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

PIN = "up-uid-1-1"
TABLE = "spark_catalog.default.events"


@pytest.fixture
def warehouse(bucket: str) -> dict[str, str]:
    """The setting that puts tables into the bucket."""
    return {"spark.sql.warehouse.dir": f"s3a://{bucket}/warehouse"}


def notices(driver: DriverProcess) -> dict[str, Notice]:
    report = driver.report()
    assert report is not None
    return {notice.reason: notice for notice in report.notices}


def await_rows(driver: DriverProcess, rows: int) -> None:
    """Wait until the script sees so many rows; each number from 0 on is there once, whenever it looks."""

    def probe() -> bool:
        driver.must_run()
        lines = [line for line in driver.output.split("\n")[:-1] if line.startswith("in the table: ")]
        seen = [line.partition(": ")[2].split() for line in lines]
        full = [tuple(map(int, each)) for each in seen if "None" not in each]
        wrong = [each for each in full if each != (each[0], each[0], each[0] - 1)]
        if wrong:
            raise RuntimeError(f"rows are missing or twice: {wrong}")
        return any(each[0] >= rows for each in full)

    wait_for(f"{rows} rows", probe, 600, 0.2)


def test_a_table_goes_on_after_a_restart_though_its_catalog_does_not_outlast_the_driver(
    start_driver: StartDriver, warehouse: dict[str, str]
) -> None:
    first = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse)
    await_rows(first, 60)
    said = notices(first)[Reason.TABLE_LOCATION]
    assert f"writes to the table {TABLE}: its catalog is in the memory of the driver" in said.message
    assert f"{warehouse['spark.sql.warehouse.dir']}/events" in said.message
    first.terminate()
    first.exit_code()
    last = first.termination.batches["events"]
    second = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse, epoch=2)
    await_rows(second, 20 * (last + 3))
    assert Reason.TABLE_LOCATION not in notices(second)


@pytest.mark.long  # test_rollbacks.py has the file sink, tests/unit/runtime/queries that a table is one
def test_a_rollback_treats_the_files_of_a_table_as_those_of_a_file_sink(
    start_driver: StartDriver, warehouse: dict[str, str], object_store: ObjectStore
) -> None:
    old = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse)
    await_rows(old, 40)
    old.terminate()
    old.exit_code()
    last, place = old.termination.batches["events"], old.config.storage
    pin = Pin(PIN, "v1")
    new = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse, epoch=2, pin=pin)
    await_rows(new, 20 * (last + 3))
    manifest = place.key(f"snapshots/{PIN}/manifest.json")
    wait_for("the pin", lambda: manifest in object_store.keys(place.bucket, place.key("snapshots") + "/"), 300, 0.2)
    new.kill()
    start_from = StartFrom(place, PIN, f"rollback-{PIN}", lineage=1, image="v1")
    launch = {"epoch": 3, "lineage": 2, "start_from": start_from}
    back = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse, **launch)
    await_rows(back, 20 * (last + 5))
    assert Reason.FILE_SINK_ROLLED_BACK in notices(back)


def test_files_that_a_query_could_not_continue_are_refused_at_its_first_start(
    start_driver: StartDriver, warehouse: dict[str, str]
) -> None:
    driver = start_driver("app", "writing_table.py", args=("1",), spark_conf=warehouse)
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.QUERY_REFUSED
    assert "the source 'socket' cannot send again" in driver.termination.message


def test_a_table_with_the_batches_of_another_query_is_refused(
    start_driver: StartDriver, warehouse: dict[str, str]
) -> None:
    first = start_driver("app", "writing_table.py", args=("table",), spark_conf=warehouse)
    await_rows(first, 20)
    first.terminate()
    first.exit_code()
    renamed = start_driver("app", "writing_table.py", args=("table", "numbers"), spark_conf=warehouse, epoch=2)
    assert renamed.exit_code() == EXIT_OK, renamed.output[-3000:]
    assert renamed.termination.reason is Reason.QUERY_REFUSED
    assert f"the folder of the table {TABLE}" in renamed.termination.message
    assert "has the log of another query" in renamed.termination.message
