"""Keeps the index's applications up to date, by one watch for each served namespace. Does I/O."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.api.streaming_app import KIND, PLURAL
from tidegate.cache.app_versions import AppVersion, read_gone, read_version
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.paths import collection
from tidegate.kube.watch import EventCounter, Listed, Removed, Watch


async def watch_apps(
    client: KubeClient, metrics: EventCounter, index: Index, wake: Callable[[Key], None], namespace: str
) -> None:
    """Keep the index up to date, for ever.

    Of a list, each is taken in as soon as it is read: how much memory large ones may take is decided one by one, and
    nobody holds a whole list of them beside the index. What a whole list does not hold is gone.

    Args:
        client: of the API server.
        metrics: count the events.
        index: takes the applications in.
        wake: called for each application that is to be reconciled.
        namespace: where; empty for all namespaces.
    """

    def read(body: msgspec.Raw) -> AppVersion:
        return read_version(body, index.large.admits_version)

    watch = Watch(client, collection(KIND, namespace), "", read, gone=read_gone, one_by_one=True)
    async for change in watch.changes():
        if isinstance(change, Listed):
            keys = index.keep_apps(change.uids, namespace, change.version)
        elif isinstance(change, Removed):
            metrics.count_event(PLURAL)
            keys = index.remove_app(change.item.identity.key, change.item.identity.uid)
        else:
            metrics.count_event(PLURAL)
            keys = index.put_version(change.item)
        for key in sorted(keys):  # the same order in every process
            wake(key)
