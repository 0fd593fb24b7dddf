"""What a namespace's LimitRanges demand of the containers that Tidegate adds. No I/O.

Only those are adapted; the user's own containers have what the spec states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from tidegate.api.values.quantity import MEBIBYTE, parse_quantity

_MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is demanded of one resource, of a container or of a pod as a whole; 0: nothing."""

    least: Decimal = Decimal(0)
    """Of requests, and of limits where there are any."""
    most: Decimal = Decimal(0)
    """Of limits."""
    ratio: Decimal = Decimal(0)
    """How many times the request the limit may be."""
    default_limit: Decimal = Decimal(0)
    """Of a container that states none."""

    def beside(self, other: Bounds) -> Bounds:
        """Return what is demanded by this and by another LimitRange."""
        return Bounds(
            max(self.least, other.least),
            _stricter(self.most, other.most),
            _stricter(self.ratio, other.ratio),
            max(self.default_limit, other.default_limit),
        )


@dataclass(frozen=True, slots=True)
class Floors:
    """What is demanded in one namespace, as far as it is known."""

    cpu: Bounds = Bounds()
    memory: Bounds = Bounds()
    pod_cpu: Bounds = Bounds()
    pod_memory: Bounds = Bounds()
    unread: str = ""
    """Why the LimitRanges could not be read; empty if they were, or nobody had to."""

    def of_container(self, name: str) -> Bounds:
        """Return what is demanded of a resource of a container."""
        return {"cpu": self.cpu, _MEMORY: self.memory}.get(name, Bounds())

    def of_pod(self, name: str) -> Bounds:
        """Return what is demanded of a resource of a pod's only container."""
        whole = {"cpu": self.pod_cpu, _MEMORY: self.pod_memory}.get(name, Bounds())
        return self.of_container(name).beside(whole)


NO_FLOORS = Floors()


def lowered(requests: Mapping[str, str], limits: Mapping[str, str], bounds: Mapping[str, Bounds]) -> dict[str, str]:
    """Return limits not above what is allowed, as far as the requests let them; otherwise as they are.

    Raises:
        SpecError: one of them is no quantity.
    """
    found = dict(limits)
    for name, limit in limits.items():
        most = bounds[name].most if name in bounds else Decimal(0)
        if most and most < parse_quantity(name, limit):
            found[name] = written(name, max(most, _number(name, requests.get(name))))
    return found


def raised(
    requests: Mapping[str, str], limits: Mapping[str, str], bounds: Mapping[str, Bounds]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return a container's requests and limits as high as is demanded, otherwise as they are.

    Args:
        requests: those of the container.
        limits: likewise.
        bounds: what is demanded, by the resource.

    Raises:
        SpecError: one of them is no quantity.
    """
    new_requests, new_limits = dict(requests), dict(limits)
    for name, demanded in bounds.items():
        request, limit = _number(name, requests.get(name)), _number(name, limits.get(name))
        least = max(request, demanded.least)
        most = max(limit, least) if limit else Decimal(0)
        if demanded.ratio:
            least = max(least, (most or demanded.default_limit) / demanded.ratio)
        if least > request:
            new_requests[name] = written(name, least)
        if most > limit:
            new_limits[name] = written(name, most)
    return new_requests, new_limits


def greater(name: str, one: str | int | None, other: str | int | None) -> str:
    """Return the greater of two quantities as it is written; the one that is there if there is only one.

    Raises:
        SpecError: one of them is no quantity.
    """
    if one is None or other is None:
        return str(other if one is None else one)
    return str(one) if parse_quantity(name, one) >= parse_quantity(name, other) else str(other)


def written(name: str, amount: Decimal) -> str:
    """Return an amount as people write it, rounded up: MiB of memory, thousandths of processors."""
    unit = Decimal(MEBIBYTE) if name == _MEMORY else Decimal("0.001")
    whole = math.ceil(amount / unit)
    if name == _MEMORY:
        return f"{whole // 1024}Gi" if whole % 1024 == 0 else f"{whole}Mi"
    return str(whole // 1000) if whole % 1000 == 0 else f"{whole}m"


def _number(name: str, value: str | int | None) -> Decimal:
    return Decimal(0) if value is None else parse_quantity(name, value)


def _stricter(one: Decimal, other: Decimal) -> Decimal:
    return min(one, other) if one and other else one or other
