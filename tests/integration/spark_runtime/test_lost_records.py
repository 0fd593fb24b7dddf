"""A topic that no longer has what a checkpoint continues with: how a driver ends; real Spark, real Kafka, real S3.

The conditions themselves are made by the connector's own code in a JVM, without a broker.
"""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from devcluster import kafka
from devcluster.site import LocalSite
from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_OK, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotState
from tidegate_spark.process.faults import faults
from tidegate_spark.process.faults.lost_records import KAFKA_DATA_LOSS, SAYS
from tidegate_testing import spark_jars
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver, run_pod

_numbers = itertools.count(1)
READ, SENT_LATER, KEPT_FROM, IN_THE_NEW_TOPIC = 10, 20, 15, 3
ENDS = f"partition 0 ends at offset {IN_THE_NEW_TOPIC}, and the application continues at offset {READ}"
RANGE = f"partition 0 does not have all of the offsets {READ} to {READ + SENT_LATER - 1}"


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


@pytest.fixture
def topic(broker: str) -> str:
    """A topic with records, of one partition."""
    name = f"orders-{next(_numbers)}"
    kafka.create_topic(broker, name, partitions=1)
    send(broker, name, READ)
    return name


def send(broker: str, topic: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True, "acks": "all"})
    for each in range(number):
        producer.produce(topic, value=str(each), partition=0)
    assert producer.flush(120) == 0


def create_again(broker: str, topic: str) -> None:
    """Delete the topic, and create another one of its name, which has fewer records."""
    admin = AdminClient({"bootstrap.servers": broker})
    admin.delete_topics([topic])[topic].result(60)
    wait_for("the topic to go", lambda: topic not in kafka.topics(broker), 60, 0.2)
    kafka.create_topic(broker, topic, partitions=1)
    send(broker, topic, IN_THE_NEW_TOPIC)


def overtake(broker: str, topic: str) -> None:
    """Send records and have the earliest of them removed, as retention does."""
    send(broker, topic, SENT_LATER)
    admin, part = AdminClient({"bootstrap.servers": broker}), TopicPartition(topic, 0, KEPT_FROM)
    admin.delete_records([part])[part].result(60)


@dataclass(frozen=True)
class Case:
    """What becomes of the topic, how it is read, and what is said of it."""

    lose: Callable[[str, str], None]
    how: str
    message: str


@pytest.mark.long  # of a topic that was created again, the test below has the driver's end, too
@pytest.mark.parametrize(
    "case",
    [
        Case(create_again, "state", ENDS),
        Case(overtake, "state", RANGE),
        Case(overtake, "function", RANGE),
    ],
    ids=["created again", "retention", "retention, in a function"],
)
def test_a_driver_whose_topic_lost_what_it_reads_next_names_topic_partition_and_offsets(
    start_driver: StartDriver, broker: str, topic: str, case: Case
) -> None:
    arguments = (broker, topic, case.how)
    first = start_driver("reading", "reading_topic.py", args=arguments)
    first.await_batch(0)
    first.terminate()
    first.exit_code()
    case.lose(broker, topic)

    second = start_driver("reading", "reading_topic.py", args=arguments, epoch=2)
    assert second.exit_code() == EXIT_APPLICATION, second.output[-3000:]
    ended = second.termination
    assert ended.reason is Reason.SOURCE_DATA_LOST, ended
    assert f"topic '{topic}', {case.message}." in ended.message
    assert (ended.failures, ended.committed) == ((), 0), "no failure of the application's, and nothing was skipped"


def without_its_topic(start_driver: StartDriver, arguments: tuple[str, str, str]) -> DriverProcess:
    """Return an application's second driver, which ended because its topic was created again after batch 0."""
    broker, topic, _ = arguments
    first = start_driver("reading", "reading_topic.py", args=arguments)
    first.await_batch(0)
    first.terminate()
    first.exit_code()
    create_again(broker, topic)
    second = start_driver("reading", "reading_topic.py", args=arguments, epoch=2)
    assert second.exit_code() == EXIT_APPLICATION, second.output[-3000:]
    assert second.termination.reason is Reason.SOURCE_DATA_LOST
    return second


