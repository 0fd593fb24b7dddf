"""The chart's admission policies on a real API server: what they refuse, in which words, and what they let through.

An API server with controllers and no node; requests are made as drivers, as the operator and as people.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from devcluster import tools
from devcluster.apiserver import ApiServer
from tests.integration.test_chart import ACCOUNT, CHART, NAMESPACE, namespace, without_owner
from tidegate.access.builders.access import build_access
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.records.platform import Platform
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import Kubectl, KubectlError
from tidegate_testing.observations import app_with
from tidegate_testing.values import body
from tidegate_testing.waiting import wait_for

TEAM, OTHER = "team-a", "team-b"
VALUES: dict[str, Any] = {
    "watchNamespaces": [TEAM],
    "admissionPolicies": {
        "access": {"enabled": True},
        "applications": {
            "serviceAccounts": ["streams", "etl"],
            "storagePrefixes": ["s3://streams/team-a/", "s3://shared/"],
            "endpoints": ["https://minio.example.com"],
            "imagePrefixes": ["registry.example.com/streams/"],
            "restrictPodTemplates": True,
        },
    },
}
GOOD: dict[str, Any] = {
    "application.image": "registry.example.com/streams/orders:1",
    "storage.uri": "s3://streams/team-a",
    "storage.endpoint": "https://minio.example.com",
    "serviceAccountName": "etl",
    "sparkConf": {
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path": "/scratch",
        "spark.kubernetes.executor.node.selector.disk": "ssd",
    },
    "driver.podTemplate": {
        "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
            "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf"}}],
            "containers": [
                {
                    "name": "driver",
                    "ports": [{"containerPort": 1234}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": 1234}},
                    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
                    "securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}},
                },
                {"name": "sidecar", "image": "registry.example.com/streams/proxy:2"},
            ],
        }
    },
}
"""An application that keeps to all of them."""


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(controllers=True) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """A cluster with the chart's objects, in which the policies are in force."""
    kubectl = Kubectl(server.kubectl, server.kubeconfig)
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"), server.kubeconfig)
    kubectl.apply(namespace(NAMESPACE), namespace(TEAM), namespace(OTHER))
    kubectl.apply(*(o for o in helm.render(CHART, "tidegate", NAMESPACE, VALUES) if o["kind"] != "Deployment"))
    wait_for("the policies", lambda: "allowed are" in answer(kubectl, an_app({"storage.endpoint": "http://x"})), 60)
    wait_for("the accounts", lambda: kubectl.get("serviceaccount", "default", TEAM), timeout=60)
    for name in ("orders", "billing"):
        kubectl.apply(*without_owner(*build_access(app_with(name=name, namespace=TEAM))))
    kubectl.create(a_pod("orders-driver", "orders", "driver"))
    kubectl.create(a_pod("billing-driver", "billing", "driver"))
    kubectl.create(a_pod("billing-e1-exec-1", "billing", "executor"))
    wait_for("the drivers' rights", lambda: kubectl.may("create", "pods", TEAM, driver_of("orders")), timeout=60)
    wait_for("the operator's rights", lambda: kubectl.may("create", "roles", TEAM, ACCOUNT), timeout=60)
    return kubectl


def driver_of(app: str) -> str:
    return f"system:serviceaccount:{TEAM}:tidegate-driver-{app}"


def an_app(change: dict[str, Any], name: str = "orders", where: str = TEAM) -> dict[str, Any]:
    made = body(GOOD | change)
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": {"name": name, "namespace": where},
        "spec": made["spec"],
    }


def a_snapshot(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamSnapshot",
        "metadata": {"name": "nightly", "namespace": TEAM},
        "spec": spec,
    }


def a_pod(name: str, app: str, role: str, **spec: Any) -> dict[str, Any]:
    labels = {"tidegate.dev/app": app, "tidegate.dev/role": role, "app.kubernetes.io/managed-by": "tidegate"}
    container = {"name": "main", "image": "example/spark:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, "labels": labels},
        "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
    }


def answer(kubectl: Kubectl, manifest: dict[str, Any], user: str = "") -> str:
    """Have somebody create something, for a try; returns why it is refused, "created" if it is not."""
    try:
        kubectl.create(manifest, dry_run=True, user=user)
    except KubectlError as refused:
        return str(refused)
    return "created"


