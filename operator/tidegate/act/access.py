"""The drivers' ServiceAccount, Role and RoleBinding, one of each per namespace. Does I/O."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Failure, NotFound
from tidegate.kube.paths import collection_of, path_of
from tidegate.observe.index import Index
from tidegate.resources.access import build_access
from tidegate.workqueue import Key
from tidegate_spark.protocol import LABEL_MANAGED_BY, MANAGED_BY

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Taken:
    """An object of the name is there that is not ours: it is neither used nor changed."""

    kind: str


class _Meta(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] = {}


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    rules: list[dict[str, list[str]]] = []

    @property
    def is_ours(self) -> bool:
        """Whether an operator made it; what people made under the name is left alone."""
        return self.metadata.labels.get(LABEL_MANAGED_BY) == MANAGED_BY


class AccessKeeper:
    """Makes and removes the access objects; one namespace at a time, so that making and removing never cross."""

    def __init__(self, client: KubeClient, index: Index) -> None:
        """Prepare; which namespaces are known to have access is in the index."""
        self._client = client
        self._index = index
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ensure(self, namespace: str) -> Failure | Taken | None:
        """Have the three objects; returns what the API server said instead or what is in the way, or None."""
        async with self._locks[namespace]:
            if namespace in self._index.namespaces_with_access:
                return None
            for manifest in build_access(namespace):
                failure = await self._make(manifest)
                if failure is not None:
                    return failure
            self._index.namespaces_with_access.add(namespace)
            return None

    async def release(self, key: Key) -> Failure | None:
        """Remove the three objects, unless another application of the namespace needs them."""
        namespace = key[0]
        async with self._locks[namespace]:
            if not self._index.leave_namespace(key):
                return None
            self._index.namespaces_with_access.discard(namespace)
            for manifest in reversed(build_access(namespace)):
                found = await self._client.get(path_of(manifest), _Object)
                if isinstance(found, NotFound) or (isinstance(found, _Object) and not found.is_ours):
                    continue
                if isinstance(found, FAILURES):
                    return found
                answer = await self._client.delete(path_of(manifest), uid=found.metadata.uid)
                if isinstance(answer, FAILURES) and not isinstance(answer, NotFound):
                    return answer
        return None

    async def _make(self, manifest: dict[str, Any]) -> Failure | Taken | None:
        answer = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        if isinstance(answer, AlreadyExists):
            return await self._adopt(manifest)
        return answer if isinstance(answer, FAILURES) else None

    async def _adopt(self, manifest: dict[str, Any]) -> Failure | Taken | None:
        found = await self._client.get(path_of(manifest), _Object)
        if isinstance(found, FAILURES):
            return found
        if not found.is_ours:
            return Taken(manifest["kind"])
        # A Role of an earlier version of the operator; it is replaced, not patched, to need no right to change roles.
        if manifest["kind"] != "Role" or found.rules == manifest["rules"]:
            return None
        log.info("role replaced", reason="RulesChanged", role=path_of(manifest))
        gone = await self._client.delete(path_of(manifest), uid=found.metadata.uid)
        if isinstance(gone, FAILURES):
            return gone
        made = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        return made if isinstance(made, FAILURES) else None
