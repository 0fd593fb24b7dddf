"""Limits of processors: a quota that counts them takes a pod only if each of its containers states one."""

from typing import Any

import pytest

from tidegate.api.spec import Resources
from tidegate.api.values.quantity import parse_quantity
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.builders.rehearsal_pod import build_rehearsal
from tidegate.pods.builders.cpu_limits import driver_limit, executor_limit
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.builders.storage_pod import hash_of_taken
from tidegate.snapshots.builders.export_pod import hash_of_export
from tidegate.snapshots.builders.snapshot_pod import storage_of
from tidegate_testing.every_pod import ALL, BESIDE, Change, Pod, repartition_pod, snapshot_of
from tidegate_testing.observations import PLATFORM, app_with, launched
from tidegate_testing.rehearsals import rehearsing


def templated(container: str, limit: object) -> Change:
    """Return a pod template that states a limit for Tidegate's container."""
    return {"spec": {"containers": [{"name": container, "resources": {"limits": {"cpu": limit}}}]}}


IN_SPEC: Change = {"driver.resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}}}
IN_TEMPLATE: Change = {"driver.podTemplate": templated("driver", "2")}


def containers_of(pod: Pod) -> list[dict[str, Any]]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


@pytest.mark.parametrize("change", [IN_SPEC, IN_TEMPLATE], ids=["in the spec", "in the template"])
@pytest.mark.parametrize("kind", ALL)
def test_where_the_driver_has_a_limit_each_container_of_each_pod_states_one(kind: str, change: Change) -> None:
    for container in containers_of(ALL[kind](change)):
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert requests.keys() == limits.keys() == {"cpu", "memory"}, container["name"]
        for name, requested in requests.items():
            # Kubernetes refuses a request above its limit.
            assert parse_quantity(name, requested) <= parse_quantity(name, limits[name]), container["name"]


@pytest.mark.parametrize("kind", ALL)
def test_where_it_has_none_no_pod_is_throttled_and_all_requests_are_stated(kind: str) -> None:
    for container in containers_of(ALL[kind]({"executor.resources": {"limits": {"cpu": "2"}}})):
        assert container["resources"]["limits"].keys() == {"memory"}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("limit", "request_", "expected"), [("4", "100m", "1"), ("700m", "100m", "700m"), (1, "100m", "1")]
)
def test_a_pod_that_moves_files_takes_little_of_a_quota(limit: str | int, request_: str, expected: str) -> None:
    (container,) = BESIDE["verify"]({"driver.resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": limit}}})[
        "spec"
    ]["containers"]
    assert container["resources"]["limits"] == {"cpu": expected, "memory": "512Mi"}
    assert container["resources"]["requests"] == {"cpu": request_, "memory": "256Mi"}


def test_it_asks_for_no_more_than_its_limit() -> None:
    (container,) = BESIDE["purge"]({"driver.resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "60m"}}})[
        "spec"
    ]["containers"]
    assert (container["resources"]["requests"]["cpu"], container["resources"]["limits"]["cpu"]) == ("60m", "60m")


def test_a_pod_that_runs_spark_has_the_drivers_limit_but_no_less_than_it_asks_for_and_its_own_before_that() -> None:
    def limit(**resources: dict[str, str]) -> str:
        pod = repartition_pod({**IN_SPEC, "state.repartition": {"resources": resources}})
        found = pod["spec"]["containers"][0]["resources"]["limits"]["cpu"]
        assert isinstance(found, str)
        return found

    assert limit(requests={"cpu": "1"}) == "2"
    assert limit(requests={"cpu": "3500m"}) == "3500m"
    assert limit(requests={"cpu": "1"}, limits={"cpu": "1500m"}) == "1500m"


def test_executors_have_what_the_spec_or_their_template_says_and_nothing_of_the_drivers() -> None:
    def runtime_limit(change: Change) -> str | None:
        app = app_with(change)
        (runtime,) = build_executor_template(app, 1, app_storage(app), PLATFORM)["spec"]["initContainers"]
        found = runtime["resources"]["limits"].get("cpu")
        assert found is None or isinstance(found, str)
        return found

    assert runtime_limit({"executor.resources": {"limits": {"cpu": "3"}}}) == "3"
    assert runtime_limit({"executor.podTemplate": templated("executor", 3)}) == "3"
    assert runtime_limit(IN_SPEC) is None


@pytest.mark.parametrize(
    "template",
    [
        templated("driver", "much"),
        templated("driver", {"of": "it"}),
        templated("sidecar", "2"),
        {"spec": {"containers": "none"}},
        {"spec": {"containers": [{"name": "driver", "resources": {"limits": None}}, 7]}},
        {"spec": None},
        {},
    ],
)
def test_a_template_that_states_no_limit_gives_none_and_is_not_in_the_way(template: Change) -> None:
    app = app_with({"driver.podTemplate": template, "executor.podTemplate": template})
    assert (driver_limit(app), executor_limit(app)) == (None, None)
    assert "cpu" not in build_purge_pod(app, PLATFORM)["spec"]["containers"][0]["resources"]["limits"]


def test_what_is_stated_in_the_spec_comes_before_the_template_as_in_the_pod() -> None:
    change = {"driver.resources": {"limits": {"cpu": "2"}}, "driver.podTemplate": templated("driver", "8")}
    assert driver_limit(app_with(change)) == "2"
    assert ALL["driver"](change)["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "2"


def test_an_application_with_an_impossible_limit_can_still_be_purged() -> None:
    app = app_with({"driver.resources": {"limits": {"cpu": "much"}}})
    assert build_purge_pod(app, PLATFORM)["spec"]["containers"][0]["resources"]["limits"] == {"memory": "512Mi"}


@pytest.mark.parametrize("change", [IN_SPEC, IN_TEMPLATE, {"driver.resources": {"limits": {"cpu": "much"}}}], ids=str)
def test_a_pod_at_work_is_what_it_was_whatever_its_limit_would_be_by_now(change: Change) -> None:
    assert hash_of_taken(app_with(change)) == hash_of_taken(app_with({}))
    of = snapshot_of(launched(app_with({})))
    assert hash_of_export(of, app_with(change)) == hash_of_export(of, app_with({}))


def test_a_pod_at_work_is_what_it_was_for_the_operators_before_this_one() -> None:
    """Another hash of the same application ends what its pods do when the operator is upgraded."""
    assert hash_of_taken(app_with(IN_SPEC)) == "3edc0f79a5707c0e"


def test_the_limit_is_remembered_for_when_the_application_is_gone() -> None:
    assert storage_of(app_with(IN_TEMPLATE)).cpu_limit == "2"
    assert storage_of(app_with({})).cpu_limit == ""


def test_a_rehearsal_may_ask_for_more_than_the_drivers_template_allows_a_driver() -> None:
    asked = Resources(requests={"cpu": "3", "memory": "2Gi"})
    pod = build_rehearsal(
        rehearsing(
            {
                **IN_TEMPLATE,
                "upgrade.rehearsal": {"resources": {"requests": {"cpu": asked.cpu, "memory": asked.memory}}},
            }
        ),
        PLATFORM,
    ).manifest
    assert pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "3"
