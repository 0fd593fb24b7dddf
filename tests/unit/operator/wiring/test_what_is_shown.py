"""What the operator shows of an application while it works on it. The cluster is the index; no I/O."""

from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from tidegate.api.streaming_app import DriverStatus, StreamingApp
from tidegate.app.actions import CreateDriver, Plan, RecordLaunch, WriteStatus
from tidegate.app.reconcile import Reconciler
from tidegate.cache.index import Index
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, PLATFORM, app_with, ended_with, launched, running_driver
from tidegate_testing.values import body

KEY: Key = ("shop", "orders")


class Writer:
    """Carries out only what is written to the resource; refuses to create pods if told so."""

    def __init__(self, index: Index) -> None:
        self.index, self.refusing = index, False

    async def carry_out(self, app: StreamingApp, plan: Plan, now: float) -> None:
        for action in plan.actions:
            if isinstance(action, RecordLaunch | WriteStatus):
                self.index.replace_app(msgspec.structs.replace(app, status=action.status))
            if isinstance(action, CreateDriver) and self.refusing:
                raise RetryLaterError("the API server does not answer")


class Poller:
    """Asks nobody."""

    def follow(self, key: Key, driver: object) -> None:
        pass

    def forget(self, key: Key) -> None:
        pass


class Reporter:
    """Tells nobody."""

    async def report(self, app: object, now: float) -> None:
        pass


class Operator:
    """One operator process on a cluster that outlives it."""

    def __init__(self, index: Index) -> None:
        self.metrics, self.writer = OperatorMetrics(), Writer(index)
        actor: Any = self.writer
        poller: Any = Poller()
        reporter: Any = Reporter()
        self.reconciler = Reconciler(index, PLATFORM, actor, poller, self.metrics, reporter, lambda: NOW)

    async def check(self) -> dict[str, float]:
        """Have it look at the application; return the application's series."""
        await self.reconciler.reconcile(KEY)
        return self.series()

    def series(self) -> dict[str, float]:
        lines = [line.rpartition(" ") for line in generate_latest(self.metrics.registry).decode().splitlines()]
        return {name: float(value) for name, _, value in lines if 'app="orders"' in name}


def restarts(reason: str) -> str:
    return f'tidegate_app_restarts_total{{app="orders",namespace="shop",reason="{reason}"}}'


def cluster_with(app: StreamingApp, **driver: Any) -> Index:
    index = Index()
    index.put_app(app)
    if driver:
        index.put_pod(running_driver(app, **driver))
    index.checked_access.note(KEY, NOW)
    return index


async def test_a_restart_is_counted_once_also_by_an_operator_that_comes_later() -> None:
    ended = ended_with(Reason.APPLICATION_FAILED, 1, "ValueError")
    index = cluster_with(launched(app_with()), restarts=1, ended=ended)
    first = Operator(index)
    assert (await first.check())[restarts("ApplicationFailed")] == 1
    assert (await first.check())[restarts("ApplicationFailed")] == 1
    later = await Operator(index).check()
    assert restarts("ApplicationFailed") not in later
    assert later['tidegate_app_epoch{app="orders",namespace="shop"}'] == 1


async def test_a_launch_that_is_recorded_and_not_finished_is_counted() -> None:
    operator = Operator(cluster_with(launched(app_with(), 4)))
    operator.writer.refusing = True
    with pytest.raises(RetryLaterError):
        await operator.check()
    assert operator.series()[restarts("DriverLost")] == 1
    assert operator.series()['tidegate_app_epoch{app="orders",namespace="shop"}'] == 5


async def test_after_the_last_look_at_a_driver_that_is_gone_comes_the_next_one_at_once() -> None:
    app = launched(app_with(), driver=DriverStatus(pod_name="orders-driver"))
    index = cluster_with(app, running=False, ended=ended_with(Reason.STOPPED, 143), delete_by=NOW + 9)
    index.remove_pod(index.pods(KEY)[0])
    operator = Operator(index)
    assert await operator.reconciler.reconcile(KEY) == 0.0
    assert operator.series()['tidegate_app_epoch{app="orders",namespace="shop"}'] == 1
    assert (await operator.check())[restarts("Stopped")] == 1


async def test_nothing_is_shown_of_an_application_that_is_gone() -> None:
    index = cluster_with(launched(app_with()), restarts=1)
    operator = Operator(index)
    assert await operator.check() != {}
    index.remove_app(KEY, "u-1")
    assert await operator.check() == {}


async def test_an_application_of_the_same_name_did_not_restart_what_the_one_before_did() -> None:
    index = cluster_with(launched(app_with(), 4))
    operator = Operator(index)
    index.remove_app(KEY, "u-1")
    index.put_app(app_with(uid="u-2", resourceVersion="9"))
    shown = await operator.check()
    assert [name for name in shown if "restarts" in name] == []
    assert shown['tidegate_app_epoch{app="orders",namespace="shop"}'] == 1


@pytest.mark.parametrize("was_readable", [True, False])
async def test_an_application_that_can_not_be_read_is_shown_as_stalled_and_leaves_nothing_behind(
    was_readable: bool,
) -> None:
    index = cluster_with(launched(app_with())) if was_readable else Index()
    operator = Operator(index)
    if was_readable:
        await operator.check()
    index.put_app({**body(), "metadata": {**body()["metadata"], "resourceVersion": "9"}, "spec": {"unheard": 1}})
    health = [name for name in await operator.check() if "health" in name]
    assert health == ['tidegate_app_health{app="orders",health="Stalled",namespace="shop",reason="InvalidSpec"}']
    assert await operator.check() == operator.series()
    index.remove_app(KEY, "u-1")
    assert await operator.check() == {}
