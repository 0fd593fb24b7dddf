"""What the API server itself allows: the requests before each driver pod, from a client that decides nothing. Does I/O.

The operator writes five times per application on the way to its pod: finalizer, two Secrets at once, epoch, pod. Here a
plain client writes the same five, with the bodies that the operator sent for an application of the same run, as many at
a time as the operator has workers, and does nothing afterwards. No operator that makes these writes is faster.
"""

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.bench.load import AT_ONCE, Load
from tidegate.settings import Settings
from tidegate_spark.contract.protocol import FINALIZER

PREFIX = "floor-"


class Floor:
    """Creates applications and, for each, what an operator would have to write before its driver pod is there."""

    def __init__(
        self, load: Load, namespace: str, secrets: Sequence[Mapping[str, Any]], pod: Mapping[str, Any]
    ) -> None:
        """Send copies of ``secrets`` and ``pod``, an application's of the same run.

        Args:
            load: the client.
            namespace: where.
            secrets: those of a launch, as the API server has them.
            pod: a driver pod, likewise.
        """
        self._load, self._secrets, self._pod = load, secrets, pod
        self._apps = f"/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/streamingapps"
        self._core = f"/api/v1/namespaces/{namespace}"
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue()

    async def create_all(self, apps: Iterable[dict[str, Any]], status: Mapping[str, Any]) -> None:
        """Create everything; the audit log tells how long it took.

        Args:
            apps: manifests, whose names get :data:`PREFIX`.
            status: what is written to each before its pod.
        """
        workers = [asyncio.create_task(self._work(status)) for _ in range(Settings("").concurrency)]
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

    async def _work(self, status: Mapping[str, Any]) -> None:
        while name := await self._waiting.get():
            path = f"{self._apps}/{name}"
            await self._load.merge_patch(path, {"metadata": {"finalizers": [FINALIZER]}})
            made = (bare(secret, f"{name}-{number}") for number, secret in enumerate(self._secrets))
            await asyncio.gather(*(self._load.create(f"{self._core}/secrets", each) for each in made))
            await self._load.merge_patch(f"{path}/status", {"status": status})
            await self._load.create(f"{self._core}/pods", bare(self._pod, name))


def bare(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``found`` as it may be created under another name: owned by nobody and on no node yet."""
    body = copy.deepcopy({key: value for key, value in found.items() if key not in ("metadata", "status")})
    body.get("spec", {}).pop("nodeName", None)
    metadata = {key: found["metadata"][key] for key in ("labels", "annotations") if key in found["metadata"]}
    return {**body, "metadata": {**metadata, "name": name}}
