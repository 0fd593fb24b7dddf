"""Pods that are in the way and not ours: named, never deleted, never taken for ours. The API server is a dictionary."""

import dataclasses
import datetime
from typing import Any

import pytest

from tidegate.access.act import AccessManager
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient
from tidegate.api.streaming_app import Phase, QueryStatus, ScheduleStatus, StreamingApp
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
from tidegate.engine.rules.actions import PublishEvent
from tidegate.kube.failures import Forbidden
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.reasons import ForeignReason
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, deleted, executor_of, launched
from tidegate_testing.plans import verdict_of

APP = launched(app_with({"storage.deletionPolicy": "Delete"}))
KEY = ("shop", "orders")
ORDERS = "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders"
DRIVER = "/api/v1/namespaces/shop/pods/orders-driver"
PURGE = "/api/v1/namespaces/shop/pods/orders-purge"
GONE = ConfirmDriverGone("orders-driver")
FREE = ConfirmDriverGone("orders-driver", needs_name=True)
EXECUTOR = "/api/v1/namespaces/shop/pods/orders-e1-exec-1"
HOURLY = {"snapshots": {"schedule": "0 * * * *"}}


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

    def shown(self, now: float = NOW + 1) -> Plan:
        """Return what is decided afterwards, which is what the resource says."""
        observation = observe(self.index, KEY, PLATFORM, NOW)
        assert observation is not None
        return decide(observation, now)

    async def follow(self, now: float = NOW + 1) -> Outcome:
        """Do what is decided."""
        observation = observe(self.index, KEY, PLATFORM, NOW)
        assert observation is not None
        return await self.actor.carry_out(observation.app, decide(observation, now), now)


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
    assert isinstance(await world.do(FREE, CreateDriver(OURS, 2)), ObserveAgain)
    assert [pod.app_uid for pod in world.index.pods(KEY)] == ["earlier"]
    plan = world.shown()
    assert plan.reason == "EarlierDriver"
    assert "DeleteDriver" in [type(action).__name__ for action in plan.actions]


async def test_a_driver_that_lost_its_labels_runs_on_and_gets_them_back() -> None:
    world = World()
    world.api.put(DRIVER, changed(OURS, labels={"team": "shop"}))
    assert isinstance(await world.do(FREE, CreateDriver(OURS, 2)), ObserveAgain)
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


def ended_beside(driver: dict[str, Any], change: dict[str, Any], phase: Phase, **known: Any) -> World:
    """Return an application that has ended, with an executor left over, and a pod of its driver's name, not watched."""
    world = World(launched(app_with(change), phase=phase, **known))
    world.api.keep(ORDERS, world.app)
    world.api.put(DRIVER, driver)
    executor = executor_of(world.app, 1)
    world.api.put(EXECUTOR, {"metadata": {"name": executor.name, "namespace": "shop"}})
    uid = world.api.objects[EXECUTOR]["metadata"]["uid"]
    world.index.put_pod(dataclasses.replace(executor, uid=uid, resource_version="1"))
    return world


@pytest.mark.parametrize(("change", "phase"), [(HOURLY, Phase.COMPLETED), ({"suspend": True}, Phase.STOPPING)])
async def test_nothing_waits_for_peoples_pod_of_the_drivers_name_but_a_launch(
    change: dict[str, Any], phase: Phase
) -> None:
    world = ended_beside(LABELLED, change, phase)
    assert await world.follow() is None
    assert (DRIVER in world.api.objects, EXECUTOR in world.api.objects) == (True, False)


async def test_executors_of_our_program_in_a_pod_whose_owner_was_removed_stay_and_the_rest_goes_on() -> None:
    since = datetime.datetime.fromtimestamp(NOW - 3600, datetime.UTC)
    due = {
        "snapshots": ScheduleStatus(schedule="0 * * * *", start_time=since),
        "queries": (QueryStatus(name="main", batch_id=9),),
    }
    world = ended_beside(changed(OURS, ownerReferences=[]), HOURLY, Phase.COMPLETED, **due)
    assert isinstance(await world.follow(), ObserveAgain)
    plan = world.shown()
    assert plan.reason == "Completed"
    (event,) = [action for action in plan.actions if isinstance(action, PublishEvent) and action.warning]
    assert (event.reason, "Delete it." in event.message) == ("PodNameTaken", True)
    assert await world.follow() is None
    made = [path for path in world.api.objects if "streamsnapshots" in path]
    assert (len(made), EXECUTOR in world.api.objects) == (1, True)
    assert plan.wake_after is not None
    del world.api.objects[DRIVER]
    assert await world.follow(NOW + 1 + plan.wake_after) is None
    assert EXECUTOR not in world.api.objects


async def test_executors_that_stay_with_such_a_pod_are_named_again_each_hour_while_it_is_there() -> None:
    world = ended_beside(changed(OURS, ownerReferences=[]), {}, Phase.COMPLETED)
    said = []
    for now in (NOW, NOW + 1800, NOW + 3600):
        await world.follow(now)
        events = [action for action in world.shown(now + 1).actions if isinstance(action, PublishEvent)]
        said += [event for event in events if event.reason == "PodNameTaken"]
    assert said[0] == said[1] != said[2]
    assert EXECUTOR in world.api.objects


async def test_an_application_is_not_said_to_be_suspended_while_its_program_runs_in_a_pod_without_its_owner() -> None:
    world = World(launched(app_with({"suspend": True}), phase=Phase.STOPPING))
    world.api.put(DRIVER, changed(OURS, ownerReferences=[], labels={}))
    assert isinstance(await world.follow(), ObserveAgain)
    plan = world.shown()
    assert verdict_of(plan) == (Phase.STOPPING, "Stalled", "PodNameTaken")
    assert plan.wake_after is not None
    assert world.shown(NOW + 1 + plan.wake_after).reason == "Suspended"


async def test_a_launch_names_our_program_in_a_pod_whose_owner_was_removed() -> None:
    world = World()
    world.api.put(DRIVER, changed(OURS, ownerReferences=[]))
    assert isinstance(await world.do(FREE, CreateDriver(OURS, 2)), ObserveAgain)
    plan = world.shown()
    assert (plan.reason, "somebody removed its owner" in plan.message) == ("PodNameTaken", True)


@pytest.mark.parametrize("took_its_place", [None, changed(LABELLED, labels={})])
async def test_a_pod_that_is_gone_from_the_drivers_place_is_not_named_any_more(
    took_its_place: dict[str, Any] | None,
) -> None:
    world = World()
    world.api.put(DRIVER, changed(OURS, ownerReferences=[]))
    assert isinstance(await world.do(GONE), ObserveAgain)
    found = world.index.memory(KEY).refusal
    assert found is not None
    assert found.holds_end
    del world.api.objects[DRIVER]
    if took_its_place is not None:
        world.api.put(DRIVER, took_its_place)
    assert await world.do(GONE) is None
    assert world.index.memory(KEY).refusal is None


async def test_a_launch_whose_pod_had_no_place_keeps_its_epoch_when_that_is_free() -> None:
    world = World()
    world.api.put(DRIVER, changed(LABELLED, labels={}))
    assert isinstance(await world.do(CreateDriver(OURS, 1)), ObserveAgain)
    del world.api.objects[DRIVER]
    assert await world.do(GONE) is None
    found = world.index.memory(KEY).refusal
    assert found is not None
    assert (found.recorded, found.epoch) == (True, 1)
