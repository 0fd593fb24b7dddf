"""Whose a pod is: owners and names prove it, labels do not. Pure."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.cache.index import Index
from tidegate.pods.records.metadata import owner_reference, reference_to
from tidegate.pods.records.read_pods import Pod, build_record, launch_of
from tidegate.pods.records.record import PodRecord, of_driver
from tidegate_spark.contract.protocol import CONFIG_VARIABLE
from tidegate_spark.process.spark.sparkconf import executor_template
from tidegate_testing.observations import PLATFORM, app_with, driver_of, executor_of, launched
from tidegate_testing.snapshot_observations import SNAPSHOT_UID, snapshot

APP = launched(app_with())
LABELS = {
    "tidegate.dev/app": "orders",
    "tidegate.dev/role": "driver",
    "tidegate.dev/epoch": "7",
    "app.kubernetes.io/managed-by": "tidegate",
}
OF_APP = owner_reference(APP)
OF_SNAPSHOT = reference_to("StreamSnapshot", snapshot().metadata)
OF_DRIVER = {"apiVersion": "v1", "kind": "Pod", "name": "orders-driver", "uid": "pod-1", "controller": True}


def pod(name: str, owner: dict[str, Any] | None, **metadata: Any) -> dict[str, Any]:
    owners = [owner] if owner is not None else []
    known = {"name": name, "namespace": "shop", "uid": "pod-9", "resourceVersion": "3", "labels": LABELS}
    return {"metadata": {**known, "ownerReferences": owners, **metadata}}


def record(body: dict[str, Any]) -> PodRecord:
    return build_record(msgspec.json.decode(json.dumps(body), type=Pod))


@pytest.mark.parametrize(
    ("name", "owner", "role", "epoch"),
    [
        ("orders-driver", OF_APP, "driver", 7),
        ("orders-purge", OF_APP, "purge", 7),
        ("orders-release", OF_APP, "snapshot", 7),
        ("orders-rehearsal-3", OF_APP, "rehearsal", 7),
        ("orders-repartition-4", OF_APP, "repartition", 4),
        ("nightly-aabbccdd-take", OF_SNAPSHOT, "snapshot", 7),
        ("nightly-aabbccdd-export-2", OF_SNAPSHOT, "export", 7),
        ("orders-e12-exec-34", OF_DRIVER, "executor", 12),
    ],
)
def test_owner_and_name_say_what_a_pod_is_whatever_its_label_says(
    name: str, owner: dict[str, Any], role: str, epoch: int
) -> None:
    found = record(pod(name, owner))
    assert (found.app, found.role, found.epoch, found.owner_uid) == ("orders", role, epoch, owner["uid"])


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("orders-driver", None),
        ("orders-driver", {**OF_APP, "controller": False}),
        ("orders-driver", {**OF_APP, "apiVersion": "tidegate.dev.example.org/v1"}),
        ("orders-driver", {**OF_APP, "kind": "ControlMessage"}),
        ("orders-driver", {**OF_APP, "name": "payments"}),
        ("orders-driver", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "y", "controller": True}),
        ("orders", OF_APP),
        ("ordersrehearsal-3", OF_APP),
        ("orders-rehearsal-1234567890123", OF_APP),
        ("orders-e1-exec-1", OF_APP),
        ("orders-e1-exec-1", None),
        ("orders-e1-exec-1", {**OF_DRIVER, "name": "payments-driver"}),
        ("orders-e1-exec-1", {**OF_DRIVER, "name": "orders"}),
        ("orders-e1-exec-1", {**OF_DRIVER, "kind": "ReplicaSet"}),
        ("orders-e1-exec-x", OF_DRIVER),
        ("nightly-aabbccdd-take", {**OF_SNAPSHOT, "controller": False}),
    ],
)
def test_a_pod_that_has_our_labels_alone_is_none_of_ours(name: str, owner: dict[str, Any] | None) -> None:
    found = record(pod(name, owner))
    assert (found.app, found.role, found.owner_uid) == ("", "", "")


def test_a_driver_of_an_application_that_was_made_anew_is_known_as_the_earlier_ones() -> None:
    found = record(pod("orders-driver", {**OF_APP, "uid": "earlier"}, annotations={"tidegate.dev/app-uid": "u-1"}))
    assert (found.app, found.role, found.app_uid) == ("orders", "driver", "earlier")


def as_stored(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a pod as the API server gives it back, with other metadata where given."""
    known = {**manifest["metadata"], "uid": "pod-1", "resourceVersion": "10"}
    return {**manifest, "metadata": {**known, **metadata}, "status": {}}


