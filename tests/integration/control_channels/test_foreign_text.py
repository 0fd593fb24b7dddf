"""What a JVM and Kafka's clients write of themselves is recognized as they write it; a real JVM, without a broker."""

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tidegate_spark.contract.control_protocol import KafkaSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.ports import ChannelError
from tidegate_spark.control.channels.transports.credentials import ChannelSecret
from tidegate_spark.control.channels.transports.kafka import KafkaChannel
from tidegate_spark.process.faults.foreign_text import last_cause, names_lack_of_heap, names_unresolved_bootstrap
from tidegate_spark.repartition.pod_settings import cause_of
from tidegate_testing import spark_jars

MORE_THAN_THE_HEAP = 200_000_000
"""Bytes."""


@pytest.fixture(scope="module")
def small_jvm() -> Iterator[Any]:
    """A JVM of 64 MiB with Spark's jars and our own, as in an image without Kafka's connector."""
    class_path = f"{spark_jars.pyspark() / 'jars'}/*:{spark_jars.built()}"
    port, token = launch_gateway(classpath=class_path, javaopts=["-Xmx64m"], die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()


def without_memory(jvm: Any) -> Py4JJavaError:
    """Return what comes of more than the heap has room for, asked of a class of Spark's."""
    text = jvm.org.apache.spark.unsafe.types.UTF8String.fromString("x")
    with pytest.raises(Py4JJavaError) as raised:
        text.repeat(MORE_THAN_THE_HEAP)
    return raised.value


def caused_by(jvm: Any, error: Py4JJavaError) -> Py4JJavaError:
    """Return an exception of which another one is the cause, as Spark's often are."""
    with pytest.raises(Py4JJavaError) as raised:
        jvm.java.util.concurrent.CompletableFuture.failedFuture(error.java_exception).join()
    return raised.value


def refusal(jvm: Any, **settings: Any) -> ChannelError:
    """Return what comes of a channel whose clients are not made."""
    channel = KafkaChannel(KafkaSettings(topic="orders", **settings), ChannelSecret(), jvm)
    with pytest.raises(ChannelError) as raised:
        channel.open({})
    channel.close()
    return raised.value


def test_a_jvm_without_room_in_its_heap_is_recognized_also_as_the_cause_of_another_failure(small_jvm: Any) -> None:
    alone = without_memory(small_jvm)
    for error in (alone, caused_by(small_jvm, alone)):
        assert names_lack_of_heap(str(error))
        message = f"Spark cannot repartition the state: {last_cause(error)}."
        assert cause_of(Reason.SPARK_FAILED, message, None)[0] is Reason.OUT_OF_MEMORY


def test_another_failure_of_the_jvm_is_no_lack_of_memory(small_jvm: Any) -> None:
    with pytest.raises(Py4JJavaError) as raised:
        small_jvm.java.lang.Integer.parseInt("twelve")
    assert not names_lack_of_heap(str(raised.value))
    assert last_cause(raised.value) == 'For input string: "twelve"'


def test_an_image_without_kafkas_connector_lacks_a_class(small_jvm: Any) -> None:
    found = refusal(small_jvm, bootstrap_servers="127.0.0.1:9092")
    assert found.reason is Reason.CHANNEL_CONNECTOR_MISSING
    assert "has no Kafka clients" in str(found)


def test_a_name_of_a_broker_that_nobody_knows_is_told_from_an_address_that_is_none(jvm: Any) -> None:
    unknown = refusal(jvm, bootstrap_servers="nowhere.invalid:9092")
    assert names_unresolved_bootstrap(str(unknown.__cause__))
    assert unknown.reason is Reason.CHANNEL_UNAVAILABLE
    malformed = refusal(jvm, bootstrap_servers="no-port")
    assert "bootstrap.servers" in str(malformed.__cause__)
    assert not names_unresolved_bootstrap(str(malformed.__cause__))
    assert malformed.reason is Reason.CHANNEL_MISCONFIGURED
