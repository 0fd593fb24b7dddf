"""Who may pull the images: the installation says so of its own image, the application of its own. Pure."""

import dataclasses
from typing import Any

import pytest

from tidegate.app.builders.references import references_of
from tidegate_testing.every_pod import ALL, of_driver, of_executor
from tidegate_testing.observations import PLATFORM, app_with

EVERY = ALL | {"executor": of_executor}
GIVEN = dataclasses.replace(PLATFORM, image_pull_secrets=("mirror", "second"))
INJECTED = {"application.runtime": "Injected"}
OWN = {"application.imagePullSecrets": [{"name": "mine"}, {"name": "second"}]}


def secrets(pod: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = pod["spec"].get("imagePullSecrets", [])
    return found


@pytest.mark.parametrize("kind", EVERY)
def test_every_pod_can_pull_the_operators_image_without_a_field_of_the_application(kind: str) -> None:
    """The init container has that image, and so have the pods of an import, which has no application."""
    assert secrets(EVERY[kind](INJECTED, GIVEN)) == [{"name": "mirror"}, {"name": "second"}]


@pytest.mark.parametrize("kind", EVERY)
def test_those_of_the_application_come_after_them_and_none_comes_twice(kind: str) -> None:
    if "is gone" in kind:
        return  # nobody knows what it named
    assert secrets(EVERY[kind](INJECTED | OWN, GIVEN)) == [{"name": "mirror"}, {"name": "second"}, {"name": "mine"}]


@pytest.mark.parametrize("kind", EVERY)
def test_without_any_no_pod_names_one(kind: str) -> None:
    assert "imagePullSecrets" not in EVERY[kind](INJECTED)["spec"]


def test_an_edit_is_not_refused_because_a_secret_of_the_installation_is_missing() -> None:
    """The author of the version can do nothing about it, and the image may be there already."""
    app = app_with(INJECTED | OWN)
    pods = (("driver", of_driver(INJECTED | OWN, GIVEN)), ("executor", of_executor(INJECTED | OWN, GIVEN)))
    assert {each.name for each in references_of(app, pods) if each.is_spared} == {"mine", "second"}
