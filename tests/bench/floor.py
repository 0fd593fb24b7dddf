"""What the API server itself allows: the requests before each driver pod, from a client that decides nothing. Does I/O.

The operator writes eight times per application on the way to its pod: ServiceAccount beside Role and RoleBinding, two
Secrets at once, finalizer, epoch, pod. Here a plain client writes the same eight, with the bodies that the operator
sent for an application of the same run, as many at a time as the operator has workers, and does nothing afterwards. No
operator that makes these writes is faster.
"""

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.load import AT_ONCE, Load
from tidegate.kube.paths import collection
from tidegate.settings import Settings
from tidegate_spark.contract.protocol import FINALIZER

PREFIX = "floor-"


@dataclass(frozen=True)
class Launch:
    """What was written for a launch, as the API server has it."""

    account: Mapping[str, Any]
    grants: Sequence[Mapping[str, Any]]
    """Role and RoleBinding, in this order."""
    secrets: Sequence[Mapping[str, Any]]
    status: Mapping[str, Any]
    pod: Mapping[str, Any]


class Floor:
    """Creates applications and, for each, what an operator would have to write before its driver pod is there."""

    def __init__(self, load: Load, namespace: str, launch: Launch) -> None:
        """Prepare.

        Args:
            load: the client.
            namespace: where.
            launch: an application's of the same run; copies of it are written.
        """
        self._load, self._namespace, self._launch = load, namespace, launch
        self._apps = f"/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/streamingapps"
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue()

    async def create_all(self, apps: Iterable[dict[str, Any]]) -> None:
        """Create everything for each manifest, whose name gets :data:`PREFIX`; the audit log has how long it took."""
        workers = [asyncio.create_task(self._work()) for _ in range(Settings("").concurrency)]
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._apply(app, gate) for app in apps))
        for _ in workers:
            self._waiting.put_nowait(None)
        await asyncio.gather(*workers)

    async def _apply(self, app: dict[str, Any], gate: asyncio.Semaphore) -> None:
        name = PREFIX + app["metadata"]["name"]
        async with gate:
            await self._load.create(self._apps, {**app, "metadata": {**app["metadata"], "name": name}})
        self._waiting.put_nowait(name)

    async def _work(self) -> None:
        launch = self._launch
        while name := await self._waiting.get():
            path = f"{self._apps}/{name}"
            await asyncio.gather(self._create(launch.account, name), self._one_by_one(launch.grants, name))
            made = (self._create(secret, f"{name}-{number}") for number, secret in enumerate(launch.secrets))
            await asyncio.gather(*made)
            await self._load.merge_patch(path, {"metadata": {"finalizers": [FINALIZER]}})
            await self._load.merge_patch(f"{path}/status", {"status": launch.status})
            await self._create(launch.pod, name)

    async def _one_by_one(self, manifests: Iterable[Mapping[str, Any]], name: str) -> None:
        for manifest in manifests:
            await self._create(manifest, name)

    async def _create(self, manifest: Mapping[str, Any], name: str) -> None:
        await self._load.create(collection(manifest["kind"], self._namespace), bare(manifest, name))


def bare(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``found`` as it may be created under another name: owned by nobody and on no node yet."""
    body = copy.deepcopy({key: value for key, value in found.items() if key not in ("metadata", "status")})
    body.get("spec", {}).pop("nodeName", None)
    metadata = {key: found["metadata"][key] for key in ("labels", "annotations") if key in found["metadata"]}
    return {**body, "metadata": {**metadata, "name": name}}