# --- what applications may name ---


def in_templates(place: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {place: {"spec": spec}}


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "executor", **fields}]}


VOLUMES = "spark.kubernetes.executor.volumes"
KEPT: tuple[Any, ...] = ({}, None, {"drop": None}, {"drop": []}, {"drop": ["NET_RAW"]}, {"add": None})
"""Of a container's security context: capabilities of which some stay."""
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "account": ({"serviceAccountName": "admin"}, "spec.serviceAccountName: name one of streams, etl, or leave it out"),
    "storage": ({"storage.uri": "s3://streams/team-ab"}, "spec.storage.uri: choose a place below s3://streams/team-a/"),
    "export": (
        {"startFrom": {"exportedState": {"uri": "s3://other/apps/a/b/exports/x/manifest.json"}}},
        "spec.startFrom.exportedState.uri: choose an export below",
    ),
    "endpoint": ({"storage.endpoint": "http://x"}, "spec.storage.endpoint: allowed are https://minio.example.com"),
    "image": ({"application.image": "evil/spark:1"}, "spec.application.image: name an image that starts with"),
    "a sidecar's image": (
        in_templates("podTemplate", {"containers": [{"name": "sidecar", "image": "evil/proxy"}]}),
        "spec.podTemplate.spec: containers[].image",
    ),
    "an init container's image": (
        in_templates("driver.podTemplate", {"initContainers": [{"name": "init", "image": "evil/proxy"}]}),
        "spec.driver.podTemplate.spec: containers[].image, initContainers[].image",
    ),
    "host path": (
        in_templates("executor.podTemplate", {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}),
        "spec.executor.podTemplate.spec: volumes: use configMap",
    ),
    "token": (
        in_templates(
            "podTemplate",
            {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
        ),
        "spec.podTemplate.spec: volumes[].projected.sources[].serviceAccountToken: leave them out",
    ),
    "host network": (in_templates("driver.podTemplate", {"hostNetwork": True}), "driver.podTemplate.spec: hostNetwork"),
    "host processes": (in_templates("podTemplate", {"hostPID": True}), "spec.podTemplate.spec: hostNetwork, hostPID"),
    "node": (in_templates("podTemplate", {"nodeName": "control-plane"}), "nodeName: leave them out"),
    "template's account": (in_templates("podTemplate", {"serviceAccount": "admin"}), "spec.podTemplate.spec: service"),
    "executors' token": (
        in_templates("executor.podTemplate", {"automountServiceAccountToken": True}),
        "automountServiceAccountToken: name an account in spec.serviceAccountName, if at all",
    ),
    "root": (in_templates("podTemplate", {"securityContext": {"runAsUser": 0}}), "securityContext.runAsUser: 0"),
    "privileged": (
        in_templates("executor.podTemplate", container(securityContext={"privileged": True})),
        "spec.executor.podTemplate.spec: securityContext of a container: privileged",
    ),
    "capability": (
        in_templates("executor.podTemplate", container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})),
        "capabilities.add",
    ),
    "AppArmor": (
        in_templates("podTemplate", {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
        "spec.podTemplate.spec: appArmorProfile.type: Unconfined",
    ),
    "a container's AppArmor": (
        in_templates("executor.podTemplate", container(securityContext={"appArmorProfile": {"type": "Unconfined"}})),
        "spec.executor.podTemplate.spec: appArmorProfile.type: Unconfined",
    ),
    "AppArmor by its annotation": (
        {"driver.podTemplate": {"metadata": {"annotations": {f"{APP_ARMOR}/driver": "unconfined"}}}},
        "spec.driver.podTemplate.metadata: annotations of AppArmor",
    ),
    **{
        f"setting {key}": ({"sparkConf": {key: "x"}}, text)
        for key, text in {
            f"{VOLUMES}.hostPath.root.options.path": f"spec.sparkConf: {VOLUMES}: use emptyDir",
            f"{VOLUMES}.nfs.far.mount.path": f"spec.sparkConf: {VOLUMES}: use emptyDir",
            "spark.kubernetes.executor.pod.featureSteps": "spec.sparkConf: pod.featureSteps",
            "spark.kubernetes.executor.pod.excludedFeatureSteps": "spec.sparkConf: pod.featureSteps",
            "spark.kubernetes.allocation.pods.allocator": "spec.sparkConf: pod.featureSteps",
            "spark.kubernetes.authenticate.oauthTokenFile": "spec.sparkConf: pod.featureSteps",
            f"spark.kubernetes.executor.annotation.{APP_ARMOR}/executor": "spec.sparkConf: annotations of AppArmor",
        }.items()
    },
    "a volume's image": (
        in_templates("podTemplate", {"volumes": [{"name": "v", "image": {"reference": "evil/files:1"}}]}),
        "spec.podTemplate.spec: volumes[].image.reference: name an image that starts with",
    ),
    "SELinux": (
        in_templates("podTemplate", {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}),
        "spec.podTemplate.spec: seLinuxOptions: leave them out",
    ),
    "a container's SELinux": (
        in_templates("executor.podTemplate", container(securityContext={"seLinuxOptions": {"level": "s0"}})),
        "spec.executor.podTemplate.spec: seLinuxOptions: leave them out",
    ),
    **{
        f"capabilities {capabilities}": (
            in_templates("executor.podTemplate", container(securityContext={"capabilities": capabilities})),
            "spec.executor.podTemplate.spec: capabilities of a container that do not drop ALL",
        )
        for capabilities in KEPT
    },
    **{
        f"host of {name}'s {kind}": (
            in_templates("driver.podTemplate", container(**{name: {kind: {"host": "169.254.169.254", "port": 80}}})),
            "spec.driver.podTemplate.spec: httpGet.host and tcpSocket.host of probes",
        )
        for name in ("livenessProbe", "readinessProbe", "startupProbe")
        for kind in ("httpGet", "tcpSocket")
    },
    **{
        f"host of {name}": (
            in_templates("driver.podTemplate", container(lifecycle={name: {"httpGet": {"host": "x", "port": 80}}})),
            "spec.driver.podTemplate.spec: httpGet.host and tcpSocket.host of probes",
        )
        for name in ("postStart", "preStop")
    },
    "host port": (
        in_templates("executor.podTemplate", container(ports=[{"containerPort": 1, "hostPort": 1}])),
        "ports[].hostPort of a container",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_application_that_names_what_is_not_allowed_is_refused_with_field_and_remedy(
    kubectl: Kubectl, what: str
) -> None:
    change, message = REFUSED[what]
    said = answer(kubectl, an_app(change))
    assert message in said
    assert "of Tidegate's chart" in said


def test_an_application_that_keeps_to_all_is_accepted_and_where_no_operator_serves_so_is_every_one(
    kubectl: Kubectl,
) -> None:
    assert answer(kubectl, an_app({})) == "created"
    assert answer(kubectl, an_app({"application.image": "evil/spark:1"}, where=OTHER)) == "created"


ITS_URI = "s3://shared/apps/snapshots/x/manifest.json"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {
                "uri": "s3://shared/apps/snapshots/x/manifest.json",
                "storage": {"endpoint": "https://minio.example.com"},
            },
            "created",
        ),
        ({"appRef": {"name": "orders"}}, "created"),
        ({"uri": "s3://other/apps/a/b/snapshots/x/manifest.json"}, "spec.uri: choose a snapshot below"),
        # By the CRD, wherever an operator serves.
        ({"uri": "s3://shared/../other/snapshots/x/manifest.json"}, "uri must not contain the path segments"),
        ({"uri": ITS_URI}, "spec.storage.endpoint: allowed are"),
        (
            {"uri": ITS_URI, "serviceAccountName": "admin"},
            "spec.serviceAccountName: name",
        ),
    ],
)
def test_what_a_snapshot_names_is_judged_too(kubectl: Kubectl, spec: dict[str, Any], message: str) -> None:
    assert message in answer(kubectl, a_snapshot(**spec))


