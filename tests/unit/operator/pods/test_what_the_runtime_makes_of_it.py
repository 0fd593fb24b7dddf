"""Operator and runtime agree: what one side writes into the launch's configuration, the other makes Spark's of it."""

import dataclasses

import pytest

from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.owned_settings import remedy_of
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import sparkconf
from tidegate_testing.values import app

IN_A_POD = {
    "TIDEGATE_POD_IP": "10.0.0.7",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
}


def spark_conf(change: dict[str, object]) -> dict[str, str]:
    config = build_driver_config(app(change), 3, 1, Platform(operator_image="tidegate/operator:1"))
    return sparkconf.build_spark_conf(config, Environment.read(IN_A_POD), "process")


def test_what_the_runtime_sets_whatever_the_user_says_is_refused_before() -> None:
    config = build_driver_config(app(), 3, 1, Platform(operator_image="tidegate/operator:1"))
    stubborn = dataclasses.replace(config, spark_conf=dict.fromkeys(spark_conf({}), "the user's"))
    made = sparkconf.build_spark_conf(stubborn, Environment.read(IN_A_POD), "process")
    assert [key for key, value in made.items() if "the user's" not in value and not remedy_of(key)] == []


@pytest.mark.parametrize("heap", [None, "700m"])
def test_executors_ask_for_exactly_the_memory_of_the_spec(heap: str | None) -> None:
    settings = {} if heap is None else {"spark.executor.memory": heap}
    conf = spark_conf({"executor.resources": {"requests": {"memory": "3Gi"}}, "sparkConf": settings})
    parts = (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"])
    assert sum(int(part.removesuffix("m")) for part in parts) == 3072


def test_executors_are_made_of_the_template_and_need_nothing_but_pods() -> None:
    conf = spark_conf({})
    assert conf["spark.kubernetes.executor.podTemplateContainerName"] == "executor"
    assert conf["spark.kubernetes.executor.podNamePrefix"] == "orders-e3"
    assert conf["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert conf["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert conf["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"


def test_a_setting_of_the_user_reaches_spark() -> None:
    assert spark_conf({"sparkConf": {"spark.sql.session.timeZone": "UTC"}})["spark.sql.session.timeZone"] == "UTC"
