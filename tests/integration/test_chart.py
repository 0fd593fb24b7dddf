"""The chart on a real API server: what it renders is accepted, admitted, upgraded and kept.

Runs helm and kubectl; writes to namespaces of its own.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import tools
from devcluster.apiserver import ApiServer
from tidegate.access.builders.access import build_access, build_role
from tidegate_testing import plain_yaml
from tidegate_testing.helm import Helm, HelmError
from tidegate_testing.kubectl import Kubectl, KubectlError
from tidegate_testing.observations import app_with
from tidegate_testing.waiting import wait_for

CHART = Path(__file__).parents[2] / "charts" / "tidegate"
RELEASE = "tidegate"
NAMESPACE = "tidegate-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:tidegate"
CRD = "streamingapps.tidegate.dev"

VALUE_SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "two namespaces": {"watchNamespaces": ["team-a", "team-b"], "rbac": {"userRoles": False}},
    "an account that exists already": {"serviceAccount": {"create": False, "name": "default"}},
    "no object of the cluster": {"watchNamespaces": ["team-a"], "clusterObjects": False},
    "every admission policy": {
        "admissionPolicies": {
            "access": {"enabled": True},
            "applications": {
                "serviceAccounts": ["streams"],
                "storagePrefixes": ["s3://streams/team-a/"],
                "endpoints": ["", "https://minio.example.com"],
                "imagePrefixes": ["registry.example.com/streams/"],
                "restrictPodTemplates": True,
            },
        }
    },
    "on OpenShift": {"openshift": True},
    "permissions from elsewhere": {"rbac": {"create": False, "userRoles": False}, "crds": {"enabled": False}},
    "messages that only some may send": {
        "controlMessages": {
            "restrict": [
                {"types": ["pause", "resume"], "groups": ["sre", "oidc:on call"]},
                {"types": ["pause"], "users": ["alice@example.com"]},
                {"types": ["dump-state"]},
                {"types": ["*"], "groups": ["senders"]},
            ]
        },
        "watchNamespaces": ["team-a"],
    },
    "network policies": {"networkPolicies": {"enabled": True, "namespaces": ["team-a", "team-b"]}},
    "network policies that name what applications reach": {
        "watchNamespaces": ["team-a"],
        "networkPolicies": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "prometheus"}}}],
            "apiServer": {"ports": [6443], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]},
            "dns": {"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]},
            "sparkPorts": {"from": 7000, "to": 7999},
            "applicationEgress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [{"port": 9000}]}],
            "operatorEgress": [{"to": [{"ipBlock": {"cidr": "10.2.0.1/32"}}]}],
        },
    },
    "everything set": {
        "nameOverride": "gate",
        "image": {"repository": "example/tidegate-operator", "digest": "sha256:" + "a" * 64, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "logFormat": "console",
        "logLevel": "debug",
        "crds": {"keep": False},
        "serviceAccount": {"annotations": {"example.com/role": "operator"}},
        "metrics": {"port": 9000, "service": {"enabled": True, "annotations": {"prometheus.io/scrape": "true"}}},
        "resources": {"requests": {"cpu": 0.5, "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}},
        "budgets": {"concurrency": 128, "agentConcurrency": 32, "largeAppsMib": 256, "largeAppsOfNamespaceMib": 64},
        "replicas": 3,
        "podDisruptionBudget": {"enabled": False},
        "terminationGracePeriodSeconds": 5,
        "extraEnv": [{"name": "PYTHONASYNCIODEBUG", "value": "1"}],
        "commonLabels": {"example.com/cost": "streams", "app.kubernetes.io/part-of": "platform"},
        "commonAnnotations": {"example.com/owner": "data"},
        "podSecurityContext": {"runAsUser": 10001, "runAsGroup": 10001},
        "applications": {
            "podSecurityContext": {"runAsUser": 10001, "fsGroup": 10001},
            "podLabels": {"sidecar.istio.io/inject": "false"},
            "podAnnotations": {"example.com/note": "x"},
        },
        "podAnnotations": {"example.com/note": "x"},
        "podLabels": {"example.com/team": "streams"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                }
            }
        },
        "topologySpreadConstraints": [
            {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        "priorityClassName": "system-cluster-critical",
    },
}

each_value_set = pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """A server of its own, because these tests install and replace the CRDs; its controllers aggregate roles."""
    with ApiServer(controllers=True) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(server: ApiServer) -> Kubectl:
    return Kubectl(server.kubectl, server.kubeconfig)


@pytest.fixture(scope="module")
def helm(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"), server.kubeconfig)


@pytest.fixture(scope="module")
def strict_namespace(kubectl: Kubectl) -> str:
    """The operator's namespace, which admits only restricted pods and warns about templates of others."""
    modes = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    kubectl.apply(namespace(NAMESPACE, **modes), namespace("team-a"), namespace("team-b"))
    return NAMESPACE


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def without_owner(*manifests: dict[str, Any]) -> list[dict[str, Any]]:
    """The applications are not there, and the garbage collector would take what belongs to them."""
    bare = [{k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"} for manifest in manifests]
    return [{**manifest, "metadata": metadata} for manifest, metadata in zip(manifests, bare, strict=True)]


def only(kind: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = (o for o in objects if o["kind"] == kind)
    return found


@each_value_set
def test_lint_finds_nothing_to_say(helm: Helm, values: dict[str, Any]) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART), values=values)


@each_value_set
def test_the_api_server_accepts_everything_rendered_without_a_warning(
    helm: Helm, kubectl: Kubectl, strict_namespace: str, values: dict[str, Any]
) -> None:
    rendered = helm.render(CHART, RELEASE, strict_namespace, values)
    accepted = kubectl.run(
        *("apply", "--dry-run=server", "--warnings-as-errors", "-f", "-"),
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered}),
    )
    assert accepted.count("(server dry run)") == len(rendered)


