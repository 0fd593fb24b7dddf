"""Pods that are in the way and not ours: named, never deleted, never taken for ours. The API server is a dictionary."""

import dataclasses
from typing import Any

import pytest

from tidegate.access.act import AccessManager
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.act import ActionExecutor
from tidegate.app.actions import Action, ConfirmDriverGone, CreateDriver, CreatePurge, Plan, RestoreLabels
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.app.observe import observe
from tidegate.app.rules.housekeeping import UNLABELLED_SECONDS
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.engine.events import EventPublisher
from tidegate.engine.outcome import ObserveAgain, Outcome
from tidegate.kube.failures import Forbidden
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.reasons import ForeignReason
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, deleted, launched

APP = launched(app_with({"storage.deletionPolicy": "Delete"}))
KEY = ("shop", "orders")
DRIVER = "/api/v1/namespaces/shop/pods/orders-driver"
PURGE = "/api/v1/namespaces/shop/pods/orders-purge"
GONE = ConfirmDriverGone("orders-driver")


class World:
    """An actor on such a server; the application is known."""

    def __init__(self, app: StreamingApp = APP) -> None:
        self.api, self.index, self.app = ApiServer(), Index(), app
        self.index.put_app(app)
        client: Any = self.api
        agents, access, events = AgentClient(KEYS, 1), AccessManager(client, self.index), EventPublisher(client)
        self.actor = ActionExecutor(
            client,
            agents,
            self.index,
            access,
            LaunchSecrets(client, KEYS, PLATFORM),
            events,
            OperatorMetrics(),
            lambda key: None,
        )

    async def do(self, *actions: Action) -> Outcome:
        plan = Plan("rule", ForeignReason("Reason"), "message", actions)
        return await self.actor.carry_out(self.app, plan, NOW)

    def shown(self) -> Plan:
        """Return what is decided afterwards, which is what the resource says."""
        observation = observe(self.index, KEY, PLATFORM, NOW)
        assert observation is not None
        return decide(observation, NOW + 1)


def changed(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}


OURS = build_driver_pod(APP, 1, 1, PLATFORM)
LABELLED = {"metadata": {"name": "orders-driver", "namespace": "shop", "labels": OURS["metadata"]["labels"]}}


async def test_a_pod_that_only_has_our_labels_keeps_its_place_and_is_named() -> None:
    world = World()
    world.api.put(DRIVER, LABELLED)
    assert isinstance(await world.do(CreateDriver(OURS, 1)), ObserveAgain)
    plan = world.shown()
    assert (plan.reason, "Pod orders-driver exists" in plan.message) == ("PodNameTaken", True)
    assert (DRIVER in world.api.objects, world.index.pods(KEY)) == (True, [])


async def test_the_driver_of_an_earlier_application_of_the_name_is_waited_for_and_stopped() -> None:
    world, earlier = World(), {**OURS["metadata"]["ownerReferences"][0], "uid": "earlier"}
    world.api.put(DRIVER, changed(OURS, ownerReferences=[earlier]))
    assert isinstance(await world.do(GONE, CreateDriver(OURS, 2)), ObserveAgain)
    assert [pod.app_uid for pod in world.index.pods(KEY)] == ["earlier"]
    plan = world.shown()
    assert plan.reason == "EarlierDriver"
    assert "DeleteDriver" in [type(action).__name__ for action in plan.actions]


async def test_a_driver_that_lost_its_labels_runs_on_and_gets_them_back() -> None:
    world = World()
    world.api.put(DRIVER, changed(OURS, labels={"team": "shop"}))
    assert isinstance(await world.do(GONE, CreateDriver(OURS, 2)), ObserveAgain)
    restore = world.shown().actions[0]
    assert isinstance(restore, RestoreLabels)
    assert isinstance(await world.do(restore), ObserveAgain)
    assert world.api.objects[DRIVER]["metadata"]["labels"] == {"team": "shop", **OURS["metadata"]["labels"]}
    assert not any(isinstance(action, RestoreLabels) for action in world.shown().actions)


async def test_where_labels_may_not_be_restored_the_plan_goes_on_and_the_pod_is_read_again() -> None:
    world = World()
    world.api.put(DRIVER, changed(OURS, labels={}))
    await world.do(GONE)
    world.api.unchangeable[DRIVER] = Forbidden("pods is forbidden")
    plan = world.shown()
    restore = plan.actions[0]
    assert isinstance(restore, RestoreLabels)
    assert plan.wake_after is not None
    assert plan.wake_after <= UNLABELLED_SECONDS
    assert await world.do(restore) is None
    world.api.objects[DRIVER]["metadata"]["resourceVersion"] = "7"
    assert isinstance(await world.do(restore), ObserveAgain)
    assert [pod.resource_version for pod in world.index.pods(KEY)] == ["7"]


@pytest.mark.parametrize("took_its_place", [None, changed(OURS, labels={})])
async def test_of_a_pod_that_left_the_watch_only_its_name_says_that_it_is_gone(
    took_its_place: dict[str, Any] | None,
) -> None:
    world = World()
    world.api.put(DRIVER, OURS)
    await world.do(GONE)
    (pod,) = world.index.pods(KEY)
    assert world.index.miss_pod(dataclasses.replace(pod, resource_version="2")) == KEY
    (missed,) = world.index.pods(KEY)
    del world.api.objects[DRIVER]
    if took_its_place is not None:
        world.api.objects["another"] = {}
        world.api.put(DRIVER, took_its_place)
    assert isinstance(await world.do(RestoreLabels((missed,))), ObserveAgain)
    uids = [known.uid for known in world.index.pods(KEY)]
    assert uids == ([] if took_its_place is None else [world.api.objects[DRIVER]["metadata"]["uid"]])


@pytest.mark.parametrize("labels", [{}, OURS["metadata"]["labels"]])
async def test_an_end_does_not_wait_for_peoples_pod_of_the_drivers_name(labels: dict[str, str]) -> None:
    world = World(deleted(APP))
    world.api.put(DRIVER, changed(LABELLED, labels=labels))
    assert await world.do(GONE, CreatePurge(build_purge_pod(APP, PLATFORM))) is None
    assert {DRIVER, PURGE} <= world.api.objects.keys()


async def test_nothing_is_purged_while_our_program_runs_in_a_pod_whose_owner_was_removed() -> None:
    """It may write, and it is nobody's: people are told to remove it."""
    world = World(deleted(APP))
    world.api.put(DRIVER, changed(OURS, ownerReferences=[], labels={}))
    assert isinstance(await world.do(GONE, CreatePurge(build_purge_pod(APP, PLATFORM))), ObserveAgain)
    assert (DRIVER in world.api.objects, PURGE in world.api.objects) == (True, False)
    plan = world.shown()
    assert (plan.reason, "somebody removed its owner. Delete it." in plan.message) == ("PodNameTaken", True)
    assert "CreatePurge" not in [type(action).__name__ for action in plan.actions]
    del world.api.objects[DRIVER]
    assert await world.do(GONE, CreatePurge(build_purge_pod(APP, PLATFORM))) is None


async def test_a_configuration_of_another_application_holds_no_end_back() -> None:
    world = World(deleted(APP))
    (container,) = [c for c in OURS["spec"]["containers"] if c["name"] == "driver"]
    env = [{**each, "value": each.get("value", "").replace('"shop"', '"bank"')} for each in container["env"]]
    foreign = {**changed(OURS, ownerReferences=[]), "spec": {"containers": [{**container, "env": env}]}}
    world.api.put(DRIVER, foreign)
    assert await world.do(GONE) is None
