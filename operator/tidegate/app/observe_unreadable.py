"""Builds the observation for the deletion of an application that cannot be decoded. Writes nothing."""

from __future__ import annotations

from tidegate.api.streaming_app import Application, StorageSpec, StreamingApp, StreamingAppSpec
from tidegate.app.observation import Observation
from tidegate.cache.index import Index
from tidegate.cache.known_apps import UnreadableApp
from tidegate.pods.records.names import driver_pod_name, purge_pod_name
from tidegate.pods.records.platform import Platform
from tidegate.snapshots.index import SnapshotIndex
from tidegate_spark.contract.protocol import ROLE_EXECUTOR, ROLE_REHEARSAL, ROLE_REPARTITION


def observe_unreadable(index: Index, known: UnreadableApp, platform: Platform) -> Observation:
    """Return an observation in which the application says nothing beside its metadata.

    So above all it does not ask for its storage's removal.

    Args:
        index: the picture of the cluster.
        known: what is known of the resource.
        platform: what the installation decides.
    """
    pods = {pod.name: pod for pod in index.pods(known.key)}
    silent = StreamingAppSpec(application=Application(image="", main=""), storage=StorageSpec(uri=""))
    return Observation(
        app=StreamingApp(metadata=known.metadata, spec=silent),
        spec_hash="",
        platform=platform,
        driver=pods.get(driver_pod_name(known.key[1])),
        executors=tuple(pod for pod in pods.values() if pod.role == ROLE_EXECUTOR),
        rehearsals=tuple(pod for pod in pods.values() if pod.role == ROLE_REHEARSAL),
        repartitions=tuple(pod for pod in pods.values() if pod.role == ROLE_REPARTITION),
        purge=pods.get(purge_pod_name(known.key[1])),
        snapshots=index.of(SnapshotIndex).of_app(known.key),
        refused_writes=index.of(SnapshotIndex).refused_writes(known.key),
        memory=index.memory(known.key),
    )
