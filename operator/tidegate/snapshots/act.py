"""Carries out plans about StreamSnapshots, as :mod:`tidegate.app.act` does for applications. Does I/O."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never

import msgspec
import structlog

from tidegate.access.act import AccessManager, Taken
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.api.stream_snapshot import (
    ANNOTATION_KEEP,
    SNAPSHOT_KIND,
    StreamSnapshot,
    StreamSnapshotStatus,
    encode_snapshot_status,
)
from tidegate.cache import refusal_messages
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.pods.act import delete_pod
from tidegate.cache.pods.limit_ranges import learn_floors
from tidegate.engine import write_messages
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import ActionCounter, ObserveAgain, Outcome, carry_out_in_order, must
from tidegate.engine.refused_writes import report_refused_write
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.engine.rules.status_patch import merge_difference
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Conflict, Failure, Forbidden, Invalid, NotFound
from tidegate.kube.paths import collection_of, item
from tidegate.pods.records.names import access_name
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate.pods.records.record import process_of
from tidegate.snapshots import actions as about_snapshots
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.metrics import SnapshotMetrics
from tidegate.snapshots.observation import PodRefusal
from tidegate_spark.contract.protocol import SNAPSHOT_FINALIZER
from tidegate_spark.contract.reasons import Reason

_BOOKKEEPING = (about_snapshots.WriteSnapshotStatus, about_snapshots.ForgetRefusal, PublishEvent)
log = structlog.get_logger()


@dataclass(slots=True)
class _Run:
    """One plan being carried out; ``snapshot`` moves on with each of our own writes to it."""

    snapshot: StreamSnapshot
    now: float
    pod_name: str = ""
    """Of the pod that the plan creates, if it does."""

    @property
    def key(self) -> Key:
        return self.snapshot.key

    @property
    def path(self) -> str:
        return item(SNAPSHOT_KIND, *self.snapshot.key)


class SnapshotActorMetrics(ActionCounter, Protocol):
    """Where actions are counted, and what became of snapshots."""

    @property
    def snapshots(self) -> SnapshotMetrics:
        """Those of snapshots."""


@dataclass(slots=True)
class SnapshotActionExecutor:
    """Carries out plans on a cluster."""

    _client: KubeClient
    _agents: AgentClient
    _index: Index
    _access: AccessManager
    _events: EventPublisher
    _metrics: SnapshotActorMetrics

    async def carry_out(self, snapshot: StreamSnapshot, plan: about_snapshots.SnapshotPlan, now: float) -> Outcome:
        """Carry out the plan's actions in order.

        Args:
            snapshot: the version of the resource that was observed; every write to it has its resource version.
            plan: what to do.
            now: seconds since the epoch; the time of the decision.

        Returns:
            ObserveAgain if the plan was given up half way, else None.

        Raises:
            RetryLaterError: the API server cannot or does not want to; the reason is in the text.
        """
        made = (action.manifest for action in plan.actions if isinstance(action, about_snapshots.CreateSnapshotPod))
        run = _Run(snapshot, now, next((manifest["metadata"]["name"] for manifest in made), ""))
        return await carry_out_in_order(plan.actions, partial(self._carry_out_one, run), self._metrics, _BOOKKEEPING)

    async def release(self, unreadable: UnreadableResource, now: float) -> None:
        """Let a deleted resource go that cannot be read; its files stay, because nobody knows what was asked for.

        Raises:
            RetryLaterError: the API server cannot now.
        """
        metadata = unreadable.metadata
        if SNAPSHOT_FINALIZER not in metadata.finalizers:
            return
        message = refusal_messages.files_retained(unreadable.problem)
        events = PublishEvent(Reason.SNAPSHOT_RETAINED, message, True, "kept")
        await self._events.publish(metadata, events, now, SNAPSHOT_KIND)
        left = [name for name in metadata.finalizers if name != SNAPSHOT_FINALIZER]
        change = {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": left}}
        # The answer is not decoded: it cannot be read either.
        answer = await self._client.merge_patch(item(SNAPSHOT_KIND, *unreadable.key), change, msgspec.Raw)
        if isinstance(answer, FAILURES) and not isinstance(answer, Conflict | NotFound):
            await report_refused_write(self._events, answer, metadata, now, SNAPSHOT_KIND)
            raise RetryLaterError(f"write to the snapshot: {answer}")

    async def _carry_out_one(self, run: _Run, action: about_snapshots.SnapshotAction) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one arm each
        match action:
            case AddFinalizer():
                return await self._patch(run, _finalizers(run, [*run.snapshot.metadata.finalizers, SNAPSHOT_FINALIZER]))
            case RemoveFinalizer():
                left = [name for name in run.snapshot.metadata.finalizers if name != SNAPSHOT_FINALIZER]
                return await self._patch(run, _finalizers(run, left))
            case EnsureAccess():
                return await self._ensure_access(run)
            case about_snapshots.ForgetRefusal():
                self._remember(run.key, refusal=None)
                return None
            case about_snapshots.WriteSnapshotStatus(status=status):
                return await self._write_status(run, status)
            case about_snapshots.GiveOrders():
                return await self._give_orders(run, action)
            case about_snapshots.CreateSnapshotPod(manifest=manifest):
                return await self._create_pod(run, manifest)
            case about_snapshots.DeleteSnapshotPod(pod=pod):
                return await delete_pod(self._client, self._index, pod)
            case about_snapshots.DeleteSnapshot(snapshot=snapshot):
                return await self._delete(run, snapshot)
            case (
                about_snapshots.CountVerification() | about_snapshots.CountExport() | about_snapshots.CountTakenByPod()
            ):
                self._count(run.snapshot.app_key, action)
                return None
            case about_snapshots.StampRetention(text=text):
                change = {
                    "resourceVersion": run.snapshot.metadata.resource_version,
                    "annotations": {ANNOTATION_KEEP: text},
                }
                return await self._patch(run, {"metadata": change})
            case PublishEvent():
                await self._events.publish(run.snapshot.metadata, action, run.now, SNAPSHOT_KIND)
                return None
            case _:
                assert_never(action)

    def _count(self, app: Key, what: about_snapshots.Counting) -> None:
        match what:
            case about_snapshots.CountVerification(result=result):
                self._metrics.snapshots.count_verified(app, result)
            case about_snapshots.CountExport(complete=complete):
                self._metrics.snapshots.count_exported(app, complete)
            case about_snapshots.CountTakenByPod(seconds=seconds, copied=copied, shared=shared):
                self._metrics.snapshots.count_taken_by_pod(app, seconds, copied=copied, shared=shared)
            case _:
                assert_never(what)

    # --- the resource ---

    async def _write_status(self, run: _Run, status: StreamSnapshotStatus) -> Outcome:
        before = encode_snapshot_status(run.snapshot.status)
        difference = merge_difference(before, encode_snapshot_status(status))
        if not difference:
            return None
        change = {"metadata": {"resourceVersion": run.snapshot.metadata.resource_version}, "status": difference}
        outcome = await self._patch(run, change, "/status")
        if outcome is None:
            self._remember(run.key, status_written_at=run.now)
        return outcome

    async def _patch(self, run: _Run, change: dict[str, Any], part: str = "") -> Outcome:
        answer = await self._client.merge_patch(run.path + part, change, StreamSnapshot)
        if isinstance(answer, Conflict):
            return await self._read_again(run)
        if isinstance(answer, NotFound):
            self._index.of(SnapshotIndex).remove(run.key, run.snapshot.metadata.uid)
            return ObserveAgain("the snapshot is gone")
        if isinstance(answer, FAILURES):
            message = await report_refused_write(self._events, answer, run.snapshot.metadata, run.now, SNAPSHOT_KIND)
            if message:
                self._remember(run.key, write_refused=(part, message))
            raise RetryLaterError(f"write to the snapshot: {answer}")
        if self._index.of(SnapshotIndex).memory(run.key).write_refused[0] == part:  # another part may still be refused
            self._remember(run.key, write_refused=("", ""))
        # The watch reports a resource that is gone with its last finalizer.
        run.snapshot = answer
        self._index.of(SnapshotIndex).put(answer)
        return None

    async def _delete(self, run: _Run, snapshot: StreamSnapshot) -> Outcome:
        metadata = snapshot.metadata
        answer = await self._client.delete(run.path, metadata.uid, metadata.resource_version)
        if isinstance(answer, NotFound | Conflict):
            return await self._read_again(run)
        if isinstance(answer, FAILURES):
            raise RetryLaterError(f"deletion of the snapshot: {answer}")
        self._metrics.snapshots.count_expired(run.snapshot.app_key)
        return None

    async def _read_again(self, run: _Run) -> Outcome:
        answer = await self._client.get(run.path, StreamSnapshot)
        if isinstance(answer, NotFound):
            self._index.of(SnapshotIndex).remove(run.key, run.snapshot.metadata.uid)
        elif isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of the snapshot: {answer}")
        else:
            self._index.of(SnapshotIndex).put(answer)
        return ObserveAgain("the snapshot has changed")

    # --- the driver's agent ---

    async def _give_orders(self, run: _Run, action: about_snapshots.GiveOrders) -> Outcome:
        answer = await self._agents.order_snapshots(run.snapshot.app_key, action.pod, action.orders)
        not_taken = answer.reason if isinstance(answer, Unanswered) else ""
        self._remember(run.key, ordered_at=run.now, ordered_to=process_of(action.pod), not_taken=not_taken)
        return ObserveAgain(f"the order was not taken: {not_taken}") if not_taken else None

    # --- pods ---

    async def _ensure_access(self, run: _Run) -> Outcome:
        known = self._index.app(run.snapshot.app_key)
        if not isinstance(known, KnownApp):
            return ObserveAgain("the application has gone")
        answer = await self._access.ensure(known.app)
        if isinstance(answer, Taken):
            message = refusal_messages.access_name_taken(answer.kind, access_name(known.app.metadata.name))
            return self._refuse(run, Reason.ACCESS_NAME_TAKEN, message)
        if isinstance(answer, Invalid | Forbidden):
            return self._refuse_as_reported(
                run, answer, write_messages.refused(refusal_messages.DRIVERS_ACCESS, answer.message)
            )
        must(answer, "creation of the driver's access")
        return None

    async def _create_pod(self, run: _Run, manifest: dict[str, Any]) -> Outcome:
        answer = await self._client.create(collection_of(manifest), manifest, Pod)
        name = manifest["metadata"]["name"]
        if isinstance(answer, AlreadyExists):
            return await self._inspect_occupant(run, name)
        if isinstance(answer, Invalid | Forbidden | NotFound):
            # The cause may be a deleted ServiceAccount: check the access again.
            self._index.checked_access.discard(run.snapshot.app_key)
            learned = await learn_floors(self._client, self._index, run.key[0], answer) is not None
            message = refusal_messages.pod_refused(manifest, answer, self._index.floors_of(run.key[0]))
            return self._refuse_as_reported(run, answer, message, at_once=learned)
        if isinstance(answer, FAILURES):
            raise RetryLaterError(f"creation of pod {name}: {answer}")
        self._index.put_pod(build_record(answer))
        return None

    async def _inspect_occupant(self, run: _Run, name: str) -> Outcome:
        answer = await self._client.get(item("Pod", run.key[0], name), Pod)
        if isinstance(answer, NotFound):
            return ObserveAgain("the pod was there a moment ago")
        if isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of pod {name}: {answer}")
        record = build_record(answer)
        if record.owner_uid != run.snapshot.metadata.uid:
            message = refusal_messages.pod_name_taken_for_snapshot(name)
            return self._refuse(run, Reason.POD_NAME_TAKEN, message)
        if not record.labelled or record.app != run.snapshot.app_key[1]:
            log.warning("the pod lost the labels by which it is watched, and goes", pod=name)
            return await delete_pod(self._client, self._index, record) or ObserveAgain("the pod goes")
        self._index.put_pod(record)
        return ObserveAgain("the pod is there")

    def _refuse_as_reported(self, run: _Run, answer: Failure, reported: str, *, at_once: bool = False) -> Outcome:
        if isinstance(answer, Forbidden) and answer.namespace_terminating:
            message = refusal_messages.namespace_terminating(run.key[0])
            return self._refuse(run, Reason.NAMESPACE_TERMINATING, message)
        return self._refuse(run, Reason.LAUNCH_REFUSED, reported, at_once=at_once)

    def _refuse(self, run: _Run, reason: Reason, message: str, *, at_once: bool = False) -> Outcome:
        known = self._index.of(SnapshotIndex).memory(run.key).refusal
        attempts = known.attempts + 1 if known is not None and known.pod_name == run.pod_name else 1
        attempts = 0 if at_once else attempts
        self._remember(run.key, refusal=PodRefusal(run.pod_name, reason, message, run.now, attempts))
        return ObserveAgain(message)

    def _remember(self, key: Key, **changes: Any) -> None:
        if self._index.of(SnapshotIndex).get(key) is not None:
            memory = self._index.of(SnapshotIndex).memory(key)
            self._index.of(SnapshotIndex).memories[key] = dataclasses.replace(memory, **changes)


def _finalizers(run: _Run, names: list[str]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": run.snapshot.metadata.resource_version, "finalizers": names}}
