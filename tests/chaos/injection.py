"""Makes faults happen on a development cluster. Kills processes, deletes pods, stops and starts servers.

A fault is aimed first, which may take its time, and fired at the chosen moment, which does not.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from devcluster import kafka, s3
from devcluster.apiclient import ApiRefusedError
from tests.chaos.faults import Fault, Kind
from tests.chaos.losses import Losses, StoredCatalog
from tests.chaos.shots import Shot, TargetGoneError, at_once, together
from tidegate.pods.records.names import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from tidegate_testing.live_cluster import OPERATOR_NAMESPACE, LiveCluster, until_answers
from tidegate_testing.operator_pods import CONTAINER, IS_OPERATOR, SELECTOR, is_held_by
from tidegate_testing.pod_processes import Choice, find, is_jvm, runs_script
from tidegate_testing.waiting import wait_for

AIM_SECONDS = 300.0
"""The longest that is waited for a target: a pod that runs. While state is repartitioned there is no driver."""
NO_PODS = "no-pods"
"""The name of the quota that forbids them."""
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/tidegate-operator"


class Injector:
    """Aims at one application and what it depends on."""

    def __init__(self, live: LiveCluster, app: str, losses: Losses | None = None) -> None:
        """Aim at ``app``'s pods in the cluster, and at what ``losses`` takes."""
        self._live, self._app = live, app
        self._losses = losses or Losses(live, app, StoredCatalog(live, app))

    def note(self) -> None:
        """Note what a later fault puts back; between two faults."""
        self._losses.note()

    def aim(self, fault: Fault) -> Shot:
        """Return the shot, once there is something to hit; raise AssertionError if there is not for long."""
        until_answers(self._live, AIM_SECONDS)
        return wait_for(f"a target of {fault.kind}", partial(self._aim, fault), AIM_SECONDS, 0.2)

    def _aim(self, fault: Fault) -> Shot:
        try:
            return self._shot(fault)
        except OSError as refused:
            raise AssertionError(f"cannot aim yet: {refused}") from refused

    def _shot(self, fault: Fault) -> Shot:  # noqa: PLR0911 - one arm each
        match fault.kind:
            case Kind.DRIVER_JVM:
                return self._process(self._driver(), DRIVER_CONTAINER, is_jvm)
            case Kind.DRIVER_PYTHON:
                return self._process(self._driver(), DRIVER_CONTAINER, runs_script)
            case Kind.EXECUTOR_PROCESS:
                return self._process(self._executor(fault.moment), EXECUTOR_CONTAINER, is_jvm)
            case Kind.OPERATOR:
                return self._operator()
            case Kind.QUOTA:
                return together(self._pod(self._driver(), fault.orderly), self._quota())
            case Kind.STATUS | Kind.OLDER_STATUS | Kind.LABELS | Kind.CATALOG | Kind.RESOURCE:
                return self._loss(fault)
            case Kind.DRIVER_POD | Kind.EXECUTOR_POD | Kind.REPARTITION_POD | Kind.EVICTION:
                return self._pod(self._pod_of(fault), fault.orderly, evicted=fault.kind is Kind.EVICTION)
            case _:
                return self._server(fault.kind, fault.orderly)

    # --- how ----------------------------------------------------------------------------------------------------------

    def _process(self, pod: dict[str, Any], container: str, choice: Choice, past: Callable[[], bool] = at_once) -> Shot:
        process = find(self._live.cluster, pod, container, choice)
        name = pod["metadata"]["name"]

        def fire() -> None:
            if not process.identity.alive():
                raise TargetGoneError(f"process {process.program} of {name} has ended by itself")
            process.kill()

        return Shot(f"process {process.program} of {name}", fire, past=past)

    def _operator(self) -> Shot:
        """Aim at the leader; the application does not need it, so what is survived is that another one leads."""
        killed = self._leader()
        pods = self._live.pods(OPERATOR_NAMESPACE, SELECTOR)
        leading = [pod for pod in pods if is_held_by(killed, pod)]
        assert leading, f"no operator pod is {killed!r}"

        def another_leads() -> bool:
            return self._leader() not in ("", killed)

        return self._process(leading[0], CONTAINER, IS_OPERATOR, past=another_leads)

    def _loss(self, fault: Fault) -> Shot:
        """Aim at what the operator relies on; with it at a pod or a process, unless in order."""
        losses, alone = self._losses, fault.orderly
        match fault.kind:
            case Kind.LABELS:
                shot = losses.labels(self._driver(), put_back=alone)
                return shot if alone else together(self._operator(), shot)
            case Kind.CATALOG:
                return losses.catalog(fault.moment if alone else None)
            case Kind.RESOURCE:
                return losses.resource(by_force=not alone)
            case _:
                shot = losses.status(fault.moment if fault.kind is Kind.OLDER_STATUS else None)
                return shot if alone else together(self._pod(self._driver(), orderly=False), shot)

    def _quota(self) -> Shot:
        path = f"/api/v1/namespaces/{self._live.namespace}/resourcequotas"
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": NO_PODS}}
        forbid = partial(self._live.api.create, path, {**quota, "spec": {"hard": {"pods": "0"}}})
        return Shot("quota", forbid, heal=partial(self._live.api.call, "DELETE", f"{path}/{NO_PODS}"))

    def _pod(self, pod: dict[str, Any], orderly: bool, *, evicted: bool = False) -> Shot:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        path = f"/api/v1/namespaces/{self._live.namespace}/pods/{name}"
        # One second: SIGTERM, and SIGKILL before a boundary can be reached. No second would be a lie to the API.
        grace = {} if orderly else {"gracePeriodSeconds": 1}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}, **grace}
        metadata = {"name": name, "namespace": self._live.namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        request = ("POST", f"{path}/eviction", eviction) if evicted else ("DELETE", path, options)

        def gone() -> bool:
            found = self._live.pod(name)
            return found is None or bool(found["metadata"]["uid"] != uid)

        def fire() -> None:
            try:
                self._live.api.call(*request)
            except ApiRefusedError as refused:
                if refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                    raise TargetGoneError(f"pod {name} was replaced: {refused}") from refused
                raise

        return Shot(f"pod {name}", fire, past=gone)

    def _server(self, kind: Kind, orderly: bool) -> Shot:
        cluster = self._live.cluster
        match kind:
            case Kind.S3:
                stop = partial(s3.stop, cluster, 5 if orderly else 0)
                return Shot("S3 server", stop, heal=partial(s3.start, cluster))
            case Kind.KAFKA:
                stop = partial(kafka.stop, cluster, 15 if orderly else 0)
                return Shot("Kafka broker", stop, heal=partial(kafka.start, cluster))
            case _:
                return self._control_plane("etcd" if kind is Kind.ETCD else "kube-apiserver", orderly)

    def _control_plane(self, component: str, orderly: bool) -> Shot:
        control = self._live.cluster.control

        def restart() -> None:
            control.stop(component, 5 if orderly else 0)
            control.start_again(component)

        def heal() -> None:
            until_answers(self._live)
            # Any other component that took it ill is started again, as a machine's service manager would.
            for name, state in control.components().items():
                if state["code"] is not None and name != "preparation":
                    control.start_again(name)

        return Shot(component, restart, heal=heal)

    # --- whom ---------------------------------------------------------------------------------------------------------

    def _pod_of(self, fault: Fault) -> dict[str, Any]:
        if fault.kind is Kind.REPARTITION_POD:
            return self._repartition()
        if fault.kind is Kind.EVICTION:
            # Of the driver as often as of an executor.
            return self._driver() if fault.moment < 0.5 else self._executor(2 * fault.moment - 1)
        return self._driver() if fault.kind is Kind.DRIVER_POD else self._executor(fault.moment)

    def _driver(self) -> dict[str, Any]:
        pod = self._live.pod(f"{self._app}-driver")
        assert pod is not None, "there is no driver pod"
        assert "deletionTimestamp" not in pod["metadata"], "the driver pod is going away"
        return pod

    def _executor(self, moment: float) -> dict[str, Any]:
        alive = self._running("executor")
        assert alive, "no executor runs"
        return alive[int(moment * len(alive))]

    def _repartition(self) -> dict[str, Any]:
        alive = self._running("repartition")
        assert alive, "no repartition pod runs"
        return alive[0]

    def _running(self, role: str) -> list[dict[str, Any]]:
        pods = self._live.pods(self._live.namespace, f"tidegate.dev/app={self._app},tidegate.dev/role={role}")
        alive = [p for p in pods if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]]
        return sorted(alive, key=lambda p: str(p["metadata"]["name"]))

    def _leader(self) -> str:
        """Return the identity of the process that leads; empty if none does."""
        lease = self._live.get(LEASE) or {}
        return str(lease.get("spec", {}).get("holderIdentity") or "")
