"""What keeps a launch from its pod, or a pod from its node: names that are taken, pods that are left, what is too long.

No Spark starts: all of it is before the driver's first process.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing import own_cluster
from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import HELD, PREFIX, World

pytestmark = pytest.mark.long  # tests/unit/operator has each rule; here Kubernetes itself is in the way

NAMESPACE = f"{PREFIX}-in-the-way"
HANDLER = f"{PREFIX}-nowhere"
REGISTRY, PORT = f"{PREFIX}-slow-registry", 5055
SLOW_IMAGE = f"127.0.0.1:{PORT}/slow:1"
NO_NODE = {"example.com/disk": "none"}
NOWHERE = {"podTemplate": {"spec": {"nodeSelector": NO_NODE}}}
SAID = {
    "pod-taken": Said("PodNameTaken", ("Pod pod-taken-driver exists and does not belong to this application",)),
    "access-taken": Said(
        "AccessNameTaken", ("ServiceAccount tidegate-driver-access-taken exists", "is not Tidegate's")
    ),
    "no-sandbox": Said("SandboxFailed", ("cannot prepare pod no-sandbox-driver", "runtimeClassName")),
    "too-long": Said("ConfigurationTooLong", ("spec.application.args",)),
    "earlier": Said("DriverNotGone", ("Pod earlier-driver has ended", f"metadata.finalizers keep it: {HELD}")),
    "unbuildable": Said("InvalidSpec", ("No driver pod can be built from the spec: spec.driver.podTemplate.spec",)),
    "lost": Said("RelaunchDelayed", ("The driver pod was lost", "the next one follows later")),
}


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    metadata = {"name": HANDLER}
    world.kubectl.apply(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "handler": "nowhere"}
    )
    try:
        yield NAMESPACE
    finally:
        world.release_pods(NAMESPACE)
        world.delete_apps(NAMESPACE)
        world.kubectl.run("delete", "runtimeclass", HANDLER, "--ignore-not-found")
        world.kubectl.run("delete", "pods", "--all", "-n", NAMESPACE, timeout=200)


def driver_of(world: World, name: str, epoch: int = 1) -> dict[str, Any]:
    """Return the driver pod of a launch as soon as it is there and nobody deletes it."""

    def is_there() -> dict[str, Any]:
        pod = world.kubectl.get("pod", f"{name}-driver", NAMESPACE)
        assert pod is not None
        assert "deletionTimestamp" not in pod["metadata"]
        assert int(pod["metadata"]["labels"]["tidegate.dev/epoch"]) >= epoch
        return pod

    return wait_for(f"the driver pod of {name}", is_there, timeout=180, interval=0.5)


def leave_a_pod_behind(world: World, name: str) -> None:
    """Have an application go while finalizers keep its driver pod, as where somebody removes the application's own."""
    world.kubectl.apply(world.app(name, NAMESPACE, main="script:counting.py", spec=NOWHERE))
    driver_of(world, name)
    world.hold(f"{name}-driver", NAMESPACE)
    world.delete_by_force(name, NAMESPACE)
    world.kubectl.apply(world.app(name, NAMESPACE, main="script:counting.py", spec=NOWHERE))


def lose_pods(world: World, name: str, times: int) -> None:
    """Delete an application's driver pod as soon as there is one, again and again."""
    for _ in range(times):
        uid = driver_of(world, name)["metadata"]["uid"]
        precondition = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}-driver"
        world.kubectl.run("delete", "--raw", path, "-f", "-", stdin=json.dumps(precondition))


def test_what_is_in_the_way_of_a_launch_is_named_with_what_to_do(world: World, namespace: str) -> None:
    metadata = {"name": "tidegate-driver-access-taken", "namespace": namespace}
    world.kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    # There is no node for it: what it would run does not matter.
    world.kubectl.apply(world.somebodys_pod("pod-taken-driver", namespace, nodeSelector=NO_NODE))
    sandbox = {"podTemplate": {"spec": {"runtimeClassName": HANDLER}}, "podStartTimeoutSeconds": 10}
    for name in ("pod-taken", "access-taken", "lost"):
        world.kubectl.apply(world.app(name, namespace, main="script:counting.py", spec=NOWHERE))
    world.kubectl.apply(world.app("no-sandbox", namespace, main="script:counting.py", spec=sandbox))
    container = {"name": "driver", "volumeMounts": "none"}
    unbuildable = {"driver": {"podTemplate": {"spec": {"containers": [container]}}}}
    world.kubectl.apply(world.app("unbuildable", namespace, main="script:counting.py", spec=unbuildable))
    world.kubectl.create(world.app("too-long", namespace, main="script:counting.py", args=["x" * 4096] * 120))
    leave_a_pod_behind(world, "earlier")
    lose_pods(world, "lost", times=2)
    await_reasons(world, namespace, SAID, timeout=300)
    # Nobody's pod and nobody's account was touched.
    found = world.kubectl.get("pod", "pod-taken-driver", namespace)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    world.release_pods(NAMESPACE)
    world.kubectl.run("delete", "pod", "pod-taken-driver", "-n", namespace)
    world.kubectl.run("delete", "serviceaccount", "tidegate-driver-access-taken", "-n", namespace)
    for name in ("pod-taken", "access-taken", "earlier", "lost"):
        driver_of(world, name)
    assert world.operator_crashes() == []


@pytest.fixture
def registry(world: World, namespace: str) -> Iterator[None]:
    """On the node itself, a registry of images that needs longer for each of them than anybody waits."""
    if world.environment.cluster is None:
        own_cluster.leave_out("ports of a foreign cluster's nodes are not ours, nor is the time of their kubelets")
    world.make_namespace(REGISTRY)
    privileged = {"pod-security.kubernetes.io/enforce": "privileged"}
    world.kubectl.patch("namespace", REGISTRY, REGISTRY, {"metadata": {"labels": privileged}})
    command = ["python3", "/opt/scripts/slow_registry.py", str(PORT)]
    world.kubectl.apply(world.somebodys_pod("registry", REGISTRY, command, hostNetwork=True))

    def serves() -> bool:
        found = world.kubectl.get("pod", "registry", REGISTRY)
        assert found is not None
        assert found["status"].get("phase") == "Running", found["status"]
        return "serves" in world.kubectl.run("logs", "registry", "-n", REGISTRY)

    try:
        wait_for("the registry", serves, timeout=180)
        yield
    finally:
        # Without its registry the image has failed, and the kubelet leaves the pod that waits for it.
        world.kubectl.run("delete", "pod", "registry", "-n", REGISTRY, "--ignore-not-found", timeout=120)


def test_an_image_whose_pull_takes_long_is_named_and_is_no_failed_one(
    world: World, namespace: str, registry: None
) -> None:
    slow = {"application": {"image": SLOW_IMAGE}, "podStartTimeoutSeconds": 10}
    world.kubectl.apply(world.app("slow-image", namespace, main="script:counting.py", spec=slow))
    said = Said("ImagePulling", ("slow-image-driver", SLOW_IMAGE))
    await_reasons(world, namespace, {"slow-image": said}, timeout=300)
    assert world.operator_crashes() == []
