"""Configuration of the one node: containerd, pod network, kubelet, kube-proxy, CoreDNS. Pure text and commands."""

import json
from pathlib import Path
from typing import Any

from devcluster import tools
from devcluster.pki import Pki

NAME = "node0"
NAMES = (NAME, "node1")
"""Of the node that each cluster has, and of the one that can be added (:mod:`devcluster.second_node`)."""
ADDRESS = "10.89.0.1"
API_PORT = 6443
POD_RANGE = "10.244.0.0/16"
POD_SUBNET = "10.244.0.0/23"
DNS_SERVICE = "10.96.0.10"
PAUSE_IMAGE = "localhost/pause:1"
_DNS_READY_PORT = 8181

# Every address of the cluster's own network namespace; the machine's are not in it.
_TO_ALL = "0.0.0.0"


def preparation(hidden: Path) -> str:
    """Return the shell script that prepares the namespaces of a new node.

    Everything that programs leave in /run and /var goes to memory that vanishes with the mount namespace. The default
    route goes to a bridge without ports: service addresses need some route to be translated, and what is not
    translated goes nowhere.

    Args:
        hidden: a folder that must stay visible although it may lie below /var or /run (the cache).
    """
    return f"""set -eu
new=$(mktemp -d /tmp/tidegate-node-XXXXXX)
for place in /var /run; do
  mount -t tmpfs -o mode=0755 tmpfs "$new"
  case {hidden} in
    $place/*) mkdir -p "$new/${{1#$place/}}" && mount --bind {hidden} "$new/${{1#$place/}}" ;;
  esac
  mount --rbind "$new" $place
  umount -l "$new"
done
rmdir "$new"
ln -s /run /var/run
mkdir -p /var/lib /var/log /var/tmp /run/lock /run/netns
chmod 1777 /var/tmp
mount --make-rshared /
ip link set lo up
ip link add {NAME} type bridge
ip address add {ADDRESS}/24 dev {NAME}
ip link set {NAME} up
ip route add default dev {NAME}
echo 1 >/proc/sys/net/ipv4/ip_forward
"""


def containerd_config(folder: Path, runtime: str = "/run/containerd") -> str:
    """Return containerd's configuration (TOML): nothing outside the state folder and the node's own /run.

    Args:
        folder: of the node.
        runtime: folder for what goes with the processes.
    """
    return f"""version = 2
root = "{folder}/containerd"
state = "{runtime}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def pod_network(folder: Path, subnet: str = POD_SUBNET) -> str:
    """Return the CNI configuration list: each pod on a link of its own, routed.

    With a bridge, two pods on the node would talk behind the back of the rules that translate service addresses.
    """
    addresses = {
        "type": "host-local",
        "dataDir": str(folder / "cni-addresses"),
        "ranges": [[{"subnet": subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [{"type": "ptp", "ipMasq": False, "ipam": addresses}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins})


def kubelet_config(folder: Path, cgroup: str, identity: Pki) -> dict[str, Any]:
    """Return the KubeletConfiguration; ``cgroup`` is the parent of all pods' cgroups."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(identity.authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "podLogsDir": str(folder / "pod-logs"),
        "volumePluginDir": str(folder / "volume-plugins"),
        # The node shares the machine's disk and memory, whose filling is not the cluster's to judge.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # Below 0 needs a capability that containers of CI systems lack.
        "oomScoreAdj": 0,
        "serializeImagePulls": False,
        "maxPods": 200,
        "readOnlyPort": 0,
    }


def kubelet(folder: Path, kubeconfig: Path, name: str = NAME, address: str = ADDRESS) -> list[str]:
    """Return the command of the kubelet of the node whose files are in ``folder``."""
    return [
        str(tools.program("kubelet")),
        *("--config", str(folder / "kubelet.json"), "--kubeconfig", str(kubeconfig)),
        *("--root-dir", str(folder / "kubelet"), "--hostname-override", name, "--node-ip", address),
    ]


def kube_proxy(folder: Path) -> list[str]:
    """Return the command of kube-proxy."""
    return [
        str(tools.program("kube-proxy")),
        *("--kubeconfig", str(folder / "kube-proxy.kubeconfig"), "--proxy-mode", "iptables"),
        *("--hostname-override", NAME, "--cluster-cidr", POD_RANGE, "--oom-score-adj", "0"),
        # Connection tracking limits are the machine's and not ours to set.
        *("--conntrack-max-per-core", "0"),
    ]


def cgroup(cluster: str, number: int) -> str:
    """Return the parent of a node's pods: a kubelet removes what it does not know, so each has one of its own."""
    return f"{cluster}-n{number}" if number else cluster


def api_server_flags(identity: Pki) -> list[str]:
    """Return what the API server of a full cluster wants beyond the common flags."""
    return [
        # It may stay up for days.
        *("--audit-log-maxsize", "50", "--audit-log-maxbackup", "1"),
        *("--bind-address", _TO_ALL, "--advertise-address", ADDRESS, "--enable-admission-plugins", "NodeRestriction"),
        # Policies that change objects stand in for a service mesh's webhook. They are on by default from 1.36.
        *("--feature-gates", "MutatingAdmissionPolicy=true"),
        *("--runtime-config", "admissionregistration.k8s.io/v1beta1=true"),
        # By default exec and logs would look up the node's name by DNS.
        *("--kubelet-preferred-address-types", "InternalIP"),
        *("--kubelet-client-certificate", str(identity.kubelet_client.certificate)),
        *("--kubelet-client-key", str(identity.kubelet_client.key)),
    ]


def corefile(folder: Path) -> str:
    """Return CoreDNS's configuration: the cluster's names, and at once NXDOMAIN for all others."""
    # Two blocks, because in one the template plugin would answer before the one that knows the cluster.
    return f"""cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {{
  bind {ADDRESS}
  errors
  ready {ADDRESS}:{_DNS_READY_PORT}
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {folder}/coredns.kubeconfig
    pods insecure
    ttl 5
  }}
}}
.:53 {{
  bind {ADDRESS}
  errors
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""


def coredns(folder: Path) -> list[str]:
    """Return the command of CoreDNS, which runs beside the pods, not in one."""
    return [str(tools.program("coredns")), "-conf", str(folder / "Corefile")]


def dns_objects() -> list[tuple[str, dict[str, Any]]]:
    """Return what CoreDNS needs in the API, as collection path and object."""
    meta = {"name": "kube-dns", "namespace": "kube-system"}
    ports = [{"name": f"dns-{p.lower()}", "port": 53, "protocol": p} for p in ("UDP", "TCP")]
    reads = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    return [
        (f"{rbac}/clusterroles", {"metadata": {"name": "system:coredns"}, "rules": reads}),
        (
            f"{rbac}/clusterrolebindings",
            {
                "metadata": {"name": "system:coredns"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}],
            },
        ),
        (
            "/api/v1/namespaces/kube-system/services",
            {"metadata": meta, "spec": {"clusterIP": DNS_SERVICE, "ports": ports}},
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices",
            {
                "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kube-dns"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
                "ports": ports,
            },
        ),
    ]
