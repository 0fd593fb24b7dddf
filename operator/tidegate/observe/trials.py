"""What the API server finds wrong with pods, before anything is stopped for them. Asks it; stores nothing there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from tidegate.decide.launch import pods_to_try
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Invalid
from tidegate.kube.paths import collection_of
from tidegate.observe.observation import Observation, Unfit
from tidegate.workqueue import Key

LASTS, UNKNOWN_LASTS = 300.0, 30.0
"""Seconds for which an answer counts, and for which nobody asks again where there was none."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Answer:
    about: tuple[str, str]
    """Uid of the application and hash of the version."""
    until: float
    unfit: Unfit | None


@dataclass(slots=True)
class Trials:
    """Has the API server look at the pods of versions that were not launched yet, not too often."""

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    _known: dict[Key, _Answer] = field(default_factory=dict)

    async def look(self, o: Observation) -> Unfit | None:
        """Return what is wrong with a pod of the spec's version in itself.

        None if nothing is, if nobody has to ask, or nothing is known: then the creation of the pod will tell. What
        depends on what else there is (quotas, accounts, policies, webhooks that do not answer) is left to that, too.
        """
        pods = pods_to_try(o)
        if not pods:
            return None
        metadata = o.app.metadata
        key, about, now = (metadata.namespace, metadata.name), (metadata.uid, o.spec_hash), self.clock()
        known = self._known.get(key)
        if known is not None and known.about == about and now < known.until:
            return known.unfit
        unfit, certain = None, True
        for role, manifest in pods:
            answer = await self.client.try_out(collection_of(manifest), manifest)
            if isinstance(answer, Invalid) and answer.in_itself:
                unfit, certain = Unfit(role, answer.message), True
                break
            # The driver's name may be taken by the driver that runs: that is looked at last of all.
            if isinstance(answer, FAILURES) and not isinstance(answer, AlreadyExists):
                log.info("nothing is known of a pod of the new version", role=role, answer=str(answer))
                certain = False
        self._known = {name: each for name, each in self._known.items() if now < each.until}
        self._known[key] = _Answer(about, now + (LASTS if certain else UNKNOWN_LASTS), unfit)
        return unfit
