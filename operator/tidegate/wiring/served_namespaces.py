"""Which of the namespaces of its settings the operator may read. Does I/O.

Nothing is decided before everything is listed everywhere. So a namespace that may not be read would stop the work in
all others; and the rights of an operator for single namespaces are a Role in each, which goes with the namespace, and
which whoever administers it may delete. Such a namespace is left out by a process that begins, and another process
begins when it can be read again: what comes to be known later, one kind after the other, would have to be kept apart
from all that is decided meanwhile.

Design: docs/design/operator-loop.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto

import msgspec
import structlog

from tidegate.api.control_message import CONTROL_KIND
from tidegate.api.stream_snapshot import SNAPSHOT_KIND
from tidegate.api.streaming_app import KIND
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, Forbidden, TooLong
from tidegate.kube.paths import collection

Sleep = Callable[[float], Awaitable[None]]
_KINDS = ("Pod", KIND, SNAPSHOT_KIND, CONTROL_KIND)
_TRIES, _PAUSE = 3, 2.0
"""How often a namespace is asked for before it is left out: rights take a moment to be in force."""
_LONG_PAUSE = 60.0
_PATIENCE, _LONGEST = 5.0, 16 * 1024
_AT_ONCE = 16
log = structlog.get_logger()


class _Verdict(Enum):
    READABLE = auto()
    REFUSED = auto()
    UNKNOWN = auto()
    """The API server failed, which says nothing of the namespace."""


async def find_served(client: KubeClient, namespaces: Sequence[str], sleep: Sleep = asyncio.sleep) -> tuple[str, ...]:
    """Return the namespaces without those that may not be read; waits until there is one.

    Args:
        client: of the API server.
        namespaces: that the operator is to serve; none stands for all there are, and is returned.
        sleep: waits for so many seconds.
    """
    tries = 1
    while refused := await _refused(client, namespaces):
        if tries >= _TRIES and len(refused) < len(namespaces):
            break
        log.warning("namespaces may not be read", answers=sorted(refused.values()), again_after=_PAUSE)
        await sleep(_PAUSE)
        tries += 1
    for namespace, answer in refused.items():
        log.error("namespace left out, because it may not be read", namespace=namespace, answer=answer)
    return tuple(namespace for namespace in namespaces if namespace not in refused)


async def wait_until_readable(client: KubeClient, left_out: Sequence[str], sleep: Sleep = asyncio.sleep) -> str:
    """Return the first namespace of those that were left out of which everything can be read."""
    while True:
        await sleep(_LONG_PAUSE)
        for namespace in left_out:
            verdict, _ = await _check(client, namespace)
            if verdict is _Verdict.READABLE:
                return namespace


async def _refused(client: KubeClient, namespaces: Sequence[str]) -> dict[str, str]:
    """Return the namespaces that may not be read, and what the API server said."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def check(namespace: str) -> tuple[_Verdict, str]:
        async with turns:
            return await _check(client, namespace)

    found = await asyncio.gather(*map(check, namespaces))
    return {
        namespace: answer
        for namespace, (verdict, answer) in zip(namespaces, found, strict=True)
        if verdict is _Verdict.REFUSED
    }


async def _check(client: KubeClient, namespace: str) -> tuple[_Verdict, str]:
    verdict = _Verdict.READABLE
    for kind in _KINDS:
        path = f"{collection(kind, namespace)}?limit=1"
        answer = await client.read_once(path, msgspec.Raw, patience=_PATIENCE, longest=_LONGEST)
        if isinstance(answer, Forbidden):
            return _Verdict.REFUSED, answer.message
        if isinstance(answer, FAILURES) and not isinstance(answer, TooLong):
            verdict = _Verdict.UNKNOWN
    return verdict, ""
