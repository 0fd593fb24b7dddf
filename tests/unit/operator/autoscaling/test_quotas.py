"""For how many executors a namespace's ResourceQuotas have room, and how sure that is."""

import dataclasses
from typing import Any

import pytest

from tidegate.api.spec import Resources
from tidegate.api.streaming_app import StreamingApp
from tidegate.autoscaling.algorithm.quota_messages import quota_message
from tidegate.autoscaling.algorithm.situation import Quota
from tidegate.autoscaling.quotas import Given, QuotaMetadata, Quotas, QuotaSpec, QuotaStatus, ResourceQuota, room_in
from tidegate.pods.records.record import PodRecord
from tidegate_testing.observations import app_with, executor_of, launched, running_driver


class Namespace(Quotas):
    """A namespace's quotas, as a test has them."""

    def __init__(self, *quotas: ResourceQuota) -> None:
        self.quotas = quotas

    async def read(self, namespace: str) -> tuple[ResourceQuota, ...]:
        return self.quotas


def quota(
    hard: dict[str, str], used: dict[str, str], name: str = "team", scopes: tuple[str, ...] = ()
) -> ResourceQuota:
    return ResourceQuota(QuotaMetadata(name), QuotaSpec(scopes=scopes), QuotaStatus(hard, used))


def room(
    *quotas: ResourceQuota,
    wanted: int = 8,
    given: Given = Given(),  # noqa: B008 - it is frozen
    **limits: str | int | None,
) -> Quota | None:
    """Return what holds where there are two executors."""
    memory, cpu = limits.get("memory"), limits.get("cpu_limit")
    resources = Resources(
        requests={} if memory is None else {"memory": memory}, limits={} if cpu is None else {"cpu": cpu}
    )
    return room_in(quotas, resources, 2, wanted, given)


@pytest.mark.parametrize(
    ("hard", "used", "most"),
    [
        ({"requests.cpu": "4"}, {"requests.cpu": "2500m"}, 3),
        ({"limits.memory": "8Gi"}, {"limits.memory": "4Gi"}, 4),
        ({"pods": "10", "requests.memory": "5Gi"}, {"pods": "3", "requests.memory": "4Gi"}, 2),
        ({"requests.cpu": "2"}, {"requests.cpu": "3"}, 2),
        ({"services": "1"}, {}, None),
    ],
)
def test_the_room_is_that_of_the_scarcest_resource(
    hard: dict[str, str], used: dict[str, str], most: int | None
) -> None:
    found = room(quota(hard, used))
    assert (found.most if found is not None else None) == most
    assert found is None or not found.unsure


def test_the_room_is_told_with_the_numbers_of_the_scarcest_resource() -> None:
    found = room(quota({"pods": "50", "limits.memory": "8Gi"}, {"pods": "2", "limits.memory": "7Gi"}), memory="1536Mi")
    assert found is not None
    assert quota_message(found) == (
        "ResourceQuota team has room for 2 executors in all, of which 2 have a pod (7Gi of 8Gi limits.memory are used, "
        "and an executor requests 1536Mi)"
    )


LIMITS = quota({"limits.cpu": "64"}, {"limits.cpu": "2"})


def test_how_many_a_quota_takes_that_counts_what_they_do_not_state_is_said_to_be_unknown() -> None:
    found = room(LIMITS)
    assert found is not None
    assert found.unsure
    assert quota_message(found) == (
        "ResourceQuota team counts limits.cpu (2 of 64 are used), and refuses executors, which state none, unless a "
        "LimitRange gives them one. Set spec.driver.resources.limits.cpu and "
        "spec.executor.resources.limits.cpu"
    )


def test_what_the_driver_was_given_is_a_hint_and_no_knowledge() -> None:
    found = room(LIMITS, given=Given(driver="1500m"))
    assert found is not None
    assert (found.unsure, found.asked) == (True, "")
    assert "unless a LimitRange gives them one (the driver was given 1500m). Set" in quota_message(found)


def test_a_quota_that_is_used_up_takes_none_for_sure_also_of_those_that_do_not_state_it() -> None:
    found = room(quota({"limits.cpu": "2"}, {"limits.cpu": "2"}))
    assert found is not None
    assert (found.most, found.unsure) == (2, False)
    assert quota_message(found) == (
        "ResourceQuota team has room for 2 executors in all, of which 2 have a pod (2 of 2 limits.cpu are used, and "
        "executors state no limits.cpu: set spec.driver.resources.limits.cpu and spec.executor.resources.limits.cpu)"
    )


