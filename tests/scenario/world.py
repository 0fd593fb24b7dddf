"""One whole world: API server, store, cluster, operators, people; everything random comes from one seed."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast

from tests.scenario.api_server import APPS, MESSAGES, PODS, ApiServer, Body, Change, Place, RefusedError
from tests.scenario.cluster import Cluster, Container, Process
from tests.scenario.driver import DriverProcess
from tests.scenario.drivers_agent import Answered
from tests.scenario.faults import FaultInjection
from tests.scenario.invariants import Invariants
from tests.scenario.loop import VirtualLoop
from tests.scenario.object_store import ObjectStore
from tests.scenario.operators import ACTION, KEY_NAME, SYSTEM, OperatorProcess
from tests.scenario.operators import World as OperatorsWorld
from tests.scenario.rehearsals import PLACES, RehearsalProcess
from tests.scenario.repartitions import RepartitionProcess, is_of_nobody
from tests.scenario.small_processes import ExecutorProcess, PurgeProcess, RefusingProcess
from tests.scenario.surroundings import Ledger, config_of, is_copy
from tests.scenario.wire import Asked
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.api.streaming_app import API_VERSION
from tidegate.pods.records.names import DEFAULT_ACCOUNT, access_name
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.configuration_protocol import ConfigurationChangedError
from tidegate_spark.contract.protocol import (
    APP_FILE,
    LABEL_ROLE,
    LINEAGE_PREFIX,
    ROLE_EXECUTOR,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    DriverConfig,
)
from tidegate_spark.storage.claim.fence import Holder

START = 1_800_000_000.0
NAMESPACE = "shop"
BUCKET = "streams"
ORDERS, BILLING, INNER = "orders", "billing", "inner"
"""Applications; the third one's storage lies inside the first one's."""
_RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


class World(OperatorsWorld):
    """Everything there is."""

    def __init__(self, seed: int, note: Callable[[float, str, str], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.loop = cast(VirtualLoop, asyncio.get_running_loop())
        self._note = note
        self.violations: list[str] = []
        self.facts: Counter[str] = Counter()
        self.violation_found = asyncio.Event()
        self.faults = FaultInjection(self.rng)
        self.api = ApiServer(self.now, {NAMESPACE, SYSTEM}, self._admit)
        self.check = Invariants(self.api, self.violated, ACTION.get, self._decided_at, self.count, self._is_late)
        self.ledger: Ledger = self.check
        self.api.listeners.append(self.check.notice)
        self.api.listeners.append(self._note_end_of_app)
        self.store = ObjectStore(meanwhile=self._meanwhile, removed=self._removed)
        self.quota, self.input = False, True
        self.statuses: dict[str, list[Body]] = {}
        """Statuses that were backed up, by the uid of their application."""
        self.restored_messages: dict[str, bool] = {}
        """Those that a backup brought back, by uid, and whether it says that they have ended."""
        self.cluster_backup: dict[str, Body] = {}
        """All objects as they were when etcd was backed up, by their path."""
        self.all_noticed_at = 0.0
        """When each operator process of before etcd was restored has ended, at the latest."""
        self.copies: dict[str, dict[str, bytes]] = {}
        """Backups of storages, by their place."""
        self.newest: dict[str, dict[str, bytes]] = {}
        """What was in storages before an older backup was restored, by their place."""
        self.accepted: set[str] = set()
        """Uids of applications that were launched again on an older copy after a person had accepted it."""
        self.origin: StreamSnapshot | None = None
        """The snapshot that applications start from, if there is one."""
        self.bugs: dict[str, str] = {}
        """Applications that fail, with the spec with which they do, by its hash."""
        self.to_be_emptied: dict[str, str] = {}
        """Places of storage whose application is gone and wanted them emptied, with its uid."""
        self.zombies: set[str] = set()
        """Places of storage to which a process wrote, or may have, after its application was gone."""
        self.places_of_zombies: set[str] = set()
        """Where a rehearsal may have written after its pod was gone."""
        self.bound: dict[str, str] = {}
        """In the log of which application each message is, by their uids."""
        self._purging: DriverConfig | None = None
        self._disposed = ("", "")
        """Place and id of the snapshot that is removed just now."""
        self._interleaving = False
        self.cluster = Cluster(self, nodes=2)
        self.replicas = 1 if self.rng.random() < 0.3 else 2
        self.operators: list[OperatorProcess] = []
        self.leader: OperatorProcess | None = None
        self.launched = 0

    # --- time, chance, and what is said of both ---

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return START + self.loop.time()

    def later(self, seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        """Have something done later."""
        self.loop.call_later(seconds, do, *arguments)

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Return what is done after some seconds."""
        return self.loop.sleep(seconds)

    def some(self, low: float, high: float) -> float:
        """Return a random number."""
        return self.rng.uniform(low, high)

    def trace(self, who: str, text: str) -> None:
        """Note what happened, if somebody reads it."""
        if self._note is not None:
            self._note(self.loop.time(), who, text)

    def violated(self, text: str) -> None:
        """Note that something happened that never may."""
        self.trace("VIOLATION", text)
        self.violations.append(text)
        self.violation_found.set()

    # --- operators ---

    def leads(self, process: OperatorProcess) -> bool:
        """Return whether the Lease is this process's."""
        return self.leader is process

    def start_operator(self) -> None:
        """Have one more process."""
        self.launched += 1
        process = OperatorProcess(self, f"operator-{self.launched}")
        self.trace(process.name, "starts")
        self.operators.append(process)
        process.take_origin(None, self.origin)
        process.start()
        if self.leader is None:
            self.elect()

    def set_origin(self, origin: StreamSnapshot | None) -> None:
        """Have a snapshot that applications start from, or none; each operator hears of it in its time."""
        before, self.origin = self.origin, origin
        for process in self.operators:
            self.later(self.some(0.0, 3.0), process.take_origin, before, origin)

    def elect(self) -> None:
        """Give the Lease to a process that can renew it, if there is one."""
        fit = [each for each in self.operators if each.go_on.is_set() and not each.cut_off]
        self.leader = fit[0] if fit else None
        if self.leader is not None:
            self.trace(self.leader.name, "leads")
            self.leader.lead()

    def crash(self, process: OperatorProcess, why: str) -> None:
        """End a process at once; the kubelet starts another, and a standby takes over when the lease has run out."""
        if not process.alive:
            return
        self.trace(process.name, f"DIES {why}")
        process.end()
        self.operators.remove(process)
        if self.leader is process:
            self.leader = None
            self.later(self.some(1.0, 12.0), self._elect_if_nobody)
        self.later(self.some(2.0, 40.0) if self.operators else self.some(0.5, 15.0), self._replace_operator)

    def lose_lease(self, process: OperatorProcess) -> None:
        """The lease of a leader that cannot renew it has run out."""
        if self.leader is process and (process.cut_off or not process.go_on.is_set()):
            self.trace(process.name, "has lost the lease")
            self.leader = None
            self.elect()

    def _elect_if_nobody(self) -> None:
        if self.leader is None:
            self.elect()

    def _replace_operator(self) -> None:
        if len(self.operators) < self.replicas:
            self.start_operator()

    def _decided_at(self, namespace: str, app: str) -> int:
        begun = [each.began.get((namespace, app), 0) for each in self.operators if each.name == self.api.by]
        return max(begun, default=0)

    # --- pods and storage ---

    def make_process(self, container: Container, pod: Body) -> Process:
        """Return the process of a pod's main container."""
        try:
            return self._make_process(container, pod)
        except ConfigurationChangedError as error:
            self.count("found another configuration than its own")
            return RefusingProcess(pod, error)

    def _make_process(self, container: Container, pod: Body) -> Process:
        role = self.check.labels[pod["metadata"]["uid"]].get(LABEL_ROLE, "")
        if role == ROLE_EXECUTOR or not (pod["metadata"].get("ownerReferences") or is_copy(pod)):
            return ExecutorProcess()  # whatever runs in a stranger, it only stays
        if role == ROLE_PURGE:
            return PurgeProcess(self, container, pod)
        if role == ROLE_REHEARSAL:
            return RehearsalProcess(self, container, pod)
        if role == ROLE_REPARTITION:
            return RepartitionProcess(self, container, pod)
        driver = DriverProcess(self, container, pod)
        self.check.configured(container.path, container.mounted or {}, driver.config)
        app, known = self.app(driver.config.app), self.api.objects.get(container.path)
        is_gone = app is None or app["metadata"]["uid"] != driver.config.uid
        # Or its pod was removed by force between two processes, from a node that was cut off and not off.
        if is_gone or known is None or known["metadata"]["uid"] != container.uid:
            self.zombies.add(driver.prefix)
        return driver

    def left_by_living(self, prefix: str) -> list[str]:
        """Return the keys below a prefix that should be gone; a zombie's, and an earlier owner's, may be there."""
        claim = json.loads(self.store.objects.get(f"{prefix}/{APP_FILE}", b"{}"))
        # Without a claim of the application that is gone, nothing is deleted.
        if prefix in self.zombies or claim.get("uid") != self.to_be_emptied[prefix]:
            return []
        inside = f"{prefix}/{NAMESPACE}/"  # another application's, which does not have to end with this one
        # What a rehearsal on a node that is cut off writes, nobody can keep it from writing.
        return [key for key in self.store.keys(prefix + "/") if not key.startswith(inside) and PLACES not in key]

    def _is_late(self) -> bool:
        return bool(self.api.by) and (self.leader is None or self.leader.name != self.api.by)

    def _note_end_of_app(self, change: Change) -> None:
        if change.place.plural == PODS and change.type == "DELETED":
            container = self.find_container(change.body["metadata"]["uid"])
            if container is not None and isinstance(container.process, DriverProcess | RepartitionProcess):
                self.zombies.add(container.process.prefix)
            if container is not None and isinstance(container.process, RehearsalProcess) and container.process.alive:
                self.places_of_zombies.add(container.process.place)
        if change.place.plural != APPS or change.type != "DELETED":
            return
        spec, uid = change.body["spec"], change.body["metadata"]["uid"]
        prefix = _prefix_of(change.body, change.place.namespace, change.place.name)
        launched = (change.body.get("status") or {}).get("epoch", 0) > 0
        if spec["storage"].get("deletionPolicy") == "Delete" and launched and not self.check.wishes[uid].ever_lost:
            self.to_be_emptied[prefix] = uid
        else:
            self.to_be_emptied.pop(prefix, None)
        self.zombies |= {driver.prefix for driver in self.drivers() if driver.config.uid == uid}

    def come_back(self, app: Body) -> None:
        """A backup brings an application back that was deleted, or is being deleted."""
        metadata = app["metadata"]
        prefix = _prefix_of(app, metadata["namespace"], metadata["name"])
        if self.to_be_emptied.get(prefix) == metadata["uid"]:
            del self.to_be_emptied[prefix]
        status = app.get("status") or {}
        self.check.come_back(metadata["uid"], knows_batches=bool(status.get("batches")))

    def restored_message(self, message: Body) -> None:
        """A backup brings a message back, or what was said of it."""
        uid, phase = message["metadata"]["uid"], (message.get("status") or {}).get("phase")
        ended, logged = phase in ("Applied", "Failed", "Expired"), uid in self.bound
        self.restored_messages[uid] = ended
        self.count(f"a message is there again{', which was logged' if logged and not ended else ''}")

    def drivers(self) -> list[DriverProcess]:
        """Return all driver processes that live, zombies too."""
        processes = [container.process for container in self.cluster.containers.values()]
        return [process for process in processes if isinstance(process, DriverProcess)]

    def find_container(self, uid: str) -> Container | None:
        """Return the container of the pod with this uid."""
        return self.cluster.containers.get(uid)

    def changed(self, container: Container) -> None:
        """A process is ready now, or not any more."""
        self.cluster.report(container)

    def count(self, what: str) -> None:
        """Count something that should happen now and then."""
        self.facts[what] += 1

    def unhealthy(self, container: Container) -> None:
        """The liveness probe fails from now on."""
        self.count("stalled")
        self.cluster.unhealthy(container)

    def is_broken(self, uid: str, spec_hash: str) -> bool:
        """Return whether an application fails with this spec."""
        return self.bugs.get(uid) == spec_hash

    def driver_may(self, name: str) -> bool:
        """Return whether the driver of an application has the rights it needs."""
        account, role, binding = map(self.api.find, self.access_paths(name))
        return bool(role and role.get("rules") and binding and binding.get("subjects") and account)

    def entered(self, prefix: str, holder: Holder) -> None:
        """A driver took the fence of its storage: no other one may write inside it, or around it."""
        if self._is_zombie(holder):
            return
        for other in self.drivers():
            ends = (f"{prefix}/", f"{other.prefix}/")
            overlap = ends[0] != ends[1] and (ends[0].startswith(ends[1]) or ends[1].startswith(ends[0]))
            if overlap and other.has_fence() and not self._is_zombie(other.holder):
                self.violated(f"drivers write {prefix} and {other.prefix}")

    def _is_zombie(self, holder: Holder) -> bool:
        """Return whether the API knows a driver's pod, or its application, no more: people said that its node is off.

        The kubelet there may start it again. Nothing keeps such a one from its own storage but the fence in it.
        """
        uids = {body["metadata"]["uid"] for plural in (PODS, APPS) for body in self.api.all(plural)}
        return not {holder.pod_uid, holder.uid} <= uids

    def purging(self, config: DriverConfig | None) -> None:
        """A purge begins, or has ended (None)."""
        if config is None and self._purging is not None:
            prefix = f"{self._purging.storage.bucket}/{self._purging.storage.prefix}"
            # What another application has in a folder of it stays.
            if not (self.store.keys(f"{prefix}/{APP_FILE}") or self.store.keys(f"{prefix}/{LINEAGE_PREFIX}/")):
                self.check.emptied(prefix)
        self._purging = config

    def disposing(self, config: DriverConfig, snapshot: str) -> None:
        """A driver is about to remove a snapshot, because it was told to."""
        app = self.app(config.app)
        upgrade = ((app or {}).get("status") or {}).get("upgrade") or {}
        same = app is not None and app["metadata"]["uid"] == config.uid
        prefix = f"{config.storage.bucket}/{config.storage.prefix}/"
        # An order that comes late, after its end was told, has nothing left to remove.
        there = any(key in self.store.objects for key in _files_of(prefix, snapshot))
        # Ordered just after etcd was restored, it is as if it had been just before: the storage is not restored.
        known = snapshot in upgrade.get("obsolete", ()) or self.now() <= self.all_noticed_at
        if there and same and upgrade and not known:
            self.violated(f"{snapshot} of {config.app} is disposed of, and its status does not say so")
        self._disposed = prefix, snapshot

    def logged(self, config: DriverConfig, before: list[str], message: str) -> None:
        """A driver has appended a message to its log, after these of the same application."""
        self.count("logged a message")
        if self.restored_messages.get(message):
            self.violated(f"{message} is logged by {config.app}, and had ended")
        if message in before:
            self.violated(f"{message} is in the log of {config.app} twice")
        earlier = self.api.born.get(before[-1], 0) if before else 0
        overtaken = not self.restored_messages.keys().isdisjoint({message, *before[-1:]})
        if not overtaken and earlier > self.api.born.get(message, 0):
            self.violated(f"{message} is in the log of {config.app} after {before[-1]}, which was sent later")
        sent_to = self.bound.setdefault(message, config.uid)
        if sent_to != config.uid:
            self.violated(f"{message} is in the logs of two applications: {sent_to} and {config.uid}")

    def _removed(self, key: str) -> None:
        prefix, snapshot = self._disposed
        if PLACES in key or is_of_nobody(key, self.store.objects, self.check.run_in):
            return
        # Before the bucket stands the store, if it is another one.
        if snapshot and any(f"/{key}".endswith(f"/{file}") for file in _files_of(prefix, snapshot)):
            return
        self.check.removed(key, self._purging)

    def _meanwhile(self, key: str) -> None:
        """Between a read and a conditional write another driver that is about to take the fence may do so."""
        if self._interleaving or self.rng.random() > 0.3:
            return
        for driver in self.drivers():
            if driver.entering and driver.may_enter() and self.rng.random() < 0.5:
                self._interleaving = True
                driver.enter_meanwhile()
                self._interleaving = False

    def _admit(self, place: Place, manifest: Body) -> None:
        if place.plural != PODS or not self.api.by.startswith("operator"):
            return
        if self.quota:
            raise RefusedError(403, "Forbidden", "exceeded quota.")
        account = manifest["spec"].get("serviceAccountName", DEFAULT_ACCOUNT)
        if account != DEFAULT_ACCOUNT and self.api.find(f"{ACCOUNTS}/{account}") is None:
            raise RefusedError(403, "Forbidden", "error looking up service account.")

    def ask_agent(self, pod: PodRecord, asked: Asked) -> Answered:
        """Return an agent's answer; with a body it is an order.

        Raises:
            OSError: it is not reached.
        """
        container = self.cluster.containers.get(pod.uid)
        driver = container.process if container is not None else None
        if container is None or not isinstance(driver, DriverProcess) or not container.node.reachable:
            raise OSError("no route to host")
        return driver.agent.answer(*asked)

    # --- people ---

    def app_path(self, name: str) -> str:
        """Return an application's path."""
        return f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/streamingapps/{name}"

    def app(self, name: str) -> Body | None:
        """Return an application."""
        return self.api.find(self.app_path(name))

    @property
    def messages_path(self) -> str:
        """Return the path of the control messages."""
        return f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{MESSAGES}"

    def driver_path(self, name: str) -> str:
        """Return the path of an application's driver pod."""
        return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}-driver"

    def access_paths(self, name: str) -> tuple[str, str, str]:
        """Return the paths of an application's ServiceAccount, Role and RoleBinding."""
        access = access_name(name)
        return f"{ACCOUNTS}/{access}", f"{_RBAC}/roles/{access}", f"{_RBAC}/rolebindings/{access}"

    @property
    def key_path(self) -> str:
        """Return the path of the Secret with the operator's key."""
        return f"/api/v1/namespaces/{SYSTEM}/secrets/{KEY_NAME}"

    def reaches(self, name: str) -> bool:
        """Return whether the leader has the key with which an application's driver was launched."""
        pod = self.api.find(self.driver_path(name))
        return pod is None or self.leader is None or self.leader.has_key_of(config_of(pod))

    def find_secret(self, name: str) -> Body | None:
        """Return a Secret of the applications' namespace."""
        return self.api.find(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")


def _prefix_of(app: Body, namespace: str, name: str) -> str:
    return f"{app['spec']['storage']['uri'].removeprefix('s3://')}/{namespace}/{name}"


def _files_of(prefix: str, snapshot: str) -> tuple[str, str]:
    return f"{prefix}snapshots/{snapshot}/manifest.json", f"{prefix}upgrades/{snapshot}.json"