def test_an_application_from_before_is_judged_at_its_next_edit_and_not_when_it_is_released(kubectl: Kubectl) -> None:
    """Made where nobody judges; then the namespace is one of those with policies."""
    binding = "tidegate-streamingapps"
    kubectl.patch("validatingadmissionpolicybinding", binding, "", {"spec": {"validationActions": ["Audit"]}})
    early = an_app({"serviceAccountName": "admin"}, name="early")
    wait_for("the policy to be off", lambda: answer(kubectl, early) == "created", timeout=60)
    kubectl.create(early)
    kubectl.patch("validatingadmissionpolicybinding", binding, "", {"spec": {"validationActions": ["Deny"]}})
    wait_for("the policy to be on", lambda: "name one of" in answer(kubectl, {**early, "metadata": OTHER_NAME}), 60)

    kubectl.patch("sapp", "early", TEAM, {"metadata": {"finalizers": ["tidegate.dev/finalizer"]}})
    kubectl.patch_status("sapp", "early", TEAM, {"phase": "Pending"})
    with pytest.raises(KubectlError, match=r"spec\.serviceAccountName: name one of streams, etl"):
        kubectl.patch("sapp", "early", TEAM, {"spec": {"suspend": True}})
    kubectl.patch("sapp", "early", TEAM, {"spec": {"suspend": True, "serviceAccountName": "etl"}})
    kubectl.delete("sapp", "early", TEAM)
    kubectl.patch("sapp", "early", TEAM, {"metadata": {"finalizers": None}})
    assert kubectl.get("sapp", "early", TEAM) is None


