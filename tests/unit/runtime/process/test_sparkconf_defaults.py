"""Defaults of Spark's settings that an application may override. Pure."""

import dataclasses

from tidegate_spark.contract.protocol import SPARK_SECRET_FILE, Storage
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark.sparkconf import (
    CHECKPOINT_FORMAT,
    DECOMMISSION,
    HDFS_BACKED_CLASS,
    ROCKSDB_CLASS,
    STATE_STORE,
    build_spark_conf,
    executor_template,
    format_of_store,
)
from tidegate_testing.driver_process import driver_config

LIMIT, INTERVAL = "spark.executor.maxNumFailures", "spark.executor.failuresValidityInterval"
KEYS = {"store": STATE_STORE, "version": CHECKPOINT_FORMAT}
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


def test_executors_that_are_too_many_end_their_tasks_and_no_script_holds_up_the_end_of_a_pod() -> None:
    in_a_pod = Environment.read(
        {"TIDEGATE_POD_IP": "10.0.0.7", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    )
    conf = build_spark_conf(CONFIG, in_a_pod, "process")
    assert (conf[DECOMMISSION], conf["spark.kubernetes.decommission.script"]) == ("true", "true")
    own = dataclasses.replace(CONFIG, spark_conf={DECOMMISSION: "false"})
    assert build_spark_conf(own, in_a_pod, "process")[DECOMMISSION] == "false"


def test_hooks_that_executors_have_of_their_own_are_left_in_place() -> None:
    for name, decommissioned in (("executor", "false"), ("sidecar", "true")):
        pod = {"spec": {"containers": [{"name": name, "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}]}}
        named = {"spark.kubernetes.executor.podTemplateContainerName": "executor"}
        executor = dataclasses.replace(CONFIG.executor, template=pod)
        config = dataclasses.replace(CONFIG, executor=executor, spark_conf=named)
        in_a_pod = Environment.read({"TIDEGATE_POD_IP": "10.0.0.7"})
        assert in_a_pod.on_kubernetes
        assert build_spark_conf(config, in_a_pod, "process")[DECOMMISSION] == decommissioned


def test_spark_in_one_process_listens_on_loopback_alone_and_makes_its_secret_up() -> None:
    reported = {"spark.authenticate": "true", "spark.authenticate.secret.file": SPARK_SECRET_FILE}
    own = dataclasses.replace(CONFIG, spark_conf=reported)
    conf = build_spark_conf(own, Environment.read({"TIDEGATE_POD_IP": "10.0.0.7", "TIDEGATE_MASTER": "local[2]"}), "p")
    assert (conf["spark.driver.bindAddress"], conf["spark.driver.host"]) == ("127.0.0.1", "127.0.0.1")
    assert (conf["spark.authenticate"], "spark.authenticate.secret.file" in conf) == ("true", False)


def test_a_driver_with_executors_listens_where_they_reach_it_and_has_the_file_that_they_have() -> None:
    own = dataclasses.replace(CONFIG, spark_conf={"spark.authenticate.secret.file": SPARK_SECRET_FILE})
    conf = build_spark_conf(own, Environment.read({"TIDEGATE_POD_IP": "10.0.0.7"}), "process")
    assert (conf["spark.driver.bindAddress"], conf["spark.driver.host"]) == ("10.0.0.7", "10.0.0.7")
    assert conf["spark.authenticate.secret.file"] == SPARK_SECRET_FILE


def test_another_state_store_has_the_checkpoint_format_that_spark_gives_it() -> None:
    def store_and_format(**own: str) -> tuple[str | None, str | None]:
        config = dataclasses.replace(CONFIG, spark_conf={KEYS[name]: value for name, value in own.items()})
        conf = build_spark_conf(config, Environment.read({}), "process")
        return conf.get(STATE_STORE), conf.get(CHECKPOINT_FORMAT)

    assert store_and_format() == (ROCKSDB_CLASS, "2")
    assert store_and_format(store=ROCKSDB_CLASS) == (ROCKSDB_CLASS, "2")
    assert store_and_format(store=HDFS_BACKED_CLASS) == (HDFS_BACKED_CLASS, None)
    assert store_and_format(store="org.example.Other", version="2") == ("org.example.Other", "2")
    assert store_and_format(version="1") == (ROCKSDB_CLASS, "1")


def test_a_store_that_only_the_session_names_starts_its_queries_in_the_format_it_has() -> None:
    assert format_of_store(HDFS_BACKED_CLASS, "2") == "1"
    assert (format_of_store(ROCKSDB_CLASS, "2"), format_of_store("org.example.Other", "2")) == ("2", "2")
