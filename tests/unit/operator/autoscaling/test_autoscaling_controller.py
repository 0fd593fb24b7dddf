"""The autoscaler's part of the operator's process: whom it looks at, and what comes of it. In memory."""

import dataclasses
import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from tidegate.api.status.autoscaler_memory import AutoscalerMemory, write_memory
from tidegate.api.streaming_app import AutoscalingBasis, AutoscalingStatus, StreamingApp, UpgradePhase
from tidegate.autoscaling.algorithm.recommend import Advice
from tidegate.autoscaling.algorithm.settings import PERIOD
from tidegate.autoscaling.controller import AutoscalingController
from tidegate.autoscaling.index import AutoscalingIndex
from tidegate.autoscaling.quotas import QuotaMetadata, Quotas, QuotaSpec, QuotaStatus, ResourceQuota
from tidegate.autoscaling.reconcile import AutoscalingReconciler
from tidegate.cache.index import Index
from tidegate.cache.process_state import TimedReport
from tidegate.engine.workqueue import WorkQueue
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import AgentReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import STEADY, query
from tidegate_testing.observations import NOW, app_with, launched, report_of, running_driver
from tidegate_testing.upgrades import under_test

KEY = ("shop", "orders")


class NoQuotas(Quotas):
    """A namespace's quotas, as a test has them."""

    def __init__(self, *quotas: ResourceQuota) -> None:
        self.quotas, self.asked = quotas, 0

    async def read(self, namespace: str) -> tuple[ResourceQuota, ...]:
        self.asked += 1
        return self.quotas


