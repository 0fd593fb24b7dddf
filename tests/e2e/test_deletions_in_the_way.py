"""What an application says where a deletion does not come to its end, because an admission policy refuses a part of it.

Without the policies both would last a moment: here they last until the policy is gone.
"""

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_testing.kubectl import KubectlError
from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/unit/operator has each rule; here Kubernetes itself is in the way

NAMESPACE, GOING, POLICY = f"{PREFIX}-deletions", f"{PREFIX}-going", f"{PREFIX}-no-deletions"
NOWHERE = {"podTemplate": {"spec": {"nodeSelector": {"example.com/disk": "none"}}}}


@pytest.fixture
def policies(world: World) -> Iterator[None]:
    """Remove what the tests refuse, and the applications then."""
    try:
        yield
    finally:
        allow_deletions(world)
        world.delete_apps(NAMESPACE)


def refuse_deletions(world: World, namespace: str, group: str, resource: str, condition: str = "true") -> None:
    """Have the API server delete none of these; returns once it does so."""
    policy: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [
                    {"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [resource]}
                ],
            },
            "matchConditions": [{"name": "these", "expression": condition}],
            "validations": [{"expression": "false", "message": "nothing is deleted here"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }
    world.kubectl.apply(policy)
    world.kubectl.apply(binding)


def allow_deletions(world: World) -> None:
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        world.kubectl.run("delete", kind, POLICY, "--ignore-not-found")


def await_refusal(world: World, kind: str, name: str, namespace: str) -> None:
    """Wait until the API server goes by the policy, which takes it some seconds."""

    def is_refused() -> bool:
        try:
            world.kubectl.run("delete", kind, name, "-n", namespace, "--dry-run=server")
        except KubectlError as error:
            return "nothing is deleted here" in str(error)
        return False

    wait_for("the policy to be in force", is_refused, timeout=120)


def driver_uid(world: World, name: str, namespace: str) -> str:
    pod = world.kubectl.get("pod", f"{name}-driver", namespace)
    assert pod is not None
    return str(pod["metadata"]["uid"])


def test_the_driver_of_an_earlier_application_of_the_name_is_waited_for_and_replaced(
    world: World, policies: None
) -> None:
    world.make_namespace(NAMESPACE)
    app = world.app("again", NAMESPACE, main="script:counting.py", spec=NOWHERE)
    world.kubectl.apply(app)
    earlier = wait_for("the driver pod", lambda: driver_uid(world, "again", NAMESPACE), timeout=180)
    refuse_deletions(world, NAMESPACE, "", "pods", "request.name == 'again-driver'")
    await_refusal(world, "pod", "again-driver", NAMESPACE)
    world.delete_by_force("again", NAMESPACE)
    world.kubectl.apply(app)
    said = Said("EarlierDriver", ("again-driver",))
    await_reasons(world, NAMESPACE, {"again": said}, timeout=300)
    assert driver_uid(world, "again", NAMESPACE) == earlier
    allow_deletions(world)

    def is_replaced() -> bool:
        assert driver_uid(world, "again", NAMESPACE) != earlier
        return True

    wait_for("a driver pod of its own", is_replaced, timeout=600)
    assert world.operator_crashes() == []


def test_an_application_of_a_namespace_that_is_being_deleted_says_why_its_driver_does_not_come_back(
    world: World, policies: None
) -> None:
    world.make_namespace(GOING)
    world.kubectl.apply(world.app("kept", GOING, main="script:counting.py", spec=NOWHERE))
    # Nothing can purge its storage any more, and it goes all the same.
    emptied = {**NOWHERE, "storage": {"deletionPolicy": "Delete"}}
    world.kubectl.apply(world.app("emptied", GOING, main="script:counting.py", spec=emptied))
    for name in ("kept", "emptied"):
        wait_for(f"the driver pod of {name}", functools.partial(driver_uid, world, name, GOING), timeout=180)
    refuse_deletions(world, GOING, "tidegate.dev", "streamingapps")
    await_refusal(world, "sapp", "kept", GOING)
    world.kubectl.run("delete", "namespace", GOING, "--wait=false")
    said = Said("NamespaceTerminating", (GOING, "is being deleted"))
    await_reasons(world, GOING, {"kept": said, "emptied": said}, timeout=300)
    allow_deletions(world)
    wait_for("the namespace to be gone", lambda: world.kubectl.get("namespace", GOING, GOING) is None, timeout=600)
    assert world.operator_crashes() == []
