"""A query in real-time mode, which reads Kafka until its batch is over; real Spark, real Kafka, real S3."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_spark.contract.protocol import EXIT_OK, EXIT_STOPPED, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalResult, rehearsal_place
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.local_apps import await_end, order
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

pytestmark = pytest.mark.long
COPY = "up-uid-1-1-copy"
TOPIC = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """A broker, to which orders come all the time."""
    with LocalSite() as site:
        kafka.up(site)
        for topic in (TOPIC, f"{TOPIC}-dear"):
            kafka.create_topic(site.kafka_host, topic, partitions=1)
        over = threading.Event()
        sending = threading.Thread(target=send, args=(site.kafka_host, over))
        sending.start()
        yield site.kafka_host
        over.set()
        sending.join(180)


def send(broker: str, over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": broker})
    while not over.wait(0.2):
        producer.produce(TOPIC, value='{"item": "tea"}')
        producer.flush(120)


def written(broker: str) -> int:
    """Return how many records the query has written so far."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "counting"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(f"{TOPIC}-dear", 0), timeout=30)[1])
    finally:
        consumer.close()


def at_batch(driver: DriverProcess) -> bool:
    driver.must_run()
    report = driver.report()
    return report is not None and any(query.at_batch for query in report.queries)


def start(start_driver: StartDriver, broker: str, lasts: str = "5 seconds", **changes: object) -> DriverProcess:
    return start_driver("app", "real_time.py", args=(broker, TOPIC, lasts), **changes)


def test_a_query_in_real_time_mode_stops_at_the_end_of_its_batch_and_is_rehearsed_without_its_output(
    start_driver: StartDriver, broker: str
) -> None:
    old = start(start_driver, broker, stop_grace_seconds=60)
    old.await_batch(1, "alerts")
    report = old.report()
    assert report is not None
    assert (Reason.REAL_TIME_TRIGGER, False) in [(notice.reason, notice.warning) for notice in report.notices]
    assert [query.real_time for query in report.queries] == [True]
    order(old, SnapshotOrders(take=(SnapshotOrder(COPY, holders=(COPY,)),)))
    assert await_end(old, COPY).state is SnapshotState.READY
    old.terminate()
    assert old.exit_code() == EXIT_STOPPED
    assert old.termination.boundary
    before = written(broker)
    assert before > 0
    place = old.config.storage
    tried = start(
        start_driver,
        broker,
        storage=rehearsal_place(place, COPY),
        start_from=StartFrom(place, COPY, COPY),
        rehearsal=Rehearsal(2, 600, ("alerts",)),
    )
    assert tried.exit_code() == EXIT_OK, tried.output[-3000:]
    end = tried.termination.rehearsal
    assert end is not None
    assert end.result is RehearsalResult.PASSED, end
    assert written(broker) == before


def test_a_stop_that_cannot_wait_for_the_batch_says_so_and_the_next_start_reads_it_again(
    start_driver: StartDriver, broker: str
) -> None:
    first = start(start_driver, broker, "10 minutes", stop_grace_seconds=10)
    wait_for("a batch", lambda: at_batch(first), 300, 0.2)
    first.terminate()
    assert first.exit_code() == EXIT_STOPPED
    assert not first.termination.boundary
    second = start(start_driver, broker, epoch=2)
    second.await_batch(0, "alerts")
