"""Creates, compares and replaces each application's ServiceAccount, Role and RoleBinding. Does I/O."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import structlog

from tidegate.access.builders.access import build_access
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.access_age import ACCESS_AGE
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Failure, NotFound
from tidegate.kube.paths import collection_of, item, path_of
from tidegate.pods.records.names import SHARED_ACCESS_NAME
from tidegate_spark.contract.protocol import LABEL_MANAGED_BY, MANAGED_BY

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Taken:
    """An object of the name is there that is not ours: it is neither used nor changed."""

    kind: str


_Have = Callable[[dict[str, Any]], Awaitable[Failure | Taken | None]]


class _Owner(msgspec.Struct):
    uid: str = ""


class _Meta(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] = {}
    ownerReferences: list[_Owner] = []  # noqa: N815 - the API's name


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    rules: list[dict[str, list[str]]] | None = None
    roleRef: dict[str, str] | None = None  # noqa: N815 - the API's name
    subjects: list[dict[str, str]] | None = None

    @property
    def is_ours(self) -> bool:
        """Whether an operator made it; what people made under the name is left alone."""
        return self.metadata.labels.get(LABEL_MANAGED_BY) == MANAGED_BY

    def is_as(self, manifest: dict[str, Any]) -> bool:
        """Return whether it has the manifest's owner, rules, role and subjects."""
        found = {"rules": self.rules, "roleRef": self.roleRef, "subjects": self.subjects}
        owners = [owner["uid"] for owner in manifest["metadata"]["ownerReferences"]]
        same_owner = [owner.uid for owner in self.metadata.ownerReferences] == owners
        return same_owner and all(found[part] == manifest.get(part) for part in found)


class AccessManager:
    """Makes an application's access objects; one application at a time, so that two makings never cross.

    Nobody here removes them: they have their application for owner, and go with it.
    """

    def __init__(self, client: KubeClient, index: Index, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; of which applications the access was looked at, and when, is in the index."""
        self._client = client
        self._index = index
        self._clock = clock
        # A lock exists while somebody holds it or waits for it, because applications come and go.
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._without_shared: set[str] = set()
        """Namespaces in which nothing grants rights to all drivers, as earlier versions did."""
        self._withdrawing: set[str] = set()
        """Namespaces in which a launch is looking for that: a hundred launched at once would all ask the same."""

    async def ensure(self, app: StreamingApp) -> Failure | Taken | None:
        """Have the three objects as they should be, unless they were looked at a moment ago.

        Returns:
            What the API server said instead, or what is in the way, or None.
        """
        key = (app.metadata.namespace, app.metadata.name)
        async with self._locks.setdefault(key, asyncio.Lock()):
            age = self._index.checked_access.age(key, self._clock())
            if age < ACCESS_AGE:
                return None
            # Read first where they should exist, created first where nothing is known: mostly one request for each.
            have = self._make if age == float("inf") else self._fix
            account, *grants = build_access(app)
            # The launch waits for this. The Role comes before the binding, which is refused to an operator that may
            # not bind, but holds what the Role grants: the API server looks into it for that.
            failures = await asyncio.gather(
                have(account), _one_by_one(have, grants), self._withdraw_shared(app.metadata.namespace)
            )
            failure = next((failure for failure in failures if failure is not None), None)
            known = self._index.app(key)
            # What was made for one that is gone meanwhile goes with it, and is nothing to launch its successor on.
            if failure is None and known is not None and known.metadata.uid == app.metadata.uid:
                self._index.checked_access.note(key, self._clock())
            return failure

    async def _withdraw_shared(self, namespace: str) -> None:
        """Remove what granted rights to all drivers of the namespace, once no driver runs as that account any more.

        The account stays, without rights: somebody may have named it. No launch fails because of this; the next tries
        it again.
        """
        seen = namespace in self._without_shared or namespace in self._withdrawing
        if seen or self._index.uses_account(namespace, SHARED_ACCESS_NAME):
            return
        self._withdrawing.add(namespace)
        try:
            if await self._has_no_shared(namespace):
                self._without_shared.add(namespace)
        finally:
            self._withdrawing.discard(namespace)

    async def _has_no_shared(self, namespace: str) -> bool:
        """Remove it; return whether nothing of it is left that is ours."""
        for kind in ("RoleBinding", "Role"):
            path = item(kind, namespace, SHARED_ACCESS_NAME)
            found = await self._client.get(path, _Object)
            if isinstance(found, NotFound) or (isinstance(found, _Object) and not found.is_ours):
                continue
            if isinstance(found, FAILURES):
                return False
            gone = await self._client.delete(path, uid=found.metadata.uid)
            if isinstance(gone, FAILURES) and not isinstance(gone, NotFound):
                return False
            log.info("shared access withdrawn", reason="AccessChanged", object=path)
        return True

    async def _make(self, manifest: dict[str, Any]) -> Failure | Taken | None:
        answer = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        if isinstance(answer, AlreadyExists):
            return await self._fix(manifest)
        return answer if isinstance(answer, FAILURES) else None

    async def _fix(self, manifest: dict[str, Any]) -> Failure | Taken | None:
        found = await self._client.get(path_of(manifest), _Object)
        if isinstance(found, NotFound):
            log.info("access put back", reason="AccessMissing", object=path_of(manifest))
        elif isinstance(found, FAILURES):
            return found
        elif not found.is_ours:
            return Taken(manifest["kind"])
        elif found.is_as(manifest):
            return None
        else:
            # It belongs to an earlier application of the name and would be deleted with it, is from an earlier
            # operator, or was changed by somebody. It is replaced, not patched: the operator has no right to change
            # roles, and a binding's role cannot be changed at all.
            log.info("access replaced", reason="AccessChanged", object=path_of(manifest))
            gone = await self._client.delete(path_of(manifest), uid=found.metadata.uid)
            if isinstance(gone, FAILURES) and not isinstance(gone, NotFound):
                return gone
        made = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        return made if isinstance(made, FAILURES) else None


async def _one_by_one(have: _Have, manifests: list[dict[str, Any]]) -> Failure | Taken | None:
    for manifest in manifests:
        failure = await have(manifest)
        if failure is not None:
            return failure
    return None
