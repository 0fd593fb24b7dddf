"""A real API server on 127.0.0.1, without node or namespaces of the kernel: for integration and fleet tests."""

from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster import controlplane, kwok, paths, private, tools
from devcluster.apiclient import ApiClient
from devcluster.control import PATIENCE, ComponentError, Control, free_port, sweep
from devcluster.controlplane import Addresses

_ATTEMPTS = 3


class ApiServer:
    """etcd and kube-apiserver, optionally with controllers, scheduler and simulated nodes.

    A context manager; without a name it ends with this process, however that ends::

        with ApiServer(audit_log=True) as server:
            run(kubeconfig=server.kubeconfig)

    Attributes:
        kubeconfig: path of a kubeconfig with all rights; exists once started.
        audit_log: path of the audit log (JSON lines, level Metadata, one per complete request), None if not asked for.
        kubectl: path of a kubectl of the same version.
    """

    def __init__(
        self, name: str | None = None, *, controllers: bool = False, kwok_nodes: int = 0, audit_log: bool = False
    ) -> None:
        """Describe the server; ``start`` or ``with`` starts it.

        Args:
            name: name of its state; named ones stay until ``stop``. None: a fresh name, bound to this process.
            controllers: run kube-controller-manager (garbage collection, ends of namespaces, ServiceAccounts).
                Without it, pods need no ServiceAccount and nothing is collected.
            kwok_nodes: number of simulated nodes; more than none brings controllers and the scheduler too.
            audit_log: write one.
        """
        sweep()
        self.bound = name is None
        self.name = name or paths.bound_name()
        self.controllers = controllers or kwok_nodes > 0
        self.kwok_nodes = kwok_nodes
        self.folder = paths.state(self.name)
        self.kubeconfig = self.folder / "kubeconfig"
        self.audit_log = self.folder / "audit.jsonl" if audit_log else None
        self.control = Control(self.folder)

    @property
    def kubectl(self) -> Path:
        """Return the path of kubectl."""
        return tools.program("kubectl")

    def running(self) -> bool:
        """Say whether all components run and the API server serves."""
        if not self.control.answers() or any(c["code"] is not None for c in self.control.components().values()):
            return False
        try:
            return ApiClient(self.kubeconfig).ready()
        except (OSError, ValueError):
            return False

    def start(self) -> Self:
        """Start everything and wait until it serves (about 3 s); one that runs already is kept.

        Raises:
            ComponentError: a component failed; the text names it and shows the end of its log.
        """
        if not self.bound and self.running():
            return self
        tools.ensure()
        for attempt in range(1, _ATTEMPTS + 1):
            self.control.wipe()
            try:
                self._start_once()
            except ComponentError as failed:
                self.control.end()
                # Another process may take a free port between our look and our server's start.
                if "address already in use" not in str(failed) or attempt == _ATTEMPTS:
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End every process and remove all files."""
        self.control.wipe()

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self.stop()

    def _start_once(self) -> None:
        private.make_folder(self.folder)
        port = free_port()
        addresses = Addresses("127.0.0.1", port, free_port(), free_port(), reachable_api_port=port)
        self.control.launch(bound=self.bound)
        self.control.start("etcd", controlplane.etcd(self.folder, addresses))
        identity = controlplane.write_identities(self.folder, addresses, controlplane.users())
        self.control.start(
            "kube-apiserver",
            [
                *controlplane.apiserver(self.folder, addresses, identity, audit_log=self.audit_log),
                *("--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"),
                # A loopback address is no endpoint, and nobody here looks for one.
                *("--endpoint-reconciler-type", "none"),
                # Without controllers nobody makes the ServiceAccounts that this plugin wants for every pod.
                *(() if self.controllers else ("--disable-admission-plugins", "ServiceAccount")),
            ],
        )
        client = ApiClient(self.kubeconfig)
        self.control.until("kube-apiserver", client.ready, timeout=PATIENCE)
        # The last thing a starting API server makes; before it, creating in "default" fails now and then.
        self.control.until("kube-apiserver", lambda: client.exists("/api/v1/namespaces/default"), timeout=PATIENCE)
        if self.controllers:
            self.control.start("kube-controller-manager", controlplane.controller_manager(self.folder, identity))
        if self.kwok_nodes:
            self._start_nodes(client)
        if self.controllers:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self.control.until("kube-controller-manager", lambda: client.exists(account), timeout=PATIENCE)

    def _start_nodes(self, client: ApiClient) -> None:
        self.control.start("kube-scheduler", controlplane.scheduler(self.folder))
        self.control.start("kwok", kwok.command(self.folder))
        for number in range(self.kwok_nodes):
            client.create("/api/v1/nodes", kwok.node(number))
        self.control.until("kwok", lambda: _schedulable(client) >= self.kwok_nodes, timeout=PATIENCE)


def _schedulable(client: ApiClient) -> int:
    """Count the nodes that are ready and that no taint closes."""
    return sum(
        not node["spec"].get("taints")
        and any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))
        for node in client.get("/api/v1/nodes")["items"]
    )
