"""Keeps the index's pods up to date. Does I/O."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.cache.index import Index
from tidegate.cache.pods.unowned_pods import UnownedPods
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.paths import collection
from tidegate.kube.watch import EventCounter, Listed, Removed, Watch
from tidegate.pods.records.read_pods import WATCHED, read_record

_SELECTOR = ",".join(f"{name}={value}" for name, value in WATCHED.items())


async def watch_pods(
    client: KubeClient, metrics: EventCounter, index: Index, wake: Callable[[Key], None], namespace: str
) -> None:
    """Keep the index's pods up to date, for ever.

    One that cannot be read stays what it was, as long as it is there.

    Args:
        client: of the API server.
        metrics: count the events.
        index: takes the pods in.
        wake: called with each application that is to be reconciled.
        namespace: where; empty for all namespaces.
    """
    watch = Watch(client, collection("Pod", namespace), _SELECTOR, read_record)
    strangers = UnownedPods()
    async for change in watch.changes():
        metrics.count_event("pods")
        if isinstance(change, Listed):
            for pod in change.items:
                strangers.note(pod)
            keys = index.replace_pods(list(change.items), namespace, change.version, change.unread)
        elif isinstance(change, Removed):
            key = index.miss_pod(change.item)
            keys = {key} if key is not None else set()
        else:
            strangers.note(change.item)
            key = index.put_pod(change.item)
            keys = {key} if key is not None else set()
        for key in sorted(keys):  # the same order in every process
            wake(key)