OTHER_NAME = {"name": "late", "namespace": TEAM}


# --- what drivers may touch ---


def executor(app: str = "orders", *, owner: str = "", **spec: Any) -> dict[str, Any]:
    """Return an executor as Spark makes it of the operator's template."""
    made = app_with(name=app, namespace=TEAM)
    settings = build_driver_config(made, 1, 1, Platform("example/tidegate-operator:1")).executor
    pod: dict[str, Any] = json.loads(json.dumps(settings.template))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner or f"{app}-driver", "uid": "u-9", "controller": True}
    pod["metadata"] |= {"name": f"{settings.pod_name_prefix}-exec-1", "namespace": TEAM, "ownerReferences": [reference]}
    pod["spec"] |= {"restartPolicy": "Never", **spec}
    pod["spec"]["containers"][0] |= {"image": settings.image, "args": ["executor"]}
    return pod


def test_a_driver_creates_its_own_executors(kubectl: Kubectl) -> None:
    assert answer(kubectl, executor(), driver_of("orders")) == "created"


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (executor("billing"), "metadata.labels: the driver of orders may touch its own executors alone"),
        (executor(owner="billing-driver"), "metadata.ownerReferences: an executor of orders has one owner"),
        (
            {**executor(), "metadata": {**executor()["metadata"], "name": "billing-driver-2"}},
            "metadata.name: an executor of orders is called orders-e<epoch>-exec-<number>",
        ),
        (executor(serviceAccountName="default"), "spec.serviceAccountName: an executor of orders runs as tidegate-"),
        (executor(automountServiceAccountToken=True), "spec.automountServiceAccountToken: an executor of orders gets"),
        (a_pod("anything", "orders", "driver"), "metadata.labels: the driver of orders"),
    ],
    ids=["another's", "another owner", "another name", "another account", "a token", "no executor"],
)
def test_a_driver_creates_no_other_pods(kubectl: Kubectl, pod: dict[str, Any], message: str) -> None:
    assert message in answer(kubectl, pod, driver_of("orders"))


def delete(kubectl: Kubectl, user: str, what: str) -> str:
    """Have somebody delete pods; returns why that is refused, "deleted" if it is not."""
    try:
        kubectl.run("delete", "--raw", f"/api/v1/namespaces/{TEAM}/{what}", f"--as={user}")
    except KubectlError as refused:
        return str(refused)
    return "deleted"


@pytest.mark.parametrize("pod", ["billing-driver", "billing-e1-exec-1", "orders-driver"])
def test_a_driver_deletes_no_other_pods_by_name_nor_by_label(kubectl: Kubectl, pod: str) -> None:
    assert "may touch its own executors alone" in delete(kubectl, driver_of("orders"), f"pods/{pod}")
    app = pod.partition("-")[0]
    others = "pods?labelSelector=" + quote(f"tidegate.dev/app={app}")
    assert "may touch its own executors alone" in delete(kubectl, driver_of("orders"), others)
    assert kubectl.get("pod", pod, TEAM) is not None


