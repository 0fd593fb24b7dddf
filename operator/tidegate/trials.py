"""What the API server finds wrong with pods, before anything is stopped for them. Asks it; stores nothing there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from tidegate.decide.launch import growing_pause
from tidegate.decide.upgrades.dividing_pod import all_pods_to_try
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import TRANSIENT, AlreadyExists, Failure, Invalid, is_about_object
from tidegate.kube.paths import collection_of
from tidegate.model.streaming_app import Resources
from tidegate.observe.observation import Observation, Unfit
from tidegate.workqueue import Key
from tidegate_spark.protocol import ROLE_REPARTITION

LASTS, UNKNOWN_LASTS = 300.0, 30.0
"""Seconds for which an answer counts, and for which nobody asks again where there was none: twice as many each time."""
PATIENCE = 10.0
"""Seconds to wait for an answer."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Answer:
    about: tuple[str, str, Resources]
    """Uid of the application, hash of the version, and what makes no version: what the pod gets that divides state."""
    until: float
    unfit: Unfit | None
    unknown: int
    """How often in a row there was none: a full quota or a webhook without dry runs may be there for ever."""


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
        pods = all_pods_to_try(o)
        if not pods:
            return None
        metadata = o.app.metadata
        key = (metadata.namespace, metadata.name)
        about = (metadata.uid, o.spec_hash, o.app.spec.state.repartition.resources)
        known = self._known.get(key)
        if known is None or known.about != about:
            known = _Answer(about, self.clock(), None, 0)
        if self.clock() < known.until:
            return known.unfit
        unfit, fine = await self._ask(pods)
        certain = unfit is not None or len(fine) == len(pods)
        if unfit is None and known.unfit is not None and known.unfit.role not in fine:
            unfit = known.unfit  # nobody says that it is right by now: what runs would be stopped for it
        unknown = 0 if certain else known.unknown + 1
        now = self.clock()  # by now: an answer may have taken longer than it counts
        lasts = LASTS if certain else growing_pause(unknown, UNKNOWN_LASTS, LASTS)
        # What counts no more is still of use where nobody answers; of applications that are gone it goes.
        self._known = {name: each for name, each in self._known.items() if now < each.until + LASTS}
        self._known[key] = _Answer(about, now + lasts, unfit, unknown)
        return unfit

    async def _ask(self, pods: Iterable[tuple[str, dict[str, Any]]]) -> tuple[Unfit | None, frozenset[str]]:
        """Return what is wrong with one of the pods, and the roles of those with which nothing is."""
        fine: frozenset[str] = frozenset()
        for role, manifest in pods:
            answer = await self.client.try_out(collection_of(manifest), manifest, patience=PATIENCE)
            if answer is not None and _is_believed(answer, role):
                return Unfit(role, answer.message), fine
            # The driver's name may be taken by the driver that runs: that is looked at last of all.
            if answer is None or isinstance(answer, AlreadyExists):
                fine |= {role}
                continue
            log.info("nothing is known of a pod of the new version", role=role, answer=str(answer))
            if isinstance(answer, TRANSIENT):
                break  # who did not answer for the one would keep the application waiting for the other
        return None, fine


def _is_believed(answer: Failure, role: str) -> bool:
    """Return whether nothing is to be stopped for a pod of which the server says this."""
    # A driver is tried until a LimitRange lets it in; for the pod that divides state the application would stand still.
    return is_about_object(answer) and (role == ROLE_REPARTITION or isinstance(answer, Invalid))
