"""The pod that writes a snapshot's state as plain files."""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec import Resources
from tidegate.api.stream_snapshot import ExportSpec, StreamSnapshot
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.snapshots.builders.export_pod import build_export_pod, build_order, image_of
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, RUNTIME_DIRECTORY, DriverConfig, from_json
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrders
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.snapshot_observations import ID, begun, snapshot

APP = launched(
    app_with(
        {
            "storage": {"uri": "s3://streams/apps/", "credentialsSecretRef": {"name": "keys"}},
            "application.image": "shop/orders:3",
            "application.imagePullPolicy": "Always",
            "application.imagePullSecrets": [{"name": "registry"}],
            "application.env": [{"name": "PYTHONPATH", "value": "/app"}, {"name": "AWS_CA_BUNDLE", "value": "/ca.pem"}],
            "serviceAccountName": "streams",
            "driver.podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}},
            "sparkConf": {
                "spark.sql.streaming.stateStore.compression.codec": "zstd",
                "spark.sql.streaming.stateStore.providerClass": "org.example.Store",
                "spark.executor.memory": "9g",
            },
        }
    )
)


def asked(**fields: Any) -> StreamSnapshot:
    found = snapshot(begun(APP, image="shop/orders:2"))
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, export=ExportSpec(**fields)))


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def test_it_is_a_bounded_pod_with_the_image_that_wrote_the_state_and_the_runtime_of_the_operator() -> None:
    pod = build_export_pod(
        asked(nonce=4, cores=3, resources=Resources(requests={"cpu": "3", "memory": "4Gi"}), timeout_seconds=900),
        APP,
        PLATFORM,
    )
    assert pod["metadata"]["name"] == f"{ID}-export-4"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "StreamSnapshot"
    assert pod["metadata"]["labels"]["tidegate.dev/role"] == "export"
    spec = pod["spec"]
    assert (spec["activeDeadlineSeconds"], spec["restartPolicy"]) == (900, "OnFailure")
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("streams", False)
    assert (spec["nodeSelector"], spec["imagePullSecrets"]) == ({"disk": "fast"}, [{"name": "registry"}])
    (container,) = spec["containers"]
    assert (container["name"], container["image"]) == ("export", "shop/orders:2")
    assert container["imagePullPolicy"] == "Always"
    assert container["command"] == ["python3", "-m", "tidegate_spark.snapshot_pod"]
    assert container["resources"] == {"requests": {"cpu": "3", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    (runtime,) = spec["initContainers"]
    assert runtime["image"] == PLATFORM.operator_image
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {RUNTIME_DIRECTORY, "/tmp"} <= mounted
    named = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} <= named


def disk_of(pod: dict[str, Any]) -> str:
    (volume,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "work"]
    return str(volume["emptyDir"]["sizeLimit"])


@pytest.mark.parametrize("app", [APP, None], ids=["of an application", "whose application is gone"])
@pytest.mark.parametrize(
    ("resources", "disk"),
    [
        ({}, "50Gi"),
        ({"requests": {"ephemeral-storage": "300Gi"}}, "300Gi"),
        ({"limits": {"ephemeral-storage": "250Gi"}, "requests": {"ephemeral-storage": "60Gi"}}, "250Gi"),
        ({"requests": {"ephemeral-storage": "5Gi"}}, "50Gi"),
    ],
)
def test_its_volume_holds_as_much_as_is_asked_for_and_as_the_applications_at_least(
    app: StreamingApp | None, resources: dict[str, Any], disk: str
) -> None:
    of = asked(resources=Resources(**resources))
    assert disk_of(build_export_pod(of, app, PLATFORM)) == disk


def test_it_reaches_the_storage_as_the_application_does_and_brings_nothing_else_of_it() -> None:
    env = variables(build_export_pod(asked(), APP, PLATFORM))
    assert env["PYTHONPATH"] == f"{RUNTIME_DIRECTORY}/python"
    assert env["AWS_ACCESS_KEY_ID"] == {"secretKeyRef": {"name": "keys", "key": "AWS_ACCESS_KEY_ID", "optional": True}}
    assert env["AWS_CA_BUNDLE"] == "/ca.pem"
    config = from_json(DriverConfig, env[CONFIG_VARIABLE])
    assert (config.storage.uri, config.credentials_secret) == ("s3://streams/apps/shop/orders", "keys")


def test_it_is_told_what_to_write_and_how_the_state_was_written() -> None:
    pod = build_export_pod(asked(nonce=2, cores=2), APP, PLATFORM)
    (order,) = from_json(SnapshotOrders, variables(pod)[ORDERS_VARIABLE]).export
    assert order == build_order(asked(nonce=2, cores=2), APP)
    assert (order.export, order.cores, order.heap_mib) == (f"{ID}-2", 2, 2048 * 60 // 100)
    assert set(order.spark_conf) == {
        "spark.sql.streaming.stateStore.compression.codec",
        "spark.sql.streaming.stateStore.providerClass",
    }


def test_without_the_application_it_is_the_same_but_for_what_nobody_remembers() -> None:
    pod = build_export_pod(asked(), None, PLATFORM)
    (container,) = pod["spec"]["containers"]
    assert (container["image"], pod["spec"]["serviceAccountName"]) == ("shop/orders:2", "streams")
    assert from_json(DriverConfig, variables(pod)[CONFIG_VARIABLE]).storage.uri == "s3://streams/apps/shop/orders"


def test_another_image_can_be_named() -> None:
    assert image_of(asked(image="spark:5"), APP) == "spark:5"
    assert image_of(snapshot(begun(APP, image="")), APP) == "shop/orders:3"


@pytest.mark.parametrize(
    ("memory", "message"),
    [("512Mi", "spec.export.resources.requests.memory"), ("much", "spec.export.resources.requests.memory")],
)
def test_memory_that_does_not_do_is_named(memory: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build_export_pod(asked(resources=Resources(requests={"memory": memory})), APP, PLATFORM)


def test_nobody_asks_for_it() -> None:
    with pytest.raises(ValueError, match="no export of nightly"):
        build_export_pod(snapshot(begun(APP)), APP, PLATFORM)