@pytest.mark.parametrize("how", ["pods/own", "pods?labelSelector=" + quote("spark-role=executor,spark-app=own")])
def test_a_driver_deletes_its_executors_by_name_and_by_label(kubectl: Kubectl, how: str) -> None:
    pod = a_pod("own", "orders", "executor")
    pod["metadata"]["labels"] |= {"spark-role": "executor", "spark-app": "own"}
    kubectl.create(pod)
    assert delete(kubectl, driver_of("orders"), how) == "deleted"
    wait_for("the executor to be gone", lambda: kubectl.get("pod", "own", TEAM) is None, timeout=60)


# --- what the operator may touch ---


def test_the_operator_makes_the_access_and_the_pods_of_an_application(kubectl: Kubectl) -> None:
    new = app_with(name="new", namespace=TEAM)
    manifests = (*build_access(new), build_driver_pod(new, 1, 1, Platform("example/tidegate-operator:1")))
    for manifest in without_owner(*manifests[:3]):
        kubectl.create(manifest, user=ACCOUNT)
    assert answer(kubectl, manifests[3], ACCOUNT) == "created"


def renamed(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}


def test_the_operator_makes_nothing_else(kubectl: Kubectl) -> None:
    account, role, binding = without_owner(*build_access(app_with(name="orders", namespace=TEAM)))
    for manifest in (account, role, binding):
        assert "makes ServiceAccounts, Roles and RoleBindings for drivers alone" in answer(
            kubectl, renamed(manifest, name="admin"), ACCOUNT
        )
        assert "metadata.labels" in answer(kubectl, renamed(manifest, labels={}), ACCOUNT)
    bob = {**binding, "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]}
    elsewhere = {**binding, "subjects": [{**binding["subjects"][0], "namespace": OTHER}]}
    for other in (bob, elsewhere):
        assert "binds the ServiceAccount of a driver to the Role of its own name" in answer(kubectl, other, ACCOUNT)


def test_the_operator_deletes_no_pod_of_people(kubectl: Kubectl) -> None:
    kubectl.create(renamed(a_pod("peoples", "", ""), labels={}))
    assert "objects with the label app.kubernetes.io/managed-by=tidegate alone" in delete(
        kubectl, ACCOUNT, "pods/peoples"
    )
    assert kubectl.get("pod", "peoples", TEAM) is not None


def patched(kubectl: Kubectl, pod: str, change: dict[str, Any]) -> str:
    """Have the operator patch a pod; returns why that is refused, "patched" if it is not."""
    try:
        kubectl.run("patch", "pod", pod, "-n", TEAM, "--type=merge", "-p", json.dumps(change), f"--as={ACCOUNT}")
    except KubectlError as refused:
        return str(refused)
    return "patched"


def test_the_operator_restores_labels_of_tidegates_pods_and_changes_nothing_else(kubectl: Kubectl) -> None:
    app, owner = app_with(name="unlabelled", namespace=TEAM), kubectl.create(an_app({}, name="unlabelled"))
    made = build_driver_pod(app, 1, 1, Platform("example/tidegate-operator:1"))
    # Without its owner, the garbage collector would take it.
    references = [{**made["metadata"]["ownerReferences"][0], "uid": owner["metadata"]["uid"]}]
    driver = renamed(made, labels={}, ownerReferences=references)
    for manifest in (without_owner(*build_access(app))[0], driver):
        kubectl.create(manifest)
    kubectl.create(renamed(a_pod("peoples-own", "", ""), labels={}))
    labels = {"app.kubernetes.io/managed-by": "tidegate", "tidegate.dev/app": "unlabelled"}
    name = driver["metadata"]["name"]
    assert patched(kubectl, name, {"metadata": {"labels": labels}}) == "patched"
    stored = kubectl.get("pod", name, TEAM)
    assert stored is not None
    containers = [{**each, "image": "another:1"} for each in stored["spec"]["containers"]]
    for change in (
        {"metadata": {"annotations": {"of": "somebody"}}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"finalizers": ["example.com/kept"]}},
        {"spec": {"activeDeadlineSeconds": 1}},
        {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    ):
        assert "changes nothing of a pod but its labels" in patched(kubectl, name, change)
    assert "creates, changes and deletes objects with the label" in patched(
        kubectl, "peoples-own", {"metadata": {"labels": labels}}
    )
