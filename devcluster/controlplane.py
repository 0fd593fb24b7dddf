"""etcd, API server, controllers, scheduler: how they are called. Writes files, starts nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import kubeconfig, pki, private, tools
from devcluster.kubeconfig import SYSTEM_MASTERS, User

SERVICE_RANGE = "10.96.0.0/16"
KUBERNETES_SERVICE = "10.96.0.1"

_READS = ("get", "list", "watch")


@dataclass(frozen=True)
class Addresses:
    """Where the control plane listens, as seen by its own processes."""

    api_host: str
    api_port: int
    etcd_port: int
    etcd_peer_port: int
    reachable_api_port: int
    """Port on 127.0.0.1 under which the machine (the host of the cluster) reaches the API server."""

    @property
    def api(self) -> str:
        """Return the API server's address for the cluster's own processes."""
        return f"https://{self.api_host}:{self.api_port}"


def audit_policy(*, reads: bool) -> dict[str, Any]:
    """Return a policy of one line per request, when it is complete: enough to count and to attribute, and small."""
    left_out = [] if reads else [{"level": "None", "verbs": list(_READS)}]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [*left_out, {"level": "Metadata"}],
    }


def users(nodes: Sequence[str] = ("node0",)) -> dict[str, User]:
    """Return everybody who calls the API server, by the name of their kubeconfig file."""
    return {
        "admin": User("admin", (SYSTEM_MASTERS,)),
        "controller-manager": User("system:kube-controller-manager"),
        "scheduler": User("system:kube-scheduler"),
        **{kubelet_name(number): User(f"system:node:{node}", ("system:nodes",)) for number, node in enumerate(nodes)},
        "kube-proxy": User("system:kube-proxy"),
        "coredns": User("system:coredns"),
        "kwok": User("kwok", (SYSTEM_MASTERS,)),
    }


def kubelet_name(number: int) -> str:
    """Return the name of a node's kubelet, among users and components."""
    return f"kubelet-{number}" if number else "kubelet"


def write_identities(
    folder: Path, addresses: Addresses, everybody: Mapping[str, User], *, audit_reads: bool = True
) -> pki.Pki:
    """Write certificates, tokens and one kubeconfig per user into the state folder, none of them for others to read.

    Args:
        folder: the state folder.
        addresses: where the API server is reached.
        everybody: users by the name of their kubeconfig file.
        audit_reads: whether an audit log has the requests that change nothing, too.
    """
    made = pki.create(folder / "pki", sorted({"127.0.0.1", KUBERNETES_SERVICE, addresses.api_host}))
    authority = made.authority.certificate.read_bytes()
    private.write(folder / "tokens.csv", kubeconfig.tokens_csv(everybody))
    for name, user in everybody.items():
        private.write(folder / f"{name}.kubeconfig", kubeconfig.kubeconfig(addresses.api, authority, user))
    reachable = f"https://127.0.0.1:{addresses.reachable_api_port}"
    private.write(folder / "kubeconfig", kubeconfig.kubeconfig(reachable, authority, everybody["admin"]))
    (folder / "audit-policy.json").write_text(json.dumps(audit_policy(reads=audit_reads)))
    return made


def etcd(folder: Path, addresses: Addresses) -> list[str]:
    """Return the command of etcd. It never syncs: the data are worth nothing after a crash of the machine."""
    client = f"http://127.0.0.1:{addresses.etcd_port}"
    peer = f"http://127.0.0.1:{addresses.etcd_peer_port}"
    return [
        str(tools.program("etcd")),
        *("--name", "etcd0", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"etcd0={peer}"),
    ]


def apiserver(folder: Path, addresses: Addresses, identity: pki.Pki, *, audit_log: Path | None) -> list[str]:
    """Return the command of kube-apiserver, without what only one of the two kinds of cluster wants."""
    audit = (
        *("--audit-policy-file", str(folder / "audit-policy.json"), "--audit-log-path", str(audit_log)),
        # By default a new file begins after 100 MB, and whoever reads this one misses the rest.
        *("--audit-log-maxsize", "10000"),
    )
    return [
        str(tools.program("kube-apiserver")),
        *("--etcd-servers", f"http://127.0.0.1:{addresses.etcd_port}"),
        *("--secure-port", str(addresses.api_port), "--service-cluster-ip-range", SERVICE_RANGE),
        *("--cert-dir", str(folder / "pki")),
        *("--tls-cert-file", str(identity.server.certificate), "--tls-private-key-file", str(identity.server.key)),
        *("--client-ca-file", str(identity.authority.certificate), "--token-auth-file", str(folder / "tokens.csv")),
        *("--service-account-issuer", "https://kubernetes.default.svc"),
        *("--service-account-signing-key-file", str(identity.service_account_key)),
        *("--service-account-key-file", str(identity.service_account_key)),
        *("--authorization-mode", "Node,RBAC", "--allow-privileged"),
        *(audit if audit_log else ()),
    ]


def controller_manager(folder: Path, identity: pki.Pki) -> list[str]:
    """Return the command of kube-controller-manager; it serves nothing."""
    return [
        str(tools.program("kube-controller-manager")),
        *("--kubeconfig", str(folder / "controller-manager.kubeconfig"), "--use-service-account-credentials"),
        *("--service-account-private-key-file", str(identity.service_account_key)),
        *("--root-ca-file", str(identity.authority.certificate)),
        *("--leader-elect=false", "--secure-port", "0"),
        # A new node is opened for pods by this loop: five seconds sooner than by default.
        *("--node-monitor-period", "1s"),
        # It makes an account for each controller first, and its default rate turns that into five seconds.
        *("--kube-api-qps", "500", "--kube-api-burst", "500"),
    ]


def scheduler(folder: Path) -> list[str]:
    """Return the command of kube-scheduler; it serves nothing."""
    return [
        str(tools.program("kube-scheduler")),
        *("--kubeconfig", str(folder / "scheduler.kubeconfig"), "--leader-elect=false", "--secure-port", "0"),
    ]
