"""Who gets in at a port of a real Spark that has the settings of a launch."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.pods.builders.driver_config import app_storage, build_driver_config
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import SPARK_SECRET_FILE
from tidegate_testing.values import app

PLATFORM = Platform(operator_image="tidegate/operator:1")
HOST = "127.0.0.1"
SECRET_FILE = "spark.authenticate.secret.file"
OPEN = {"spark.authenticate": "false"}
ENDPOINT = "endpoint-verifier"
"""An endpoint that each of Spark's ports has."""


@dataclass(frozen=True)
class Ports:
    """Spark's ports in one JVM; each has settings of its own."""

    jvm: Any
    folder: Path

    def launched(self, secret: str, user: dict[str, str] | None = None) -> dict[str, str]:
        """Return the settings of a launch, with a file of ``secret`` where they name one."""
        settings = build_driver_config(app({"sparkConf": user or {}}), 1, 1, PLATFORM).spark_conf
        file = self.folder / secret.replace(" ", "-")
        file.write_text(secret)
        moved = {key: str(file) if value == SPARK_SECRET_FILE else value for key, value in settings.items()}
        return {**moved, "spark.master": "k8s://https://10.96.0.1:443"}

    def of_an_executor(self, settings: dict[str, str]) -> dict[str, str]:
        """Return what an executor knows before the driver has let it in: what Spark and the template give its JVM."""
        companion = getattr(getattr(self.jvm.org.apache.spark, "SparkConf$"), "MODULE$")
        known = {key: value for key, value in settings.items() if companion.isExecutorStartupConf(key)}
        orders = app()
        (container,) = build_executor_template(orders, 1, app_storage(orders), PLATFORM)["spec"]["containers"]
        options = [e["value"] for e in container["env"] if e["name"].startswith("SPARK_JAVA_OPT_")]
        return known | dict(option.removeprefix("-D").split("=", 1) for option in options)

    @contextlib.contextmanager
    def listening(self, settings: dict[str, str]) -> Iterator[int]:
        """Have a driver listen with these settings."""
        env = self._env("driver", settings, is_client=False)
        try:
            yield int(env.address().port())
        finally:
            env.shutdown()

    def is_let_in(self, port: int, settings: dict[str, str]) -> bool:
        """Knock at a port as a process with these settings does."""
        env = self._env("stranger", settings, is_client=True)
        try:
            env.setupEndpointRef(self.jvm.org.apache.spark.rpc.RpcAddress(HOST, port), ENDPOINT)
        except Py4JJavaError:
            return False
        finally:
            env.shutdown()
        return True

    def _env(self, name: str, settings: dict[str, str], *, is_client: bool) -> Any:
        spark = self.jvm.org.apache.spark
        conf = spark.SparkConf(False)
        for key, value in settings.items():
            conf.set(key, value)
        config = getattr(getattr(spark.internal.config, "package$"), "MODULE$")
        security = spark.SecurityManager(conf, self.jvm.scala.Option.empty(), config.AUTH_SECRET_FILE())
        if not is_client:
            security.initializeAuth()
        return spark.rpc.RpcEnv.create(name, HOST, 0, conf, security, is_client)


@pytest.fixture(scope="module")
def ports(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ports:
    """The JVM of this worker's Spark."""
    return Ports(spark._jvm, tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def closed(ports: Ports) -> Iterator[int]:
    """The port of a driver as it is launched."""
    with ports.listening(ports.launched("the application's")) as port:
        yield port


def test_an_executor_of_the_application_is_let_in(ports: Ports, closed: int) -> None:
    settings = ports.of_an_executor(ports.launched("the application's"))
    assert settings.keys() < ports.launched("the application's").keys()
    assert ports.is_let_in(closed, settings)


def test_an_executor_of_another_application_is_kept_out(ports: Ports, closed: int) -> None:
    assert not ports.is_let_in(closed, ports.of_an_executor(ports.launched("another application's")))


def test_who_shows_nothing_is_kept_out(ports: Ports, closed: int) -> None:
    assert not ports.is_let_in(closed, {})


def test_who_has_the_file_and_does_not_encrypt_is_kept_out(ports: Ports, closed: int) -> None:
    settings = ports.of_an_executor(ports.launched("the application's"))
    assert not ports.is_let_in(closed, {**settings, "spark.network.crypto.enabled": "false"})


def test_an_application_that_leaves_its_ports_open_lets_everybody_in(ports: Ports) -> None:
    with ports.listening(ports.launched("the application's", OPEN)) as port:
        assert ports.is_let_in(port, {})
