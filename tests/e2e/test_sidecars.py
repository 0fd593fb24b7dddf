"""A service mesh puts a container into each pod, which runs on when the pod's own one has ended."""

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

pytestmark = pytest.mark.long  # tests/unit/operator/pods/test_pods.py has what becomes of such a pod's phase

NAMESPACE = "tidegate-e2e-mesh"
POLICY = "tidegate-e2e-mesh"
PROXY = "proxy"


def mesh(image: str) -> list[dict[str, Any]]:
    """Return what has the API server put the proxy into each pod of the namespace, after its own containers."""
    proxy = (
        '[JSONPatch{op: "add", path: "/spec/containers/-", value: '
        f'Object.spec.containers{{name: "{PROXY}", image: "{image}", '
        'imagePullPolicy: "IfNotPresent", '
        # As the namespace's Pod Security level wants it.
        "securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, "
        "runAsNonRoot: true, runAsUser: 65532, "
        'capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}, '
        'seccompProfile: Object.spec.containers.securityContext.seccompProfile{type: "RuntimeDefault"}}, '
        # A shell that is a container's first process dies of no signal that it does not expect.
        'command: ["sh", "-c", "trap \'exit 0\' TERM; sleep 3600 & wait"]}}]'
    )
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    policy = {
        "matchConstraints": {"resourceRules": [pods], "namespaceSelector": here},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": proxy}}],
    }
    kinds = {"MutatingAdmissionPolicy": policy, "MutatingAdmissionPolicyBinding": {"policyName": POLICY}}
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": kind, "metadata": {"name": POLICY}, "spec": spec}
        for kind, spec in kinds.items()
    ]


@pytest.fixture
def meshed(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    objects = mesh(world.environment.image_stock)
    for each in objects:
        world.kubectl.apply(each)
    wait_for("the policy to take effect", lambda: puts_proxies(world), timeout=120)
    yield NAMESPACE
    world.delete_apps(NAMESPACE)
    for each in objects:
        world.kubectl.run("delete", each["kind"].lower(), POLICY, "--ignore-not-found")


def puts_proxies(world: World) -> bool:
    """Return whether a pod that is made now gets the proxy: the API server reads policies after a while."""
    security = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": world.environment.image_stock, "securityContext": security}
    metadata = {"name": "probe", "namespace": NAMESPACE}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    return PROXY in names(world.kubectl.create(probe, dry_run=True))


def names(pod: dict[str, Any]) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def status_of(world: World, name: str) -> dict[str, Any]:
    status: dict[str, Any] = world.get_app(name, NAMESPACE).get("status", {})
    return status


def test_every_kind_of_pod_ends_with_its_own_container(world: World, meshed: str) -> None:
    storage = {"storage": {"deletionPolicy": "Delete"}}
    world.kubectl.apply(world.app("counting", meshed, main="key:counting.py", spec=storage))
    target = f"s3a://{world.bucket}/apps/{meshed}/finite/output"
    world.kubectl.apply(world.app("finite", meshed, main="script:finite.py", args=[target], spec=storage))

    def both_as_wanted() -> bool:
        counting, finite = status_of(world, "counting"), status_of(world, "finite")
        assert finite.get("phase") == "Completed", finite
        assert counting.get("phase") == "Running", counting
        assert counting.get("batch", -1) >= 0, counting
        return True

    wait_for("one to commit batches, and the other one to complete", both_as_wanted, timeout=600, interval=2)
    pods = world.kubectl.list("pods", meshed, "tidegate.dev/app=counting")
    assert len(pods) == 2, [names(pod) for pod in pods]
    assert [names(pod) for pod in pods if PROXY not in names(pod)] == []

    world.kubectl.patch("sapp", "counting", meshed, {"spec": {"suspend": True}})
    wait_for("the suspension", lambda: status_of(world, "counting").get("phase") == "Suspended", timeout=300)
    # A pod takes it: there is no driver to ask.
    snapshot = {"appRef": {"name": "counting"}, "deletionPolicy": "Delete"}
    metadata = {"name": "at-rest", "namespace": meshed}
    made = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": snapshot}
    world.kubectl.apply(made)
    ready = ("wait", "snap/at-rest", "-n", meshed, "--for=condition=Ready", "--timeout=300s")
    world.kubectl.run(*ready, timeout=310)

    world.kubectl.delete("snap", "at-rest", meshed)
    for name in ("counting", "finite"):
        world.kubectl.delete("sapp", name, meshed)
    wait_for("all of it to be gone", lambda: not world.kubectl.list("snap,sapp", meshed), timeout=600)
    assert [key for name in ("counting", "finite") for key in world.keys(name, meshed)] == []
