"""The Secret with the token of a driver's agent: made, taken over, removed. Does I/O."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from tidegate.act.access import Taken
from tidegate.agent.client import AgentClient, decode_token
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Failure, NotFound
from tidegate.kube.paths import collection_of, item, path_of
from tidegate.model.streaming_app import KIND, StreamingApp
from tidegate.resources.agent_secret import build_agent_secret
from tidegate.resources.names import agent_secret_name
from tidegate.resources.spark_auth import SPARK_SECRET_KEY
from tidegate.workqueue import Key, RetryLaterError
from tidegate_spark.protocol import ANNOTATION_APP_UID, LABEL_MANAGED_BY, MANAGED_BY

_TOKEN_BYTES = _SPARK_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class ClearedAway:
    """What was in the way was Tidegate's, of no use, and is removed: the next look makes another one."""


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Meta(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ownerReferences: list[_Owner] = []  # noqa: N815 - the API's name

    def is_ours(self, app_name: str) -> bool:
        """Return whether an operator made it for an application of this name; people's Secrets are left alone."""
        owned = any((owner.kind, owner.name) == (KIND, app_name) for owner in self.ownerReferences)
        return self.labels.get(LABEL_MANAGED_BY) == MANAGED_BY and (owned or ANNOTATION_APP_UID in self.annotations)


class _Secret(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] = {}


async def ensure_agent_secret(
    client: KubeClient, agents: AgentClient, app: StreamingApp
) -> Failure | Taken | ClearedAway | None:
    """Have the Secret, with a token that ``agents`` knows from now on.

    Returns:
        Why it could not be made, what is in the way, or None.

    Raises:
        RetryLaterError: there is one, and it can not be read.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    manifest = build_agent_secret(app, token, new_spark_secret())
    answer = await client.create(collection_of(manifest), manifest, msgspec.Raw)
    if isinstance(answer, AlreadyExists):
        return await _adopt(client, agents, app, manifest)
    if isinstance(answer, FAILURES):
        return answer
    agents.learn_token(_key_of(app), token)
    return None


def new_spark_secret() -> str:
    """Return what driver and executors will show each other; the operator itself never needs it again."""
    return secrets.token_urlsafe(_SPARK_SECRET_BYTES)


async def remove_agent_secret(client: KubeClient, agents: AgentClient, key: Key) -> Failure | None:
    """Remove the Secret, if there is one and it is Tidegate's; returns why it could not be removed.

    Raises:
        RetryLaterError: it can not be read.
    """
    agents.forget(key)
    path = item("Secret", key[0], agent_secret_name(key[1]))
    found = await _read(client, path)
    if found is None or not found.metadata.is_ours(key[1]):
        return None
    answer = await client.delete(path, uid=found.metadata.uid)
    return answer if isinstance(answer, FAILURES) and not isinstance(answer, NotFound) else None


async def _adopt(
    client: KubeClient, agents: AgentClient, app: StreamingApp, manifest: dict[str, Any]
) -> Taken | ClearedAway | None:
    found = await _read(client, path_of(manifest))
    if found is None:
        raise RetryLaterError("read of the agent's Secret: it was there a moment ago")
    if not found.metadata.is_ours(app.metadata.name):
        return Taken("Secret")
    token = decode_token(found.data)
    is_its = found.metadata.annotations.get(ANNOTATION_APP_UID) == app.metadata.uid
    if not is_its or token is None or not found.data.get(SPARK_SECRET_KEY):
        # Of an application of the same name that was deleted, and the garbage collector would take it from under us; or
        # by an operator that left Spark's ports open, and a pod that wants the key would never start.
        await client.delete(path_of(manifest), uid=found.metadata.uid)
        return ClearedAway()
    agents.learn_token(_key_of(app), token)
    return None


async def _read(client: KubeClient, path: str) -> _Secret | None:
    found = await client.get(path, _Secret)
    if isinstance(found, NotFound):
        return None
    if isinstance(found, FAILURES):
        raise RetryLaterError(f"read of the agent's Secret: {found}")
    return found


def _key_of(app: StreamingApp) -> Key:
    return app.metadata.namespace, app.metadata.name
