"""Builds and connects the operator's parts; starts none of them. No I/O."""

from __future__ import annotations

import asyncio
import time

from tidegate.access.act import AccessManager
from tidegate.access.keys import OperatorKeys
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient
from tidegate.agent.poller import AgentPoller
from tidegate.app.act import ActionExecutor
from tidegate.app.dry_runs.executor_dry_run import ExecutorDryRun
from tidegate.app.dry_runs.pod_dry_run import PodDryRun
from tidegate.app.dry_runs.reference_checks import ReferenceChecks
from tidegate.app.reconcile import Reconciler
from tidegate.app.repartition_pods import RepartitionPods
from tidegate.autoscaling.controller import AutoscalingController
from tidegate.autoscaling.quotas import Quotas
from tidegate.autoscaling.reconcile import AutoscalingReconciler
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.large_apps import MIB, LargeApps
from tidegate.cache.pods.start_events import StartEvents
from tidegate.control.act import ControlActionExecutor
from tidegate.control.controller import ControlController
from tidegate.control.reconcile import ControlReconciler
from tidegate.engine.controller import Running
from tidegate.engine.events import EventPublisher
from tidegate.engine.workqueue import WorkQueue
from tidegate.kube.client import KubeClient
from tidegate.kube.connection import Connection
from tidegate.pods.records.platform import Platform
from tidegate.settings import Settings
from tidegate.snapshots.act import SnapshotActionExecutor
from tidegate.snapshots.controller import SnapshotController
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.pods_at_work import SnapshotPods
from tidegate.snapshots.reconcile import SnapshotReconciler
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.running_operator import Operator


def build_operator(  # noqa: PLR0913, PLR0917 - what all parts share
    settings: Settings,
    connection: Connection,
    client: KubeClient,
    agents: AgentClient,
    keys: OperatorKeys,
    metrics: OperatorMetrics,
) -> Operator:
    """Return an operator that has all its parts, none of which runs yet."""
    large = LargeApps(settings.large_apps_of_namespace_mib * MIB, settings.large_apps_mib * MIB)
    index = Index(settings.watch_namespaces or ("",), large)
    access, events = AccessManager(client, index), EventPublisher(client)

    async def work(key: tuple[str, str]) -> float | None:
        return await reconciler.reconcile(key)

    async def work_on_snapshot(key: tuple[str, str]) -> float | None:
        return await snapshots.reconcile(key)

    async def work_on_messages(key: tuple[str, str]) -> float | None:
        return await messages.reconcile(key)

    async def work_on_scale(key: tuple[str, str]) -> float | None:
        return await scale.reconcile(key)

    def wake_beside(key: tuple[str, str]) -> None:
        part.wake_for(key)
        control.wake_for(key)
        autoscaling.wake_for(key)

    queue = WorkQueue(work, metrics)
    snapshot_queue = WorkQueue(work_on_snapshot, metrics, subject="snapshot")
    pods = SnapshotPods(index, agents, snapshot_queue.wake)
    repartitioning = RepartitionPods(index, agents, queue.wake)
    beside: tuple[Running, ...] = ((1, "repartitions pods", repartitioning.run),)
    part = SnapshotController(client, metrics, index, snapshot_queue, pods, queue.wake, beside)
    control = ControlController(client, metrics, index, WorkQueue(work_on_messages, metrics))
    autoscaling = AutoscalingController(index, WorkQueue(work_on_scale, metrics))
    quotas = Quotas(client)
    scale = AutoscalingReconciler(index, quotas, metrics.autoscaling, queue.wake)
    platform = Platform(
        settings.operator_image,
        settings.operator_image_pull_policy,
        settings.runtime_log_format,
        keys.id,
        pod_security=settings.pod_security_context,
        image_pull_secrets=settings.image_pull_secrets,
        pod_labels=settings.pod_labels,
        pod_annotations=settings.pod_annotations,
    )
    secrets = LaunchSecrets(client, keys, platform)
    actor = ActionExecutor(client, agents, index, access, secrets, events, metrics, queue.wake)
    poller = AgentPoller(index, agents, queue, metrics, settings.agent_concurrency)
    reporter = InvalidResourceReporter(client, events)
    reconciler = Reconciler(index, platform, actor, poller, metrics, reporter, wake_beside=wake_beside)
    reconciler.follow_repartition, reconciler.quotas, reconciler.pod_dry_run = (
        repartitioning.follow,
        quotas,
        PodDryRun(client, index=index),
    )
    reconciler.executor_dry_run, reconciler.references = ExecutorDryRun(client), ReferenceChecks(client)
    starts = StartEvents(client, lambda: time.time() - client.clock_skew())
    snapshot_actor = SnapshotActionExecutor(client, agents, index, access, events, metrics)
    snapshots = SnapshotReconciler(
        index,
        platform,
        snapshot_actor,
        poller,
        part.pods,
        metrics.snapshots,
        reporter,
        queue.wake,
        part.wake_beside,
        client.clock_skew,
    )
    reconciler.starts = snapshots.starts = starts
    control_actor = ControlActionExecutor(client, agents, index, events, metrics)
    messages = ControlReconciler(index, control_actor, poller, metrics.control, reporter, client.clock_skew)
    messages.find_snapshot = index.of(SnapshotIndex).get
    parts, leads = (part, control, autoscaling), asyncio.Event()
    return Operator(settings, connection, client, metrics, index, queue, poller, leads, parts=parts, events=events)