def test_the_pull_policy_is_that_of_the_operators_pod_and_of_what_it_brings_into_drivers(helm: Helm) -> None:
    rendered = helm.render(CHART, RELEASE, NAMESPACE, {"image": {"pullPolicy": "Never"}})
    (container,) = only("Deployment", rendered)["spec"]["template"]["spec"]["containers"]
    reported = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (container["imagePullPolicy"], reported["TIDEGATE_OPERATOR_IMAGE_PULL_POLICY"]) == ("Never", "Never")


@each_value_set
def test_the_operators_pod_is_admitted_where_only_restricted_pods_are(
    helm: Helm, kubectl: Kubectl, strict_namespace: str, values: dict[str, Any]
) -> None:
    rendered = helm.render(CHART, RELEASE, strict_namespace, values)
    for account in (o for o in rendered if o["kind"] == "ServiceAccount"):
        kubectl.apply(account)
    kubectl.create(operator_pod(rendered), dry_run=True)


def test_the_namespace_of_these_tests_refuses_what_is_not_restricted(
    helm: Helm, kubectl: Kubectl, strict_namespace: str
) -> None:
    rendered = helm.render(CHART, RELEASE, strict_namespace)
    kubectl.apply(only("ServiceAccount", rendered))
    pod = operator_pod(rendered)
    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted'):
        kubectl.create(pod, dry_run=True)


