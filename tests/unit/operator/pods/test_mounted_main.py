"""The pods of an application whose program is a ConfigMap's key."""

import json
from typing import Any

import pytest

from tidegate.api.spec_hash import spec_hash, version_of, with_version
from tidegate.api.streaming_app import StreamingApp, decode_app
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.builders.rehearsal_pod import build_rehearsal
from tidegate.pods.builders.driver_config import app_storage, build_driver_config
from tidegate.pods.builders.executor import build_executor_template
from tidegate_spark.contract.protocol import MAIN_DIRECTORY, MOUNTED_MAIN_DIRECTORY
from tidegate_testing.golden import assert_golden
from tidegate_testing.observations import PLATFORM
from tidegate_testing.rehearsals import config_of, rehearsing
from tidegate_testing.values import app, body

SOURCE = {"configMapKeyRef": {"name": "count-7b9f", "key": "count.py"}}
MAIN = "local:///var/run/tidegate/mounted-main/count.py"


def scripted(change: dict[str, Any] | None = None) -> StreamingApp:
    resource = body({"application.mainFrom": SOURCE, **(change or {})})
    del resource["spec"]["application"]["main"]
    return decode_app(resource)


def volumes_of(pod: dict[str, Any]) -> dict[str, Any]:
    return {volume["name"]: volume for volume in pod["spec"]["volumes"]}


def mounts_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = [each for each in pod["spec"]["containers"] if each["name"] == "driver"]
    return {mount["mountPath"]: mount for mount in container["volumeMounts"]}


def test_the_driver_pod_has_the_key_to_read_and_a_place_for_its_copy() -> None:
    assert_golden(__file__, "driver_pod_with_mounted_main", build_driver_pod(scripted(), 3, 1, PLATFORM))


@pytest.mark.parametrize("runtime", ["Injected", "Image"])
def test_the_runtime_is_told_the_mounted_file_wherever_it_comes_from(runtime: str) -> None:
    orders = scripted({"application.runtime": runtime})
    pod = build_driver_pod(orders, 3, 1, PLATFORM)
    assert build_driver_config(orders, 3, 1, PLATFORM).main == MAIN
    assert mounts_of(pod)[MOUNTED_MAIN_DIRECTORY]["readOnly"]
    assert "readOnly" not in mounts_of(pod)[MAIN_DIRECTORY]
    assert "subPath" not in json.dumps(pod)


def test_a_pod_whose_key_is_missing_is_not_started_without_it() -> None:
    volume = volumes_of(build_driver_pod(scripted(), 3, 1, PLATFORM))["tidegate-mounted-main"]
    assert volume["configMap"]["items"] == [{"key": "count.py", "path": "count.py"}]
    assert "optional" not in volume["configMap"]


def test_a_rehearsal_runs_the_same_key() -> None:
    pod = build_rehearsal(rehearsing({"application.mainFrom": SOURCE}), PLATFORM).manifest
    assert config_of(pod).main == MAIN
    assert {MOUNTED_MAIN_DIRECTORY, MAIN_DIRECTORY} <= mounts_of(pod).keys()
    assert {"tidegate-mounted-main", "tidegate-main"} <= volumes_of(pod).keys()


def test_pods_that_do_not_run_the_program_have_nothing_of_it() -> None:
    orders = scripted()
    executors = build_executor_template(orders, 3, app_storage(orders), PLATFORM)
    for pod in (executors, build_purge_pod(orders, PLATFORM)):
        assert "count-7b9f" not in json.dumps(pod)


def test_what_a_template_mounts_there_gives_way() -> None:
    template = {
        "spec": {
            "volumes": [{"name": "tidegate-main", "hostPath": {"path": "/srv"}}, {"name": "mine", "emptyDir": {}}],
            "containers": [{"name": "driver", "volumeMounts": [{"name": "mine", "mountPath": MAIN_DIRECTORY}]}],
        }
    }
    pod = build_driver_pod(scripted({"driver.podTemplate": template}), 3, 1, PLATFORM)
    assert volumes_of(pod)["tidegate-main"] == {"name": "tidegate-main", "emptyDir": {"sizeLimit": "8Mi"}}
    assert mounts_of(pod)[MAIN_DIRECTORY]["name"] == "tidegate-main"


def test_a_version_with_a_script_of_a_config_map_is_put_in_place_of_one_with_a_file_of_the_image_and_back() -> None:
    file, script = app(), scripted()
    rolled_back = with_version(script.spec, version_of(file.spec))
    assert rolled_back == file.spec
    assert with_version(file.spec, version_of(script.spec)) == script.spec
    assert spec_hash(file) != spec_hash(script)
