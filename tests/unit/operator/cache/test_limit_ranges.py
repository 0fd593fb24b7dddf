"""What LimitRanges demand, and when it is read."""

import dataclasses
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tidegate.cache.index import Index
from tidegate.cache.pods.limit_ranges import LimitRangeList, floors_of, learn_floors
from tidegate.kube.failures import Failure, Forbidden, Invalid
from tidegate.pods.records.floors import NO_FLOORS, Bounds, Floors
from tidegate_testing.limit_ranges import NOT_GRANTED, Floored
from tidegate_testing.observations import PLATFORM

REFUSED = Forbidden("minimum memory usage", limit_range=True)
ONE_GI = Floors(memory=Bounds(least=Decimal(2**30)))


def ranges(*limits: dict[str, Any]) -> Floors:
    items = [{"metadata": {"name": "team"}, "spec": {"limits": [each]}} for each in limits]
    return floors_of(msgspec.convert({"items": items}, LimitRangeList).items)


def test_each_demand_is_read_of_containers_and_of_pods() -> None:
    whole = {
        "min": {"cpu": "100m", "memory": "1Gi"},
        "max": {"memory": "4Gi"},
        "default": {"cpu": "1"},
        "maxLimitRequestRatio": {"cpu": "4"},
    }
    bounds = (
        Bounds(Decimal("0.1"), Decimal(0), Decimal(4), Decimal(1)),
        Bounds(Decimal(2**30), Decimal(4 * 2**30)),
    )
    assert ranges({"type": "Container", **whole}) == Floors(*bounds)
    assert ranges({"type": "Pod", **whole}) == Floors(pod_cpu=bounds[0], pod_memory=bounds[1])
    assert ranges({"type": "PersistentVolumeClaim", **whole}) == NO_FLOORS


def test_of_several_the_strictest_counts() -> None:
    one = {"type": "Container", "min": {"memory": "1Gi"}, "max": {"memory": "8Gi"}}
    other = {"type": "Container", "min": {"memory": "512Mi"}, "max": {"memory": "2Gi"}}
    assert ranges(one, other).memory == Bounds(Decimal(2**30), Decimal(2 * 2**30))


async def learn(api: Floored, index: Index, answer: Failure = REFUSED) -> Floors | None:
    client: Any = api
    return await learn_floors(client, index, "shop", answer)


async def test_what_is_learned_is_there_for_each_pod_of_the_namespace_and_no_other() -> None:
    api, index = Floored(), Index()
    assert await learn(api, index) == ONE_GI
    assert index.platform_of("shop", PLATFORM) == dataclasses.replace(PLATFORM, floors=ONE_GI)
    assert index.platform_of("elsewhere", PLATFORM) is PLATFORM


async def test_a_pod_that_is_refused_with_what_is_demanded_is_not_made_again_at_once() -> None:
    api, index = Floored(), Index()
    await learn(api, index)
    assert await learn(api, index) is None
    api.least = "2Gi"
    assert (await learn(api, index) or NO_FLOORS).memory.least == 2 * 2**30


@pytest.mark.parametrize("answer", [Forbidden("exceeded quota"), Invalid("spec.tolerationz", in_itself=True)])
async def test_nobody_reads_them_for_another_refusal(answer: Failure) -> None:
    api = Floored()
    assert await learn(api, Index(), answer) is None
    assert api.reads == 0


async def test_that_they_may_not_be_read_is_kept_beside_what_is_known_until_they_may() -> None:
    api, index = Floored(), Index()
    await learn(api, index)
    api.readable = False
    assert await learn(api, index) is None
    assert index.floors["shop"] == dataclasses.replace(ONE_GI, unread=NOT_GRANTED.message)
    api.readable = True
    assert await learn(api, index) is None
    assert index.floors["shop"] == ONE_GI
