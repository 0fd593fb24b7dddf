"""Defaults of Spark's settings that an application may override. Pure."""

import dataclasses

from tidegate_spark.environment import Environment
from tidegate_spark.protocol import Storage
from tidegate_spark.sparkconf import build_spark_conf, executor_template
from tidegate_testing.driver_process import driver_config

LIMIT, INTERVAL = "spark.executor.maxNumFailures", "spark.executor.failuresValidityInterval"
CONFIG = driver_config("orders", "local:///opt/main.py", Storage("s3://bucket/apps/shop/orders"))


def test_executors_that_fail_or_can_not_be_created_never_end_an_application() -> None:
    assert build_spark_conf(CONFIG, Environment.read({}), "process")[LIMIT] == "2147483647"


def test_an_application_may_limit_the_executors_that_failed_lately() -> None:
    own = dataclasses.replace(CONFIG, spark_conf={LIMIT: "3"})
    conf = build_spark_conf(own, Environment.read({}), "process")
    assert (conf[LIMIT], conf[INTERVAL]) == ("3", "1h")
    own = dataclasses.replace(CONFIG, spark_conf={LIMIT: "3", INTERVAL: "5m"})
    assert build_spark_conf(own, Environment.read({}), "process")[INTERVAL] == "5m"


def test_executors_are_owned_by_the_drivers_pod_without_spark_waiting_for_it() -> None:
    own = dataclasses.replace(CONFIG, spark_conf={"spark.kubernetes.driver.pod.name": "orders-driver"})
    assert "spark.kubernetes.driver.pod.name" not in build_spark_conf(own, Environment.read({}), "process")
    executor = dataclasses.replace(CONFIG.executor, template={"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}})
    template = executor_template(dataclasses.replace(CONFIG, executor=executor), "uid-1")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "orders-driver", "uid": "uid-1", "controller": True}
    assert template == {"metadata": {"labels": {"a": "b"}, "ownerReferences": [owner]}, "spec": {"x": 1}}
