"""Labels and annotations that the installation gives the pods of all applications. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate_testing.every_pod import ALL, BESIDE, of_executor
from tidegate_testing.observations import PLATFORM

EVERY = ALL | {"executor": of_executor}
LABELS = {"sidecar.istio.io/inject": "false", "example.com/cost": "streams"}
ANNOTATIONS = {"linkerd.io/inject": "disabled"}
GIVEN = dataclasses.replace(PLATFORM, pod_labels=LABELS, pod_annotations=ANNOTATIONS)


def metadata(kind: str, change: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = EVERY[kind](change, GIVEN)["metadata"]
    return found


@pytest.mark.parametrize("kind", EVERY)
def test_every_pod_has_those_of_the_installation_beside_its_own(kind: str) -> None:
    usual = EVERY[kind]({})["metadata"]
    found = metadata(kind, {})
    assert found["labels"] == LABELS | usual["labels"]
    assert found["annotations"] == ANNOTATIONS | usual["annotations"]


@pytest.mark.parametrize("kind", EVERY)
def test_no_pod_loses_what_tidegate_knows_it_by(kind: str) -> None:
    """What the settings refuse would not get through here either."""
    usual = EVERY[kind]({})["metadata"]
    taken = dataclasses.replace(
        PLATFORM,
        pod_labels=dict.fromkeys(usual["labels"], "x"),
        pod_annotations=dict.fromkeys(usual["annotations"], "x"),
    )
    found = EVERY[kind]({}, taken)["metadata"]
    assert (found["labels"], found["annotations"]) == (usual["labels"], usual["annotations"])


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_a_template_of_an_application_wins(role: str) -> None:
    own = {"labels": {"sidecar.istio.io/inject": "true"}, "annotations": {"linkerd.io/inject": None}}
    found = metadata(role, {f"{role}.podTemplate": {"metadata": own}})
    assert found["labels"]["sidecar.istio.io/inject"] == "true"
    assert found["labels"]["example.com/cost"] == "streams"
    assert "linkerd.io/inject" not in found["annotations"]


@pytest.mark.parametrize("kind", BESIDE)
def test_a_helper_pod_has_no_label_of_a_template(kind: str) -> None:
    """By such labels, Services of people's own find the driver."""
    template = {"metadata": {"labels": {"app": "web"}}}
    found = metadata(kind, {"podTemplate": template, "driver.podTemplate": template})
    assert "app" not in found["labels"]


@pytest.mark.parametrize("kind", EVERY)
def test_a_pod_changes_nothing_in_the_setting(kind: str) -> None:
    EVERY[kind]({}, GIVEN)["metadata"]["labels"]["more"] = "x"
    assert "more" not in metadata(kind, {})["labels"]
