"""The Secret of a pod's configuration on an API server that is a dictionary: made, left, replaced, refused. No I/O."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.unit.operator.app.test_act import APP, World
from tidegate.app.actions import CreateDriver, ProvideConfiguration
from tidegate.app.builders.driver import build_driver
from tidegate.engine.outcome import ObserveAgain
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Forbidden, Unavailable
from tidegate_testing.observations import PLATFORM, app_with

BUILT = build_driver(app_with({"application.args": ["x" * 4000] * 40}), 1, 1, PLATFORM)
assert BUILT.secret is not None
SECRET: dict[str, Any] = BUILT.secret
SECRETS = "/api/v1/namespaces/shop/secrets"
PLACE = f"{SECRETS}/{SECRET['metadata']['name']}"
POD = "/api/v1/namespaces/shop/pods/orders-driver"
CREATE, PROVIDE = CreateDriver(BUILT.manifest, 1), ProvideConfiguration(SECRET, "orders-driver")
OTHER = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET["metadata"]["name"], "namespace": "shop"}}


def done(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_the_secret_is_the_pods() -> None:
    world = World()
    assert done(world.do(CREATE, PROVIDE)) is None
    made = world.api.objects[PLACE]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", world.api.objects[POD]["metadata"]["uid"])
    assert made["immutable"]


def test_one_of_an_earlier_pod_is_replaced_and_one_of_a_pod_that_waits_is_left() -> None:
    world = World()
    world.api.put(PLACE, OTHER)
    done(world.do(CREATE, PROVIDE))
    made = world.api.objects[PLACE]
    assert made["stringData"] == SECRET["stringData"]
    done(world.do(ProvideConfiguration(SECRET, "orders-driver", replace=False)))
    assert world.api.objects[PLACE] is made


def test_without_the_pod_no_secret_is_made() -> None:
    world = World()
    assert isinstance(done(world.do(PROVIDE)), ObserveAgain)
    assert PLACE not in world.api.objects


def test_a_pod_whose_secret_is_refused_goes_and_the_refusal_is_what_is_said() -> None:
    world = World()
    world.api.refusing[SECRETS] = Forbidden("exceeded quota: secrets")
    assert isinstance(done(world.do(CREATE, PROVIDE)), ObserveAgain)
    refusal = world.index.memory((APP.metadata.namespace, APP.metadata.name)).refusal
    assert refusal is not None
    assert "the Secret of the configuration" in refusal.message
    assert "exceeded quota: secrets" in refusal.message
    assert POD not in world.api.objects or "deletionTimestamp" in world.api.objects[POD]["metadata"]


def test_in_a_namespace_that_is_being_deleted_nobody_is_to_correct_anything() -> None:
    world = World()
    world.api.refusing[SECRETS] = Forbidden("is being terminated", namespace_terminating=True)
    assert isinstance(done(world.do(CREATE, PROVIDE)), ObserveAgain)
    refusal = world.index.memory((APP.metadata.namespace, APP.metadata.name)).refusal
    assert refusal is not None
    assert (refusal.reason, "is being deleted" in refusal.message) == ("NamespaceTerminating", True)


def test_an_api_server_that_does_not_answer_is_asked_again() -> None:
    world = World()
    world.api.refusing[SECRETS] = Unavailable("timeout")
    with pytest.raises(RetryLaterError):
        done(world.do(CREATE, PROVIDE))
    assert POD in world.api.objects
