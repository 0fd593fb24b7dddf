"""What a checkpointLocation shows: which query one without a name is, and that a named one is another than it says.

Real S3 server, real Spark.
"""

from pathlib import Path

from tidegate_spark.contract.protocol import EXIT_OK
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

ORDERS, REFUNDS = "s3a://lake/checkpoints/orders", "s3a://lake/checkpoints/refunds"


def started(driver: DriverProcess) -> list[str]:
    return [line.split()[1] for line in driver.output.splitlines() if line.startswith("started ")]


def await_start_of_other_than_main(driver: DriverProcess) -> str:
    def other() -> str:
        driver.must_run()
        return next((name for name in started(driver) if name != "main"), "")

    return wait_for("a query beside main", other, 600)


def unnamed_event(driver: DriverProcess) -> str:
    report = driver.report()
    notices = report.notices if report is not None else ()
    return next((notice.message for notice in notices if notice.reason == Reason.UNNAMED_QUERY), "")


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
    name = await_start_of_other_than_main(below)
    below.await_batch(1, name)
    last = end(below)
    assert name.startswith("refunds-")

    turned = start_driver("app", "by_location.py", args=(REFUNDS, ORDERS), epoch=4)
    for query, batch in last.items():
        turned.await_batch(batch + 1, query)
    end(turned)
    assert started(turned) == [name, "main"]

    place = first.config.storage
    notes = object_store.text(place.bucket, place.key("names", "unnamed-1.json"))
    assert name in notes
    assert "lake" not in notes


def test_damaged_notes_end_a_driver_with_the_way_on_and_stay_as_they_are(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    first = start_driver("app", "by_location.py", args=(ORDERS,))
    first.await_batch(1)
    message = wait_for("the event of a query without a name", lambda: unnamed_event(first), 60)
    assert "'main'" in message
    assert "lake" not in message
    end(first)
    place = first.config.storage
    key = place.key("names", "unnamed-1.json")
    object_store.client.put_object(Bucket=place.bucket, Key=key, Body=b"[]")

    damaged = start_driver("app", "by_location.py", args=(ORDERS,), epoch=2)
    assert damaged.exit_code() == EXIT_OK, damaged.output[-3000:]
    assert damaged.termination.reason is Reason.NOTES_DAMAGED
    assert key in damaged.termination.message
    assert "has which checkpointLocation in lineage 1" in damaged.termination.message
    assert object_store.text(place.bucket, key) == "[]"

    object_store.client.delete_object(Bucket=place.bucket, Key=key)
    after = start_driver("app", "by_location.py", args=(ORDERS,), epoch=3)
    after.await_batch(2)
    assert end(after).keys() == {"main"}


def test_a_query_under_another_name_leaves_out_no_input_silently(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "1.txt").write_text("first\n")
    first = start_driver("app", "loading.py", args=("load-1", ORDERS, str(source), str(out)))
    assert first.exit_code() == EXIT_OK, first.output[-3000:]
    assert first.termination.reason is Reason.COMPLETED
    (source / "2.txt").write_text("second\n")

    named_anew = start_driver("app", "loading.py", args=("load-2", ORDERS, str(source), str(out)), epoch=2)
    assert named_anew.exit_code() == EXIT_OK, named_anew.output[-3000:]
    assert named_anew.termination.reason is Reason.QUERY_REFUSED
    assert ".queryName('load-1')" in named_anew.termination.message

    elsewhere = start_driver("app", "loading.py", args=("load-2", REFUNDS, str(source), str(out)), epoch=3)
    assert elsewhere.exit_code() == EXIT_OK, elsewhere.output[-3000:]
    assert elsewhere.termination.reason is Reason.QUERY_REFUSED
    assert "leave out the batches 0 to 0" in elsewhere.termination.message
    place = first.config.storage
    assert object_store.keys(place.bucket, place.key("lineages", "1", "load-2") + "/") == []

    as_before = start_driver("app", "loading.py", args=("load-1", ORDERS, str(source), str(out)), epoch=4)
    assert as_before.exit_code() == EXIT_OK, as_before.output[-3000:]
    assert as_before.termination.batches == {"load-1": 1}
    written = "".join(path.read_text() for path in out.glob("part-*.json"))
    assert sorted(written.split()) == ['{"value":"first"}', '{"value":"second"}']
