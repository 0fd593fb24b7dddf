"""What driver and executors show each other on Spark's ports, and who has it."""

from typing import Any

import pytest

from tidegate.access.builders.launch_secrets import build_agent_secret, build_spark_secret
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.driver_config import app_storage, build_driver_config
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.protocol import AGENT_NUMBER_FILE, AGENT_TOKEN_FILE
from tidegate_testing.observations import app_with
from tidegate_testing.values import app

PLATFORM = Platform(operator_image="tidegate/operator:1")
SECRET_FILE = "spark.authenticate.secret.file"


def pods(change: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    orders = app(change or {})
    executor = build_executor_template(orders, 1, app_storage(orders), PLATFORM)
    return {"driver": build_driver_pod(orders, 1, 1, PLATFORM), "executor": executor}


def files(pod: dict[str, Any], container: str) -> dict[str, str]:
    """Return each file of a Secret that a container has, and the key that it is of."""
    (found,) = [c for c in pod["spec"]["containers"] if c["name"] == container]
    volumes = {v["name"]: v["secret"] for v in pod["spec"]["volumes"] if "secret" in v}
    agent = build_agent_secret(app(), 1, PLATFORM, "t0ken", "2a")
    made = {each["metadata"]["name"]: each for each in (agent, build_spark_secret(app(), 1, PLATFORM, "s3cret"))}
    return {
        f"{mount['mountPath']}/{key}": key
        for mount in found["volumeMounts"]
        if volumes.get(mount["name"], {}).get("secretName") in made
        for key in made[volumes[mount["name"]]["secretName"]]["stringData"]
    }


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_spark_finds_the_file_where_it_is_told_to_look_for_it(role: str) -> None:
    conf = build_driver_config(app(), 1, 1, PLATFORM).spark_conf
    assert files(pods()[role], role)[conf[SECRET_FILE]] == "spark-auth"


def test_executors_do_not_get_the_agents_token() -> None:
    assert set(files(pods()["executor"], "executor").values()) == {"spark-auth"}


def test_a_pod_without_the_file_is_not_started() -> None:
    for pod in pods().values():
        (volume,) = [v["secret"] for v in pod["spec"]["volumes"] if v["name"] == "tidegate-spark-auth"]
        assert "optional" not in volume


def test_a_template_cannot_put_another_file_in_its_place() -> None:
    volume = {"name": "tidegate-spark-auth", "configMap": {"name": "theirs"}}
    template = {"spec": {"volumes": [volume]}}
    change = {"driver.podTemplate": template, "executor.podTemplate": template}
    for role, pod in pods(change).items():
        assert "spark-auth" in files(pod, role).values()


def test_an_application_that_leaves_its_ports_open_has_no_file() -> None:
    for role, pod in pods({"sparkConf": {"spark.authenticate": "false"}}).items():
        assert "tidegate-spark-auth" not in [volume["name"] for volume in pod["spec"]["volumes"]]
        assert not [file for file in files(pod, role) if file.endswith("/spark-auth") and "/spark/" in file]


def test_the_driver_has_what_its_agent_needs_from_a_secret_of_its_launch() -> None:
    assert {file for file in files(pods()["driver"], "driver") if "/agent/" in file} == {
        AGENT_TOKEN_FILE,
        AGENT_NUMBER_FILE,
    }


def test_each_launch_and_each_key_of_the_operator_has_secrets_of_other_names() -> None:
    names = {
        volume["secret"]["secretName"]
        for epoch in (1, 2)
        for key_id in ("one", "another")
        for uid in ("u-1", "u-2")
        for volume in build_driver_pod(app_with(uid=uid), epoch, 1, Platform("operator:1", key_id=key_id))["spec"][
            "volumes"
        ]
        if "secret" in volume
    }
    assert len(names) == 16
    assert all(len(name) <= 63 for name in names)