def test_what_is_known_to_have_too_little_room_is_told_before_what_is_unsure_and_else_after_it() -> None:
    ten = quota({"pods": "12"}, {"pods": "4"}, "ten")
    for quotas in ((ten, LIMITS), (LIMITS, ten)):
        scarce, enough = room(*quotas, wanted=11), room(*quotas, wanted=10)
        assert scarce is not None
        assert enough is not None
        assert (scarce.name, scarce.most, enough.name, enough.unsure) == ("ten", 10, "team", True)


@pytest.mark.parametrize("part", ["hard", "used"])
def test_a_quota_that_can_not_be_read_says_nothing_for_sure(part: str) -> None:
    numbers = {"hard": {"pods": "10"}, "used": {"pods": "4"}} | {part: {"pods": "many"}}
    found = room(quota(numbers["hard"], numbers["used"]))
    assert found is not None
    assert found.unsure
    assert "the number of executors that it has room for is unknown" in quota_message(found)


@pytest.mark.parametrize(("limit", "given", "most"), [("2", "", 33), (None, "4", 17), ("2", "4", 33), (4, "", 17)])
def test_a_limit_of_processors_is_the_specs_or_that_which_executors_were_given(
    limit: str | int | None, given: str, most: int
) -> None:
    found = room(LIMITS, given=Given(given), cpu_limit=limit)
    assert found is not None
    assert (found.most, found.unstated, found.unsure) == (most, "", False)


def test_what_a_quota_counts_besides_processors_and_memory_need_not_be_stated() -> None:
    hard = {"requests.nvidia.com/gpu": "1", "limits.ephemeral-storage": "1Gi", "requests.storage": "1Gi"}
    assert room(quota(hard, {})) is None


@pytest.mark.parametrize(
    ("scopes", "counts"), [((), True), (("NotTerminating", "NotBestEffort"), True), (("Terminating",), False)]
)
def test_only_a_quota_that_counts_executors_wants_its_resources_stated(scopes: tuple[str, ...], counts: bool) -> None:
    assert (room(quota(LIMITS.status.hard, LIMITS.status.used, scopes=scopes)) is not None) is counts


def templated(limit: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "executor", "resources": {"limits": {"cpu": limit}}}]}}


async def test_what_a_limit_range_gives_is_known_of_executors_and_a_hint_of_the_driver() -> None:
    app, quotas = launched(app_with({"executor.instances": 8})), Namespace(LIMITS)
    driver, executor = running_driver(app), executor_of(app, 1)
    gone = dataclasses.replace(executor, phase="Failed", cpu_limit="4")
    limited, before = (
        dataclasses.replace(executor, cpu_limit="4"),
        dataclasses.replace(executor, owner_uid="pod-0", cpu_limit="4"),
    )
    by_range = dataclasses.replace(driver, cpu_limit="1")

    async def found(*executors: PodRecord, driver: PodRecord = driver, app: StreamingApp = app) -> Quota:
        answer = await quotas.room(app, executors, driver, 8)
        assert answer is not None
        return answer

    async def is_unsure(*executors: PodRecord, driver: PodRecord = driver) -> bool:
        return (await found(*executors, driver=driver)).unsure

    assert await is_unsure()
    assert await is_unsure(executor, gone)
    # Those of the driver before it may have stated it.
    assert await is_unsure(executor, before)
    assert (await found(executor, limited)).most == 17
    assert not await is_unsure(executor, limited)
    assert await is_unsure(driver=by_range)
    assert (await found(driver=by_range)).hint == "1"
    # That of an executor which got none tells more than the driver's.
    assert (await found(executor, driver=by_range)).hint == ""


@pytest.mark.parametrize(
    "stated",
    [
        {"driver.resources.limits.cpu": "1"},
        {"driver.podTemplate": {"spec": {"containers": [{"name": "driver", "resources": {"limits": {"cpu": 1}}}]}}},
    ],
)
async def test_what_the_spec_gives_the_driver_says_nothing_of_executors(stated: dict[str, Any]) -> None:
    app, plain = launched(app_with(stated)), launched(app_with({}))
    driver = running_driver(app, cpu_limit="1")
    # Also when the spec has been edited since.
    for each in (app, plain):
        found = await Namespace(LIMITS).room(each, (), driver, 8)
        assert found is not None
        assert (found.unsure, found.hint) == (True, "")


async def test_the_template_of_executors_states_a_limit_as_well() -> None:
    app = launched(app_with({"executor.podTemplate": templated("31")}))
    found = await Namespace(LIMITS).room(app, (), running_driver(app), 8)
    assert found is not None
    assert (found.most, found.asked, found.unsure) == (2, "31", False)


def test_quotas_for_other_pods_do_not_count() -> None:
    full = quota({"pods": "0"}, {"pods": "0"}, scopes=("BestEffort",))
    by_class = ResourceQuota(QuotaMetadata("b"), QuotaSpec(scope_selector={"matchExpressions": []}), full.status)
    assert room(full, by_class) is None
