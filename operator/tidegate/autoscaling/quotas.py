"""How many executors fit into a namespace's ResourceQuotas. Reads them when more executors are wanted; else pure."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import structlog
from msgspec import Struct
from msgspec import field as struct_field

from tidegate.api.spec import Resources
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.autoscaling.algorithm.situation import Quota
from tidegate.cache import messages
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES
from tidegate.kube.paths import collection
from tidegate.pods.builders.cpu_limits import driver_limit, executor_limit
from tidegate.pods.records.record import PodRecord, of_driver

LASTS = 30.0
"""Seconds for which what was read counts."""
_OF_EXECUTORS = frozenset({"NotTerminating", "NotBestEffort"})
"""Scopes in which executors are: they have no deadline, and requests."""
_STATED_BY = {"limits.cpu": messages.CPU_LIMIT_FIELDS}
"""What of that which Kubernetes wants stated (requests and limits of processors and memory, and nothing else, where a
quota counts them) an executor may leave out, and the fields that state it.

Both at once: either starts the driver again, and one that was made before the quota and states none would be refused.
"""
log = structlog.get_logger()


class QuotaMetadata(Struct, frozen=True):
    """The part of a quota's metadata that messages name."""

    name: str = ""


class QuotaSpec(Struct, frozen=True, rename="camel"):
    """Which pods a quota counts."""

    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, object] | None = None


class QuotaStatus(Struct, frozen=True):
    """What may be used, and what is."""

    hard: dict[str, str] = struct_field(default_factory=dict)
    used: dict[str, str] = struct_field(default_factory=dict)


class ResourceQuota(Struct, frozen=True):
    """The part of a ResourceQuota that matters here."""

    metadata: QuotaMetadata = QuotaMetadata()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class ResourceQuotaList(Struct, frozen=True):
    """A namespace's quotas."""

    items: tuple[ResourceQuota, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """The limit of processors that pods have which state none; empty: nothing is known of one."""

    executors: str = ""
    driver: str = ""
    """Only a hint: whoever gave it one need not give executors the same."""


def room_in(
    quotas: Iterable[ResourceQuota], executor: Resources, there: int, wanted: int, given: Given = Given()
) -> Quota | None:
    """Return the quota that matters for so many executors, None if none does.

    It is the one with the least room if that is known to be too little; else one whose room is not known, if there is
    one: where pods are refused all the same, that may be why.

    Args:
        quotas: those of the namespace.
        executor: what one of them asks for.
        there: executors whose pods exist, which the quotas have counted.
        wanted: so many there are to be.
        given: what pods get that they do not state.
    """
    asked = _asked(executor, given.executors)
    bounds = [
        _bound(quota, name, amount, there, given.driver)
        for quota in quotas
        if quota.spec.scope_selector is None and set(quota.spec.scopes) <= _OF_EXECUTORS
        for name, amount in asked.items()
        if name in quota.status.hard and (amount is None or amount > 0)
    ]
    known = min((each for each in bounds if not each.unsure), key=lambda each: each.most, default=None)
    if known is not None and known.most < wanted:
        return known
    return next((each for each in bounds if each.unsure), known)


def _bound(quota: ResourceQuota, name: str, amount: Decimal | None, there: int, hint: str) -> Quota:
    hard, used = quota.status.hard[name], quota.status.used.get(name, "0")
    bound, left = Quota(there, quota.metadata.name, name, used, hard, there=there), _left(name, hard, used)
    if left is None:
        return dataclasses.replace(bound, unsure=True)
    if amount is None:
        # A used-up quota admits no pod, whatever defaults it would get.
        return dataclasses.replace(bound, unstated=_STATED_BY[name], unsure=left > 0, hint=hint)
    return dataclasses.replace(bound, most=there + max(0, int(left // amount)), asked=_written(name, amount))


def _left(name: str, hard: str, used: str) -> Decimal | None:
    try:
        return parse_quantity(name, hard) - parse_quantity(name, used)
    except SpecError:
        return None


def _written(name: str, amount: Decimal) -> str:
    """Return an amount as people write it: bytes in MiB."""
    return f"{amount / 2**20:.0f}Mi" if name.endswith("memory") else f"{amount.normalize():f}"


def _given(app: StreamingApp, executors: Sequence[PodRecord], driver: PodRecord | None) -> Given:
    """Return what pods show of what they are given: executors of this driver, or else the driver itself."""
    own = [pod for pod in executors if driver is None or of_driver(pod, driver)]
    if own:
        return Given(executors=next((pod.cpu_limit for pod in own if pod.cpu_limit), ""))
    # One of an earlier spec may have stated it.
    if driver is None or driver_limit(app) is not None or driver.spec_hash != spec_hash(app):
        return Given()
    return Given(driver=driver.cpu_limit)


def _asked(executor: Resources, given: str) -> dict[str, Decimal | None]:
    """Return what one executor uses of each resource, None if it does not state it."""
    stated = given if executor.cpu_limit is None else executor.cpu_limit
    try:
        cpu, memory = parse_quantity("cpu", executor.cpu), parse_quantity("memory", executor.memory)
        limit = parse_quantity("limits.cpu", stated) if stated != "" else None
    except SpecError:
        return {"pods": Decimal(1), "count/pods": Decimal(1)}
    return {
        "pods": Decimal(1),
        "count/pods": Decimal(1),
        "cpu": cpu,
        "requests.cpu": cpu,
        "limits.cpu": limit,
        "memory": memory,
        "requests.memory": memory,
        "limits.memory": memory,
    }


@dataclass(slots=True)
class Quotas:
    """Reads a namespace's quotas, not too often."""

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, tuple[ResourceQuota, ...]]] = field(default_factory=dict)

    async def room(
        self, app: StreamingApp, executors: Sequence[PodRecord], driver: PodRecord | None, wanted: int
    ) -> Quota | None:
        """Return the quota that matters for so many of an application's executors, None if none does.

        Args:
            app: the application.
            executors: its executors' pods.
            driver: its driver's pod.
            wanted: so many executors there are to be.
        """
        quotas = await self.read(app.metadata.namespace)
        there = [pod for pod in executors if not pod.finished]
        limit, resources = executor_limit(app), app.spec.executor.resources
        resources = resources.limited(limit) if limit is not None else resources
        return room_in(quotas, resources, len(there), wanted, _given(app, there, driver))

    async def read(self, namespace: str) -> tuple[ResourceQuota, ...]:
        """Return the quotas; none if they cannot be read, since the API server itself enforces them."""
        known = self._known.get(namespace)
        if known is not None and 0 <= self.clock() - known[0] < LASTS:
            return known[1]
        answer = await self.client.get(collection("ResourceQuota", namespace), ResourceQuotaList)
        if isinstance(answer, FAILURES):
            log.warning("quotas not read", namespace=namespace, answer=str(answer))
            found: tuple[ResourceQuota, ...] = ()
        else:
            found = answer.items
        self._known = {name: each for name, each in self._known.items() if self.clock() - each[0] < LASTS}
        self._known[namespace] = (self.clock(), found)
        return found
