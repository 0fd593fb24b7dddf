"""The pod that takes or disposes of a snapshot when no driver does."""

from typing import Any

import msgspec
import pytest

from tidegate.api.stream_snapshot import SnapshotStorage, StreamSnapshotStatus
from tidegate.pods.builders.storage_pod import hash_of_taken
from tidegate.snapshots.builders.snapshot_pod import build_snapshot_pod, remembered_app, storage_of
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_spark.contract.snapshot_protocol import ORDERS_VARIABLE, SnapshotOrder, SnapshotOrders
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.snapshot_observations import ID, begun, snapshot

APP = launched(
    app_with(
        {
            "storage": {
                "uri": "s3://streams/apps/",
                "endpoint": "http://minio:9000",
                "region": "eu-1",
                "pathStyleAccess": True,
                "credentialsSecretRef": {"name": "keys"},
            },
            "application.env": [{"name": "HTTPS_PROXY", "value": "proxy:3128"}, {"name": "MODE", "value": "fast"}],
            "serviceAccountName": "streams",
        }
    )
)
TAKE = SnapshotOrders(take=(SnapshotOrder(ID, manual=True),))
DISPOSE = SnapshotOrders(dispose=(ID,))
SNAPSHOT = snapshot(begun(APP))


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def test_it_is_a_short_pod_of_the_snapshot_in_the_operators_image() -> None:
    pod = build_snapshot_pod(SNAPSHOT, APP, TAKE, PLATFORM)
    assert pod["metadata"] == {
        "name": f"{ID}-take",
        "namespace": "shop",
        "labels": {
            "tidegate.dev/app": "orders",
            "tidegate.dev/role": "snapshot",
            "tidegate.dev/snapshot": ID,
            "app.kubernetes.io/managed-by": "tidegate",
        },
        "annotations": {"tidegate.dev/app-uid": "u-1", "tidegate.dev/spec-hash": hash_of_taken(APP)},
        "ownerReferences": [
            {
                "apiVersion": "tidegate.dev/v1alpha1",
                "kind": "StreamSnapshot",
                "name": "nightly",
                "uid": SNAPSHOT.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
    (container,) = pod["spec"]["containers"]
    assert (container["name"], container["image"]) == ("snapshot", PLATFORM.operator_image)
    assert container["command"] == ["python3", "-m", "tidegate_spark.snapshot_pod"]
    assert (pod["spec"]["restartPolicy"], pod["spec"]["serviceAccountName"]) == ("OnFailure", "streams")
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_it_is_told_the_place_and_the_orders() -> None:
    env = variables(build_snapshot_pod(SNAPSHOT, APP, TAKE, PLATFORM))
    config = from_json(DriverConfig, env[CONFIG_VARIABLE])
    assert (config.storage.uri, config.lineage, config.uid) == ("s3://streams/apps/shop/orders", 1, "u-1")
    assert from_json(SnapshotOrders, env[ORDERS_VARIABLE]) == TAKE
    assert (env["HTTPS_PROXY"], "MODE" in env) == ("proxy:3128", False)


def test_of_an_application_that_is_gone_everything_is_remembered_that_reaches_its_storage() -> None:
    env, gone = (variables(build_snapshot_pod(SNAPSHOT, app, DISPOSE, PLATFORM)) for app in (APP, None))
    there, remembered = (from_json(DriverConfig, found[CONFIG_VARIABLE]) for found in (env, gone))
    for part in ("storage", "app", "namespace", "uid", "lineage", "credentials_secret"):
        assert getattr(remembered, part) == getattr(there, part), part
    assert storage_of(remembered_app(SNAPSHOT)) == storage_of(APP)
    pod = build_snapshot_pod(SNAPSHOT, None, DISPOSE, PLATFORM)
    assert (pod["metadata"]["name"], pod["spec"]["serviceAccountName"]) == (f"{ID}-dispose", "streams")


def test_what_an_application_raised_of_such_pods_they_still_get_when_it_is_gone() -> None:
    more = {"requests": {"memory": "1Gi"}, "limits": {"memory": "3Gi", "cpu": 2}}
    app = app_with({"helpers.resources": more})
    status = msgspec.structs.replace(SNAPSHOT.status, storage=storage_of(app))
    read = msgspec.json.decode(msgspec.json.encode(status), type=StreamSnapshotStatus)
    snapshot = msgspec.structs.replace(SNAPSHOT, status=read)
    there, gone = (build_snapshot_pod(snapshot, of, DISPOSE, PLATFORM) for of in (app, None))
    (container,) = gone["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "3Gi"},
    }
    assert container["resources"] == there["spec"]["containers"][0]["resources"]


@pytest.mark.parametrize("missing", [{"storage": None}, {"app": None}])
def test_without_a_memory_of_the_storage_there_is_no_pod(missing: dict[str, Any]) -> None:
    forgetful = msgspec.structs.replace(SNAPSHOT, status=msgspec.structs.replace(SNAPSHOT.status, **missing))
    with pytest.raises(ValueError, match="nothing is known"):
        build_snapshot_pod(forgetful, None, DISPOSE, PLATFORM)


def test_what_is_remembered_names_no_secret_but_by_name() -> None:
    assert storage_of(APP) == SnapshotStorage(
        uri="s3://streams/apps/shop/orders",
        endpoint="http://minio:9000",
        region="eu-1",
        path_style_access=True,
        credentials_secret_name="keys",
        service_account_name="streams",
    )
