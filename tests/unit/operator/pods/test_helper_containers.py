"""What containers get that are neither driver nor executor: what is fixed, what the spec raises, what is demanded."""

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.builders.storage_pod import hash_of_taken
from tidegate.pods.records.floors import Bounds, Floors
from tidegate_testing.every_pod import BESIDE, Change
from tidegate_testing.observations import PLATFORM, app_with

GI, MI = 2**30, 2**20
FIXED = {
    "init container": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
    "purge": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
}
AT_LEAST_1GI = Floors(memory=Bounds(least=Decimal(GI)))


def resources_of(kind: str, change: Change | None = None, floors: Floors = Floors()) -> dict[str, Any]:  # noqa: B008 - it is frozen
    app, platform = app_with(change), dataclasses.replace(PLATFORM, floors=floors)
    if kind == "purge":
        (container,) = build_purge_pod(app, platform)["spec"]["containers"]
    elif kind == "init container of executors":
        (container,) = build_executor_template(app, 1, app_storage(app), platform)["spec"]["initContainers"]
    else:
        (container,) = build_driver_pod(app, 1, 1, platform)["spec"]["initContainers"]
    found: dict[str, Any] = container["resources"]
    return found


def helpers(**kinds: dict[str, Any]) -> Change:
    return {"helpers": {"resources": kinds}}


@pytest.mark.parametrize("kind", FIXED)
def test_where_nothing_is_said_it_is_what_is_fixed(kind: str) -> None:
    assert resources_of(kind) == FIXED[kind]


@pytest.mark.parametrize("kind", [*FIXED, "init container of executors"])
def test_the_spec_raises_all_of_them(kind: str) -> None:
    asked = helpers(requests={"cpu": "200m", "memory": "1Gi"}, limits={"cpu": 1, "memory": "2Gi"})
    assert resources_of(kind, asked) == {
        "requests": {"cpu": "200m", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "2Gi"},
    }


@pytest.mark.parametrize("kind", FIXED)
def test_the_spec_lowers_none_of_them(kind: str) -> None:
    assert resources_of(kind, helpers(requests={"memory": "1Mi"}, limits={"memory": "2Mi"})) == FIXED[kind]


@pytest.mark.parametrize("kind", FIXED)
def test_a_request_above_the_fixed_limit_raises_the_limit(kind: str) -> None:
    assert resources_of(kind, helpers(requests={"memory": "3Gi"}))["limits"] == {"memory": "3Gi"}


def test_other_resources_are_passed_on() -> None:
    asked = helpers(requests={"ephemeral-storage": "1Gi"}, limits={"ephemeral-storage": "2Gi"})
    found = resources_of("purge", asked)
    assert (found["requests"]["ephemeral-storage"], found["limits"]["ephemeral-storage"]) == ("1Gi", "2Gi")


def test_what_is_no_quantity_is_named_with_its_field() -> None:
    with pytest.raises(SpecError, match=r"spec\.helpers\.resources\.requests\.memory"):
        resources_of("purge", helpers(requests={"memory": "lots"}))


def test_an_edit_of_them_makes_no_version_and_replaces_no_pod_at_work() -> None:
    before, after = app_with(), app_with(helpers(requests={"memory": "1Gi"}))
    assert spec_hash(before) == spec_hash(after)
    assert hash_of_taken(before) == hash_of_taken(after)


@pytest.mark.parametrize("kind", [*FIXED, "init container of executors"])
def test_where_more_is_demanded_they_have_that(kind: str) -> None:
    found = resources_of(kind, floors=AT_LEAST_1GI)
    assert (found["requests"]["memory"], found["limits"]["memory"]) == ("1Gi", "1Gi")
    assert found["requests"]["cpu"] == resources_of(kind)["requests"]["cpu"]


@pytest.mark.parametrize("kind", BESIDE)
def test_no_container_of_tidegates_own_is_below_what_is_demanded(kind: str) -> None:
    floors = Floors(Bounds(least=Decimal("1.5")), Bounds(least=Decimal(3 * GI)))
    pod = BESIDE[kind]({}, dataclasses.replace(PLATFORM, floors=floors))
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
        found = container["resources"]
        assert parse_quantity("cpu", found["requests"]["cpu"]) >= Decimal("1.5")
        assert parse_quantity("m", found["requests"]["memory"]) >= 3 * GI
        assert parse_quantity("m", found["requests"]["memory"]) <= parse_quantity("m", found["limits"]["memory"])


def test_what_is_demanded_of_a_pod_is_so_of_one_with_a_single_container_alone() -> None:
    floors = Floors(pod_memory=Bounds(least=Decimal(GI)))
    assert resources_of("purge", floors=floors)["requests"]["memory"] == "1Gi"
    assert resources_of("init container", floors=floors) == FIXED["init container"]


@pytest.mark.parametrize(
    ("floors", "change", "expected"),
    [
        # Four times the request is what is fixed.
        (Floors(memory=Bounds(ratio=Decimal(2))), {}, ("50m", "128Mi", None, "256Mi")),
        (Floors(memory=Bounds(ratio=Decimal(3))), {}, ("50m", "86Mi", None, "256Mi")),
        (
            Floors(cpu=Bounds(ratio=Decimal(10))),
            {"driver.resources": {"limits": {"cpu": "2"}}},
            ("200m", "64Mi", "2", "256Mi"),
        ),
        (Floors(cpu=Bounds(ratio=Decimal(3), default_limit=Decimal(1))), {}, ("334m", "64Mi", None, "256Mi")),
        (
            Floors(cpu=Bounds(least=Decimal(1))),
            {"driver.resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "500m"}}},
            ("1", "64Mi", "1", "256Mi"),
        ),
        (Floors(memory=Bounds(most=Decimal(100 * MI))), {}, ("50m", "64Mi", None, "100Mi")),
        (Floors(memory=Bounds(most=Decimal(MI))), {}, ("50m", "64Mi", None, "64Mi")),
        # Somebody asks for it, and the API server says what is wrong with it.
        (
            Floors(memory=Bounds(most=Decimal(GI))),
            helpers(limits={"memory": "2Gi"}),
            ("50m", "64Mi", None, "2Gi"),
        ),
    ],
    ids=[
        "ratio",
        "rounded up",
        "ratio of cpu",
        "default limit",
        "limit too low",
        "maximum",
        "too low a maximum",
        "own",
    ],
)
def test_what_is_demanded_of_limits(floors: Floors, change: Change, expected: tuple[str, str, str | None, str]) -> None:
    found = resources_of("init container", change, floors)
    requests, limits = found["requests"], found["limits"]
    assert (requests["cpu"], requests["memory"], limits.get("cpu"), limits["memory"]) == expected


def test_of_several_demands_the_strictest_counts() -> None:
    one = Bounds(least=Decimal(1), most=Decimal(9), ratio=Decimal(0), default_limit=Decimal(2))
    other = Bounds(least=Decimal(2), most=Decimal(0), ratio=Decimal(3), default_limit=Decimal(0))
    assert one.beside(other) == other.beside(one) == Bounds(Decimal(2), Decimal(9), Decimal(3), Decimal(2))