def operator_pod(rendered: list[dict[str, Any]]) -> dict[str, Any]:
    template = only("Deployment", rendered)["spec"]["template"]
    metadata = {**template["metadata"], "name": "operator", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"watchNamespace": ["team-a"]}, "additional properties 'watchNamespace' not allowed"),
        ({"image": {"tga": "x"}}, "at '/image': additional properties 'tga' not allowed"),
        ({"watchNamespaces": "team-a"}, "at '/watchNamespaces': got string, want array"),
        ({"watchNamespaces": ["Team_A"]}, "at '/watchNamespaces/0': 'Team_A' does not match pattern"),
        ({"logFormat": "xml"}, "at '/logFormat': value must be one of 'json', 'console'"),
        ({"metrics": {"port": "http"}}, "at '/metrics/port': got string, want integer"),
        ({"metrics": {"port": 80}}, "at '/metrics/port': minimum: got 80, want 1,024"),
        ({"resources": {"limits": {"memory": "lots"}}}, "at '/resources/limits/memory': 'lots' does not match pattern"),
        (
            {"controlMessages": {"restrict": [{"groups": ["sre"]}]}},
            "at '/controlMessages/restrict/0': missing property 'types'",
        ),
        ({"clusterObjects": False}, "at '/watchNamespaces': minItems: got 0, want 1"),
        (
            {"clusterObjects": False, "watchNamespaces": ["a"], "controlMessages": {"restrict": [{"types": ["*"]}]}},
            "at '/controlMessages/restrict': maxItems: got 1, want 0",
        ),
        ({"networkPolicies": {"metricsFrom": []}}, "at '/networkPolicies/metricsFrom': minItems: got 0, want 1"),
        ({"networkPolicies": {"sparkPorts": {"from": 80}}}, "at '/networkPolicies/sparkPorts/from': minimum: got 80"),
        ({"networkPolicies": {"enabled": True}}, "needs networkPolicies.namespaces (or watchNamespaces)"),
        (
            {"networkPolicies": {"enabled": True, "namespaces": ["a"], "sparkPorts": {"from": 7100, "to": 7000}}},
            "networkPolicies.sparkPorts.from is above networkPolicies.sparkPorts.to",
        ),
        (
            {"admissionPolicies": {"applications": {"storagePrefixes": ["s3://streams/team-a"]}}},
            "at '/admissionPolicies/applications/storagePrefixes/0': 's3://streams/team-a' does not match pattern",
        ),
        (
            {"clusterObjects": False, "watchNamespaces": ["a"], "admissionPolicies": {"access": {"enabled": True}}},
            "at '/admissionPolicies/access/enabled': value must be false",
        ),
        ({"replicas": 0}, "at '/replicas': minimum: got 0, want 1"),
        ({"serviceAccount": {"create": False}}, "at '/serviceAccount/name': minLength: got 0, want 1"),
        ({"extraEnv": [{"value": "x"}]}, "at '/extraEnv/0': missing property 'name'"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm: Helm, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(HelmError) as refused:
        helm.render(CHART, RELEASE, NAMESPACE, values)
    assert complaint in str(refused.value)


def test_an_install_without_objects_of_the_cluster_has_none(helm: Helm, kubectl: Kubectl) -> None:
    values = VALUE_SETS["no object of the cluster"]
    rendered = helm.render(CHART, RELEASE, NAMESPACE, values)
    namespaced = {
        line.split()[-1] for line in kubectl.run("api-resources", "--namespaced", "--no-headers").splitlines()
    }
    assert [o["kind"] for o in rendered if o["kind"] not in namespaced] == []
    assert {o["metadata"]["namespace"] for o in rendered} == {NAMESPACE, "team-a"}


@pytest.mark.parametrize("path", sorted((CHART.parents[1] / "crds").glob("*.yaml")), ids=lambda path: path.name)
def test_the_rendered_crd_is_the_source_with_labels_and_is_kept_by_whatever_tool_applied_it(
    helm: Helm, path: Path
) -> None:
    source = plain_yaml.load(path.read_text())
    crds = [o for o in helm.render(CHART, RELEASE, NAMESPACE) if o["kind"] == "CustomResourceDefinition"]
    (rendered,) = (crd for crd in crds if crd["metadata"]["name"] == source["metadata"]["name"])
    assert rendered["spec"] == source["spec"]
    assert rendered["metadata"]["annotations"] == {
        **source["metadata"].get("annotations", {}),
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    }


def test_crds_that_are_not_to_be_kept_say_so_to_no_tool(helm: Helm) -> None:
    rendered = helm.render(CHART, RELEASE, NAMESPACE, {"crds": {"keep": False}})
    crds = [o["metadata"] for o in rendered if o["kind"] == "CustomResourceDefinition"]
    assert len(crds) == 3
    assert {name for crd in crds for name in crd.get("annotations", {})} == {"tidegate.dev/change-classes"}


def test_an_upgrade_of_the_release_upgrades_the_crd_and_an_uninstall_keeps_it(
    helm: Helm, kubectl: Kubectl, tmp_path: Path
) -> None:
    next_version = tmp_path / "tidegate"
    shutil.copytree(CHART, next_version)
    (copy,) = (next_version / "files" / "crds").glob("*streamingapp*.yaml")
    crd = plain_yaml.load(copy.read_text())
    crd["spec"]["names"]["categories"] = ["all", "streaming"]
    copy.write_text(json.dumps(crd))
    release = ("lifecycle", "--namespace", "lifecycle")
    everything = "deployments,poddisruptionbudgets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    kubectl.apply(namespace("lifecycle"))

    helm.run("install", *release[:1], str(CHART), *release[1:])
    assert "streaming" not in categories(kubectl)
    helm.run("upgrade", *release[:1], str(next_version), *release[1:])
    assert "streaming" in categories(kubectl)
    helm.run("uninstall", *release)
    assert "streaming" in categories(kubectl)
    assert kubectl.list(everything, "lifecycle", "app.kubernetes.io/instance=lifecycle") == []

    helm.run("install", *release[:1], str(CHART), *release[1:])
    assert "streaming" not in categories(kubectl)
    helm.run("upgrade", *release[:1], str(next_version), *release[1:], "--set", "crds.enabled=false")
    assert "streaming" not in categories(kubectl)  # released: neither upgraded nor removed
    helm.run("uninstall", *release)


def categories(kubectl: Kubectl) -> list[str]:
    names: dict[str, Any] = json.loads(kubectl.run("get", "crd", CRD, "-o", "json"))["spec"]["names"]
    return list(names.get("categories", []))


ROLE_CHECKS = [
    ("view", "get streamingapps", True),
    ("view", "watch streamingapps", True),
    ("view", "create streamingapps", False),
    ("view", "watch streamsnapshots", True),
    ("view", "delete streamsnapshots", False),
    ("edit", "create streamsnapshots", True),
    ("edit", "patch streamsnapshots/status", False),
    ("view", "patch streamingapps/scale", False),
    ("edit", "create streamingapps", True),
    ("edit", "delete streamingapps", True),
    ("edit", "patch streamingapps/scale", True),
    ("edit", "patch streamingapps/status", False),
    ("view", "watch controlmessages", True),
    ("view", "create controlmessages", False),
    ("edit", "create controlmessages", True),
    ("edit", "delete controlmessages", True),
    ("edit", "patch controlmessages/status", False),
    ("control-view", "list controlmessages", True),
    ("control-view", "create controlmessages", False),
    ("control-send", "create controlmessages", True),
    ("control-send", "get controlmessages", True),
    ("control-send", "delete controlmessages", False),
    ("control-send", "get streamingapps", False),
    ("control-manag", "delete controlmessages", True),
    ("control-manag", "patch controlmessages/status", False),
    ("admin", "list streamingapps", True),
    ("admin", "update streamingapps", True),
]


@pytest.fixture(scope="module")
def team(kubectl: Kubectl, helm: Helm, strict_namespace: str) -> str:
    """A namespace in which one user each has Kubernetes' roles view, edit and admin, and the operator's rules apply."""
    rendered = helm.render(CHART, RELEASE, strict_namespace)
    kubectl.apply(*(o for o in rendered if o["kind"] != "Deployment"))
    for role in ("view", "edit", "admin"):
        kubectl.run("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er", "-n", "team-a")
    for role, user in (("viewer", "control-viewer"), ("sender", "control-sender"), ("admin", "control-manager")):
        binding = (user, f"--clusterrole=tidegate-control-{role}", f"--user={user}")
        kubectl.run("create", "rolebinding", *binding, "-n", "team-a")
    await_grant(kubectl, "adminer", "create streamingapps", "team-a")
    return "team-a"


def may(kubectl: Kubectl, user: str, what: str, namespace: str) -> bool:
    verb, _, resource = what.partition(" ")
    return kubectl.may(verb, resource, namespace, user)


def await_grant(kubectl: Kubectl, user: str, what: str, namespace: str) -> None:
    """Wait until the user may: the API server learns of roles and bindings a moment after they are stored."""
    wait_for(f"{user} to be let {what}", lambda: may(kubectl, user, what, namespace), timeout=180)


@pytest.mark.parametrize(("role", "what", "allowed"), ROLE_CHECKS)
def test_kubernetes_own_roles_cover_streaming_apps(
    kubectl: Kubectl, team: str, role: str, what: str, allowed: bool
) -> None:
    if allowed:  # each role is aggregated by itself
        await_grant(kubectl, f"{role}er", what, team)
    else:
        assert not may(kubectl, f"{role}er", what, team)


def test_the_operators_account_can_give_drivers_their_access_but_no_more(kubectl: Kubectl, team: str) -> None:
    await_grant(kubectl, ACCOUNT, "create rolebindings", team)
    mine = app_with(namespace=team)
    for manifest in without_owner(*build_access(mine)):
        kubectl.create(manifest, user=ACCOUNT)
    (greedy,) = without_owner(build_role(mine))
    greedy["metadata"]["name"] = "greedy"
    greedy["rules"][0] = {**greedy["rules"][0], "resources": ["pods", "configmaps"]}
    with pytest.raises(KubectlError, match="attempting to grant RBAC permissions not currently held"):
        kubectl.create(greedy, user=ACCOUNT)


@pytest.mark.parametrize(
    "what",
    [
        "get secrets",
        "patch secrets",
        "list secrets",
        "watch secrets",
        "update secrets",
        "create streamingapps",
        "update roles",
        "escalate roles",
        "bind roles",
        "create clusterroles",
        "create deployments.apps",
        "create pods/exec",
        "list nodes",
        "get leases",
        "create leases",
    ],
)
def test_the_operators_account_may_not(kubectl: Kubectl, team: str, what: str) -> None:
    await_grant(kubectl, ACCOUNT, "create secrets", team)
    assert not may(kubectl, ACCOUNT, what, team)


def test_the_operators_account_may_read_the_secret_with_its_key_and_no_other(kubectl: Kubectl, team: str) -> None:
    await_grant(kubectl, ACCOUNT, "create secrets", NAMESPACE)
    assert kubectl.may("get", "secrets", NAMESPACE, ACCOUNT, name="tidegate-agent-key")
    assert not kubectl.may("get", "secrets", NAMESPACE, ACCOUNT, name="other")
    assert not kubectl.may("get", "secrets", team, ACCOUNT, name="tidegate-agent-key")


def test_the_operators_account_may_write_the_lease_of_its_release_and_no_other(kubectl: Kubectl, team: str) -> None:
    await_grant(kubectl, ACCOUNT, "create leases", NAMESPACE)
    for verb in ("get", "patch"):
        assert kubectl.may(verb, "leases", NAMESPACE, ACCOUNT, name="tidegate-operator")
        assert not kubectl.may(verb, "leases", NAMESPACE, ACCOUNT, name="other")


def test_an_operator_for_some_namespaces_has_nothing_elsewhere(helm: Helm, kubectl: Kubectl, team: str) -> None:
    account = f"system:serviceaccount:{NAMESPACE}:narrow-tidegate"
    values = {"watchNamespaces": [team], "crds": {"enabled": False}, "rbac": {"userRoles": False}}
    kubectl.apply(*(o for o in helm.render(CHART, "narrow", NAMESPACE, values) if o["kind"] != "Deployment"))
    await_grant(kubectl, account, "create pods", team)
    assert not may(kubectl, account, "get streamingapps", "team-b")
    assert not may(kubectl, account, "get pods", NAMESPACE)


# --- who may send which control messages ---

RESTRICTED: dict[str, Any] = VALUE_SETS["messages that only some may send"]


def send(kubectl: Kubectl, kind: str, where: str, user: str = "", *groups: str) -> str:
    """Have somebody send a message, for a try; returns why the API server refuses it, "created" if it does not."""
    message = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "ControlMessage",
        "metadata": {"name": "message", "namespace": where},
        "spec": {"appRef": {"name": "orders"}, "type": kind},
    }
    try:
        kubectl.create(message, dry_run=True, user=user, groups=groups)
    except KubectlError as refused:
        return str(refused)
    return "created"


