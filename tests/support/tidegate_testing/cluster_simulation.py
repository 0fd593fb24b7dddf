"""A cluster small enough to be a value: one application, its pods, a kubelet and people who do things. Pure.

Plans are carried out on it by :mod:`tidegate_testing.plan_interpreter`.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.api.spec_hash import spec_hash
from tidegate.api.stream_snapshot import StreamSnapshotStatus
from tidegate.api.streaming_app import StreamingApp, StreamingAppStatus
from tidegate.app.observation import Observation
from tidegate.cache.process_state import ProcessState, Refusal, TimedReport
from tidegate.pods.records.record import PodRecord, Waiting
from tidegate_spark.contract.protocol import (
    ANNOTATION_SPEC_HASH,
    FINALIZER,
    LABEL_EPOCH,
    LABEL_ROLE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    AgentReport,
    DriverState,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_testing.observations import NOW, PLATFORM, deleted, driver_of, ended_with, executor_of
from tidegate_testing.plan_interpreter import PlanInterpreter

DRIVER, PURGE = "orders-driver", "orders-purge"


@dataclass
class Cluster(PlanInterpreter):
    """The world; methods are what happens in it."""

    app: StreamingApp | None
    now: float = NOW
    pods: dict[str, PodRecord] = field(default_factory=dict)
    access: bool = False
    secrets: set[int] = field(default_factory=set)
    """Epochs of launches whose Secrets are there."""
    executors_wanted: int = 1
    quota: bool = False
    """Pods are refused."""
    memory: ProcessState = field(default_factory=ProcessState)
    launches: list[int] = field(default_factory=list)
    """Epochs of all driver pods that ever were."""
    began: dict[int, float] = field(default_factory=dict)
    """Epoch -> when its driver's pod was created."""
    deletions: list[str] = field(default_factory=list)
    _serial: int = 0

    # --- what the operator sees and does ---

    def observe(self) -> Observation | None:
        """Return what the operator would observe now."""
        if self.app is None:
            return None
        driver = self.pods.get(DRIVER)
        running = driver is not None and driver.running
        return Observation(
            app=self.app,
            spec_hash=spec_hash(self.app),
            platform=PLATFORM,
            driver=driver,
            executors=tuple(pod for _, pod in sorted(self.pods.items()) if pod.role == "executor"),
            purge=self.pods.get(PURGE),
            rehearsals=tuple(pod for _, pod in sorted(self.pods.items()) if pod.role == "rehearsal"),
            repartitions=tuple(pod for _, pod in sorted(self.pods.items()) if pod.role == "repartition"),
            agent=self._report(driver) if running and driver is not None else None,
            access_ready=self.access,
            memory=self.memory,
        )

    def lose_process(self) -> None:
        """The operator's process ends, and with it what it remembered."""
        self.memory = ProcessState()

    def set_finalizer(self, on: bool) -> None:
        """Put our finalizer on the application, or take it off."""
        assert self.app is not None
        others = tuple(name for name in self.app.metadata.finalizers if name != FINALIZER)
        metadata = msgspec.structs.replace(self.app.metadata, finalizers=(*others, FINALIZER) if on else others)
        self.app = msgspec.structs.replace(self.app, metadata=metadata)

    def write_status(self, status: StreamingAppStatus | StreamSnapshotStatus) -> None:
        """Give the application a status."""
        assert self.app is not None
        self.app = msgspec.structs.replace(self.app, status=status)

    def create_pod(self, manifest: dict[str, Any]) -> bool:
        """Create a pod; returns whether the API server took it."""
        assert self.app is not None
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        name, version = metadata["name"], metadata["annotations"][ANNOTATION_SPEC_HASH]
        assert name not in self.pods, "the API server would have refused a second one"
        if self.quota:
            known = self.memory.refusal
            attempts = known.attempts + 1 if known and known.pod_name == name else 1
            epoch = self.app.status.epoch
            refusal = Refusal(name, version, epoch, Reason.LAUNCH_REFUSED, "quota", self.now, attempts)
            self.remember(refusal=refusal)
            return False
        self._serial += 1
        pod = driver_of(self.app, name=name, uid=f"pod-{self._serial}", spec_hash=version, created_at=self.now)
        if name == PURGE:
            pod = dataclasses.replace(pod, role="purge")
        elif metadata["labels"][LABEL_ROLE] == ROLE_REHEARSAL:
            pod = dataclasses.replace(pod, role=ROLE_REHEARSAL, epoch=0)
            self.rehearsed(pod, manifest)
        else:
            epoch = int(metadata["labels"][LABEL_EPOCH])
            assert epoch == self.app.status.epoch, "a pod whose epoch is not recorded"
            self.launches.append(epoch)
            if metadata["labels"][LABEL_ROLE] == ROLE_REPARTITION:
                pod = dataclasses.replace(pod, epoch=epoch, role=ROLE_REPARTITION)
                self.repartitions(pod, manifest)
            else:
                pod = dataclasses.replace(pod, epoch=epoch)
                self.began[epoch] = self.now
                self.launched(pod, manifest)
        self.pods[name] = pod
        self.remember(refusal=None)
        return True

    def order(self, pod: PodRecord, orders: SnapshotOrders) -> None:
        """Have the driver's agent take orders; this one has no snapshots."""

    def launched(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Look at a driver pod that was just created."""

    def rehearsed(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Look at the pod of a rehearsal that was just created."""

    def repartitions(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Look at the pod of a repartition that was just created."""

    # --- what the kubelet, people and misfortune do ---

    def kubelet(self) -> bool:
        """Have each node do its next thing; returns whether anything changed."""
        before = dict(self.pods)
        for name, pod in before.items():
            if pod.terminating or (pod.role == "executor" and DRIVER not in before):
                del self.pods[name]
            elif pod.phase == "Pending" and pod.waiting is None:
                self.pods[name] = dataclasses.replace(pod, phase="Running", running=True, start_time=self.now)
            elif pod.role == "purge" and pod.phase == "Running":
                self.pods[name] = dataclasses.replace(pod, phase="Succeeded", running=False)
        if self.app is not None and self.app.metadata.deletion_timestamp and not self.app.metadata.finalizers:
            self.app, self.memory = None, ProcessState()
        return before != self.pods

    def crash_driver(self) -> None:
        """The process ends with an exception; the kubelet starts it again."""
        self._change_driver(restarts=1, ended=ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"))

    def evict_driver(self) -> None:
        """The kubelet gives the pod up."""
        self._change_driver(phase="Failed", running=False, reason="Evicted", disruption="TerminationByKubelet")

    def finish_driver(self) -> None:
        """The application has done its work."""
        self._change_driver(phase="Succeeded", running=False, ended=ended_with(Reason.COMPLETED, 0))

    def refuse_storage(self) -> None:
        """The runtime finds that the storage is another application's."""
        self._change_driver(phase="Succeeded", running=False, ended=ended_with(Reason.STORAGE_OWNED, 0))

    def exhaust_driver(self) -> None:
        """The application fails once too often."""
        self._change_driver(phase="Succeeded", running=False, ended=ended_with(Reason.RESTART_BUDGET_EXHAUSTED, 0))

    def fence_driver(self) -> None:
        """Another cluster's driver takes the storage."""
        self._change_driver(phase="Succeeded", running=False, ended=ended_with(Reason.FENCED, 0))

    def suspend(self, on: bool) -> None:
        """Somebody suspends the application, or lets it go on."""
        self._edit(suspend=on)

    def change_nonce(self) -> None:
        """Somebody asks for a restart."""
        if self.app is not None:
            self._edit(restart_nonce=self.app.spec.restart_nonce + 1)

    def stop_pulling(self) -> None:
        """The registry does not have the image."""
        self._change_driver(phase="Pending", running=False, waiting=Waiting("driver", "x", "ErrImagePull", ""))

    def delete_driver(self) -> None:
        """Somebody deletes the pod, which has its grace period."""
        driver = self.pods.get(DRIVER)
        if driver is not None and not driver.terminating:
            self.pods[DRIVER] = dataclasses.replace(driver, delete_by=self.now + 30)

    def remove_driver(self) -> None:
        """Somebody deletes the pod, by force."""
        self.pods.pop(DRIVER, None)

    def add_executor(self) -> None:
        """Spark makes an executor."""
        if self.app is not None and DRIVER in self.pods and not self.pods[DRIVER].finished:
            driver = self.pods[DRIVER]
            pod = executor_of(self.app, len(self.pods), epoch=driver.epoch, owner_uid=driver.uid)
            self.pods.setdefault(pod.name, pod)

    def change_spec(self, args: tuple[str, ...], instances: int) -> None:
        """Somebody edits the application."""
        if self.app is None:
            return
        application = msgspec.structs.replace(self.app.spec.application, args=args)
        executor = msgspec.structs.replace(self.app.spec.executor, instances=instances)
        self._edit(application=application, executor=executor)

    def delete_app(self) -> None:
        """Somebody deletes the application."""
        if self.app is not None:
            self.app = deleted(self.app)

    def set_quota(self, on: bool) -> None:
        """Somebody sets or lifts a quota."""
        self.quota = on

    def _edit(self, **groups: Any) -> None:
        if self.app is not None:
            spec = msgspec.structs.replace(self.app.spec, **groups)
            generation = self.app.metadata.generation + 1
            metadata = msgspec.structs.replace(self.app.metadata, generation=generation)
            self.app = msgspec.structs.replace(self.app, spec=spec, metadata=metadata)

    def _change_driver(self, **fields: object) -> None:
        driver = self.pods.get(DRIVER)
        if driver is not None and not driver.finished:
            self.pods[DRIVER] = dataclasses.replace(driver, **fields)  # type: ignore[arg-type] # names checked at run time

    def _report(self, driver: PodRecord) -> TimedReport:
        wanted = self.executors_wanted
        report = AgentReport(
            "orders", driver.app_uid, driver.epoch, DriverState.RUNNING, executors_wanted=wanted, ready=True
        )
        return TimedReport(report, self.now, driver.uid, driver.restarts)