class World:
    """One application whose driver reports a batch every ten seconds, and falls behind on one executor.

    Each report is looked at as often as ``looks`` says. The clock that can be set differs each time by up to
    ``unsteady`` seconds from the one that cannot, and is ``behind`` by so many.
    """

    checks, unsteady, behind = 1, 0.0, 0.0
    asked: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, mode: str = "Active", quotas: NoQuotas | None = None, **status: Any) -> None:
        app = app_with({"autoscaling.mode": mode, "autoscaling.maxExecutors": 8, **self.asked})
        self.app = launched(app, **status)
        self.index, self.metrics, self.at, self.chance = Index(), OperatorMetrics(), 0.0, random.Random(1)
        self.index.put_app(self.app)
        self.driver = running_driver(self.app, ready=True)
        self.index.put_pod(self.driver)
        self.woken: list[tuple[str, str]] = []
        self.quotas = quotas or NoQuotas()
        self.reconciler = AutoscalingReconciler(
            self.index,
            self.quotas,
            self.metrics.autoscaling,
            self.woken.append,
            self.clock,
            self.steady,
        )

    def clock(self) -> float:
        return NOW + self.at - self.behind + self.chance.uniform(-self.unsteady, self.unsteady)

    def steady(self) -> float:
        return STEADY + self.at

    def edit(self, app: StreamingApp, version: str) -> None:
        metadata = msgspec.structs.replace(app.metadata, resource_version=version)
        self.app = msgspec.structs.replace(app, metadata=metadata)
        self.index.put_app(self.app)

    async def batches(self, number: int, lag: int = 1000) -> float | None:
        again: float | None = None
        for _ in range(number):
            count = int(self.at // 10)
            self.at += 10.0
            one = query(count, NOW + 10.0 * count, 10.0, 1000, lag_rows=lag * (count + 1))
            report = report_of(self.driver, queries=(one,), executors_running=1, task_seconds=9.0 * (count + 1))
            again = await self.read_batch(dataclasses.replace(report.report, ready=True))
        return again

    async def read_batch(self, report: AgentReport) -> float | None:
        self.index.reports[KEY] = TimedReport(report, self.steady(), self.driver.uid, 0)
        for _ in range(self.checks - 1):
            await self.reconciler.reconcile(KEY)
        return await self.reconciler.reconcile(KEY)

    async def batches_of_little(self, number: int) -> list[tuple[Reason, int]]:
        """Return what is decided after each batch of which one executor would do with ease."""
        found = []
        for _ in range(number):
            count, executors = int(self.at // 10), self.target or 6
            self.at += 10.0
            one = query(count, NOW + 10.0 * count, 10.0, 100)
            reported: dict[str, Any] = {
                "executors_wanted": executors,
                "executors_running": executors,
                "task_seconds": 0.5 * (count + 1),
            }
            await self.read_batch(report_of(self.driver, queries=(one,), **reported).report)
            found.append((self.advice.evaluation.step, self.target))
        return found

    @property
    def advice(self) -> Advice:
        watched = self.index.of(AutoscalingIndex).get(self.app)
        assert watched is not None
        return watched.advice

    @property
    def target(self) -> int:
        watched = self.index.of(AutoscalingIndex).get(self.app)
        return watched.past.target if watched is not None else 0

    def metric(self, name: str, **labels: str) -> float | None:
        value: float | None = self.metrics.registry.get_sample_value(
            name, {"namespace": KEY[0], "app": KEY[1], **labels}
        )
        return value


class SixExecutors(World):
    """One that has six to start with."""

    def __init__(self, window: int) -> None:
        self.asked = {"autoscaling.metricsWindowSeconds": window, "executor.instances": 6}
        super().__init__()


async def test_an_application_that_falls_behind_gets_a_target_and_is_woken() -> None:
    world = World()
    assert await world.batches(12) == PERIOD
    assert world.target > 1
    assert world.woken[-1] == KEY
    assert world.metric("tidegate_autoscaling_scalings_total", direction="up") == 1
    assert world.metric("tidegate_autoscaling_recommended_executors") == world.target
    assert world.metric("tidegate_autoscaling_upper_bound_executors") == 8
    assert (world.metric("tidegate_autoscaling_arriving_rows_per_second") or 0.0) > 100.0
    assert 0.0 < (world.metric("tidegate_autoscaling_usable_share") or 0.0) <= 1.0


@pytest.mark.parametrize("window", [60, 600])
async def test_looks_at_the_same_report_change_nothing_whatever_the_clock_says(window: int) -> None:
    """It is looked at after each report, and whenever its own reconcile was: mostly twice at the same report."""
    once, often = SixExecutors(window), SixExecutors(window)
    often.checks, often.unsteady = 2, 0.001
    targets = [target for _, target in await once.batches_of_little(180)]
    assert [target for _, target in await often.batches_of_little(180)] == targets
    assert targets[-1] < 6


@pytest.mark.parametrize("back", [15.0, 3600.0])
async def test_a_clock_that_is_set_back_does_not_make_it_measure_anew(back: float) -> None:
    world = SixExecutors(60)
    before = await world.batches_of_little(30)
    world.behind = back
    after = await world.batches_of_little(60)
    assert Reason.MEASURING in dict(before)
    assert after[0] == before[-1] == (Reason.SCALE_DOWN_SOON, 6)
    assert (Reason.MEASURING, 6) not in after
    assert world.target < 6


async def test_an_application_is_woken_only_by_news() -> None:
    world = World()
    await world.batches(60)
    assert len(world.woken) <= 4


async def test_advice_has_no_target() -> None:
    world = World("Advise")
    await world.batches(12)
    watched = world.index.of(AutoscalingIndex).get(world.app)
    assert watched is not None
    assert (watched.past.target, watched.advice.evaluation.step) == (0, Reason.SCALE_UP)
    assert world.metric("tidegate_autoscaling_scalings_total", direction="up") is None


async def test_a_number_that_is_ignored_is_a_metric_that_an_alert_can_be_made_of() -> None:
    known = AutoscalingStatus(
        mode="Active", target=5, basis=AutoscalingBasis(instances=1, min_executors=1, max_executors=8)
    )
    world = World(autoscaling=known)
    await world.batches(1)
    assert world.metric("tidegate_autoscaling_instances_ignored") == 0
    executor = msgspec.structs.replace(world.app.spec.executor, instances=6)
    world.edit(
        msgspec.structs.replace(world.app, spec=msgspec.structs.replace(world.app.spec, executor=executor)), "99"
    )
    await world.batches(1)
    assert world.metric("tidegate_autoscaling_instances_ignored") == 1


async def test_a_driver_without_any_executor_is_not_measured_for_ever() -> None:
    world = World()
    await world.batches(12)
    short: dict[str, Any] = {"executors_wanted": 4, "executors_running": 0, "executors_short_since": NOW + world.at}
    for _ in range(9):
        world.at += 10.0
        await world.read_batch(report_of(world.driver, queries=(query(12, NOW + 120.0, 10.0, 1000),), **short).report)
    watched = world.index.of(AutoscalingIndex).get(world.app)
    assert watched is not None
    assert watched.advice.evaluation.step is Reason.EXECUTORS_MISSING
    assert watched.advice.message.startswith("No executor runs")
    assert world.metric("tidegate_autoscaling_reason", mode="Active", reason="ExecutorsMissing") == 1
    assert world.woken[-1] == KEY


OF_METRICS = (
    "needed_executors",
    "upper_bound_executors",
    "arriving_rows_per_second",
    "executor_rows_per_second",
    "backlog_rows",
    "utilization",
    "usable_share",
)


async def test_what_is_measured_is_shown_only_while_there_are_figures() -> None:
    world = World()
    await world.batches(12)
    assert None not in {world.metric(f"tidegate_autoscaling_{name}") for name in OF_METRICS}
    # Another number of executors: it measures again.
    await world.read_batch(report_of(world.driver, executors_wanted=2, executors_running=2).report)
    assert world.advice.evaluation.step is Reason.MEASURING
    assert {world.metric(f"tidegate_autoscaling_{name}") for name in OF_METRICS} == {None}
    assert world.metric("tidegate_autoscaling_recommended_executors") == world.target
    assert world.metric("tidegate_autoscaling_scalings_total", direction="up") == 1
    await world.batches(12)
    assert None not in {world.metric(f"tidegate_autoscaling_{name}") for name in OF_METRICS}


async def test_a_new_process_starts_from_what_the_status_says() -> None:
    world = World(autoscaling=AutoscalingStatus(mode="Active", target=5))
    await world.batches(1)
    assert world.target == 5


async def test_switched_on_it_starts_from_the_number_of_the_same_edit_and_not_from_the_drivers() -> None:
    world = SixExecutors(60)
    one = query(0, NOW, 10.0, 1000)
    await world.read_batch(report_of(world.driver, queries=(one,), executors_wanted=2, executors_running=2).report)
    assert world.target == 6


async def test_what_another_mode_left_is_no_target() -> None:
    world = World(autoscaling=AutoscalingStatus(mode="Advise"))
    await world.batches(1)
    assert world.target == 1


async def test_how_many_tasks_there_are_is_known_in_another_mode_too() -> None:
    """Else partitions would be the ceiling at the switch, and executors that have tasks would go."""
    world = World("Advise")
    await world.batches(1)
    learned = AutoscalerMemory(version=world.advice.evaluation.past.version, tasks_at_once=64)
    world = World(autoscaling=AutoscalingStatus(mode="Advise", memory=write_memory(learned)))
    await world.batches(1)
    assert world.advice.evaluation.past.tasks_at_once == 64


async def test_switched_off_nothing_is_kept_or_shown() -> None:
    world = World()
    await world.batches(12)
    world.edit(launched(app_with({"autoscaling.mode": "Off", "autoscaling.maxExecutors": 8})), "99")
    assert await world.reconciler.reconcile(KEY) is None
    assert world.index.of(AutoscalingIndex).get(world.app) is None
    left = [s.name for m in world.metrics.registry.collect() for s in m.samples if s.labels.get("app") == KEY[1]]
    assert [name for name in left if name.startswith("tidegate_autoscaling")] == []


async def test_quotas_are_read_only_where_more_executors_are_wanted() -> None:
    quota = ResourceQuota(QuotaMetadata("team"), QuotaSpec(), QuotaStatus({"pods": "3"}, {"pods": "1"}))
    world = World(quotas=NoQuotas(quota))
    await world.batches(3)
    assert world.quotas.asked == 0
    await world.batches(9)
    assert world.quotas.asked > 0
    assert world.target == 2


@pytest.mark.parametrize(
    "phase", [UpgradePhase.STOPPING, UpgradePhase.REPARTITIONING, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK]
)
async def test_from_the_stop_to_a_stable_version_the_number_of_executors_stays_as_it_is(phase: UpgradePhase) -> None:
    world = World()
    await world.batches(12)
    before = world.target
    world.edit(msgspec.structs.replace(world.app, status=under_test(phase).status), "99")
    await world.batches(24, lag=100_000)
    watched = world.index.of(AutoscalingIndex).get(world.app)
    assert watched is not None
    assert (world.target, watched.advice.evaluation.step) == (before, Reason.UPGRADE_UNDER_WAY)
    assert "comes first" in watched.advice.message


@pytest.mark.parametrize("phase", [UpgradePhase.COPYING, UpgradePhase.REHEARSING, UpgradePhase.COMPLETED])
async def test_a_version_that_runs_on_while_another_one_is_prepared_is_scaled_as_ever(phase: UpgradePhase) -> None:
    world = World()
    world.edit(msgspec.structs.replace(world.app, status=under_test(phase).status), "99")
    world.driver = running_driver(world.app, ready=True, resource_version="11")
    world.index.put_pod(world.driver)
    await world.batches(12)
    assert world.target > 1


class BadPeriod(World):
    """One whose excluded periods are one that never comes and one that is not now."""

    asked = MappingProxyType(
        {
            "autoscaling.excludedPeriods": [
                {"schedule": "0 8 31 2 *", "durationSeconds": 7200},
                {"schedule": "0 20 * * *", "durationSeconds": 7200},
            ]
        }
    )


async def test_an_excluded_period_that_never_comes_keeps_an_application_from_no_executors() -> None:
    world = BadPeriod()
    await world.batches(30)
    assert world.target > 1


async def test_an_executors_rate_is_of_the_cores_that_it_has_while_a_version_with_others_is_prepared() -> None:
    world = World()
    world.driver = dataclasses.replace(world.driver, executor_slots=2, resource_version="11")
    world.index.put_pod(world.driver)
    await world.batches(12)
    before = learned(world.advice)
    # 1,000 rows a batch, for each 9 s of tasks of which two run at a time.
    assert before == pytest.approx((2000 / 9, 2000 / 9))
    edited = msgspec.structs.replace(world.app.spec.executor, cores=8)
    spec, status = msgspec.structs.replace(world.app.spec, executor=edited), under_test(UpgradePhase.COPYING).status
    world.edit(msgspec.structs.replace(world.app, spec=spec, status=status), "99")
    await world.batches(12)
    assert learned(world.advice) == pytest.approx(before)


def learned(advice: Advice) -> tuple[float, float]:
    """Return what one executor does, as measured and as it is remembered of the version."""
    assert advice.measured is not None
    return advice.measured.rate, advice.evaluation.past.large.rate


async def test_an_application_that_is_gone_is_forgotten() -> None:
    world = World()
    await world.batches(12)
    world.index.remove_app(KEY, world.app.metadata.uid)
    assert await world.reconciler.reconcile(KEY) is None
    assert world.metric("tidegate_autoscaling_recommended_executors") is None


def test_only_applications_with_an_autoscaler_are_looked_at() -> None:
    for mode, depth in (("Off", 0), ("Advise", 1), ("Active", 1)):
        world = World(mode)

        async def work(key: tuple[str, str]) -> float | None:
            return None

        part = AutoscalingController(world.index, WorkQueue(work, world.metrics))
        part.wake_for(KEY)
        assert world.metrics.registry.get_sample_value("tidegate_queue_depth") == depth
        assert part.complete.is_set()


LIMITS = QuotaStatus({"limits.cpu": "64"}, {"limits.cpu": "2"})


async def test_a_quota_of_limits_that_executors_do_not_state_keeps_none_away_as_long_as_there_is_some_of_it() -> None:
    # Whether a LimitRange gives them one is not known; pods that are refused are told of, and bound what is wanted.
    world = World(quotas=NoQuotas(ResourceQuota(QuotaMetadata("team"), QuotaSpec(), LIMITS)))
    await world.batches(12)
    assert world.target > 1
    assert "ResourceQuota" not in world.advice.message


async def test_a_quota_with_less_room_than_is_wanted_bounds_also_beside_one_that_is_unsure() -> None:
    three = ResourceQuota(QuotaMetadata("three"), QuotaSpec(), QuotaStatus({"pods": "3"}, {"pods": "1"}))
    world = World(quotas=NoQuotas(ResourceQuota(QuotaMetadata("team"), QuotaSpec(), LIMITS), three))
    await world.batches(12)
    assert world.target == 2


async def test_a_quota_that_is_used_up_keeps_executors_away_whatever_they_would_get_of_it() -> None:
    full = QuotaStatus({"limits.cpu": "2"}, {"limits.cpu": "2"})
    world = World(quotas=NoQuotas(ResourceQuota(QuotaMetadata("team"), QuotaSpec(), full)))
    await world.batches(12)
    assert (world.target, world.advice.evaluation.step) == (1, Reason.QUOTA_REACHED)
    assert world.advice.message.startswith(
        "More than 1 executor would be needed; ResourceQuota team has room for no executor (2 of 2 limits.cpu are "
        "used, and executors state no limits.cpu: set spec.driver.resources.limits.cpu and "
        "spec.executor.resources.limits.cpu). "
    )
