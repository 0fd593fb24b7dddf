"""Defaults of Spark's settings that an application may override. Pure."""

import dataclasses

from tidegate_spark.environment import Environment
from tidegate_spark.protocol import Storage
from tidegate_spark.sparkconf import build_spark_conf
from tidegate_testing.driver_process import driver_config

KEY = "spark.executor.failuresValidityInterval"
CONFIG = driver_config("orders", "local:///opt/main.py", Storage("s3://bucket/apps/shop/orders"))


def test_executors_that_failed_long_ago_do_not_end_an_application_unless_it_says_so() -> None:
    assert build_spark_conf(CONFIG, Environment.read({}), "process")[KEY] == "1h"
    own = dataclasses.replace(CONFIG, spark_conf={KEY: "5m"})
    assert build_spark_conf(own, Environment.read({}), "process")[KEY] == "5m"
