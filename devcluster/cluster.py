"""A full Kubernetes with one node, in namespaces of its own on this machine. Starts processes, writes files."""

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from devcluster import busybox, cgroups, controlplane, node, paths, private, seed, tools
from devcluster.apiclient import ApiClient
from devcluster.control import ENDS_WITHIN, PATIENCE, ComponentError, Control, Forward, free_listener
from devcluster.controlplane import Addresses
from devcluster.pki import Pki
from devcluster.site import Listeners, S3Keys

LISTENERS = Listeners(
    node.ADDRESS,
    s3=7070,
    kafka_pods=9092,
    kafka_host=9093,
    kafka_controller=9094,
    kafka_sasl=9095,
    rabbitmq=5672,
    rabbitmq_distribution=25672,
    epmd=4369,
)

# Longest socket below the state folder is n1/kubelet/device-plugins/kubelet.sock; the kernel takes 107 characters.
_LONGEST_FOLDER = 67


@dataclass(frozen=True)
class State:
    """What a cluster decides once, at ``up``. Ports are on 127.0.0.1 of the machine and forwarded into the cluster."""

    api_port: int
    s3_port: int
    kafka_port: int
    s3_keys: S3Keys
    rabbitmq_port: int = 0

    def write(self, folder: Path) -> None:
        """Write it into a cluster's folder, for its owner's eyes only."""
        private.write(folder / "state.json", json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "State":
        """Return what ``write`` wrote; raise FileNotFoundError if it did not."""
        content = json.loads((folder / "state.json").read_text())
        return cls(**{**content, "s3_keys": S3Keys(**content["s3_keys"])})


class Cluster:
    """One named cluster. Creating the object starts nothing."""

    def __init__(self, name: str = "dev") -> None:
        """Take a name: at most 30 lower-case letters, digits and '-'."""
        self.name = name
        self.folder = paths.state(name)
        if len(str(self.folder)) > _LONGEST_FOLDER:
            raise ValueError(f"{self.folder} is too long for sockets below it: set TIDEGATE_CACHE to a shorter path")
        self.kubeconfig = self.folder / "kubeconfig"
        self.audit_log = self.folder / "audit.jsonl"
        """The API server's audit log: JSON lines, one for each complete request that may have changed something."""
        self.control = Control(self.folder)
        self.cgroup = cgroups.name(name, self.folder)
        """Parent of the cgroups of all pods; with a suffix, of those of another node."""

    # --- life ---

    def up(self, *, seeded: bool = False) -> "Cluster":
        """Start it and wait until pods can run; a healthy one is kept, the remains of a broken one are removed first.

        Args:
            seeded: a new one starts with the images that are in the seed (:mod:`devcluster.seed`), if there is one.

        Raises:
            ComponentError: a component failed; the text names it and shows the end of its log.
            PermissionError: not root.
        """
        if os.geteuid() != 0:
            raise PermissionError("a cluster needs root: namespaces, mounts and cgroups are its substance")
        tools.ensure()
        with self._alone():
            if not self.healthy():
                self._remove()
                self._start(seeded)
        return self

    def down(self) -> None:
        """End every process and remove every file, mount, namespace and cgroup; what is not there is no error."""
        with self._alone():
            self._remove()

    def healthy(self) -> bool:
        """Say whether all components run and the API server serves."""
        return self.problem() is None

    def problem(self) -> str | None:
        """Return what is wrong, None if all is well."""
        if not self.control.running():
            return "is down"
        if not self.control.answers():
            return "has a supervisor that does not answer"
        ended = [n for n, c in self.control.components().items() if c["code"] is not None and n in _COMPONENTS]
        missing = sorted(_COMPONENTS - set(self.control.components()))
        if ended or missing:
            return f"has components that do not run: {', '.join([*ended, *missing])}"
        try:
            ApiClient(self.kubeconfig).ready()
        except (OSError, ValueError) as unreachable:
            return f"has an API server that does not answer: {unreachable}"
        return None

    # --- what others need of it ---

    @property
    def state(self) -> State:
        """Return ports and keys; raise ComponentError if the cluster is down."""
        try:
            return State.read(self.folder)
        except FileNotFoundError:
            raise ComponentError(f"cluster {self.name!r} is down: make cluster-up NAME={self.name}") from None

    @property
    def kubectl(self) -> Path:
        """Return the path of a kubectl of the cluster's version."""
        return tools.program("kubectl")

    @property
    def listeners(self) -> Listeners:
        """Return where services listen inside the namespace."""
        return LISTENERS

    @property
    def s3_keys(self) -> S3Keys:
        """Return the S3 server's keys."""
        return self.state.s3_keys

    @property
    def s3_endpoint_pods(self) -> str:
        """Return the S3 server's address for pods."""
        return f"http://{LISTENERS.host}:{LISTENERS.s3}"

    @property
    def s3_endpoint_host(self) -> str:
        """Return the S3 server's address for the machine."""
        return f"http://127.0.0.1:{self.state.s3_port}"

    @property
    def kafka_pods(self) -> str:
        """Return the Kafka broker's bootstrap address for pods."""
        return f"{LISTENERS.host}:{LISTENERS.kafka_pods}"

    @property
    def kafka_host(self) -> str:
        """Return the Kafka broker's bootstrap address for the machine."""
        return f"127.0.0.1:{self.state.kafka_port}"

    @property
    def rabbitmq_pods(self) -> str:
        """Return RabbitMQ's host and port for pods."""
        return f"{LISTENERS.host}:{LISTENERS.rabbitmq}"

    @property
    def rabbitmq_host(self) -> str:
        """Return RabbitMQ's host and port for the machine."""
        return f"127.0.0.1:{self.state.rabbitmq_port}"

    def enter(self, *command: str | Path) -> list[str]:
        """Return ``command`` wrapped so that it runs inside the cluster's namespaces."""
        inside = ("--net", "--mount", "--pid")
        return ["nsenter", "--target", str(self.control.first_process()), *inside, "--", *map(str, command)]

    def ctr(self, *arguments: str | Path) -> str:
        """Run containerd's own client on the cluster's image store; return what it printed."""
        return seed.ctr(self.folder / "containerd.sock", *arguments)

    # --- how ---

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep two ``up`` or ``down`` of one cluster apart; leaves no lock file when the cluster is gone."""
        path = self.folder.with_name(f".{self.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with path.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Whoever held it before may have removed the file: then others lock a new one, and so must we.
                if not path.exists() or not path.samefile(f"/proc/self/fd/{lock.fileno()}"):
                    continue
                try:
                    yield
                finally:
                    if not self.folder.exists():
                        path.unlink()
                return

    def _remove(self) -> None:
        self.control.end()
        for number in range(len(node.NAMES)):
            cgroups.remove(node.cgroup(self.cgroup, number))
        end = time.monotonic() + ENDS_WITHIN
        while self.folder.exists():
            # Mounts below the folder go with the namespace, a moment after its last process.
            try:
                shutil.rmtree(self.folder)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def _start(self, seeded: bool) -> None:
        private.make_folder(self.folder)
        listeners = [free_listener() for _ in range(4)]
        ports = [listener.getsockname()[1] for listener in listeners]
        state = State(ports[0], ports[1], ports[2], S3Keys.new(), ports[3])
        state.write(self.folder)
        targets = (node.API_PORT, LISTENERS.s3, LISTENERS.kafka_host, LISTENERS.rabbitmq)
        self.control.launch(
            [Forward(listener, node.ADDRESS, port) for listener, port in zip(listeners, targets, strict=True)],
            namespaces=True,
        )
        for listener in listeners:
            listener.close()
        self._run("preparation", ["sh", "-c", node.preparation(paths.cache()), "sh", paths.cache()])
        cgroups.create(self.cgroup)
        addresses = Addresses(node.ADDRESS, node.API_PORT, 2379, 2380, reachable_api_port=state.api_port)
        self.control.start("etcd", controlplane.etcd(self.folder, addresses))
        everybody = controlplane.users(node.NAMES)
        identity = controlplane.write_identities(self.folder, addresses, everybody, audit_reads=False)
        self._start_containerd(seeded)
        self._start_api_server(addresses, identity)
        self._start_node(identity)

    def _start_containerd(self, seeded: bool) -> None:
        if seeded:
            seed.plant(seed.folder(), self.folder / "containerd")
        (self.folder / "cni").mkdir()
        (self.folder / "cni" / "10-pods.conflist").write_text(node.pod_network(self.folder))
        (self.folder / "containerd.toml").write_text(node.containerd_config(self.folder))
        self.control.start("containerd", ["containerd", "--config", self.folder / "containerd.toml"])

    def _start_api_server(self, addresses: Addresses, identity: Pki) -> None:
        common = controlplane.apiserver(self.folder, addresses, identity, audit_log=self.audit_log)
        self.control.start("kube-apiserver", [*common, *node.api_server_flags(identity)])
        archive = self.folder / "busybox.tar"
        busybox.write_archive(archive)
        self.control.until("containerd", (self.folder / "containerd.sock").exists, timeout=PATIENCE)
        self.ctr("images", "import", archive)
        client = ApiClient(self.kubeconfig)
        self.control.until("kube-apiserver", client.ready, timeout=PATIENCE)

    def _start_node(self, identity: Pki) -> None:
        client = ApiClient(self.kubeconfig)
        self.control.start("kube-controller-manager", controlplane.controller_manager(self.folder, identity))
        self.control.start("kube-scheduler", controlplane.scheduler(self.folder))
        configuration = node.kubelet_config(self.folder, self.cgroup, identity)
        (self.folder / "kubelet.json").write_text(json.dumps(configuration, indent=2))
        self.control.start("kubelet", node.kubelet(self.folder, self.folder / "kubelet.kubeconfig"))
        self.control.start("kube-proxy", node.kube_proxy(self.folder))
        (self.folder / "Corefile").write_text(node.corefile(self.folder))
        self.control.until("kube-apiserver", lambda: client.exists("/api/v1/namespaces/kube-system"), timeout=PATIENCE)
        for path, content in node.dns_objects():
            client.create(path, content)
        self.control.start("coredns", node.coredns(self.folder))
        self.control.until("kubelet", partial(open_for_pods, client, node.NAME), timeout=PATIENCE)
        self.control.until("coredns", self._resolves, timeout=PATIENCE)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.control.until("kube-controller-manager", lambda: client.exists(account), timeout=PATIENCE)

    def _resolves(self) -> bool:
        """Ask CoreDNS through its service address: proves kube-proxy as well."""
        question = ["busybox", "nslookup", "kubernetes.default.svc.cluster.local", node.DNS_SERVICE]
        try:
            return subprocess.run(self.enter(*question), capture_output=True, timeout=20, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _run(self, name: str, command: Sequence[str | Path]) -> None:
        """Run a command to its end inside the namespaces."""
        self.control.start(name, command)
        self.control.finished(name, timeout=PATIENCE)


_COMPONENTS = {
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "containerd",
    "kubelet",
    "kube-proxy",
    "coredns",
}


def open_for_pods(client: ApiClient, name: str) -> bool:
    """Say whether the node ``name`` is ready and has no taints; raise OSError if it is not there."""
    found = client.get(f"/api/v1/nodes/{name}")
    conditions = {c["type"]: c["status"] for c in found["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not found["spec"].get("taints")
