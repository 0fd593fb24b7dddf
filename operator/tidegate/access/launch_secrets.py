"""Creates and deletes the Secrets of a launch; never reads one. Does I/O."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tidegate.access.builders.launch_secrets import build_agent_secret, build_spark_secret
from tidegate.access.keys import OperatorKeys
from tidegate.api.streaming_app import StreamingApp
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Failure, NotFound
from tidegate.kube.paths import collection_of, item
from tidegate.pods.records.names import agent_secret_name, spark_secret_name
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.agent_protocol import Launch


class LaunchSecrets:
    """Derives what is in them from the operator's key."""

    def __init__(self, client: KubeClient, keys: OperatorKeys, platform: Platform) -> None:
        """Prepare.

        Args:
            client: talks to the API server.
            keys: the operator's.
            platform: has the id of the same key, by which pods name the Secrets that they want.
        """
        self._client, self._keys, self._platform = client, keys, platform

    async def ensure(self, app: StreamingApp, epoch: int) -> Failure | None:
        """Have both Secrets of a launch; returns why one could not be made.

        One that is there is left as it is: its name says that it was made of the same key, for the same launch.
        """
        metadata = app.metadata
        launch = Launch(metadata.namespace, metadata.name, metadata.uid, epoch)
        token, number = self._keys.inspection_token(launch), self._keys.number(launch)
        made = await asyncio.gather(
            self._make(build_agent_secret(app, epoch, self._platform, token, number)),
            self._make(build_spark_secret(app, epoch, self._platform, self._keys.spark_secret(launch))),
        )
        return next((failure for failure in made if failure is not None), None)

    async def remove(self, app: StreamingApp, epoch: int) -> Failure | None:
        """Remove both Secrets of a launch, if they are there; returns why one could not be removed."""
        for name_of in (agent_secret_name, spark_secret_name):
            name = name_of(app.metadata.name, app.metadata.uid, epoch, self._platform.key_id)
            answer = await self._client.delete(item("Secret", app.metadata.namespace, name))
            if isinstance(answer, FAILURES) and not isinstance(answer, NotFound):
                return answer
        return None

    async def provide(self, secret: dict[str, Any], *, replace: bool) -> Failure | None:
        """Have the Secret of a pod's configuration; returns why it could not be made.

        Args:
            secret: with its owner.
            replace: put it in place of one of the name, which is an earlier pod's and goes with that.
        """
        answer = await self._client.create(collection_of(secret), secret, msgspec.Raw)
        if isinstance(answer, AlreadyExists) and replace:
            metadata = secret["metadata"]
            gone = await self._client.delete(item("Secret", metadata["namespace"], metadata["name"]))
            if isinstance(gone, FAILURES) and not isinstance(gone, NotFound):
                return gone
            answer = await self._client.create(collection_of(secret), secret, msgspec.Raw)
        return answer if isinstance(answer, FAILURES) and not isinstance(answer, AlreadyExists) else None

    async def _make(self, manifest: dict[str, Any]) -> Failure | None:
        answer = await self._client.create(collection_of(manifest), manifest, msgspec.Raw)
        return answer if isinstance(answer, FAILURES) and not isinstance(answer, AlreadyExists) else None
