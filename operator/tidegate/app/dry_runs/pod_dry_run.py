"""Tries the pods of an edit by dry run before anything is stopped. Asks the API server, stores nothing."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from tidegate.api import foreign_text
from tidegate.api.streaming_app import Resources
from tidegate.api.values.times import growing_pause
from tidegate.app.observation import Observation, PodRejection
from tidegate.app.rules.upgrade.repartition.dry_run import all_pods_to_try, with_repartition_pod
from tidegate.cache.index import Index
from tidegate.cache.pods.limit_ranges import learn_floors
from tidegate.engine.resource_key import Key
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import TRANSIENT, AlreadyExists, Failure, Forbidden, Invalid, is_about_object
from tidegate.kube.paths import collection_of
from tidegate_spark.contract.protocol import ROLE_REPARTITION

LASTS, UNKNOWN_LASTS = 300.0, 30.0
"""Seconds for which an answer counts, and for which nobody asks again where there was none: twice as many each time."""
MISSING_LASTS = 30.0
"""Seconds for which it counts that an object is missing: it can be created at any time, and no event says so."""
PATIENCE = 10.0
"""Seconds to wait for an answer."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Answer:
    about: tuple[str, str, Resources]
    """Uid of the application, hash of the version, and what makes no version: what the pod gets that divides state."""
    until: float
    rejection: PodRejection | None
    unknown: int
    """How often in a row there was none: a full quota or a webhook without dry runs may be there for ever."""


@dataclass(slots=True)
class PodDryRun:
    """Has the API server look at the pods of versions that were not launched yet, not too often."""

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    index: Index | None = None
    """Keeps what LimitRanges demand; None: nobody asks for that."""
    _known: dict[Key, _Answer] = field(default_factory=dict)

    async def check(
        self, o: Observation, pods: tuple[tuple[str, dict[str, Any]], ...] | None = None
    ) -> PodRejection | None:
        """Return what is wrong with a pod of the spec's version in itself.

        None if nothing is, if nobody has to ask, or nothing is known: then the creation of the pod will show it. What
        depends on what else there is (quotas, policies, webhooks that do not answer) is left to that, too; only that an
        account or a class which the spec names does not exist is known before, because admission says it by its name.

        Args:
            o: everything that is known.
            pods: what :func:`pods_to_try` returns of it, if somebody has made them already.
        """
        pods = all_pods_to_try(o) if pods is None else with_repartition_pod(o, pods)
        if not pods:
            return None
        metadata = o.app.metadata
        key = (metadata.namespace, metadata.name)
        about = (metadata.uid, o.spec_hash, o.app.spec.state.repartition.resources)
        known = self._known.get(key)
        if known is None or known.about != about:
            known = _Answer(about, self.clock(), None, 0)
        if self.clock() < known.until:
            return known.rejection
        rejection, fine = await self._ask(o, pods)
        certain = rejection is not None or len(fine) == len(pods)
        if rejection is None and known.rejection is not None and known.rejection.role not in fine:
            rejection = known.rejection  # nobody says that it is right by now: what runs would be stopped for it
        unknown = 0 if certain else known.unknown + 1
        now = self.clock()  # by now: an answer may have taken longer than it counts
        lasts = LASTS if certain else growing_pause(unknown, UNKNOWN_LASTS, LASTS)
        if rejection is not None and rejection.missing:
            lasts = MISSING_LASTS
        # What counts no more is still of use where nobody answers; of applications that are gone it goes.
        self._known = {name: each for name, each in self._known.items() if now < each.until + LASTS}
        self._known[key] = _Answer(about, now + lasts, rejection, unknown)
        return rejection

    async def _ask(
        self, o: Observation, pods: Iterable[tuple[str, dict[str, Any]]]
    ) -> tuple[PodRejection | None, frozenset[str]]:
        """Return what is wrong with one of the pods, and the roles of those with which nothing is."""
        fine: frozenset[str] = frozenset()
        for role, manifest in pods:
            answer = await self.client.try_out(collection_of(manifest), manifest, patience=PATIENCE)
            raised = await self._raised(o, answer)
            if raised is not None:
                return await self._ask(raised, all_pods_to_try(raised))
            missing = _missing_of(answer, o)
            if answer is not None and (missing or _is_believed(answer, role)):
                return PodRejection(role, answer.message, missing), fine
            # The driver's name may be taken by the driver that runs: that is looked at last of all.
            if answer is None or isinstance(answer, AlreadyExists):
                fine |= {role}
                continue
            log.info("nothing is known of a pod of the new version", role=role, answer=str(answer))
            if isinstance(answer, TRANSIENT):
                break  # who did not answer for the one would keep the application waiting for the other
        return None, fine

    async def _raised(self, o: Observation, answer: Failure | None) -> Observation | None:
        """Return an observation whose pods have what a LimitRange demands, if it was not known; else None."""
        if answer is None or self.index is None:
            return None
        floors = await learn_floors(self.client, self.index, o.app.metadata.namespace, answer)
        if floors is None:
            return None
        return dataclasses.replace(o, platform=dataclasses.replace(o.platform, floors=floors))


def _missing_of(answer: Failure | None, o: Observation) -> str:
    """Return which object that the spec names is missing for a pod; empty if none is, or it is Tidegate's own."""
    missing = foreign_text.missing_for_admission(answer.message) if isinstance(answer, Forbidden) else ""
    # The account that Tidegate makes itself is looked after before each launch.
    is_own = missing.startswith("ServiceAccount ") and not o.app.spec.service_account_name
    return "" if is_own else missing


def _is_believed(answer: Failure, role: str) -> bool:
    """Return whether nothing is to be stopped for a pod of which the server says this."""
    # A driver is tried until a LimitRange lets it in; for the pod that divides state the application would stand still.
    return is_about_object(answer) and (role == ROLE_REPARTITION or isinstance(answer, Invalid))
