"""The chart's rules against the real operator: it runs as the chart's ServiceAccount, and the audit log tells.

An API server with the controllers and no node; the test says of each pod that it runs, and the drivers run nothing.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from devcluster.apiclient import ApiClient, ApiRefusedError
from devcluster.apiserver import ApiServer
from devcluster.control import free_port
from tidegate.access.builders.access import DRIVER_RULES, build_access
from tidegate.api.foreign_text import missing_for_admission
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import connect
from tidegate.kube.failures import Forbidden
from tidegate.kube.paths import collection_of
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import to_json
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotReports, SnapshotState
from tidegate_testing import audit_log
from tidegate_testing.apps import streaming_app
from tidegate_testing.helm import Helm
from tidegate_testing.kubectl import Kubectl
from tidegate_testing.observations import app_with
from tidegate_testing.waiting import wait_for

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "tidegate"
NAMESPACE, TEAM, APP = "tidegate-system", "team", "counter"
STUCK = "stuck"
"""An application whose driver nobody starts."""
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:tidegate"

LEFT, MADE = "pods,secrets,roles,rolebindings", "app.kubernetes.io/managed-by=tidegate"
"""What the operator makes, and by which label."""

Grant = tuple[str, str, str]

FORBIDDEN = 403
"""What RBAC and admission policies answer."""

# Read only when a write meets a conflict, which a calm cluster does not offer.
ONLY_AFTER_A_CONFLICT: set[Grant] = {
    ("tidegate.dev", "streamingapps", "get"),
    ("tidegate.dev", "streamsnapshots", "get"),
    ("tidegate.dev", "controlmessages", "get"),
}
# Because of what a driver tells, and these run nothing: a broker's orders, and executors that do not come.
ONLY_OF_DRIVERS_REPORTS: set[Grant] = {("tidegate.dev", "controlmessages", "create"), ("", "resourcequotas", "list")}
# Read when a LimitRange has refused a pod (test_operator_lifecycle.py), and there is none here.
ONLY_AFTER_A_LIMIT_RANGE: set[Grant] = {("", "limitranges", "list")}
SNAPSHOT: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "StreamSnapshot",
    "metadata": {"name": "nightly", "namespace": TEAM},
    "spec": {"appRef": {"name": APP}},
}
MESSAGE: dict[str, Any] = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "ControlMessage",
    "metadata": {"name": "hurry", "namespace": TEAM},
    "spec": {"appRef": {"name": APP}, "type": "ping", "expirationSeconds": 1},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(controllers=True, audit_log=True) as running, pods_run(running):
        yield running


@pytest.fixture(scope="module")
def kubectl(server: ApiServer) -> Kubectl:
    return Kubectl(server.kubectl, server.kubeconfig)


@pytest.fixture(scope="module")
def rendered(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"), server.kubeconfig)
    # With the policies that say more than RBAC can: the operator has to do its work under them.
    return helm.render(CHART, "tidegate", NAMESPACE, {"admissionPolicies": {"access": {"enabled": True}}})


@pytest.fixture
def account_kubeconfig(server: ApiServer, kubectl: Kubectl, rendered: list[dict[str, Any]], tmp_path: Path) -> Path:
    """A kubeconfig of the operator's ServiceAccount, which has what the chart gives it."""
    names = (NAMESPACE, TEAM)
    kubectl.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names))
    kubectl.apply(*(o for o in rendered if o["kind"] != "Deployment"))
    return kubeconfig_of("tidegate", server, kubectl, tmp_path)


