"""Builds and connects the operator's parts; starts none of them. No I/O."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
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

_Beside: TypeAlias = SnapshotController | ControlController | AutoscalingController
"""What has work to do, too, when something becomes of an application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What more than one controller works with."""

    client: KubeClient
    agents: AgentClient
    metrics: OperatorMetrics
    index: Index
    apps: WorkQueue
    """Of the applications: what any controller learns of one wakes it."""
    poller: AgentPoller
    platform: Platform
    access: AccessManager
    events: EventPublisher
    reporter: InvalidResourceReporter
    starts: StartEvents
    quotas: Quotas
    repartitions: RepartitionPods


def build_operator(  # noqa: PLR0913, PLR0917 - what all parts share
    settings: Settings,
    connection: Connection,
    client: KubeClient,
    agents: AgentClient,
    keys: OperatorKeys,
    metrics: OperatorMetrics,
) -> Operator:
    """Return an operator that has all its parts, none of which runs yet."""

    async def work(key: Key) -> float | None:
        return await apps.reconcile(key)

    large = LargeApps(settings.large_apps_of_namespace_mib * MIB, settings.large_apps_mib * MIB)
    index, queue = Index(settings.watch_namespaces or ("",), large), WorkQueue(work, metrics)
    events = EventPublisher(client)
    shared = _Shared(
        client=client,
        agents=agents,
        metrics=metrics,
        index=index,
        apps=queue,
        poller=AgentPoller(index, agents, queue, metrics, settings.agent_concurrency),
        platform=_build_platform(settings, keys),
        access=AccessManager(client, index),
        events=events,
        reporter=InvalidResourceReporter(client, events),
        starts=StartEvents(client, lambda: time.time() - client.clock_skew()),
        quotas=Quotas(client),
        repartitions=RepartitionPods(index, agents, queue.wake),
    )
    parts = _build_snapshots(shared), _build_control(shared), _build_autoscaling(shared)
    apps = _build_apps(shared, keys, parts)
    leads = asyncio.Event()
    return Operator(
        settings, connection, client, metrics, index, queue, shared.poller, leads, parts=parts, events=events
    )


def _build_platform(settings: Settings, keys: OperatorKeys) -> Platform:
    return Platform(
        settings.operator_image,
        settings.operator_image_pull_policy,
        settings.runtime_log_format,
        keys.id,
        pod_security=settings.pod_security_context,
        image_pull_secrets=settings.image_pull_secrets,
        pod_labels=settings.pod_labels,
        pod_annotations=settings.pod_annotations,
    )


def _build_apps(s: _Shared, keys: OperatorKeys, beside: Sequence[_Beside]) -> Reconciler:
    def wake_beside(key: Key) -> None:
        for controller in beside:
            controller.wake_for(key)

    secrets = LaunchSecrets(s.client, keys, s.platform)
    return Reconciler(
        s.index,
        s.platform,
        ActionExecutor(s.client, s.agents, s.index, s.access, secrets, s.events, s.metrics, s.apps.wake),
        s.poller,
        s.metrics,
        s.reporter,
        wake_beside=wake_beside,
        follow_repartition=s.repartitions.follow,
        quotas=s.quotas,
        executor_dry_run=ExecutorDryRun(s.client),
        pod_dry_run=PodDryRun(s.client, index=s.index),
        references=ReferenceChecks(s.client),
        starts=s.starts,
    )


def _build_snapshots(s: _Shared) -> SnapshotController:
    async def work(key: Key) -> float | None:
        return await reconciler.reconcile(key)

    queue = WorkQueue(work, s.metrics, subject="snapshot")
    pods = SnapshotPods(s.index, s.agents, queue.wake)
    beside = ((1, "repartitions pods", s.repartitions.run),)
    controller = SnapshotController(s.client, s.metrics, s.index, queue, pods, s.apps.wake, beside)
    reconciler = SnapshotReconciler(
        s.index,
        s.platform,
        SnapshotActionExecutor(s.client, s.agents, s.index, s.access, s.events, s.metrics),
        s.poller,
        pods,
        s.metrics.snapshots,
        s.reporter,
        s.apps.wake,
        controller.wake_beside,
        s.client.clock_skew,
        starts=s.starts,
    )
    return controller


def _build_control(s: _Shared) -> ControlController:
    reconciler = ControlReconciler(
        s.index,
        ControlActionExecutor(s.client, s.agents, s.index, s.events, s.metrics),
        s.poller,
        s.metrics.control,
        s.reporter,
        s.client.clock_skew,
        find_snapshot=s.index.of(SnapshotIndex).get,
    )
    return ControlController(s.client, s.metrics, s.index, WorkQueue(reconciler.reconcile, s.metrics))


def _build_autoscaling(s: _Shared) -> AutoscalingController:
    reconciler = AutoscalingReconciler(s.index, s.quotas, s.metrics.autoscaling, s.apps.wake)
    return AutoscalingController(s.index, WorkQueue(reconciler.reconcile, s.metrics))
