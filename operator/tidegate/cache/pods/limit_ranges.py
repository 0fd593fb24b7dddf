"""Reads a namespace's LimitRanges after one of them has refused a pod. Reads them then; else pure.

The pod is created again at once with what they demand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from decimal import Decimal
from functools import reduce

import structlog
from msgspec import Struct, field

from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.cache.index import Index
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, Failure, Forbidden
from tidegate.kube.paths import collection
from tidegate.pods.records.floors import Bounds, Floors

_OF_CONTAINERS, _OF_PODS = "Container", "Pod"
log = structlog.get_logger()


class Limits(Struct, frozen=True, rename="camel"):
    """What one item of a LimitRange demands."""

    type: str = ""
    min: dict[str, str | int] = field(default_factory=dict)
    max: dict[str, str | int] = field(default_factory=dict)
    default: dict[str, str | int] = field(default_factory=dict)
    max_limit_request_ratio: dict[str, str | int] = field(default_factory=dict)


class LimitRangeSpec(Struct, frozen=True):
    """The items."""

    limits: tuple[Limits, ...] = ()


class LimitRange(Struct, frozen=True):
    """The part of a LimitRange that matters here."""

    spec: LimitRangeSpec = LimitRangeSpec()


class LimitRangeList(Struct, frozen=True):
    """A namespace's LimitRanges."""

    items: tuple[LimitRange, ...] = ()


def floors_of(ranges: Iterable[LimitRange]) -> Floors:
    """Return what several LimitRanges demand together."""
    limits = [each for one in ranges for each in one.spec.limits]

    def strictest(kind: str, resource: str) -> Bounds:
        bounds = (_bounds(each, resource) for each in limits if each.type == kind)
        return reduce(Bounds.beside, bounds, Bounds())

    return Floors(
        strictest(_OF_CONTAINERS, "cpu"),
        strictest(_OF_CONTAINERS, "memory"),
        strictest(_OF_PODS, "cpu"),
        strictest(_OF_PODS, "memory"),
    )


async def learn_floors(client: KubeClient, index: Index, namespace: str, answer: Failure) -> Floors | None:
    """Read what is demanded if a LimitRange refused a pod, and keep it in the index.

    Args:
        client: of the API server.
        index: keeps what is known; also that it could not be read.
        namespace: of the pod.
        answer: to its creation.

    Returns:
        What is demanded, if that is not what was known: then the pod is to be made with it at once. Else None.
    """
    if not isinstance(answer, Forbidden) or not answer.limit_range:
        return None
    before = index.floors_of(namespace)
    found = await client.get(collection("LimitRange", namespace), LimitRangeList)
    if isinstance(found, FAILURES):
        log.warning("LimitRanges not read", namespace=namespace, answer=str(found))
        index.floors[namespace] = dataclasses.replace(before, unread=found.message)
        return None
    floors = index.floors[namespace] = floors_of(found.items)
    return None if floors == dataclasses.replace(before, unread="") else floors


def _bounds(limits: Limits, resource: str) -> Bounds:
    found = (limits.min, limits.max, limits.max_limit_request_ratio, limits.default)
    return Bounds(*(_number(each.get(resource)) for each in found))


def _number(value: str | int | None) -> Decimal:
    try:
        return Decimal(0) if value is None else parse_quantity("", value)
    except SpecError:  # what the API server stores is a quantity; a negative one demands nothing
        return Decimal(0)
