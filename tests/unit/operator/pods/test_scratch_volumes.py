"""Whatever Tidegate lets a pod write has a limit, so that no pod fills a node's disk."""

import pytest

from tidegate_testing.every_pod import ALL, BESIDE, Change, Pod, of_executor

EVERY = ALL | {"executor": of_executor}
PROGRAM: Change = {"application.main": "", "application.mainFrom.configMapKeyRef": {"name": "count", "key": "count.py"}}


def limits_of(pod: Pod) -> dict[str, str | None]:
    return {each["name"]: each["emptyDir"].get("sizeLimit") for each in pod["spec"]["volumes"] if "emptyDir" in each}


@pytest.mark.parametrize("change", [{}, PROGRAM], ids=["from the image", "from a ConfigMap"])
@pytest.mark.parametrize("kind", EVERY)
def test_each_volume_of_each_pod_has_a_limit(kind: str, change: Change) -> None:
    limits = limits_of(EVERY[kind](change))
    assert (limits["tmp"], limits["work"]) == ("10Gi", "50Gi")
    assert all(limits.values()), limits


@pytest.mark.parametrize("kind", [kind for kind in EVERY if "is gone" not in kind])
def test_the_spec_says_another_one(kind: str) -> None:
    limits = limits_of(EVERY[kind]({"scratch.tmp.sizeLimit": "20Gi", "scratch.work.sizeLimit": 10**12}))
    assert (limits["tmp"], limits["work"]) == ("20Gi", str(10**12))


@pytest.mark.parametrize(("kind", "field"), [("driver", "driver.podTemplate"), ("executor", "executor.podTemplate")])
def test_a_volume_of_the_users_takes_the_place_of_one_whole(kind: str, field: str) -> None:
    claim = {"name": "work", "persistentVolumeClaim": {"claimName": "mine"}}
    pod = EVERY[kind]({field: {"spec": {"volumes": [claim]}}})
    assert claim in pod["spec"]["volumes"]
    assert "work" not in limits_of(pod)


def test_what_is_no_quantity_does_not_keep_an_application_from_being_deleted() -> None:
    pod = BESIDE["purge"]({"scratch.work.sizeLimit": "odd", "control.models.sizeLimit": "odd"})
    assert limits_of(pod)["work"] == "odd"
