"""What a plan of any kind does to a simulated world. Pure.

Plans are carried out as the real executors do: in order, each write with its precondition, and cut off after any
action, as by a crash. A world says what its own resource, its pods and its agent make of an action.
"""

import dataclasses
from typing import Any, TypeAlias, assert_never

from tidegate.api.control_message import ControlMessage, ControlMessageStatus
from tidegate.api.stream_snapshot import StreamSnapshotStatus
from tidegate.api.streaming_app import StreamingAppStatus
from tidegate.app import actions as of_app
from tidegate.control import actions as of_control
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.pods.records.record import PodRecord, process_of
from tidegate.snapshots import actions as of_snapshot
from tidegate_spark.contract.control_protocol import ControlOrders
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders

AnyAction: TypeAlias = of_app.Action | of_snapshot.SnapshotAction | of_control.ControlAction
AnyPlan: TypeAlias = of_app.Plan | of_snapshot.SnapshotPlan | of_control.ControlPlan
QUICK = 600
"""Seconds within which another loss of a driver is one in quick succession."""


class PlanInterpreter:
    """A world in which plans are carried out; it has those of these fields that plans about it can change."""

    now: float
    memory: Any
    """What the operator's process remembers."""
    pods: dict[str, PodRecord]
    deletions: list[str]
    """Roles of the pods whose end was asked for."""
    access: bool
    secrets: set[int]
    """Epochs of launches whose Secrets are there."""
    executors_wanted: int

    def carry_out(self, plan: AnyPlan, crash_after: int | None = None) -> bool:
        """Carry out a plan, or only its first actions; returns whether it came to its end."""
        for number, action in enumerate(plan.actions):
            if number == crash_after:
                self.lose_process()
                return False
            if not self._carry_out_one(action):
                return False
        return True

    def _carry_out_one(self, action: AnyAction) -> bool:  # noqa: C901, PLR0911, PLR0912 - one arm each
        match action:
            case AddFinalizer() | RemoveFinalizer():
                self.set_finalizer(isinstance(action, AddFinalizer))
            case EnsureAccess():
                self.access = True
            case of_app.EnsureLaunchSecrets(epoch=epoch):
                self.secrets.add(epoch)
            case of_app.DeleteLaunchSecrets(epoch=epoch):
                self.secrets.discard(epoch)
            case of_app.ProvideConfiguration(pod_name=name):
                return name in self.pods
            case of_app.ConfirmDriverGone(pod_name=name):
                return name not in self.pods
            case (
                of_app.RecordLaunch(status=status)
                | of_app.WriteStatus(status=status)
                | of_snapshot.WriteSnapshotStatus(status=status)
            ):
                self.write_status(status)
                self.remember(status_written_at=self.now)
                if isinstance(action, of_app.RecordLaunch):
                    self._remember_launch(action.unplanned)
            case of_app.CreatePod(manifest=manifest) | of_snapshot.CreateSnapshotPod(manifest=manifest):
                return self.create_pod(manifest)
            case of_app.DeletePod(pod=pod) | of_snapshot.DeleteSnapshotPod(pod=pod):
                return self._delete_pod(pod)
            case of_app.RestoreLabels(pods=pods):
                return all(pod.name in self.pods for pod in pods)
            case of_app.SetExecutors(instances=instances):
                self.executors_wanted = instances
            case of_app.OrderSnapshots(pod=pod, orders=orders):
                self.remember(orders_given=(self.now, process_of(pod)))
                self.order(pod, orders)
            case of_snapshot.GiveOrders(pod=pod, orders=orders):
                self.order(pod, orders)
                self.remember(ordered_at=self.now, ordered_to=process_of(pod))
            case of_app.RememberReported(epoch=epoch, sequence=sequence):
                self.remember(reported=(epoch, sequence))
            case of_snapshot.ForgetRefusal():
                self.remember(refusal=None)
            case of_snapshot.DeleteSnapshot():
                self.delete_snapshot()
            case of_snapshot.StampRetention(text=text):
                self.stamp_retention(text)
            case of_control.WriteMessageStatus(message=message, status=message_status, is_progress=is_progress):
                if is_progress:
                    self.remember(progress_written_at=self.now)
                return self.write_message_status(message, message_status)
            case of_control.GiveMessages(pod=pod, orders=messages):
                return self.give_messages(pod, messages)
            case of_control.DeleteMessage(message=message):
                self.delete_message(message)
            case (
                PublishEvent()
                | of_app.CreateSnapshot()
                | of_app.ConfirmRecord()
                | of_snapshot.CountVerification()
                | of_snapshot.CountExport()
                | of_snapshot.CountTakenByPod()
                | of_control.MakeSnapshot()
                | of_control.MakeMessage()
                | of_control.PublishMessageEvent()
            ):
                pass
            case _:
                assert_never(action)
        return True

    def remember(self, **changes: object) -> None:
        """Have the operator's process remember something."""
        self.memory = dataclasses.replace(self.memory, **changes)

    def _remember_launch(self, unplanned: bool) -> None:
        quick = unplanned and self.now - self.memory.launched_at < QUICK
        again = self.memory.quick_relaunches + 1 if quick else 0
        self.remember(launched_at=self.now, quick_relaunches=again, refusal=None)

    def _delete_pod(self, pod: PodRecord) -> bool:
        known = self.pods.get(pod.name)
        if known is None or known.uid != pod.uid:
            return False
        self.deletions.append(pod.role)
        self.pods[pod.name] = dataclasses.replace(known, delete_by=self.now + 30)
        return True

    # --- what a world says to it; one that no plan asks for, it need not have ---

    def lose_process(self) -> None:
        """The operator's process ends, and with it what it remembered."""
        raise NotImplementedError

    def set_finalizer(self, on: bool) -> None:
        """Put our finalizer on the resource, or take it off."""
        raise NotImplementedError

    def write_status(self, status: StreamingAppStatus | StreamSnapshotStatus) -> None:
        """Give the resource a status."""
        raise NotImplementedError

    def create_pod(self, manifest: dict[str, Any]) -> bool:
        """Create a pod; returns whether the API server took it."""
        raise NotImplementedError

    def order(self, pod: PodRecord, orders: SnapshotOrders) -> None:
        """Have the driver's agent take orders."""
        raise NotImplementedError

    def delete_snapshot(self) -> None:
        """Delete the snapshot, as somebody might."""
        raise NotImplementedError

    def stamp_retention(self, text: str) -> None:
        """Note on the snapshot how long it stays."""
        raise NotImplementedError

    def write_message_status(self, message: ControlMessage, status: ControlMessageStatus) -> bool:
        """Give a message a status; returns whether it was as it was observed."""
        raise NotImplementedError

    def give_messages(self, pod: PodRecord, orders: ControlOrders) -> bool:
        """Give messages to the driver's agent; returns whether it took them."""
        raise NotImplementedError

    def delete_message(self, message: ControlMessage) -> None:
        """Delete the resource of a message."""
        raise NotImplementedError