def kubeconfig_of(account: str, server: ApiServer, kubectl: Kubectl, tmp_path: Path) -> Path:
    content = json.loads(server.kubeconfig.read_text())
    token = kubectl.run("create", "token", account, "-n", NAMESPACE).strip()
    content["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


@contextmanager
def pods_run(server: ApiServer) -> Iterator[None]:
    """Say in a kubelet's place of each new pod that it runs and is ready."""
    client, over = ApiClient(server.kubeconfig), threading.Event()
    pods = f"/api/v1/namespaces/{TEAM}/pods"

    def say() -> None:
        while not over.wait(0.2):
            pending = client.get(f"{pods}?fieldSelector=status.phase%3DPending")["items"]
            for pod in (pod for pod in pending if pod["metadata"]["name"] != f"{STUCK}-driver"):
                # Refused if the pod has changed since, or is gone.
                with suppress(ApiRefusedError):
                    client.merge(f"{pods}/{pod['metadata']['name']}/status", runs(pod))

    kubelet = threading.Thread(target=say, name="kubelet")
    kubelet.start()
    try:
        yield
    finally:
        over.set()
        kubelet.join()


def runs(pod: dict[str, Any]) -> dict[str, Any]:
    since = pod["metadata"]["creationTimestamp"]
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }
        for each in pod["spec"]["containers"]
    ]
    conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
    address = "127.64.0.1"  # Where nobody listens: whoever calls the driver is refused at once.
    status = {"phase": "Running", "startTime": since, "conditions": conditions, "containerStatuses": containers}
    status |= {"podIP": address, "podIPs": [{"ip": address}]}
    return {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "status": status}


@contextmanager
def operator(kubeconfig: Path, log: Path, **more: str) -> Iterator[None]:
    """Run the operator as a process; at the end it must stop by itself when asked to."""
    settings = {
        "KUBECONFIG": str(kubeconfig),
        "TIDEGATE_OPERATOR_IMAGE": "example/tidegate-operator:1",
        "TIDEGATE_METRICS_PORT": str(free_port()),
        "POD_NAMESPACE": NAMESPACE,
        "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT / 'spark_app'}",
        **more,
    }
    with log.open("a") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidegate.main"], env=os.environ | settings, stdout=output, stderr=output
        )
        try:
            yield
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
            process.wait(timeout=180)


def reason_of(kubectl: Kubectl, app: str) -> str:
    return str(kubectl.condition(kubectl.get("sapp", app, TEAM) or {}, "Ready").get("reason", ""))


def event_about(pod: dict[str, Any]) -> dict[str, Any]:
    """Return what a kubelet writes of a pod whose volume it cannot mount."""
    about = {key: pod["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod['metadata']['name']}.mount", "namespace": TEAM},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "rules" : configmap "rules" not found',
        "firstTimestamp": pod["metadata"]["creationTimestamp"],
        "lastTimestamp": pod["metadata"]["creationTimestamp"],
        "source": {"component": "kubelet"},
        "count": 1,
    }


def name_why_a_pod_does_not_start(kubectl: Kubectl) -> None:
    """Have an application whose driver nobody starts, until it says what its events say."""
    spec = {"podStartTimeoutSeconds": 10}
    storage = {"uri": "s3://streams/stuck"}
    kubectl.apply(
        streaming_app(STUCK, TEAM, image="example/spark:1", storage=storage, main="local:///opt/app/main.py", spec=spec)
    )
    wait_for("no cause to be known", lambda: reason_of(kubectl, STUCK) == "PodNotStarting", timeout=300)
    pod = kubectl.get("pod", f"{STUCK}-driver", TEAM)
    assert pod is not None
    kubectl.apply(event_about(pod))
    wait_for("the cause to be named", lambda: reason_of(kubectl, STUCK) == "ReferenceMissing", timeout=300)
    kubectl.delete("sapp", STUCK, TEAM)
    wait_for("it to be gone", lambda: kubectl.get("sapp", STUCK, TEAM) is None, timeout=300)


REFERRED: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules", "namespace": TEAM}, "data": {"eu": "1"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": TEAM}},
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": TEAM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
)
"""What an edit refers to, one of each kind."""


def edit_that_refers() -> dict[str, Any]:
    sources: list[dict[str, Any]] = [
        {"configMap": {"name": "rules", "items": [{"key": "eu", "path": "eu"}]}},
        {"secret": {"secretName": "tls"}},
        {"persistentVolumeClaim": {"claimName": "data"}},
    ]
    volumes = [{"name": f"v{n}", **source} for n, source in enumerate(sources)]
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    template = {"spec": {"volumes": volumes, "containers": [{"name": "driver", "volumeMounts": mounts}]}}
    return {"spec": {"application": {"args": ["changed"]}, "driver": {"podTemplate": template}}}


