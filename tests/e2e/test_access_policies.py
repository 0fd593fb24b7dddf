"""The chart's admission policies on a cluster: what a tenant and a driver may not, and that what is allowed runs.

What each policy refuses, in which words, tests/integration/test_admission_policies.py has on an API server without a
node. Here Spark itself makes the executors, and the operator the pods, under the same policies.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import KubectlError
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/integration/test_admission_policies.py has the policies without pods

ROOT = Path(__file__).parents[2]
NAMESPACE, NAME = f"{PREFIX}-policies", "allowed"
GENEROUS = 600.0
DRIVER = f"system:serviceaccount:{NAMESPACE}:tidegate-driver-{NAME}"


def values(world: World) -> dict[str, Any]:
    """Return the chart's values: of this namespace alone, so that no other test is judged by them."""
    repository = world.environment.image_spark.rpartition(":")[0]
    return {
        "watchNamespaces": [NAMESPACE],
        "admissionPolicies": {
            "access": {"enabled": True},
            "applications": {
                "serviceAccounts": ["streams"],
                "storagePrefixes": [f"s3://{world.bucket}/apps/"],
                "endpoints": [world.environment.s3_endpoint_pods],
                "imagePrefixes": [f"{repository}:"],
                "restrictPodTemplates": True,
            },
        },
    }


@pytest.fixture(scope="module")
def policed(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The policies of the release that runs, in force in one namespace; the operator itself goes on as it is."""
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("policies"), world.environment.kubeconfig)
    # Of the same release: the operator that the policies know is the one that is installed.
    rendered = helm.render(ROOT / "charts/tidegate", PREFIX, PREFIX, values(world))
    policies = [each for each in rendered if each["kind"].startswith("ValidatingAdmissionPolicy")]
    assert {each["kind"] for each in policies} == {
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    world.make_namespace(NAMESPACE)
    try:
        world.kubectl.apply(*policies)
        elsewhere = application(world, storage={**world.storage, "endpoint": "http://elsewhere:9000"})
        wait_for("the policy to take effect", lambda: "allowed are" in answer(world, elsewhere), timeout=120)
        yield world
        world.delete_apps(NAMESPACE)
    finally:
        for each in policies:
            world.kubectl.run("delete", each["kind"].lower(), each["metadata"]["name"], "--ignore-not-found")


def application(world: World, **spec: Any) -> dict[str, Any]:
    """Return an application that keeps to the policies, but for what ``spec`` says; groups are merged."""
    return world.app(NAME, NAMESPACE, main="script:counting.py", spec=spec)


def answer(world: World, manifest: dict[str, Any], user: str = "") -> str:
    """Have somebody create something, for a try; return why it is refused, "created" if it is not."""
    try:
        world.kubectl.create(manifest, dry_run=True, user=user)
    except KubectlError as refused:
        return str(refused)
    return "created"


HOST: dict[str, Any] = {"hostNetwork": True}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "account": ({"serviceAccountName": "default"}, "spec.serviceAccountName: name one of streams, or leave it out"),
    "storage": ({"storage": {"uri": "s3://somebody-elses/apps"}}, "spec.storage.uri: choose a place below"),
    "endpoint": ({"storage": {"endpoint": "http://elsewhere:9000"}}, "spec.storage.endpoint: allowed are"),
    "image": ({"application": {"image": "evil/spark:1"}}, "spec.application.image: name an image that starts with"),
    "host network": ({"executor": {"podTemplate": {"spec": HOST}}}, "spec.executor.podTemplate.spec: hostNetwork"),
    "host path": (
        {"podTemplate": {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}},
        "spec.podTemplate.spec: volumes: use configMap",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_tenant_may_not_name_what_is_not_allowed_and_reads_which_field_to_change(policed: World, what: str) -> None:
    spec, message = REFUSED[what]
    said = answer(policed, application(policed, **spec))
    assert message in said
    assert "of Tidegate's chart" in said


def test_an_allowed_application_has_its_first_batch_and_its_driver_touches_no_other_pods(policed: World) -> None:
    policed.kubectl.apply(application(policed))

    def has_a_batch() -> bool:
        status = policed.status(NAME, NAMESPACE)
        assert (status.get("phase"), status.get("batch", -1) >= 0) == ("Running", True), status
        return True

    wait_for("the first batch", has_a_batch, GENEROUS, 1)
    pods = policed.kubectl.list("pods", NAMESPACE)
    (executor,) = [pod for pod in pods if pod["metadata"]["labels"].get("tidegate.dev/role") == "executor"][:1]
    assert executor["spec"]["serviceAccountName"] == f"tidegate-driver-{NAME}"
    with pytest.raises(KubectlError, match="may touch its own executors alone"):
        policed.kubectl.run(
            *("delete", "pod", f"{NAME}-driver", "-n", NAMESPACE, "--dry-run=server", "--as", DRIVER), timeout=60
        )
    # As the namespace's Pod Security level wants it, which would refuse it before the policy is asked.
    security = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": policed.environment.image_spark, "securityContext": security}
    stolen = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stolen", "namespace": NAMESPACE},
        "spec": {"serviceAccountName": "default", "containers": [container]},
    }
    assert "may touch its own executors alone" in answer(policed, stolen, DRIVER)
    assert policed.operator_crashes() == []
