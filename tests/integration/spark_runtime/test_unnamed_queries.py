"""Queries without a name go by their checkpointLocation, version after version; real S3 server, real Spark."""

from tidegate_spark.contract.protocol import EXIT_OK
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore

from .conftest import StartDriver

ORDERS, REFUNDS = "s3a://lake/checkpoints/orders", "s3a://lake/checkpoints/refunds"


def started(driver: DriverProcess) -> list[str]:
    return [line.split()[1] for line in driver.output.splitlines() if line.startswith("started ")]


def end(driver: DriverProcess) -> dict[str, int]:
    driver.terminate()
    driver.exit_code()
    assert driver.termination.boundary
    return driver.termination.batches


def test_a_version_that_adds_a_query_gives_it_a_checkpoint_of_its_own_and_where_it_does_not_know_it_says_so(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    first = start_driver("app", "by_location.py", args=(ORDERS,))
    first.await_batch(1)
    last = end(first)
    assert last.keys() == {"main"}

    above = start_driver("app", "by_location.py", args=(REFUNDS, ORDERS), epoch=2)
    assert above.exit_code() == EXIT_OK, above.output[-3000:]
    assert above.termination.reason is Reason.QUERY_REFUSED
    assert "'main' was not started" in above.termination.message
    assert "by_location.py:11" in above.termination.message
    assert started(above) == []

    below = start_driver("app", "by_location.py", args=(ORDERS, REFUNDS), epoch=3)
    below.await_batch(last["main"] + 1)
    (name,) = set(started(below)) - {"main"}
    below.await_batch(1, name)
    last = end(below)
    assert name.startswith("refunds-")

    turned = start_driver("app", "by_location.py", args=(REFUNDS, ORDERS), epoch=4)
    for query, batch in last.items():
        turned.await_batch(batch + 1, query)
    assert started(turned) == [name, "main"]
    end(turned)

    place = first.config.storage
    notes = object_store.text(place.bucket, place.key("names", "unnamed-1.json"))
    assert name in notes
    assert "lake" not in notes
