"""A cluster small enough to be a value: one StreamSnapshot, its application, an agent, pods and an object store. Pure.

Plans are carried out on it by :mod:`tidegate_testing.plan_interpreter`. The agent and the pods do what the runtime
promises: an order is done once, a driver that is new knows of none.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.api.stream_snapshot import ANNOTATION_KEEP, ExportSpec, StreamSnapshot, StreamSnapshotStatus
from tidegate.api.streaming_app import DeletionPolicy, Phase, StreamingApp, StreamingAppStatus
from tidegate.pods.records.record import PodRecord
from tidegate.snapshots.observation import PodRefusal, SnapshotMemory, SnapshotObservation
from tidegate_spark.contract.protocol import ANNOTATION_SPEC_HASH, LABEL_ROLE, SNAPSHOT_FINALIZER
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_testing.observations import NOW, app_with, launched, running_driver
from tidegate_testing.plan_interpreter import PlanInterpreter
from tidegate_testing.snapshot_observations import (
    ID,
    agent,
    deleted,
    observe,
    pod,
    pod_that_said,
    report,
    snapshot,
)

VERIFYING = f"{ID}-verify-"
EXPORTING = f"{ID}-export-"


@dataclass
class SnapshotWorld(PlanInterpreter):
    """The world; methods are what happens in it."""

    snapshot: StreamSnapshot | None = field(default_factory=snapshot)
    app: StreamingApp | None = None
    now: float = NOW
    restarts: int = 0
    holder: bool = False
    """Somebody holds the snapshot in the store."""
    quota: bool = False
    slow: bool = False
    """Exports take longer than they may."""
    crowded: bool = False
    """No node takes an export."""
    forks: tuple[str, ...] = ()
    stored: str = ""
    """What the store has of it: nothing, ``taking`` or ``ready``."""
    reports: dict[str, SnapshotReport] = field(default_factory=dict)
    """What the agent of the driver process that runs knows."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    deletions: list[str] = field(default_factory=list)
    memory: SnapshotMemory = field(default_factory=SnapshotMemory)

    @property
    def runs(self) -> bool:
        """Whether the application's driver runs."""
        return self.app is not None and self.app.status.phase is Phase.RUNNING

    def observe(self) -> SnapshotObservation | None:
        """Return what the operator would observe now."""
        if self.snapshot is None:
            return None
        driver = running_driver(self.app, restarts=self.restarts) if self.runs and self.app is not None else None
        uid = self.app.metadata.uid if self.app is not None else ""
        return observe(
            self.snapshot,
            app=self.app,
            driver=driver,
            agent=agent(*self.reports.values(), uid=uid) if driver is not None else None,
            taking=self.pods.get(f"{ID}-take"),
            disposing=self.pods.get(f"{ID}-dispose"),
            verifying=next((pod for name, pod in sorted(self.pods.items()) if name.startswith(VERIFYING)), None),
            exporting=next((pod for name, pod in sorted(self.pods.items()) if name.startswith(EXPORTING)), None),
            forks=self.forks,
            memory=self.memory,
        )

    def lose_process(self) -> None:
        """The operator's process ends, and with it what it remembered."""
        self.memory = SnapshotMemory()

    def set_finalizer(self, on: bool) -> None:
        """Put our finalizer on the snapshot, or take it off."""
        assert self.snapshot is not None
        metadata = msgspec.structs.replace(self.snapshot.metadata, finalizers=(SNAPSHOT_FINALIZER,) if on else ())
        self.snapshot = msgspec.structs.replace(self.snapshot, metadata=metadata)

    def write_status(self, status: StreamingAppStatus | StreamSnapshotStatus) -> None:
        """Give the snapshot a status."""
        assert self.snapshot is not None
        self.snapshot = msgspec.structs.replace(self.snapshot, status=status)

    def order(self, pod: PodRecord, orders: SnapshotOrders) -> None:
        """Have the driver's agent take orders."""
        self._check_record()
        for order in orders.take:
            self.reports.setdefault(order.id, report(SnapshotState.WAITING))
        if orders.dispose:
            self.reports[ID] = report(SnapshotState.WAITING, message="dispose")

    def delete_snapshot(self) -> None:
        """Delete the snapshot, as somebody might."""
        assert self.snapshot is not None
        self.delete(self.snapshot.spec.deletion_policy)

    def stamp_retention(self, text: str) -> None:
        """Note on the snapshot how long it stays."""
        assert self.snapshot is not None
        annotations = {**self.snapshot.metadata.annotations, ANNOTATION_KEEP: text}
        metadata = msgspec.structs.replace(self.snapshot.metadata, annotations=annotations)
        self.snapshot = msgspec.structs.replace(self.snapshot, metadata=metadata)

    def _check_record(self) -> None:
        assert self.snapshot is not None
        assert self.snapshot.status.snapshot_id == ID, "ordered before the resource says so"
        assert SNAPSHOT_FINALIZER in self.snapshot.metadata.finalizers

    def create_pod(self, manifest: dict[str, Any]) -> bool:
        """Create a pod; returns whether the API server took it."""
        self._check_record()
        made = manifest["metadata"]
        name = made["name"]
        assert name not in self.pods, "the API server would have refused a second one"
        if self.quota:
            attempts = self.memory.refusal.attempts + 1 if self.memory.refusal else 1
            self.remember(refusal=PodRefusal(name, Reason.LAUNCH_REFUSED, "quota", self.now, attempts))
            return False
        self.remember(refusal=None)
        role, made_of = made["labels"][LABEL_ROLE], made["annotations"][ANNOTATION_SPEC_HASH]
        self.pods[name] = pod(name=name, role=role, spec_hash=made_of, created_at=self.now)
        return True

    # --- what the runtime, people and misfortune do ---

    def work(self) -> bool:
        """Have everybody do the next thing; returns whether anything changed."""
        before = (dict(self.pods), dict(self.reports), self.stored, self.snapshot)
        if self.runs and ID in self.reports:
            self.reports[ID] = self._step(self.reports[ID], disposing=self.reports[ID].message == "dispose")
        for name, known in list(self.pods.items()):
            if known.terminating:
                del self.pods[name]
            elif known.running:
                self._finish(known, name.endswith("dispose"))
        gone = self.snapshot is not None and self.snapshot.metadata.deletion_timestamp is not None
        if gone and self.snapshot is not None and not self.snapshot.metadata.finalizers:
            self.snapshot = None
        return before != (self.pods, self.reports, self.stored, self.snapshot)

    def _finish(self, known: PodRecord, disposing: bool) -> None:
        waiting = report(SnapshotState.WAITING)
        said = self._step(self._step(waiting, disposing=disposing), disposing=disposing)
        if known.name.startswith(VERIFYING):
            said = report(SnapshotState.VERIFIED)
        if known.name.startswith(EXPORTING):
            if self.crowded:
                self.pods[known.name] = dataclasses.replace(known, unschedulable="No node has so much memory.")
                return
            if self.slow:
                ended = dataclasses.replace(known, phase="Failed", reason="DeadlineExceeded", running=False)
                self.pods[known.name] = ended
                return
            said = report(SnapshotState.EXPORTED, manifest="s3://bucket/exports/1/manifest.json", rows=5)
        ended = pod_that_said(said, disposing=disposing, completion_time=self.now, spec_hash=known.spec_hash)
        self.pods[known.name] = dataclasses.replace(ended, name=known.name, role=known.role)

    def _step(self, known: SnapshotReport, *, disposing: bool) -> SnapshotReport:
        if disposing:
            if self.holder and self.stored == "ready":
                return report(SnapshotState.HELD, Reason.HELD, message="dispose")
            self.stored = ""
            return report(SnapshotState.DISPOSED)
        if known.state is SnapshotState.WAITING:
            self.stored = self.stored or "taking"
            return report(SnapshotState.COPYING, files=1, of_files=2)
        if known.state is SnapshotState.COPYING:
            self.stored = "ready"
            return report(SnapshotState.READY)
        return known

    def app_runs(self) -> None:
        """The application runs, with a new driver process."""
        uid = self.app.metadata.uid if self.app is not None else "u-1"
        self._set_app(uid, Phase.RUNNING)

    def app_starts(self) -> None:
        """The application is on its way."""
        if self.app is not None:
            self._set_app(self.app.metadata.uid, Phase.STARTING)

    def app_rests(self) -> None:
        """The application is suspended."""
        if self.app is not None:
            self._set_app(self.app.metadata.uid, Phase.SUSPENDED)

    def app_goes(self) -> None:
        """The application is deleted; its storage is retained."""
        self.app, self.reports = None, {}

    def app_is_made_again(self) -> None:
        """Another application of the same name."""
        self._set_app("u-2", Phase.RUNNING)

    def delete(self, policy: DeletionPolicy) -> None:
        """Somebody deletes the snapshot, or says otherwise what is to become of its files."""
        if self.snapshot is not None:
            self.snapshot = deleted(self.snapshot, policy)

    def ask_to_verify(self) -> None:
        """Somebody wants the snapshot read back, or read back again."""
        if self.snapshot is not None:
            spec = msgspec.structs.replace(self.snapshot.spec, verify_nonce=self.snapshot.spec.verify_nonce + 1)
            self.snapshot = msgspec.structs.replace(self.snapshot, spec=spec)

    def ask_for_export(self) -> None:
        """Somebody wants the state as plain files, or once more."""
        if self.snapshot is not None:
            before = self.snapshot.spec.export
            wanted = ExportSpec(nonce=before.nonce + 1 if before is not None else 1)
            self._set_export(wanted)

    def forgo_export(self) -> None:
        """Nobody wants an export any more."""
        if self.snapshot is not None:
            self._set_export(None)

    def _set_export(self, wanted: ExportSpec | None) -> None:
        assert self.snapshot is not None
        spec = msgspec.structs.replace(self.snapshot.spec, export=wanted)
        self.snapshot = msgspec.structs.replace(self.snapshot, spec=spec)

    def _set_app(self, uid: str, phase: Phase) -> None:
        self.app, self.reports = launched(app_with(uid=uid), phase=phase), {}
        self.restarts += 1
