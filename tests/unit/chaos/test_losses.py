"""What the operator relies on is taken, altered and put back as the plan says, and nothing else is."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from devcluster.apiclient import ApiRefusedError
from tests.chaos import losses
from tests.chaos.losses import Losses, adopting
from tests.chaos.shots import Shot, TargetGoneError, together
from tidegate_spark.contract.protocol import LABEL_EPOCH
from tidegate_testing.live_cluster import LiveCluster

APP = "/apis/tidegate.dev/v1alpha1/namespaces/chaos/streamingapps/accounts"
POD = "/api/v1/namespaces/chaos/pods/accounts-driver"


def resource(uid: str = "first", **status: Any) -> dict[str, Any]:
    metadata = {"name": "accounts", "namespace": "chaos", "uid": uid, "resourceVersion": "7", "labels": {"team": "a"}}
    spec = {"state": {"partitions": 5}, "startFrom": {"outputs": "Keep"}}
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def driver(uid: str = "u", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "accounts-driver", "uid": uid, "labels": labels or {LABEL_EPOCH: "7", "app": "accounts"}}
    }


@dataclass
class Api:
    """As much of an API server as losses need: objects by path."""

    objects: dict[str, dict[str, Any]]
    finalizer: bool = False
    """Somebody holds a resource that is deleted until its finalizers are removed."""
    calls: list[str] = field(default_factory=list)

    def get(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise ApiRefusedError(404, path)
        return copy.deepcopy(self.objects[path])

    def merge(self, path: str, change: Mapping[str, Any]) -> None:
        self.calls.append(f"merge {path}")
        metadata, changed = self.get(path)["metadata"], change["metadata"]
        if changed.get("uid", metadata["uid"]) != metadata["uid"]:
            raise ApiRefusedError(409, "another uid")
        if changed.get("finalizers", ()) is None:
            del self.objects[path]
        elif changed["labels"] is None:
            self.objects[path]["metadata"].pop("labels")
        else:
            self.objects[path]["metadata"].setdefault("labels", {}).update(changed["labels"])

    def call(self, method: str, path: str, body: Any, *, kind: str = "") -> None:
        self.calls.append(f"{method} {path}")
        match method:
            case "PATCH":
                assert (path, kind) == (f"{APP}/status", "application/json-patch+json")
                (operation,) = body
                self.objects[APP]["status"] = operation["value"]
            case "DELETE":
                assert body["preconditions"] == {"uid": self.objects[path]["metadata"]["uid"]}
                if not self.finalizer:
                    del self.objects[path]
            case "POST":
                assert (path, APP in self.objects) == (APP.rpartition("/")[0], False)
                self.objects[APP] = copy.deepcopy(dict(body)) | {"status": {}}


@dataclass
class Kept:
    """A catalog in memory."""

    content: bytes | None = b"now"

    def read(self) -> bytes | None:
        return self.content

    def write(self, content: bytes | None) -> None:
        self.content = content


@pytest.fixture
def api() -> Api:
    return Api({APP: resource(epoch=7, lineage=2, lastStable={"a": 1}), POD: driver()})


@pytest.fixture
def catalog() -> Kept:
    return Kept()


@pytest.fixture
def taking(api: Api, catalog: Kept, monkeypatch: pytest.MonkeyPatch) -> Losses:
    monkeypatch.setattr(losses, "WRONG_AFTER", 0.0)
    monkeypatch.setattr(losses, "GONE_SECONDS", -1.0)
    live = SimpleNamespace(
        api=api,
        namespace="chaos",
        get=api.objects.get,
        pod=lambda name: api.objects.get(f"/api/v1/namespaces/chaos/pods/{name}"),
    )
    return Losses(cast(LiveCluster, live), "accounts", catalog)


# --- status -----------------------------------------------------------------------------------------------------------


def test_a_status_is_removed_and_past_when_epoch_and_lineage_are_known_again_and_not_earlier_ones(
    taking: Losses, api: Api
) -> None:
    shot = taking.status()
    shot.fire()
    assert api.objects[APP]["status"] == {}
    for status, past in (
        ({}, False),
        ({"epoch": 8}, False),
        ({"epoch": 8, "lineage": 1}, False),
        ({"epoch": 6, "lineage": 2}, False),
        ({"epoch": 7, "lineage": 2}, True),
        ({"epoch": 9, "lineage": 3}, True),
    ):
        api.objects[APP]["status"] = status
        assert shot.past() is past


def test_what_counts_as_known_again_is_what_the_status_said_when_it_was_removed(taking: Losses, api: Api) -> None:
    shot = taking.status()
    api.objects[APP]["status"] = {"epoch": 9, "lineage": 3}
    shot.fire()
    api.objects[APP]["status"] = {"epoch": 9, "lineage": 2}
    assert not shot.past()


@pytest.mark.parametrize(("earlier", "epoch"), [(0.0, 7), (0.49, 7), (0.5, 8), (0.99, 8)])
def test_a_status_that_was_noted_is_put_back_whole(taking: Losses, api: Api, earlier: float, epoch: int) -> None:
    taking.note()
    api.objects[APP]["status"] = {"epoch": 8, "lineage": 2}
    taking.note()
    taking.note()
    api.objects[APP]["status"] = {"epoch": 9, "lineage": 3, "upgrade": {"phase": "Gate"}}
    taking.status(earlier).fire()
    assert api.objects[APP]["status"]["epoch"] == epoch
    assert "upgrade" not in api.objects[APP]["status"]


def test_a_status_that_is_away_is_not_noted(taking: Losses, api: Api) -> None:
    api.objects[APP]["status"] = {}
    taking.note()
    del api.objects[APP]
    taking.note()
    with pytest.raises(AssertionError, match="status of earlier was not noted"):
        taking.status(0.5)


# --- labels -----------------------------------------------------------------------------------------------------------


def test_labels_are_removed_and_past_when_they_are_back_or_the_pod_is_another(taking: Losses, api: Api) -> None:
    pod = driver()
    shot = taking.labels(pod, put_back=False)
    shot.fire()
    shot.heal()
    assert api.objects[POD]["metadata"].get("labels") is None
    assert not shot.past()
    api.objects[POD] = pod
    assert shot.past()
    api.objects[POD] = driver("another", other="label")
    assert shot.past()
    del api.objects[POD]
    assert shot.past()


def test_labels_are_put_back_with_an_earlier_epoch_which_is_not_yet_right(taking: Losses, api: Api) -> None:
    shot = taking.labels(driver(), put_back=True)
    shot.fire()
    shot.heal()
    assert api.objects[POD]["metadata"]["labels"] == {LABEL_EPOCH: "6", "app": "accounts"}
    assert not shot.past()


def test_labels_of_a_pod_that_was_replaced_are_left_alone(taking: Losses, api: Api) -> None:
    shot = taking.labels(driver(), put_back=True)
    api.objects[POD] = driver("another")
    with pytest.raises(TargetGoneError):
        shot.fire()
    shot.heal()
    assert api.objects[POD] == driver("another")


def test_a_pod_without_labels_is_not_hit_a_second_time(taking: Losses) -> None:
    with pytest.raises(AssertionError, match="has lost its labels already"):
        taking.labels(driver(other="label"), put_back=False)


# --- catalog ----------------------------------------------------------------------------------------------------------


def test_a_catalog_is_removed_and_restored_as_it_was_when_it_was_removed(taking: Losses, catalog: Kept) -> None:
    shot = taking.catalog()
    catalog.content = b"newer"
    shot.fire()
    assert catalog.content is None
    shot.heal()
    assert catalog.content == b"newer"


def test_a_catalog_of_earlier_is_put_back_and_not_the_one_that_is_there(taking: Losses, catalog: Kept) -> None:
    for content in (b"one", b"two", b"two", b"now"):
        catalog.content = content
        taking.note()
    shot = taking.catalog(0.99)
    shot.fire()
    shot.heal()
    assert catalog.content == b"two"


def test_while_there_is_no_catalog_or_none_of_earlier_it_is_waited_for(taking: Losses, catalog: Kept) -> None:
    with pytest.raises(AssertionError, match="a catalog of earlier was not noted"):
        taking.catalog(0.5)
    catalog.content = None
    with pytest.raises(AssertionError, match="no catalog yet"):
        taking.catalog()


def test_a_catalog_that_went_away_meanwhile_was_not_hit(taking: Losses, catalog: Kept) -> None:
    shot = taking.catalog()
    catalog.content = None
    with pytest.raises(TargetGoneError):
        shot.fire()


# --- resource ---------------------------------------------------------------------------------------------------------


def test_a_resource_is_applied_again_as_it_was_with_adopt_and_without_what_the_api_server_sets() -> None:
    assert adopting(resource(epoch=7)) == {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": {"name": "accounts", "namespace": "chaos", "labels": {"team": "a"}},
        "spec": {"state": {"partitions": 5}, "startFrom": {"outputs": "Keep", "adopt": True}},
    }


def test_a_resource_is_deleted_and_applied_again_once_it_is_gone_and_past_when_it_has_its_lineage(
    taking: Losses, api: Api
) -> None:
    api.finalizer = True
    shot = taking.resource(by_force=False)
    shot.fire()
    with pytest.raises(AssertionError, match="the resource to be gone"):
        shot.heal()
    del api.objects[APP]
    shot.heal()
    assert api.objects[APP]["spec"]["startFrom"]["adopt"] is True
    assert not shot.past()
    api.objects[APP]["status"] = {"epoch": 8}
    assert not shot.past()
    api.objects[APP]["status"] = {"epoch": 9, "lineage": 2}
    assert shot.past()


@pytest.mark.parametrize("finalizer", [True, False])
def test_by_force_a_resource_is_gone_at_once(taking: Losses, api: Api, finalizer: bool) -> None:
    api.finalizer = finalizer
    shot = taking.resource(by_force=True)
    shot.fire()
    assert APP not in api.objects
    shot.heal()
    assert APP in api.objects


# --- two at once ------------------------------------------------------------------------------------------------------


def test_two_shots_are_one_that_is_past_when_both_are() -> None:
    done: list[str] = []
    past = {"first": True, "second": False}

    def shot(name: str) -> Shot:
        return Shot(
            name, lambda: done.append(f"{name} fired"), lambda: done.append(f"{name} healed"), lambda: past[name]
        )

    both = together(shot("first"), shot("second"))
    both.fire()
    both.heal()
    assert both.target == "first, second"
    assert done == ["first fired", "second fired", "first healed", "second healed"]
    assert not both.past()
    past["second"] = True
    assert both.past()
