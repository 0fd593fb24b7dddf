"""Pods whose containers never begin, on real nodes: what is said of each, and what becomes of such edits.

What the kubelet and the scheduler write of them is what tidegate.api.foreign_text reads: this is its contract.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

pytestmark = pytest.mark.long  # test_faults.py has a missing ConfigMap, and the simulation the edit

NAMESPACE = "tidegate-e2e-starts"
PATIENCE = 10
RULES, KEYS = "rules", "keys"


def volume(name: str, **source: Any) -> dict[str, Any]:
    """Return a spec whose driver mounts a volume: of one that no container mounts, the kubelet wants nothing."""
    container = {"name": "driver", "volumeMounts": [{"name": name, "mountPath": "/volume"}]}
    template = {"spec": {"volumes": [{"name": name, **source}], "containers": [container]}}
    return {"driver": {"podTemplate": template}, "podStartTimeoutSeconds": PATIENCE}


def driver(**fields: Any) -> dict[str, Any]:
    """Return a spec with such a driver container."""
    template = {"spec": {"containers": [{"name": "driver", **fields}]}}
    return {"driver": {"podTemplate": template}, "podStartTimeoutSeconds": PATIENCE}


def init_container(*command: str) -> dict[str, Any]:
    """Return a spec whose driver pod has an init container; its image is put in beside the application's."""
    # As the namespace's Pod Security level wants it.
    allowed = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "check", "image": "the application's", "command": list(command), "securityContext": allowed}
    return {"driver": {"podTemplate": {"spec": {"initContainers": [container]}}}}


STUCK: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "no-config-map": (
        volume("v", configMap={"name": "nowhere"}),
        "ReferenceMissing",
        ("ConfigMap nowhere does not exist", 'volume "v"'),
    ),
    "no-secret": (
        volume("v", secret={"secretName": "nowhere"}),
        "ReferenceMissing",
        ("Secret nowhere does not exist",),
    ),
    "no-key": (
        volume("v", configMap={"name": RULES, "items": [{"key": "absent", "path": "absent"}]}),
        "ReferenceMissing",
        ("Key absent of a ConfigMap does not exist", 'volume "v"'),
    ),
    "no-claim": (
        volume("v", persistentVolumeClaim={"claimName": "nowhere"}),
        "ReferenceMissing",
        ("PersistentVolumeClaim nowhere does not exist",),
    ),
    "no-driver-of-volumes": (
        volume("v", csi={"driver": "none.example.com"}),
        "VolumeNotMounted",
        ("A volume of pod", "none.example.com"),
    ),
    "no-scheduler": (
        {"podTemplate": {"spec": {"schedulerName": "nobody"}}, "podStartTimeoutSeconds": PATIENCE},
        "PodNotStarting",
        ("No scheduler has chosen a node", "schedulerName"),
    ),
    "no-node": (
        {"podTemplate": {"spec": {"nodeSelector": {"example.com/disk": "none"}}}},
        "Unschedulable",
        ("No node accepts pod no-node-driver", "spec.driver.podTemplate"),
    ),
    "no-key-of-variable": (
        # Which keys a Secret has nobody can ask before.
        driver(env=[{"name": "RULE", "valueFrom": {"secretKeyRef": {"name": KEYS, "key": "absent"}}}]),
        "ContainerRefused",
        ("Container driver of pod no-key-of-variable-driver cannot be started", "absent"),
    ),
    "no-success": (
        init_container("sh", "-c", "exit 3"),
        "InitFailed",
        ("Init container check of pod no-success-driver failed (exit code 3)", "kubectl logs"),
    ),
    "no-admission": (
        driver(securityContext={"runAsUser": 0}),
        "LaunchRefused",
        ("The API server refuses pod no-admission-driver", "PodSecurity"),
    ),
}


def put_rules(world: World, name: str = RULES) -> None:
    metadata = {"name": name, "namespace": NAMESPACE}
    world.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"present": "1"}})


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    put_rules(world)
    metadata = {"name": KEYS, "namespace": NAMESPACE}
    world.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"present": "1"}})
    yield NAMESPACE
    world.delete_apps(NAMESPACE)


def test_each_pod_that_does_not_start_says_which_object_it_lacks(world: World, namespace: str) -> None:
    for name, (spec, _, _) in STUCK.items():
        app = world.app(name, namespace, main="script:counting.py", spec=spec)
        template = app["spec"].get("driver", {}).get("podTemplate", {}).get("spec", {})
        for container in template.get("initContainers", ()):
            container["image"] = app["spec"]["application"]["image"]
        world.kubectl.apply(app)
    said = {name: Said(reason, message) for name, (_, reason, message) in STUCK.items()}
    await_reasons(world, namespace, said, timeout=600)
    assert world.operator_crashes() == []


def start_stable(world: World, name: str, namespace: str) -> None:
    """Have an application whose version is stable."""
    upgrade = {"stableBatches": 1, "timeoutSeconds": 1800}
    world.kubectl.apply(world.app(name, namespace, main="script:counting.py", spec={"upgrade": upgrade}))

    def is_stable() -> bool:
        assert world.status(name, namespace).get("lastStable"), world.status(name, namespace)
        return True

    wait_for("the first version to be stable", is_stable, timeout=600)


def await_upgrade(world: World, name: str, namespace: str, phase: str) -> dict[str, Any]:
    """Return the record of an upgrade once it is in a phase and the application runs."""

    def is_there() -> bool:
        status = world.status(name, namespace)
        assert (status.get("upgrade", {}).get("phase"), status["phase"]) == (phase, "Running"), status
        return True

    wait_for(f"the upgrade to be {phase}, long before its timeout", is_there, timeout=900, interval=1)
    found: dict[str, Any] = world.status(name, namespace)["upgrade"]
    return found


def test_an_edit_that_names_a_missing_key_stops_nothing_and_goes_on_once_it_exists(
    world: World, namespace: str
) -> None:
    start_stable(world, "held", namespace)
    before = world.status("held", namespace)["epoch"]
    variable = {"name": "RULE", "valueFrom": {"configMapKeyRef": {"name": "made-later", "key": "present"}}}
    world.kubectl.patch("sapp", "held", namespace, {"spec": {"application": {"env": [variable]}}})
    refused = await_upgrade(world, "held", namespace, "Refused")
    assert refused["reason"] == "ReferenceMissing", refused
    missing = "key present of ConfigMap made-later (spec.application.env[0].valueFrom.configMapKeyRef)"
    assert missing in refused["message"], refused
    assert world.status("held", namespace)["epoch"] == before
    put_rules(world, "made-later")
    await_upgrade(world, "held", namespace, "Completed")
    assert world.operator_crashes() == []


def test_an_edit_whose_volume_does_not_exist_is_undone_after_the_patience_and_says_why(
    world: World, namespace: str
) -> None:
    """Which keys a Secret has nobody can ask before."""
    metadata = {"name": "tls", "namespace": namespace}
    world.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"present": "1"}})
    start_stable(world, "edited", namespace)
    edit = volume("v", secret={"secretName": "tls", "items": [{"key": "absent", "path": "absent"}]})
    world.kubectl.patch("sapp", "edited", namespace, {"spec": edit})
    undone = await_upgrade(world, "edited", namespace, "RolledBack")
    assert undone["reason"] == "ReferenceMissing", undone
    assert "Key absent of a Secret does not exist" in undone["message"], undone
