"""Which edits of a stored StreamingApp the API server admits. Does I/O."""

from typing import Any

import pytest

from tidegate_testing.crd import MINIMAL, changed, create
from tidegate_testing.kubectl import Kubectl, KubectlError

FIXED = {
    "where the state lies": ("spec/storage/uri", "s3://elsewhere", "storage.uri cannot be changed"),
}


@pytest.mark.parametrize(("path", "value", "message"), FIXED.values(), ids=FIXED.keys())
def test_an_edit_that_would_lose_the_state_is_refused(
    api_kubectl: Kubectl, namespace: str, path: str, value: Any, message: str
) -> None:
    create(api_kubectl, namespace, MINIMAL)
    change: Any = value
    for part in reversed(path.split("/")):
        change = {part: change}
    with pytest.raises(KubectlError, match=message):
        api_kubectl.patch("streamingapp", "app", namespace, change)


@pytest.mark.parametrize("state", [{"partitions": 3}, None])
def test_the_number_of_partitions_can_be_changed(api_kubectl: Kubectl, namespace: str, state: Any) -> None:
    create(api_kubectl, namespace, changed("spec/state", {"partitions": 8}))
    api_kubectl.patch("streamingapp", "app", namespace, {"spec": {"state": state}})
    stored = api_kubectl.get("streamingapp", "app", namespace)
    assert stored is not None
    assert stored["spec"]["state"]["partitions"] == (3 if state else 4)


def test_kubectl_scale_sets_the_executors(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    api_kubectl.run("scale", "sapp/app", "-n", namespace, "--replicas=3")
    stored = api_kubectl.get("streamingapp", "app", namespace)
    assert stored is not None
    assert stored["spec"]["executor"]["instances"] == 3


def test_kubectl_scale_to_nothing_is_refused(api_kubectl: Kubectl, namespace: str) -> None:
    create(api_kubectl, namespace, MINIMAL)
    with pytest.raises(KubectlError, match=r"spec\.executor\.instances"):
        api_kubectl.run("scale", "sapp/app", "-n", namespace, "--replicas=0")
