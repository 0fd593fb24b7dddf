"""An edit with a field that no pod has, from the look at it to what is decided. The server is a dictionary; no I/O."""

from typing import Any

import pytest

from tidegate.api.streaming_app import StreamingApp
from tidegate.app.actions import DeleteDriver, Plan
from tidegate.app.dry_runs.pod_dry_run import PodDryRun
from tidegate.app.reconcile import Reconciler
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.kube.failures import Invalid
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import NOW, PLATFORM, running_driver
from tidegate_testing.plans import acts
from tidegate_testing.pod_refusals import WRONG
from tidegate_testing.upgrades import IMAGE, B, edited, old_app

KEY: Key = ("shop", "orders")


class Watcher:
    """Carries out nothing; knows what was to be done. It is actor and poller at once."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    async def carry_out(self, app: StreamingApp, plan: Plan, now: float) -> None:
        self.plans.append(plan)

    def follow(self, key: Key, driver: object) -> None:
        pass

    def hurry(self, key: Key) -> None:
        pass


@pytest.mark.parametrize("role", ["driver", "executor"])
async def test_a_misspelt_field_of_a_template_stops_nothing_and_is_named(role: str) -> None:
    index, api, watcher = Index(), ApiServer(), Watcher()
    double: Any = watcher
    client: Any = api
    reconciler = Reconciler(index, PLATFORM, double, double, OperatorMetrics(), double, lambda: NOW)
    reconciler.pod_dry_run = PodDryRun(client)
    index.put_pod(running_driver(old_app(), ready=True))
    index.put_app(edited(old_app(), {IMAGE: B, f"{role}.podTemplate": {"spec": {"tolerationz": []}}}))
    name = {"driver": "orders-driver", "executor": "orders-e2-exec-1"}[role]
    api.refusing[f"/api/v1/namespaces/shop/pods/{name}"] = Invalid(
        WRONG["unknown field"].server_message, in_itself=True
    )
    await reconciler.reconcile(KEY)
    (plan,) = watcher.plans
    assert not acts(plan, DeleteDriver)
    assert (plan.reason, f"spec.{role}.podTemplate.spec.tolerationz" in plan.message) == ("UpgradeRefused", True)
