"""How many executors a namespace's ResourceQuotas have room for. Reads them where more are wanted; else pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import structlog
from msgspec import Struct
from msgspec import field as struct_field

from tidegate.autoscaling.situation import Quota
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES
from tidegate.kube.paths import collection
from tidegate.model.errors import SpecError
from tidegate.model.quantity import parse_quantity
from tidegate.model.spec import Resources
from tidegate.model.streaming_app import StreamingApp
from tidegate.observe.pods import PodRecord

LASTS = 30.0
"""Seconds for which what was read counts."""
_OF_EXECUTORS = frozenset({"NotTerminating", "NotBestEffort"})
"""Scopes in which executors are: they have no deadline, and requests."""
_STATED_BY = {"limits.cpu": "spec.executor.resources.cpuLimit"}
"""What of that which Kubernetes wants stated (requests and limits of processors and memory, and nothing else, where a
quota counts them) an executor may leave out, and the field that states it."""
log = structlog.get_logger()


class QuotaMetadata(Struct, frozen=True):
    """What of a quota's metadata is told to people."""

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


def room_in(quotas: Iterable[ResourceQuota], executor: Resources, there: int, given: str = "") -> Quota | None:
    """Return how many executors there may be, None if nothing bounds them.

    Args:
        quotas: those of the namespace.
        executor: what one of them asks for.
        there: executors whose pods exist, which the quotas have counted.
        given: the limit of processors that executors get if they state none, empty if they get none.
    """
    asked = _asked(executor, given)
    bounds = [
        _bound(quota, name, amount, there)
        for quota in quotas
        if quota.spec.scope_selector is None and set(quota.spec.scopes) <= _OF_EXECUTORS
        for name, amount in asked.items()
        if name in quota.status.hard and (amount is None or amount > 0)
    ]
    # Of two without room the one that more room would not help is told.
    return min(bounds, key=lambda each: (each.most, not each.unstated), default=None)


def _bound(quota: ResourceQuota, name: str, amount: Decimal | None, there: int) -> Quota:
    hard, used = quota.status.hard[name], quota.status.used.get(name, "0")
    if amount is None:
        return Quota(there, quota.metadata.name, name, used, hard, unstated=_STATED_BY[name])
    return Quota(there + _room(quota, name, amount), quota.metadata.name, name, used, hard, _written(name, amount))


def _written(name: str, amount: Decimal) -> str:
    """Return an amount as people write it: bytes in MiB."""
    return f"{amount / 2**20:.0f}Mi" if name.endswith("memory") else f"{amount.normalize():f}"


def _room(quota: ResourceQuota, name: str, amount: Decimal) -> int:
    try:
        hard = parse_quantity(name, quota.status.hard[name])
        used = parse_quantity(name, quota.status.used.get(name, "0"))
    except SpecError:
        return 0
    return max(0, int((hard - used) // amount))


def _asked(executor: Resources, given: str) -> dict[str, Decimal | None]:
    """Return what one executor uses of each resource, None if it does not state it."""
    stated = given if executor.cpu_limit is None else executor.cpu_limit
    try:
        cpu, memory = parse_quantity("cpu", executor.cpu), parse_quantity("memory", executor.memory)
        limit = parse_quantity("cpuLimit", stated) if stated != "" else None
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
        self, app: StreamingApp, executors: Sequence[PodRecord], driver: PodRecord | None = None
    ) -> Quota | None:
        """Return for how many of an application's executors there is room, None if nothing bounds them.

        Args:
            app: the application.
            executors: its executors' pods.
            driver: its driver's pod, which tells what a LimitRange gives before there is any executor.
        """
        quotas = await self.read(app.metadata.namespace)
        there = [pod for pod in executors if not pod.finished]
        by_range = [driver] if driver is not None and app.spec.driver.resources.cpu_limit is None else []
        given = next((pod.cpu_limit for pod in (*there, *by_range) if pod.cpu_limit), "")
        return room_in(quotas, app.spec.executor.resources, len(there), given)

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
