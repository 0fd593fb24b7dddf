"""Tries an executor's pod by dry run when executors are missing. Asks the API server, stores nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.app.observation import Observation
from tidegate.app.rules.pods.executors import executor_to_try
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import Forbidden, Invalid
from tidegate.kube.paths import collection_of

LASTS = 60.0
"""Seconds for which an answer counts."""
PATIENCE = 10.0
"""Seconds to wait for one."""


@dataclass(slots=True)
class ExecutorDryRun:
    """Has the API server look at a pod like those that a driver may not make, not too often.

    The operator asks, and not the driver: what the server holds against the driver's account alone, it does not say.
    """

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Uid of a driver's pod -> until when an answer counts, and the server's words."""

    async def check(self, o: Observation) -> str:
        """Return the API server's words; empty if it holds nothing against such a pod, or nobody knows."""
        if o.driver is None:
            return ""
        until, message = self._known.get(o.driver.uid, (0.0, ""))
        if self.clock() < until:
            return message
        pod = executor_to_try(o)
        if pod is None:
            return ""
        answer = await self.client.try_out(collection_of(pod), pod, patience=PATIENCE)
        message = answer.message if isinstance(answer, Forbidden | Invalid) else ""
        now = self.clock()
        self._known = {uid: each for uid, each in self._known.items() if now < each[0]}
        self._known[o.driver.uid] = (now + LASTS, message)
        return message
