"""Lives of applications in a namespace with a LimitRange: what they need is made, with what is demanded."""

from typing import Any

import msgspec

from tidegate.access.act import AccessManager
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.agent.client import AgentClient
from tidegate.api.streaming_app import StreamingApp
from tidegate.app.act import ActionExecutor
from tidegate.app.observe import observe
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.engine.events import EventPublisher
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.limit_ranges import NOT_GRANTED, Floored
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, deleted, launched

KEY, PODS = ("shop", "orders"), "/api/v1/namespaces/shop/pods"
DELETE = {"storage.deletionPolicy": "Delete"}


class World:
    """An operator that decides about one application until nothing is left to do at once."""

    def __init__(self, app: StreamingApp, api: Floored) -> None:
        self.api, self.index = api, Index()
        client: Any = api
        access, events = AccessManager(client, self.index), EventPublisher(client)
        secrets, agents = LaunchSecrets(client, KEYS, PLATFORM), AgentClient(KEYS, 1)
        self.actor = ActionExecutor(
            client, agents, self.index, access, secrets, events, OperatorMetrics(), lambda key: None
        )
        api.keep("/apis/tidegate.dev/v1alpha1/namespaces/shop/streamingapps/orders", app)
        self.index.put_app(app)

    async def check(self) -> str:
        """Decide once, and return the reason."""
        o = observe(self.index, KEY, PLATFORM, NOW)
        assert o is not None
        plan = decide(o, NOW)
        await self.actor.carry_out(o.app, plan, NOW)
        return plan.reason

    def requested(self, pod: str, kind: str = "containers") -> list[str]:
        made = self.api.objects[f"{PODS}/{pod}"]["spec"]
        return [each["resources"]["requests"]["memory"] for each in made[kind]]


async def test_a_driver_with_an_injected_runtime_is_launched_with_the_epoch_that_was_refused() -> None:
    world = World(app_with(), Floored())
    for _ in range(2):
        assert await world.check() == "DriverStarting"
    assert world.requested("orders-driver", "initContainers") == ["1Gi"]
    assert world.api.objects[f"{PODS}/orders-driver"]["metadata"]["labels"]["tidegate.dev/epoch"] == "1"
    assert (world.api.refused, world.api.reads) == (["orders-driver"], 1)
    (config,) = [
        each["value"]
        for each in world.api.objects[f"{PODS}/orders-driver"]["spec"]["containers"][0]["env"]
        if each["name"] == "TIDEGATE_CONFIG"
    ]
    (init,) = msgspec.json.decode(config)["executor"]["template"]["spec"]["initContainers"]
    assert init["resources"]["requests"]["memory"] == "1Gi"


async def test_a_deletion_purges_the_storage() -> None:
    world = World(deleted(launched(app_with(DELETE))), Floored())
    for _ in range(2):
        assert await world.check() == "StoragePurging"
    assert world.requested("orders-purge") == ["1Gi"]
    assert world.api.refused == ["orders-purge"]


async def test_where_nobody_may_read_it_the_pod_is_refused_and_tried_after_a_pause() -> None:
    world = World(deleted(launched(app_with(DELETE))), Floored(readable=False))
    for _ in range(3):
        await world.check()
    assert world.api.refused == ["orders-purge"]
    assert await world.check() == "LaunchRefused"
    refusal = world.index.memory(KEY).refusal
    assert refusal is not None
    assert "but request is 256Mi in container purge" in refusal.message
    assert f"the operator cannot list LimitRanges, {NOT_GRANTED.message}" in refusal.message
    assert "Correct spec.helpers.resources, or the LimitRange; Tidegate retries." in refusal.message


async def test_a_deletion_ends_with_the_storage_purged_once_the_spec_gives_what_nobody_may_read() -> None:
    helped = {**DELETE, "helpers.resources": {"requests": {"memory": "1Gi"}}}
    world = World(deleted(launched(app_with(helped))), Floored(readable=False))
    assert await world.check() == "StoragePurging"
    assert (world.requested("orders-purge"), world.api.reads) == (["1Gi"], 0)
