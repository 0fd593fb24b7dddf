"""Pods whose containers never begin, on real nodes: what is said of each, and what becomes of an edit that needs one.

What the kubelet and the scheduler write of them is what tidegate.foreign_text reads: this is its contract.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

pytestmark = pytest.mark.long  # test_faults.py has a missing ConfigMap, and the simulation the edit

NAMESPACE = "tidegate-e2e-starts"
PATIENCE = 10
RULES = "rules"


def volume(name: str, **source: Any) -> dict[str, Any]:
    """Return a spec whose driver mounts a volume: of one that no container mounts, the kubelet wants nothing."""
    container = {"name": "driver", "volumeMounts": [{"name": name, "mountPath": "/volume"}]}
    template = {"spec": {"volumes": [{"name": name, **source}], "containers": [container]}}
    return {"driver": {"podTemplate": template}, "podStartTimeoutSeconds": PATIENCE}


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
}


def put_rules(world: World, name: str = RULES) -> None:
    metadata = {"name": name, "namespace": NAMESPACE}
    world.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"present": "1"}})


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    put_rules(world)
    yield NAMESPACE
    world.delete_apps(NAMESPACE)


def test_each_pod_that_does_not_start_says_which_object_it_lacks(world: World, namespace: str) -> None:
    for name, (spec, _, _) in STUCK.items():
        world.kubectl.apply(world.app(name, namespace, main="script:counting.py", spec=spec))
    named: dict[str, dict[str, Any]] = {}

    def all_named() -> bool:
        for app in world.kubectl.list("sapp", namespace):
            ready = world.kubectl.condition(app, "Ready")
            if ready.get("reason") == STUCK[app["metadata"]["name"]][1]:
                named[app["metadata"]["name"]] = ready
        assert set(named) == set(STUCK), f"not yet: {set(STUCK) - set(named)}"
        return True

    wait_for("each cause to be named", all_named, timeout=600, interval=1)
    for name, (_, _, words) in STUCK.items():
        assert [word for word in words if word not in named[name]["message"]] == [], named[name]
        assert named[name]["status"] == "False"
    assert world.operator_crashes() == []


def test_an_edit_whose_volume_does_not_exist_is_undone_after_the_patience_and_says_why(
    world: World, namespace: str
) -> None:
    upgrade = {"stableBatches": 1, "timeoutSeconds": 1800}
    app = world.app("edited", namespace, main="script:counting.py", spec={"upgrade": upgrade})
    world.kubectl.apply(app)

    def is_stable() -> bool:
        assert world.status("edited", namespace).get("lastStable"), world.status("edited", namespace)
        return True

    wait_for("the first version to be stable", is_stable, timeout=600)
    edit = volume("v", configMap={"name": "made-later"})
    world.kubectl.patch("sapp", "edited", namespace, {"spec": edit})

    def is_undone() -> bool:
        status = world.status("edited", namespace)
        upgrade = status.get("upgrade", {})
        assert (upgrade.get("phase"), status["phase"]) == ("RolledBack", "Running"), status
        return True

    wait_for("the edit to be undone, long before its timeout", is_undone, timeout=900, interval=1)
    upgrade = world.status("edited", namespace)["upgrade"]
    assert upgrade["reason"] == "ReferenceMissing", upgrade
    assert "ConfigMap made-later does not exist" in upgrade["message"], upgrade
