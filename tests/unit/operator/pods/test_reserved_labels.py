"""Pods of one application never carry what tells another's apart. Pure."""

from typing import Any

import pytest

from tidegate.api.values.errors import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.rules.plan import decide
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.builders.executor import build_executor_to_try
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import sparkconf
from tidegate_testing.driver_process import driver_config
from tidegate_testing.observations import NOW, PLATFORM, app_with, observe

RESERVED = ["tidegate.dev/app", "tidegate.dev/snapshot", "tidegate.dev/of-tomorrow", "spark-app-selector", "spark-role"]
FIELDS = ["podTemplate", "driver.podTemplate", "executor.podTemplate"]
CONFIG = driver_config("orders", "local:///main.py", Storage("s3://a/b"))


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize("name", RESERVED)
def test_a_template_that_labels_pods_as_anothers_is_refused_with_its_field(field: str, kind: str, name: str) -> None:
    app = app_with({field: {"metadata": {kind: {"team": "streams", name: "payments"}}}})
    with pytest.raises(SpecError) as caught:
        build_driver_pod(app, 1, 1, PLATFORM)
    assert str(caught.value).startswith(f"spec.{field}.metadata.{kind}[{name}]: ")
    plan = decide(observe(app), NOW)
    assert (plan.reason, name in plan.message) == ("InvalidSpec", True)
    assert build_purge_pod(app, PLATFORM)["metadata"]["labels"]["tidegate.dev/app"] == "orders"


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("kind", ["label", "annotation"])
@pytest.mark.parametrize("name", [*RESERVED, "app.kubernetes.io/managed-by"])
def test_a_setting_that_labels_pods_as_anothers_is_refused_and_has_no_effect(role: str, kind: str, name: str) -> None:
    key = f"spark.kubernetes.{role}.{kind}.{name}"
    with pytest.raises(SpecError) as caught:
        build_driver_config(app_with({"sparkConf": {key: "payments"}}), 1, 1, PLATFORM)
    assert str(caught.value).startswith(f"spec.sparkConf[{key}]: ")
    # A runtime that is newer than its operator leaves it out, too, and says so; so it does with a script's.
    config = driver_config("orders", "local:///main.py", Storage("s3://a/b"), spark_conf={key: "payments"})
    assert key not in sparkconf.build_spark_conf(config, Environment.read({}), "process")
    assert (sparkconf.ignored_keys(config), bool(sparkconf.remedy_for(key))) == ((key,), True)


def test_the_label_of_executors_that_are_to_go_is_none_of_anothers() -> None:
    key = "spark.kubernetes.executor.decommissionLabel"
    with pytest.raises(SpecError, match=r"spec\.sparkConf\[spark\.kubernetes\.executor\.decommissionLabel\]: "):
        build_driver_config(app_with({"sparkConf": {key: "tidegate.dev/app"}}), 1, 1, PLATFORM)
    assert build_driver_config(app_with({"sparkConf": {key: "going"}}), 1, 1, PLATFORM).spark_conf[key] == "going"


FREE: dict[str, Any] = {"team": "streams", "example.com/tidegate.dev": "x", "spark-team": "y"}


@pytest.mark.parametrize("field", FIELDS)
def test_labels_of_ones_own_reach_the_pods_and_ours_stay(field: str) -> None:
    labels = {**FREE, "app.kubernetes.io/managed-by": "Helm"}
    app = app_with({field: {"metadata": {"labels": labels, "annotations": FREE}}})
    driver, executor = build_driver_pod(app, 1, 1, PLATFORM), build_executor_to_try(app, 1, CONFIG.storage, PLATFORM)
    for pod, role in ((driver, "driver"), (executor, "executor")):
        found = pod["metadata"]["labels"]
        assert (found["tidegate.dev/role"], found["app.kubernetes.io/managed-by"]) == (role, "tidegate")
        if field in ("podTemplate", f"{role}.podTemplate"):
            assert found.items() >= FREE.items()
            assert pod["metadata"]["annotations"].items() >= FREE.items()


def test_settings_that_give_labels_of_ones_own_reach_spark() -> None:
    key = "spark.kubernetes.executor.label.team"
    app = app_with({"sparkConf": {key: "streams"}})
    conf = sparkconf.build_spark_conf(build_driver_config(app, 1, 1, PLATFORM), Environment.read({}), "process")
    assert (conf[key], sparkconf.remedy_for(key)) == ("streams", "")
