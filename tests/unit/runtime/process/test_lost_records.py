"""Which records a source has lost, as Spark's Kafka connector says it: by its conditions, or in a task's text. Pure."""

import pytest

from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_CODES
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Fault
from tidegate_spark.contract.reasons.registry import fault_of, is_of_version, outlasts_rollback
from tidegate_spark.process.faults import faults
from tidegate_spark.process.faults.faults import Link
from tidegate_spark.process.faults.lost_records import KAFKA_DATA_LOSS

STREAM = Link(("org.apache.spark.sql.streaming.StreamingQueryException",), "outer", condition="STREAM_FAILED")
STATE_EXCEPTION = "org.apache.spark.sql.kafka010.KafkaIllegalStateException"
OUT_OF_RANGE = Link(("org.apache.kafka.clients.consumer.OffsetOutOfRangeException",), "out of range")


def lost(kind: str, **parameters: str) -> Link:
    return Link((STATE_EXCEPTION,), "Some data", condition=f"{KAFKA_DATA_LOSS}.{kind}", parameters=parameters)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (
            lost("PARTITION_OFFSET_CHANGED", topicPartition="web-orders-3", prevOffset="120", newOffset="7"),
            "topic 'web-orders', partition 3 ends at offset 7, and the application continues at offset 120",
        ),
        (
            lost(
                "COULD_NOT_READ_OFFSET_RANGE",
                startOffset="5",
                endOffset="60",
                topicPartition="orders-0",
                groupId="null",
            ),
            "topic 'orders', partition 0 does not have all of the offsets 5 to 59",
        ),
        (
            lost("START_OFFSET_RESET", topicPartition="orders-0", offset="5", fetchedOffset="60"),
            "topic 'orders', partition 0 begins at offset 60, and the application continues at offset 5",
        ),
        (
            lost("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", topicPartition="orders-4", startOffset="9"),
            "topic 'orders', partition 4 begins at offset 9, and the application continues at offset 0",
        ),
        (
            lost("PARTITIONS_DELETED", partitions="Set(orders-1, a.b_c-10, orders-0)"),
            "topic 'a.b_c', partition 10; topic 'orders', partition 0; topic 'orders', partition 1 does not exist",
        ),
        (lost("OF_A_NEWER_CONNECTOR"), "Spark's error condition is KAFKA_DATA_LOSS.OF_A_NEWER_CONNECTOR"),
        (lost("PARTITION_OFFSET_CHANGED"), "Spark's error condition is KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"),
    ],
)
def test_the_message_names_topic_partition_and_offsets(link: Link, message: str) -> None:
    failure = faults.classify((STREAM, link, OUT_OF_RANGE))
    assert failure.reason is Reason.SOURCE_DATA_LOST
    assert failure.exception == STATE_EXCEPTION
    assert failure.message.startswith("A source no longer has records that the application has to read next: ")
    assert message in failure.message


def test_what_a_function_for_batches_could_not_read_is_found_in_the_text_of_its_exception() -> None:
    text = (
        "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
        f"py4j.protocol.Py4JJavaError: An error occurred while calling o1.count.\n: {STATE_EXCEPTION}: Some data may "
        "have been lost because they are not available in Kafka any more;\nReason: Could not read records in offset "
        "[5, 60) for topic partition orders-0\nwith consumer group g.\n\tat x"
    )
    failure = faults.classify((STREAM, Link(("py4j.Py4JException",), text)))
    assert failure.reason is Reason.SOURCE_DATA_LOST
    assert "topic 'orders', partition 0 does not have all of the offsets 5 to 59" in failure.message


def test_many_partitions_are_counted() -> None:
    every = ", ".join(f"orders-{number}" for number in range(25))
    message = faults.classify((lost("PARTITIONS_DELETED", partitions=f"HashSet({every})"),)).message
    assert "partition 19; and 5 more" in message


def test_another_condition_of_the_connector_is_the_applications() -> None:
    other = Link((STATE_EXCEPTION,), "Specified: Set(a-0)", condition="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED")
    assert faults.classify((STREAM, other)).reason is Reason.APPLICATION_FAILED


def test_it_is_a_fault_of_the_data_that_no_rollback_undoes_and_the_kubelet_starts_the_driver_again() -> None:
    reason = Reason.SOURCE_DATA_LOST
    assert (fault_of(reason), outlasts_rollback(reason), is_of_version(reason)) == (Fault.DATA, True, False)
    assert EXIT_CODES[reason] == EXIT_APPLICATION