def hold_an_edit(kubectl: Kubectl) -> None:
    """Have an edit stop nothing while something is missing, each named with its field; then let that be there."""
    before = kubectl.get("pod", f"{APP}-driver", TEAM)
    assert before is not None
    kubectl.patch("sapp", APP, TEAM, edit_that_refers())
    wait_for("the edit to be held", lambda: reason_of(kubectl, APP) == "ReferenceMissing", timeout=300)
    message = kubectl.condition(kubectl.get("sapp", APP, TEAM) or {}, "Ready")["message"]
    volumes = "spec.driver.podTemplate.spec.volumes"
    for missing in (
        f"key eu of ConfigMap rules ({volumes}[0].configMap.items[0].key)",
        f"Secret tls ({volumes}[1].secret.secretName)",
        f"PersistentVolumeClaim data ({volumes}[2].persistentVolumeClaim.claimName)",
    ):
        assert missing in message
    now = kubectl.get("pod", f"{APP}-driver", TEAM)
    assert now is not None
    assert (now["metadata"]["uid"], "deletionTimestamp" in now["metadata"]) == (before["metadata"]["uid"], False)
    assert kubectl.get("secret", "tls", TEAM) is None, "it was only tried"
    kubectl.apply(*REFERRED)


def take_labels_off(kubectl: Kubectl) -> None:
    """Take all labels off a driver that runs, until it has them again; it is the same pod, and the epoch the same."""
    before = kubectl.get("pod", f"{APP}-driver", TEAM)
    assert before is not None
    labels, uid = before["metadata"]["labels"], before["metadata"]["uid"]
    kubectl.patch("pod", f"{APP}-driver", TEAM, {"metadata": {"labels": dict.fromkeys(labels)}})

    def labelled() -> bool:
        pod = kubectl.get("pod", f"{APP}-driver", TEAM)
        assert pod is not None
        assert pod["metadata"]["uid"] == uid
        return bool(pod["metadata"].get("labels") == labels)

    wait_for("its labels to be restored", labelled, timeout=300)
    assert running_in_epoch(kubectl, 1)


def running_in_epoch(kubectl: Kubectl, epoch: int) -> bool:
    status = (kubectl.get("sapp", APP, TEAM) or {}).get("status", {})
    return bool(status.get("phase") == "Running" and status.get("epoch") == epoch)


def test_the_operator_uses_every_grant_and_is_refused_nothing(
    server: ApiServer, kubectl: Kubectl, rendered: list[dict[str, Any]], account_kubeconfig: Path, tmp_path: Path
) -> None:
    log = tmp_path / "operator.log"
    storage = {"uri": "s3://streams/apps", "deletionPolicy": "Delete"}
    app = streaming_app(APP, TEAM, image="example/spark:1", storage=storage, main="local:///opt/app/main.py")
    app["spec"]["control"] = {"retentionSeconds": 60}
    kubectl.apply(*access_of_an_earlier_application())
    with operator(account_kubeconfig, log):
        kubectl.apply(app)
        wait_for("the application to run", lambda: running_in_epoch(kubectl, 1), timeout=300)
        take_labels_off(kubectl)
        # Nobody is there to take it in time.
        kubectl.apply(MESSAGE)
        # That what was missing is there is seen within half a minute: meanwhile there is something else to see.
        hold_an_edit(kubectl)
        name_why_a_pod_does_not_start(kubectl)
        wait_for("the changed application to run", lambda: running_in_epoch(kubectl, 2), timeout=300)
    with operator(account_kubeconfig, log):
        kubectl.patch("sapp", APP, TEAM, {"spec": {"suspend": True}})
        kubectl.apply(SNAPSHOT)
        wait_for("the snapshot's pod", lambda: kubectl.list("pods", TEAM, "tidegate.dev/role=snapshot"), timeout=300)
        kubectl.delete("snap", "nightly", TEAM)
        wait_for("the snapshot to be gone", lambda: snapshots_are_gone(kubectl), timeout=300)
        # Nobody takes the schedule's, so it fails when the application goes, and then goes as well.
        kubectl.patch("sapp", APP, TEAM, {"spec": {"suspend": False, "snapshots": {"intervalSeconds": 60}}})
        make_a_snapshot_due(kubectl)
        wait_for("the schedule's snapshot", lambda: kubectl.list("snap", TEAM), timeout=300)
        have_the_message_ended_long_ago(kubectl)
        wait_for("the message to be gone", lambda: not kubectl.list("ctl", TEAM), timeout=300)
        kubectl.delete("sapp", APP, TEAM)
        wait_for("the application to be purged", lambda: application_is_gone(kubectl), timeout=300)
        wait_for("the schedule's snapshot to be gone", lambda: snapshots_are_gone(kubectl), timeout=300)
        wait_for("nothing to be left", lambda: not kubectl.list(LEFT, TEAM, MADE), timeout=300)

    used, refused = audited(server)
    assert refused == []
    granted = grants(rendered)
    assert used <= granted
    of_drivers = {("", "pods", verb) for verb in DRIVER_RULES[0]["verbs"]}
    seldom = ONLY_AFTER_A_CONFLICT | ONLY_OF_DRIVERS_REPORTS | ONLY_AFTER_A_LIMIT_RANGE
    assert granted - used <= of_drivers | seldom


