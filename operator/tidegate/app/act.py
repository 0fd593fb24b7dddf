"""Carries out a plan action by action, and ends at the first conflict with the observed state. Does I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec
import structlog

from tidegate.access.act import AccessManager, Taken
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.api.stream_snapshot import StreamSnapshot, owner_uid
from tidegate.api.streaming_app import StreamingApp, StreamingAppStatus, encode_status
from tidegate.app import actions as do
from tidegate.app.plan_run import PlanRun
from tidegate.app.pod_actions import PodActions, refusal_of
from tidegate.cache import refusal_messages
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp
from tidegate.cache.process_state import NotCreated, SnapshotRefusal
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import ActionCounter, ObserveAgain, Outcome, carry_out_in_order, must
from tidegate.engine.refused_writes import report_refused_write
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess, PublishEvent, RemoveFinalizer
from tidegate.engine.rules.pauses import hour_of
from tidegate.engine.rules.status_patch import merge_difference
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Conflict, Failure, Forbidden, Invalid, NotFound
from tidegate.kube.paths import collection_of, item, path_of
from tidegate.pods.records.names import access_name, driver_pod_name, purge_pod_name
from tidegate.pods.records.record import PodRecord, process_of
from tidegate.snapshots.index import SnapshotIndex
from tidegate_spark.contract.protocol import FINALIZER, store_identity
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders

QUICK = 600.0
"""Seconds a driver must have lived for its loss not to count as another one in quick succession."""
_BOOKKEEPING = (do.WriteStatus, PublishEvent, do.RememberReported)
log = structlog.get_logger()


class AppActorMetrics(ActionCounter, Protocol):
    """Where actions are counted, and what the API server refused."""

    def count_refused_snapshot(self, app: Key) -> None:
        """Count an attempt to create a StreamSnapshot that the API server refused."""


@dataclass(slots=True)
class ActionExecutor:
    """Carries out plans on a cluster."""

    _client: KubeClient
    _agents: AgentClient
    _index: Index
    _access: AccessManager
    _secrets: LaunchSecrets
    _events: EventPublisher
    _metrics: AppActorMetrics
    _wake: Callable[[Key], None]

    async def carry_out(self, app: StreamingApp, plan: do.Plan, now: float) -> Outcome:
        """Carry out the plan's actions in order.

        Args:
            app: the version of the application that was observed; every write to it has its resource version.
            plan: what to do.
            now: seconds since the epoch; the time of the decision.

        Returns:
            ObserveAgain if the plan was given up half way, else None.

        Raises:
            RetryLaterError: the API server cannot or does not want to; the reason is in the text.
        """
        run = PlanRun(self._index, app, now, plan.spec_hash)
        return await carry_out_in_order(plan.actions, partial(self._carry_out_one, run), self._metrics, _BOOKKEEPING)

    async def _carry_out_one(self, run: PlanRun, action: do.Action) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one arm each
        structlog.contextvars.bind_contextvars(epoch=run.app.status.epoch)
        match action:
            case AddFinalizer():
                return await self._patch_finalizers(run, [*run.app.metadata.finalizers, FINALIZER])
            case RemoveFinalizer():
                return await self._remove_finalizer(run)
            case EnsureAccess():
                return await self._ensure_access(run)
            case do.EnsureLaunchSecrets(epoch=epoch):
                return await self._ensure_launch_secrets(run, epoch)
            case do.DeleteLaunchSecrets(epoch=epoch):
                must(await self._secrets.remove(run.app, epoch), f"removal of {refusal_messages.LAUNCH_SECRETS}")
                return None
            case do.ConfirmRecord():
                return await self._confirm_record(run)
            case do.RecordLaunch(status=status, unplanned=unplanned):
                return await self._record_launch(run, status, unplanned)
            case do.WriteStatus(status=status):
                return await self._write_status(run, status)
            case do.SetExecutors(pod=pod, instances=instances):
                return await self._set_executors(run, pod, instances)
            case do.OrderSnapshots(pod=pod, orders=orders):
                return await self._order_snapshots(run, pod, orders)
            case do.CreateSnapshot(manifest=manifest):
                return await self._create_snapshot(run, manifest)
            case PublishEvent():
                return await self._publish(run, action)
            case do.RememberReported(epoch=epoch, sequence=sequence):
                run.remember(reported=(epoch, sequence))
                return None
            case _:  # actions on pods: the type checker finds any other
                return await PodActions(self._client, self._secrets).carry_out(run, action)

    async def _publish(self, run: PlanRun, event: PublishEvent) -> Outcome:
        # Events of a launch are published later, because other launches wait for this worker.
        publish = self._events.publish_later if run.launched else self._events.publish
        await publish(run.app.metadata, event, run.now)
        return None

    # --- the application's own resource ---

    async def _patch_finalizers(self, run: PlanRun, finalizers: list[str], kind: type[Any] = StreamingApp) -> Outcome:
        change = {"metadata": {"resourceVersion": run.app.metadata.resource_version, "finalizers": finalizers}}
        return await self._patch_app(run, item("StreamingApp", *run.key), change, kind)

    async def _remove_finalizer(self, run: PlanRun) -> Outcome:
        left = [name for name in run.app.metadata.finalizers if name != FINALIZER]
        # The answer is not decoded: the resource may be unreadable, and the answer still shows the gone finalizer.
        outcome = await self._patch_finalizers(run, left, msgspec.Raw)
        if outcome is None:
            metadata = msgspec.structs.replace(run.app.metadata, finalizers=tuple(left))
            self._index.replace_app(msgspec.structs.replace(run.app, metadata=metadata))
        return outcome

    def _forget(self, run: PlanRun) -> None:
        self.wake_all(self._index.remove_app(run.key, run.app.metadata.uid))

    def wake_all(self, keys: Iterable[Key]) -> None:
        """Have applications looked at, in the same order in every process."""
        for key in sorted(keys):
            self._wake(key)

    async def _record_launch(self, run: PlanRun, status: StreamingAppStatus, unplanned: bool) -> Outcome:
        storage = run.app.spec.storage
        in_specs_store = status.store == store_identity(storage.endpoint, storage.region)
        if in_specs_store and (rival := self._index.rival(run.app)):
            return ObserveAgain(refusal_messages.storage_taken(rival))
        # Two applications must not both take the place: the one whose record starts first has it.
        self._index.launching.add(run.key)
        recorded = False
        try:
            outcome = await self._write_status(run, status)
            recorded = outcome is None
        finally:
            self._index.launching.discard(run.key)
            if not recorded:  # also without an answer: nothing else wakes those that found the place taken
                self.wake_all(self._index.waiting_for(run.key))
        if outcome is not None:
            return outcome
        memory = self._index.memory(run.key)
        quick = unplanned and run.now - memory.launched_at < QUICK
        again = memory.quick_relaunches + 1 if quick else 0
        run.remember(launched_at=run.now, refusal=None, quick_relaunches=again)
        return None

    async def _write_status(self, run: PlanRun, status: StreamingAppStatus) -> Outcome:
        difference = merge_difference(encode_status(run.app.status), encode_status(status))
        if not difference:
            return None
        change = {"metadata": {"resourceVersion": run.app.metadata.resource_version}, "status": difference}
        outcome = await self._patch_app(run, item("StreamingApp", *run.key) + "/status", change)
        if outcome is None:
            run.remember(status_written_at=run.now)
            if status.driver is not None:  # a pod is about to be made, or is there after all
                run.remember(not_created="")
        return outcome

    async def _patch_app(self, run: PlanRun, path: str, change: Any, kind: type[Any] = StreamingApp) -> Outcome:
        answer = await self._client.merge_patch(path, change, kind)
        if isinstance(answer, Conflict):
            return await self._read_app_again(run)
        if isinstance(answer, NotFound):
            self._forget(run)
            return ObserveAgain("the application is gone")
        if isinstance(answer, FAILURES):
            await report_refused_write(self._events, answer, run.app.metadata, run.now)
            raise RetryLaterError(f"write to the application: {answer}")
        if kind is StreamingApp:
            run.app = answer
            self.wake_all(self._index.put_app(answer) - {run.key})
        return None

    async def _confirm_record(self, run: PlanRun) -> Outcome:
        seen = run.app.metadata.resource_version
        changed = await self._read_app_again(run)
        known = self._index.app(run.key)
        return None if isinstance(known, KnownApp) and known.metadata.resource_version == seen else changed

    async def _read_app_again(self, run: PlanRun) -> Outcome:
        answer = await self._client.get(item("StreamingApp", *run.key), StreamingApp)
        if isinstance(answer, NotFound):
            self._forget(run)
        elif isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of the application: {answer}")
        else:
            self.wake_all(self._index.put_app(answer) - {run.key})
        return ObserveAgain("the application has changed")

    # --- the driver's access ---

    async def _ensure_access(self, run: PlanRun) -> Outcome:
        answer = await self._access.ensure(run.app)
        if isinstance(answer, Taken):
            message = refusal_messages.access_name_taken(answer.kind, access_name(run.key[1]))
            return self._refuse_launch(run, Reason.ACCESS_NAME_TAKEN, message)
        return None if answer is None else self._not_made(run, answer, refusal_messages.DRIVERS_ACCESS)

    async def _ensure_launch_secrets(self, run: PlanRun, epoch: int) -> Outcome:
        failure = await self._secrets.ensure(run.app, epoch)
        return None if failure is None else self._not_made(run, failure, refusal_messages.LAUNCH_SECRETS)

    def _not_made(self, run: PlanRun, answer: Failure, what: str) -> Outcome:
        if isinstance(answer, Invalid | Forbidden):
            return self._refuse_launch(run, *refusal_of(answer, what, run.key[0]))
        raise RetryLaterError(f"creation of {what}: {answer}")

    def _refuse_launch(self, run: PlanRun, reason: Reason, message: str) -> Outcome:
        """Refuse what has to be there before a driver; one that runs already is not held up by it."""
        deleted = run.app.metadata.deletion_timestamp is not None
        # An account that is created during deletion is for the purge.
        name = purge_pod_name(run.key[1]) if deleted else driver_pod_name(run.key[1])
        if any(pod.name == name for pod in self._index.pods(run.key)):
            log.warning(message, reason=reason)
            return None
        run.refuse(name, reason, message, recorded=False)
        return ObserveAgain(message)

    # --- snapshots of a schedule ---

    async def _create_snapshot(self, run: PlanRun, manifest: dict[str, Any]) -> Outcome:
        answer = await self._client.create(collection_of(manifest), manifest, StreamSnapshot)
        name = manifest["metadata"]["name"]
        if isinstance(answer, AlreadyExists):
            answer = await self._client.get(path_of(manifest), StreamSnapshot)
            if not isinstance(answer, FAILURES) and owner_uid(answer) != run.app.metadata.uid:
                message = refusal_messages.snapshot_name_taken(name)
                return await self._refuse_snapshot(run, name, Reason.SNAPSHOT_NAME_TAKEN, message)
        if isinstance(answer, Invalid | Forbidden):
            goes = isinstance(answer, Forbidden) and answer.namespace_terminating
            message = refusal_messages.snapshot_refused(name, answer.message)
            return await self._refuse_snapshot(
                run, name, Reason.NAMESPACE_TERMINATING if goes else Reason.SNAPSHOT_REFUSED, message
            )
        if isinstance(answer, FAILURES):
            return await self._remember_not_created(run, name, answer)
        run.remember(snapshot_not_created=None)
        self._index.of(SnapshotIndex).put(answer)
        # The watch wakes its queue; the application's next reconcile has to see this write.
        self._wake(run.key)
        return None

    async def _refuse_snapshot(self, run: PlanRun, name: str, reason: Reason, message: str) -> Outcome:
        run.remember(snapshot_refusal=SnapshotRefusal(name, reason, message, run.now), snapshot_not_created=None)
        if reason is not Reason.NAMESPACE_TERMINATING:
            self._metrics.count_refused_snapshot(run.key)
        await self._events.publish(run.app.metadata, PublishEvent(reason, message, True, name), run.now)
        return ObserveAgain(message)

    async def _remember_not_created(self, run: PlanRun, name: str, answer: Failure) -> Outcome:
        """Go on with the plan: a webhook that fails for hours must not hold up what else the plan does."""
        message = refusal_messages.snapshot_not_created(name, answer.message)
        log.warning("a snapshot was not created", snapshot=name, why=str(answer))
        self._metrics.count_refused_snapshot(run.key)
        before = self._index.memory(run.key).snapshot_not_created
        attempts = before.attempts + 1 if before is not None and before.name == name else 1
        failure = NotCreated(name, message, run.now, attempts=attempts)
        if failure.lasts:
            occasion = f"{name}/{hour_of(run.now)}"
            event = PublishEvent(Reason.SNAPSHOT_REFUSED, message, True, occasion, any_message=True)
            await self._events.publish(run.app.metadata, event, run.now)
        run.remember(snapshot_not_created=failure)
        # The plan knew of no failure: the next one says it, and when it is tried again.
        self._wake(run.key)
        return None

    # --- the driver's agent ---

    async def _set_executors(self, run: PlanRun, pod: PodRecord, instances: int) -> Outcome:
        answer = await self._agents.set_executors(run.key, pod, instances)
        run.remember(executors_refused=_refusal_of(answer, pod))
        if isinstance(answer, Unanswered):
            raise RetryLaterError(f"number of executors: {answer.reason}")
        return None

    async def _order_snapshots(self, run: PlanRun, pod: PodRecord, orders: SnapshotOrders) -> Outcome:
        answer = await self._agents.order_snapshots(run.key, pod, orders)
        # Also if it was refused: it is sent again after the same pause, and decisions do not need the answer.
        given = (run.now, process_of(pod))
        run.remember(orders_given=given, orders_refused=_refusal_of(answer, pod))
        if isinstance(answer, Unanswered):
            log.warning("the agent did not take the orders", reason=answer.reason)
        return None


def _refusal_of(answer: Unanswered | None, pod: PodRecord) -> tuple[str, str]:
    """Return which driver process refused an order, and why; empty texts if it was taken, or nobody answered."""
    return (process_of(pod), answer.reason) if answer is not None and answer.refused else ("", "")
