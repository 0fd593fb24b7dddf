"""Makes faults happen on a development cluster. Kills processes, deletes pods, stops and starts servers.

A fault is aimed first, which may take its time, and fired at the chosen moment, which does not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from devcluster import kafka, s3
from devcluster.apiclient import ApiRefusedError
from tests.chaos.faults import Fault, Kind
from tidegate.pods.records.names import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from tidegate_testing.live_cluster import OPERATOR_NAMESPACE, LiveCluster, until_answers
from tidegate_testing.operator_pods import CONTAINER, IS_OPERATOR, SELECTOR, is_held_by
from tidegate_testing.pod_processes import Choice, find, is_jvm, runs_script
from tidegate_testing.waiting import wait_for

AIM_SECONDS = 300.0
"""The longest that is waited for a target: a pod that runs. While state is repartitioned there is no driver."""
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/tidegate-operator"


def _nothing() -> None:
    pass


def _at_once() -> bool:
    return True


class TargetGoneError(AssertionError):
    """What was aimed at went away before the shot: nothing was hit."""


@dataclass(frozen=True)
class Shot:
    """A fault that is aimed.

    Attributes:
        target: what it hits, for the log.
        fire: makes it happen; raises TargetGoneError if there was nothing to hit any more.
        heal: undoes it, after the outage; for what nobody but a person would bring back.
        past: says whether the world has reacted, so that a batch committed afterwards proves recovery.
    """

    target: str
    fire: Callable[[], object]
    heal: Callable[[], object] = _nothing
    past: Callable[[], bool] = _at_once


class Injector:
    """Aims at one application and what it depends on."""

    def __init__(self, live: LiveCluster, app: str) -> None:
        """Aim at ``app``'s pods in the cluster."""
        self._live, self._app = live, app

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
            case Kind.DRIVER_POD | Kind.EXECUTOR_POD | Kind.REPARTITION_POD:
                return self._pod(self._pod_of(fault), fault.orderly)
            case Kind.API_SERVER | Kind.ETCD:
                return self._control_plane("etcd" if fault.kind is Kind.ETCD else "kube-apiserver", fault.orderly)
            case Kind.S3:
                stop = partial(s3.stop, self._live.cluster, 5 if fault.orderly else 0)
                return Shot("S3 server", stop, heal=partial(s3.start, self._live.cluster))
            case Kind.KAFKA:
                stop = partial(kafka.stop, self._live.cluster, 15 if fault.orderly else 0)
                return Shot("Kafka broker", stop, heal=partial(kafka.start, self._live.cluster))

    # --- how ----------------------------------------------------------------------------------------------------------

    def _process(
        self, pod: dict[str, Any], container: str, choice: Choice, past: Callable[[], bool] = _at_once
    ) -> Shot:
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

    def _pod(self, pod: dict[str, Any], orderly: bool) -> Shot:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        path = f"/api/v1/namespaces/{self._live.namespace}/pods/{name}"
        # One second: SIGTERM, and SIGKILL before a boundary can be reached. No second would be a lie to the API.
        grace = {} if orderly else {"gracePeriodSeconds": 1}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}, **grace}

        def gone() -> bool:
            found = self._live.pod(name)
            return found is None or bool(found["metadata"]["uid"] != uid)

        def fire() -> None:
            try:
                self._live.api.call("DELETE", path, options)
            except ApiRefusedError as refused:
                if refused.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                    raise TargetGoneError(f"pod {name} was replaced: {refused}") from refused
                raise

        return Shot(f"pod {name}", fire, past=gone)

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