@pytest.fixture(scope="module")
def restricted(kubectl: Kubectl, helm: Helm, strict_namespace: str) -> Iterator[None]:
    """A cluster in which only some may send messages of some types, and everybody may by RBAC."""
    rendered = helm.render(CHART, RELEASE, strict_namespace, RESTRICTED)
    policy = [o for o in rendered if o["kind"].startswith("ValidatingAdmissionPolicy")]
    kubectl.apply(*(o for o in rendered if o["kind"] in ("CustomResourceDefinition", "ClusterRole")), *policy)
    for where in ("team-a", "team-b"):
        role = ("--clusterrole=tidegate-control-sender", "--group=everybody")
        kubectl.run("create", "rolebinding", "everybody", *role, "-n", where)
    wait_for("the policy", lambda: "may be sent by" in send(kubectl, "dump-state", "team-a"), timeout=60)
    yield
    for each in policy:
        kubectl.run("delete", each["kind"], each["metadata"]["name"])


@pytest.mark.parametrize(
    ("kind", "who", "refusal"),
    [
        ("pause", ("bob", "sre"), ""),
        ("resume", ("bob", "oidc:on call"), ""),
        ("pause", ("alice@example.com", "senders"), ""),
        ("resume", ("alice@example.com", "senders"), "type resume may be sent by groups sre, oidc:on call alone"),
        ("pause", ("bob", "senders"), "by groups sre, oidc:on call and users alice@example.com alone"),
        ("dump-state", ("bob", "sre"), "type dump-state may be sent by nobody alone"),
        ("ping", ("bob", "senders"), ""),
        ("ping", ("bob", "sre"), "messages of this type may be sent by groups senders alone"),
    ],
)
def test_a_type_that_is_restricted_is_for_its_groups_and_users(
    kubectl: Kubectl, restricted: None, kind: str, who: tuple[str, str], refusal: str
) -> None:
    said = send(kubectl, kind, "team-a", *who, "everybody")
    assert (refusal or "created") in said


def test_what_the_operator_makes_of_brokers_messages_is_not_judged(kubectl: Kubectl, restricted: None) -> None:
    assert "created" in send(kubectl, "dump-state", "team-a", ACCOUNT, "everybody")


def test_a_policy_reaches_no_further_than_the_operator(kubectl: Kubectl, restricted: None) -> None:
    said = send(kubectl, "pause", "team-b", "bob", "everybody")
    assert "created" in said
