"""A second node for a cluster that runs: it can be lost without losing everything. Starts processes, writes files.

It has a kubelet and a containerd of its own, in the namespaces of the cluster: its pods are reached as those of the
first node are. Lost, its kubelet is stopped, and no packet goes between its pods and the API server or the other pods;
what they do beside that, such as writing to the object store, goes on.
"""

import contextlib
import json
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from devcluster import cgroups, controlplane, images, node, packets, seed
from devcluster.apiclient import ApiClient
from devcluster.cluster import Cluster, open_for_pods
from devcluster.control import ENDS_WITHIN, PATIENCE, ComponentError
from devcluster.processes import ProcessIdentity, descendants

NUMBER = 1
NAME = node.NAMES[NUMBER]
ADDRESS = "10.89.0.2"
POD_SUBNET = "10.244.2.0/23"
KUBELET, CONTAINERD = controlplane.kubelet_name(NUMBER), f"containerd-{NUMBER}"
_KUBELET_PORT = 10260
_RUNTIME = f"/run/containerd-{NUMBER}"
_CUTS = (
    *packets.from_api_server(POD_SUBNET),
    packets.between("FORWARD", "--source", POD_SUBNET, "--destination", node.POD_SUBNET),
    packets.between("FORWARD", "--source", node.POD_SUBNET, "--destination", POD_SUBNET),
)
_PATH = f"/api/v1/nodes/{NAME}"


def up(cluster: Cluster) -> None:
    """Add the node to a healthy cluster, with the images as they were last built, and wait until it takes pods.

    Raises:
        ComponentError: a component failed; the text names it and shows the end of its log.
    """
    remove(cluster)
    folder = _folder(cluster)
    folder.mkdir()
    seed.plant(seed.folder(), folder / "containerd")
    (folder / "cni").mkdir()
    (folder / "cni" / "10-pods.conflist").write_text(node.pod_network(folder, POD_SUBNET))
    (folder / "containerd.toml").write_text(node.containerd_config(folder, _RUNTIME))
    cgroups.create(_cgroup(cluster))
    _inside(cluster, "ip", "address", "replace", f"{ADDRESS}/24", "dev", node.NAME)
    control, socket = cluster.control, _socket(cluster)
    control.start(CONTAINERD, ["containerd", "--config", folder / "containerd.toml"])
    control.until(CONTAINERD, socket.exists, timeout=PATIENCE)
    seed.ctr(socket, "images", "import", cluster.folder / "busybox.tar")
    images.give_to(partial(seed.ctr, socket))
    first = json.loads((cluster.folder / "kubelet.json").read_text())
    (folder / "kubelet.json").write_text(json.dumps(kubelet_config(first, folder, _cgroup(cluster)), indent=2))
    kubeconfig = cluster.folder / f"{KUBELET}.kubeconfig"
    control.start(KUBELET, node.kubelet(folder, kubeconfig, NAME, ADDRESS))
    control.until(KUBELET, partial(open_for_pods, ApiClient(cluster.kubeconfig), NAME), timeout=PATIENCE)


def kubelet_config(first: dict[str, object], folder: Path, cgroup: str) -> dict[str, object]:
    """Return the KubeletConfiguration of this node, of the first one's; nothing that is written is shared. Pure."""
    return {
        **first,
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "cgroupRoot": f"/{cgroup}",
        "podLogsDir": str(folder / "pod-logs"),
        "volumePluginDir": str(folder / "volume-plugins"),
        "port": _KUBELET_PORT,
        "healthzPort": 0,
    }


def lose(cluster: Cluster) -> None:
    """Cut the node off at once: the control plane hears no more of it, its pods hear nothing of that and go on."""
    cluster.control.stop(KUBELET, grace=0)
    packets.lose(cluster, _CUTS)


def _fix(cluster: Cluster) -> None:
    """Let every packet through again."""
    for rule in _CUTS:
        with contextlib.suppress(ComponentError):
            packets.let_through(cluster, rule)


def find(cluster: Cluster) -> None:
    """Have the kubelet run again, whatever happened before, without out-of-service taint, and the node take pods.

    Raises:
        ComponentError: the node did not become ready.
    """
    _fix(cluster)
    if not cluster.control.alive(KUBELET):
        cluster.control.start_again(KUBELET)
    client = ApiClient(cluster.kubeconfig)
    cluster.control.until(KUBELET, partial(_ready, client), timeout=PATIENCE)
    taints = [t for t in client.get(_PATH)["spec"].get("taints", []) if not t["key"].endswith("/out-of-service")]
    client.merge(_PATH, {"spec": {"taints": taints or None, "unschedulable": None}})
    cluster.control.until(KUBELET, partial(open_for_pods, client, NAME), timeout=PATIENCE)


def remove(cluster: Cluster) -> None:
    """Take the node away as if the machine was: whatever runs there is killed. One that is not there is no error."""
    if not _folder(cluster).exists():
        return
    _fix(cluster)
    for component in (KUBELET, CONTAINERD):
        cluster.control.stop(component, grace=0)
    _kill_pods(cluster)
    _unlink(cluster)
    _unmount(cluster)
    shutil.rmtree(_folder(cluster))
    cgroups.remove(_cgroup(cluster))
    client = ApiClient(cluster.kubeconfig)
    with contextlib.suppress(OSError):
        client.call("DELETE", _PATH)
    # The garbage collector of pods would do so too, and takes its time.
    for pod in client.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}")["items"]:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        with contextlib.suppress(OSError):
            client.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})


def _kill_pods(cluster: Cluster) -> None:
    """Kill every process of the node's containers, and what containerd left to look after them."""
    end = time.monotonic() + ENDS_WITHIN
    while found := [pid for pid in descendants(cluster.control.first_process()) if _of_this_node(cluster, pid)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                ProcessIdentity.of(pid).kill()
        if time.monotonic() > end:
            raise ComponentError(f"processes of node {NAME} do not end: {found}")


def _of_this_node(cluster: Cluster, pid: int) -> bool:
    try:
        cgroup = Path(f"/proc/{pid}/cgroup").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_text()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return False
    return state not in "ZX" and (f"/{_cgroup(cluster)}/" in cgroup or str(_socket(cluster)) in command)


def _unmount(cluster: Cluster) -> None:
    mounted = Path(f"/proc/{cluster.control.first_process()}/mountinfo").read_text()
    for folder in (_folder(cluster), Path(_RUNTIME)):
        for mount in images.mounts_below(folder, mounted):
            _inside(cluster, "umount", "--lazy", mount)


def _unlink(cluster: Cluster) -> None:
    """Remove the links of the node's pods; the next pod with the same address would not be reached beside them."""
    routes = json.loads(_inside(cluster, "ip", "-json", "route", "show", "root", POD_SUBNET) or "[]")
    for device in {route["dev"] for route in routes}:
        _inside(cluster, "ip", "link", "delete", device)


def _ready(client: ApiClient) -> bool:
    conditions = client.get(_PATH)["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _inside(cluster: Cluster, *command: str | Path) -> str:
    done = subprocess.run(cluster.enter(*command), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ComponentError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def _folder(cluster: Cluster) -> Path:
    return cluster.folder / f"n{NUMBER}"


def _socket(cluster: Cluster) -> Path:
    return _folder(cluster) / "containerd.sock"


def _cgroup(cluster: Cluster) -> str:
    return node.cgroup(cluster.cgroup, NUMBER)
