"""One site with both brokers for all of these tests, and a JVM with Kafka's clients as a driver has it."""

from collections.abc import Iterator
from typing import Any

import pytest
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from devcluster import kafka, rabbitmq
from devcluster.site import LocalSite
from tidegate_testing import spark_jars


@pytest.fixture(scope="session")
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        yield running


@pytest.fixture(scope="session")
def kafka_site(site: LocalSite) -> LocalSite:
    kafka.up(site)
    return site


@pytest.fixture(scope="session")
def rabbitmq_site(site: LocalSite) -> LocalSite:
    rabbitmq.up(site)
    return site


@pytest.fixture(autouse=True)
def exceptions_as_py4j_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark session that this process had before has left its own way with exceptions, which asks for its JVM."""
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)


@pytest.fixture(scope="session")
def jvm() -> Iterator[Any]:
    """What ``spark._jvm`` is to a driver: the same jars, without Spark's start."""
    jars = [spark_jars.pyspark() / "jars", spark_jars.fetched("kafka")]
    class_path = ":".join([*(f"{folder}/*" for folder in jars), str(spark_jars.built())])
    port, token = launch_gateway(classpath=class_path, die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()