def test_the_pods_that_are_built_are_ours() -> None:
    driver = record(as_stored(build_driver_pod(APP, 3, 1, PLATFORM)))
    assert (driver.app, driver.role, driver.epoch, driver.app_uid, driver.labelled) == (
        "orders",
        "driver",
        3,
        "u-1",
        True,
    )
    purge = record(as_stored(build_purge_pod(APP, PLATFORM)))
    assert (purge.app, purge.role, purge.app_uid) == ("orders", "purge", "u-1")
    launch = next(
        each["value"]
        for each in build_driver_pod(APP, 3, 1, PLATFORM)["spec"]["containers"][0]["env"]
        if each["name"] == CONFIG_VARIABLE
    )
    assert '"epoch":3' in launch.replace(" ", "")


def test_executors_as_spark_makes_them_are_their_drivers() -> None:
    from tidegate.pods.builders.driver_config import build_driver_config  # noqa: PLC0415 - beside what it is for

    template = executor_template(build_driver_config(APP, 3, 1, PLATFORM), "pod-1")
    found = record(as_stored(template, name="orders-e3-exec-1", namespace="shop", uid="pod-2"))
    assert (found.app, found.role, found.epoch) == ("orders", "executor", 3)
    assert of_driver(found, driver_of(APP, uid="pod-1"))
    assert not of_driver(found, driver_of(APP, uid="pod-3"))
    assert of_driver(executor_of(APP, 1), driver_of(APP))


def test_an_epoch_that_somebody_writes_on_a_driver_is_not_the_one_it_was_launched_with() -> None:
    manifest = build_driver_pod(APP, 3, 1, PLATFORM)
    labels = {**manifest["metadata"]["labels"], "tidegate.dev/epoch": "99", "tidegate.dev/role": "executor"}
    found = record(as_stored(manifest, labels=labels))
    assert (found.role, found.epoch, found.labelled) == ("driver", 3, False)


@pytest.mark.parametrize("notes", [{}, {"tidegate.dev/spec-hash": "another", "tidegate.dev/app-uid": "another"}])
def test_a_version_that_somebody_writes_on_a_driver_is_not_the_one_it_was_launched_with(notes: dict[str, str]) -> None:
    found = record(as_stored(build_driver_pod(APP, 3, 1, PLATFORM), annotations=notes))
    assert (found.spec_hash, found.app_uid) == (spec_hash(APP), "u-1")


def test_of_a_stranger_the_configuration_is_not_read() -> None:
    manifest = build_driver_pod(app_with({"executor.cores": 4}), 3, 1, PLATFORM)
    ours, strangers = record(as_stored(manifest)), record(as_stored(manifest, ownerReferences=[]))
    assert (ours.executor_slots, strangers.executor_slots) == (4, 0)


def test_a_driver_says_of_which_application_its_process_is_even_without_its_owner() -> None:
    body = as_stored(build_driver_pod(APP, 3, 1, PLATFORM), ownerReferences=[], labels={})
    launch = launch_of(msgspec.json.decode(json.dumps(body), type=Pod))
    assert launch is not None
    assert (launch.namespace, launch.app) == ("shop", "orders")


@pytest.mark.parametrize("config", ["[" * 5000, '{"x":' * 5000, "1" * 5000, '{"epoch": ' + "9" * 5000 + "}", "\ud800"])
def test_a_hostile_configuration_is_no_launch(config: str) -> None:
    container = {"name": "driver", "env": [{"name": CONFIG_VARIABLE, "value": ""}]}
    decoded = msgspec.json.decode(
        json.dumps({**pod("orders-driver", OF_APP), "spec": {"containers": [container]}}), type=Pod
    )
    decoded.spec.containers[0].env[0].value = config
    assert build_record(decoded).executor_slots == 0


def test_the_snapshots_uid_is_what_its_pods_are_told_by() -> None:
    assert record(pod("nightly-aabbccdd-take", OF_SNAPSHOT)).owner_uid == SNAPSHOT_UID


def test_the_pod_of_an_imported_snapshot_is_kept_though_it_is_of_no_application() -> None:
    labels = {**LABELS, "tidegate.dev/app": "", "tidegate.dev/role": "snapshot"}
    found = record(pod("imported-aabbccdd-take", OF_SNAPSHOT, labels=labels))
    index = Index()
    index.put_pod(found)
    assert index.pods(("shop", "")) == [found]
    assert index.remove_pod(found) == ("shop", "")
    assert index.pods(("shop", "")) == []