def test_another_application_continues_with_the_state_of_one_whose_topic_was_created_again(
    start_driver: StartDriver, broker: str, topic: str, tmp_path: Path
) -> None:
    arguments = (broker, topic, "told")
    second = without_its_topic(start_driver, arguments)
    assert f"topic '{topic}', {ENDS}." in second.termination.message

    # Of what failed, a pod takes the snapshot: the batch that can never be done is left out.
    code, reports = run_pod(second.config, SnapshotOrders(take=(SnapshotOrder("a"),)), tmp_path / "pod")
    assert (code, reports["a"].state, reports["a"].queries["main"].batch) == (EXIT_OK, SnapshotState.READY, 0)
    offsets = json.dumps({topic: {"0": 0}})
    start_from = StartFrom(second.config.storage, "a", holder="fork-uid-of-heir", offsets=offsets)
    heir = start_driver("heir", "reading_topic.py", args=arguments, start_from=start_from)
    heir.await_batch(1)
    assert f"batch 1: [Row(partition=0, count={READ + IN_THE_NEW_TOPIC})]" in heir.output
    assert "batch 0: " not in heir.output

    # It continues as any other: where its own batches end.
    heir.terminate()
    heir.exit_code()
    send(broker, topic, 1)
    again = start_driver("heir", "reading_topic.py", args=arguments, start_from=start_from, epoch=2)
    again.await_batch(2)
    assert f"batch 2: [Row(partition=0, count={READ + IN_THE_NEW_TOPIC + 1})]" in again.output


def test_the_application_itself_continues_with_other_offsets_and_can_be_rolled_back_to_those_it_had(
    start_driver: StartDriver, broker: str, topic: str
) -> None:
    arguments = (broker, topic, "told")
    second = without_its_topic(start_driver, arguments)

    # The batch that can never be done is left out, and its number comes again.
    back = StartFrom(second.config.storage, "pin", holder="rollback-pin", lineage=1)
    elsewhere = dataclasses.replace(back, offsets=json.dumps({topic: {"0": 0}}))
    third = start_driver("reading", "reading_topic.py", args=arguments, start_from=elsewhere, epoch=3, lineage=2)
    third.await_batch(1)
    assert f"batch 1: [Row(partition=0, count={READ + IN_THE_NEW_TOPIC})]" in third.output
    assert "batch 0: " not in third.output
    third.terminate()
    third.exit_code()

    fourth = start_driver("reading", "reading_topic.py", args=arguments, start_from=back, epoch=4, lineage=3)
    assert fourth.exit_code() == EXIT_APPLICATION, fourth.output[-3000:]
    assert fourth.termination.reason is Reason.SOURCE_DATA_LOST
    assert f"topic '{topic}', {ENDS}." in fourth.termination.message


# --- the connector's own conditions ---


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with Spark's jars and its Kafka connector, without Spark's start."""
    jars = (spark_jars.pyspark() / "jars", spark_jars.fetched("kafka"))
    class_path = ":".join(f"{folder}/*" for folder in jars)
    port, token = launch_gateway(classpath=class_path, die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()


def made_by_connector(jvm: Any) -> dict[str, Any]:
    """Return an exception for each way in which the connector finds a loss, by its sub-condition."""
    make = jvm.org.apache.spark.sql.kafka010.KafkaExceptions
    part = jvm.org.apache.kafka.common.TopicPartition("web-orders", 3)
    several = jvm.scala.jdk.javaapi.CollectionConverters.asScala([part]).toSet()
    no_group = jvm.scala.Option.empty()
    made = (
        make.partitionOffsetChanged(part, 120, 7),
        make.couldNotReadOffsetRange(5, 60, part, None, None),
        make.startOffsetReset(part, 5, 60),
        make.addedPartitionDoesNotStartFromZero(part, 9),
        make.initialOffsetNotFoundForPartitions(several),
        make.partitionsDeleted(several, no_group),
        make.partitionsDeleted(several, jvm.scala.Option.apply("group.id")),
    )
    return {str(each.getCondition()).partition(".")[2]: each for each in made}


def test_each_way_in_which_the_connector_finds_a_loss_names_the_partition(jvm: Any) -> None:
    made = made_by_connector(jvm)
    assert set(made) == set(SAYS)
    for kind, error in made.items():
        chain = faults.java_chain(jvm.java.util.concurrent.CompletionException(error))
        assert chain[-1].condition == f"{KAFKA_DATA_LOSS}.{kind}"
        failure = faults.classify(chain)
        assert failure.reason is Reason.SOURCE_DATA_LOST
        assert "topic 'web-orders', partition 3 " in failure.message
        assert "error condition" not in failure.message, "its parameters have the names that are read"


def test_a_range_that_a_task_could_not_read_is_found_in_the_text_alone(jvm: Any) -> None:
    error = made_by_connector(jvm)["COULD_NOT_READ_OFFSET_RANGE"]
    failure = faults.classify((faults.Link(("py4j.Py4JException",), f"Traceback\n: {error.toString()}\n\tat x"),))
    assert failure.reason is Reason.SOURCE_DATA_LOST
    assert "topic 'web-orders', partition 3 does not have all of the offsets 5 to 59" in failure.message