def make_a_snapshot_due(kubectl: Kubectl) -> None:
    """Have a period of the schedule be over, as if it had begun long ago."""

    def begun() -> bool:
        return "startTime" in (kubectl.get("sapp", APP, TEAM) or {}).get("status", {}).get("snapshots", {})

    wait_for("the schedule to begin", begun, timeout=300)
    kubectl.patch_status("sapp", APP, TEAM, {"snapshots": {"startTime": "2026-01-01T00:00:00Z"}})


def have_the_message_ended_long_ago(kubectl: Kubectl) -> None:
    """Have the time be over in which the resource of a message stays that nobody took."""
    name = MESSAGE["metadata"]["name"]

    def ended() -> bool:
        return "completionTime" in (kubectl.get("ctl", name, TEAM) or {}).get("status", {})

    wait_for("the message to expire", ended, timeout=300)
    kubectl.patch_status("ctl", name, TEAM, {"completionTime": "2026-01-01T00:00:00Z"})


def access_of_an_earlier_application() -> list[dict[str, Any]]:
    """What is in the way of the application's own: an operator that did not set owners made it."""
    access = build_access(app_with(name=APP, namespace=TEAM))
    without = [{k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"} for manifest in access]
    return [{**manifest, "metadata": metadata} for manifest, metadata in zip(access, without, strict=True)]


def test_an_operator_of_some_namespaces_asks_for_nothing_of_the_cluster(
    server: ApiServer, kubectl: Kubectl, account_kubeconfig: Path, tmp_path: Path
) -> None:
    """Roles in its namespaces suffice: it starts, runs an application and lets it go, and is refused nothing."""
    helm = Helm(tools.program("helm"), tmp_path / "helm", server.kubeconfig)
    values = {"watchNamespaces": [TEAM], "clusterObjects": False}
    narrow = [o for o in helm.render(CHART, "narrow-tidegate", NAMESPACE, values) if o["kind"] != "Deployment"]
    kubectl.apply(*narrow)
    kubeconfig = kubeconfig_of("narrow-tidegate", server, kubectl, tmp_path)
    app = streaming_app(
        APP, TEAM, image="example/spark:1", storage={"uri": "s3://streams/apps"}, main="local:///opt/app/main.py"
    )
    only = {"TIDEGATE_WATCH_NAMESPACES": TEAM, "TIDEGATE_LEASE_NAME": "narrow-tidegate-operator"}
    only["TIDEGATE_KEY_NAME"] = "narrow-tidegate-agent-key"
    with operator(kubeconfig, tmp_path / "operator.log", **only):
        kubectl.apply(app)
        wait_for("the application to run", lambda: running_in_epoch(kubectl, 1), timeout=300)
        kubectl.delete("sapp", APP, TEAM)
        wait_for("the application to be gone", lambda: application_is_gone(kubectl), timeout=300)

    account = f"system:serviceaccount:{NAMESPACE}:narrow-tidegate"
    _, refused = audited(server, account)
    assert refused == []
    assert asked_of_the_cluster(server, account) == []


@pytest.mark.parametrize(
    ("field", "missing"),
    [
        ("serviceAccountName", "ServiceAccount nobody"),
        ("priorityClassName", "PriorityClass nobody"),
        ("runtimeClassName", "RuntimeClass nobody"),
    ],
)
async def test_admission_names_what_a_pod_refers_to_and_what_does_not_exist(
    server: ApiServer, field: str, missing: str
) -> None:
    """In the words by which the operator knows it before it stops anything (tidegate.api.foreign_text)."""
    spec = {"containers": [{"name": "driver", "image": "x"}], field: "nobody"}
    manifest = {"kind": "Pod", "metadata": {"name": "tried", "namespace": "default"}, "spec": spec}
    async with KubeClient(await connect(server.kubeconfig), OperatorMetrics()) as client:
        refused = await client.try_out(collection_of(manifest), manifest, patience=30)
    assert isinstance(refused, Forbidden)
    assert missing_for_admission(refused.message) == missing


def phase(kubectl: Kubectl, pod: str) -> str:
    found = kubectl.get("pod", pod, TEAM) or {}
    return str(found.get("status", {}).get("phase", ""))


def succeed(kubectl: Kubectl, pod: str, *containers: dict[str, Any]) -> None:
    """Say in the kubelet's place that the pod has done its work, and how its containers ended."""
    status = {"phase": "Succeeded", **({"containerStatuses": containers} if containers else {})}
    kubectl.patch_status("pod", pod, TEAM, status)


def application_is_gone(kubectl: Kubectl) -> bool:
    """Have the pod that purges its storage say that it has done so, as long as there is an application."""
    if phase(kubectl, f"{APP}-purge") == "Running":
        succeed(kubectl, f"{APP}-purge")
    seen = kubectl.list("sapp", TEAM)
    assert not seen, seen[0].get("status")
    return True


def snapshots_are_gone(kubectl: Kubectl) -> bool:
    """Have pods that remove what was begun say that they have, as long as there are snapshots."""
    ids = [
        found["status"]["snapshotId"]
        for found in kubectl.list("snap", TEAM)
        if found.get("status", {}).get("snapshotId")
    ]
    reports = SnapshotReports(tuple(SnapshotReport(each, SnapshotState.DISPOSED) for each in ids))
    for pod in kubectl.list("pods", TEAM, "tidegate.dev/role=snapshot"):
        if "deletionTimestamp" not in pod["metadata"]:
            (container,) = pod["spec"]["containers"]
            ended = {"exitCode": 0, "reason": "Completed", "message": to_json(reports)}
            status = {"name": container["name"], "state": {"terminated": ended}, "ready": False, "restartCount": 0}
            status |= {"image": container["image"], "imageID": ""}
            succeed(kubectl, pod["metadata"]["name"], status)
    return not kubectl.list("snap", TEAM)


def grants(rendered: list[dict[str, Any]]) -> set[Grant]:
    bound = {("ClusterRole", "tidegate"), ("Role", "tidegate-lease"), ("Role", "tidegate-key")}
    roles = [o for o in rendered if (o["kind"], o["metadata"]["name"]) in bound]
    assert len(roles) == len(bound)
    rules = [rule for role in roles for rule in role["rules"]]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def requests_of(server: ApiServer, account: str) -> list[dict[str, Any]]:
    assert server.audit_log is not None
    return [e for e in audit_log.entries(server.audit_log) if e["user"]["username"] == account]


def asked_of_the_cluster(server: ApiServer, account: str) -> list[str]:
    """Return an account's requests for objects that name no namespace; which kinds there are, everybody may ask."""
    objects = [e for e in requests_of(server, account) if "resource" in e.get("objectRef", {})]
    assert objects, f"{account} asked for nothing"
    return [f"{e['verb']} {e['requestURI']}" for e in objects if "namespace" not in e["objectRef"]]


def audited(server: ApiServer, account: str = ACCOUNT) -> tuple[set[Grant], list[str]]:
    """Return what the operator asked the API server for, and which of its requests were refused."""
    ours = requests_of(server, account)
    used: set[Grant] = set()
    for reference, verb in ((e.get("objectRef", {}), e["verb"]) for e in ours):
        if "resource" in reference:
            resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
            used.add((reference.get("apiGroup", ""), resource, verb))
    forbidden = [e for e in ours if e.get("responseStatus", {}).get("code") == FORBIDDEN]
    return used, [f"{e['verb']} {e['requestURI']}" for e in forbidden]
