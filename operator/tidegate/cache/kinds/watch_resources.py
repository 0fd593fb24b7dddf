"""Lists and watches the resources of one kind, and reports changes. Does I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from tidegate.api.values.bounded_json import is_cut, why_cut
from tidegate.api.values.errors import UnreadableAppError
from tidegate.cache.kinds.raw_resource import metadata_of, ready_condition
from tidegate.cache.kinds.resource_cache import UnreadableResource, Watchable, WatchedResources
from tidegate.kube.client import KubeClient
from tidegate.kube.paths import collection
from tidegate.kube.watch import EventCounter, Listed, Removed, Watch

R = TypeVar("R", bound=Watchable)


class _Name(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)


_named = msgspec.json.Decoder(_Named)
_LONGEST_PROBLEM = 500
_AT_ONCE = 16
"""Resources of a list that are woken before others get a turn."""


async def follow(  # noqa: PLR0913, PLR0917 - what differs between the kinds
    client: KubeClient,
    metrics: EventCounter,
    kind: str,
    namespace: str,
    index: WatchedResources[R],
    decode: Callable[[msgspec.Raw], R],
    wake: Callable[[R | UnreadableResource], None],
    wake_beside: Callable[[Sequence[R | UnreadableResource]], None] = lambda changed: None,
) -> None:
    """Keep an index up to date, for ever.

    Args:
        client: of the API server.
        metrics: count the events.
        kind: of the resources.
        namespace: where; empty for all namespaces.
        index: takes the resources in.
        decode: raises UnreadableAppError for what does not fit the model.
        wake: called with each resource that changed, came or went.
        wake_beside: called with them afterwards: with all of a list together.
    """
    path = collection(kind, namespace)

    def read(body: msgspec.Raw) -> R | UnreadableResource:
        return _read(body, decode)  # one that cannot be read must not keep the others out

    async for change in Watch(client, path, "", read).changes():
        metrics.count_event(path.rpartition("/")[2])
        if isinstance(change, Listed):
            changed = index.replace(change.items, namespace, change.version)
            for number, resource in enumerate(changed, 1):
                wake(resource)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            wake_beside(changed)
            continue
        resource = change.item
        gone = isinstance(change, Removed)
        if index.remove(resource.key, resource.metadata.uid) if gone else index.put(resource):
            wake(resource)
            wake_beside((resource,))


def _read(body: msgspec.Raw, decode: Callable[[msgspec.Raw], R]) -> R | UnreadableResource:
    try:
        if not is_cut(bytes(body)):
            return decode(body)
        problem = ""
    except UnreadableAppError as error:
        # The CRD's schema refuses what does not fit: this one was stored under another version of it.
        problem = str(error)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]
    cut = bytes(body)  # by the watch: what it yields is nested no deeper than decoders survive
    try:
        raw = msgspec.json.decode(cut)
    except msgspec.DecodeError as error:  # a number beyond all doubles, say: what is next to the metadata is left out
        raw = {"metadata": msgspec.to_builtins(_named.decode(cut).metadata)}
        problem = problem or str(error)
    return UnreadableResource(metadata_of(raw), problem or why_cut(raw), ready_condition(raw))
