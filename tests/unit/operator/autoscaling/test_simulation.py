"""The rule at work on a simulated application: it converges, does not oscillate, and meets its objective."""

import math
from itertools import pairwise

import pytest

from tests.autoscaling.application import Model
from tests.autoscaling.rules import CpuRule, DynamicAllocation, Tidegate
from tests.autoscaling.run import MOST, enough, run
from tests.autoscaling.traces import HOUR, make
from tidegate.autoscaling.algorithm.settings import Settings
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.examples import gate_share

MODELS = {
    "a trigger": Model(),
    "one batch after the other": Model(interval=0.0, overhead=3.0),
    "two cores": Model(cores=2, partitions=32),
    "small batches": Model(most_rows=15_000.0),
    "uneven partitions": Model(skew=0.35, noise=0.2),
    "tasks with a fixed part": Model(interval=0.0, task_overhead=0.1),
}
SEEDS = range(gate_share(3))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_under_a_steady_load_it_comes_to_rest(name: str, seed: int) -> None:
    model = MODELS[name]
    for begin in (1, 20):
        found = run(make("steady", 2 * HOUR, lambda t: 500.0), Tidegate(Settings(MOST)), model, seed, begin)
        assert found.turns <= 1
        assert found.changes <= 6
        # What batches can use of fewer executors shows when they are there: one of them may still go later.
        late = [number for at, number in found.executors if at > 1.25 * HOUR]
        assert len(late) <= 1
        least = enough(500.0, model, 1.0)
        assert least <= found.executors[-1][1] <= 3 * least
        assert found.lags[-1][1] < 60


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_after_a_step_the_lag_is_gone_within_the_time_for_catching_up(name: str, seed: int) -> None:
    model, settings = MODELS[name], Settings(MOST)
    trace = make("step", 2 * HOUR, lambda t: 1000.0 if t >= HOUR else 200.0)
    found = run(trace, Tidegate(settings), model, seed, enough(200.0, model, 0.7))
    # Until it is noticed, confirmed and started, input piles up; then it is worked off.
    ready = HOUR + settings.window + settings.stabilization + 2 * model.start_delay + 120
    assert [at for at, lag in found.lags if lag > 60 and not HOUR < at < ready + settings.catch_up] == []
    assert found.turns <= 1
    assert found.worst_lag < 420


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_with_steps_down_as_small_as_they_may_be_it_comes_as_far_down_as_with_large_ones(share: float) -> None:
    trace = make("steady", 2 * HOUR, lambda t: 500.0)
    small, large = (
        run(trace, Tidegate(Settings(MOST, down_interval=240.0, down_share=each)), Model(), 1, 20)
        for each in (share, 0.5)
    )
    assert small.executors[-1][1] <= large.executors[-1][1] + 1 < 15
    assert all(before - after <= 2 for (_, before), (_, after) in pairwise(small.executors))
    assert small.turns <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_load_that_wavers_within_a_few_per_cent_changes_nothing(seed: int) -> None:
    trace = make("wavering", 4 * HOUR, lambda t: 500.0 * (1.04 if int(t / 90) % 2 else 0.96))
    found = run(trace, Tidegate(Settings(MOST)), Model(), seed, 8)
    assert found.changes <= 2
    assert found.turns <= 1


def test_a_load_that_comes_and_goes_within_the_interval_is_not_followed_down() -> None:
    trace = make("pulses", 6 * HOUR, lambda t: 1000.0 if int(t / 240) % 2 else 200.0)
    found = run(trace, Tidegate(Settings(MOST)), Model(), 1, 15)
    assert found.turns <= 2


def test_before_a_slow_sink_it_notices_that_more_executors_are_of_no_use() -> None:
    rule = Tidegate(Settings(MOST))
    trace = make("steady", HOUR, lambda t: 900.0)
    found = run(trace, rule, Model(knee=5, partitions=48), 1, 5)
    assert Reason.INEFFECTIVE_SCALING in {each.evaluation.step for each in rule.said}
    assert found.executors[-1][1] < MOST


def test_partitions_are_its_ceiling_and_it_says_so() -> None:
    rule = Tidegate(Settings(MOST))
    found = run(make("steady", 2 * HOUR, lambda t: 1500.0), rule, Model(partitions=6), 1, 2)
    assert found.executors[-1][1] == 6
    assert {each.evaluation.step for each in rule.said[-50:]} == {Reason.PARTITIONS_CEILING}
    assert "state has 6 partitions" in rule.said[-1].message


def test_where_the_size_of_batches_is_the_limit_it_adds_no_executors_and_says_so() -> None:
    rule = Tidegate(Settings(MOST))
    found = run(make("steady", 2 * HOUR, lambda t: 1000.0), rule, Model(most_rows=8_000.0), 1, 12)
    assert found.executors[-1][1] <= 18
    assert Reason.BATCHES_LIMITED in {each.evaluation.step for each in rule.said[-50:]}


def test_it_needs_fewer_executor_hours_than_dynamic_allocation_and_has_less_lag_than_the_cpu_rule() -> None:
    trace = make("step", 3 * HOUR, lambda t: 1000.0 if HOUR <= t < 2 * HOUR else 200.0)
    model, begin = Model(), enough(200.0, Model(), 0.7)
    ours = run(trace, Tidegate(Settings(MOST)), model, 1, begin)
    cpu = run(trace, CpuRule(1, MOST), model, 1, begin)
    spark = run(trace, DynamicAllocation(1, MOST), model, 1, begin)
    assert ours.executor_hours < 0.75 * spark.executor_hours
    assert ours.lag_seconds < 0.5 * cpu.lag_seconds
    assert ours.changes < cpu.changes


@pytest.mark.parametrize("seed", SEEDS)
def test_when_a_load_goes_the_fixed_part_of_batches_that_follow_one_another_keeps_no_executors(seed: int) -> None:
    """With eight executors the tasks of an empty batch take as long as the driver's part, whatever there is to read."""
    model, rule = Model(interval=0.0, task_overhead=0.2), Tidegate(Settings(MOST))
    found = run(make("less", 1.5 * HOUR, lambda t: 300.0 if t < HOUR / 2 else 10.0), rule, model, seed, 8)
    assert found.executors[-1][1] == 1
    assert found.turns <= 1
    last = rule.said[-1]
    assert last.measured is not None
    # That is what it costs: batches last as long as the fixed part on one executor, and what arrives meanwhile.
    assert last.measured.batch_seconds < (model.overhead + model.partitions * model.task_overhead) / (1 - 0.7)
    assert "in batches of" in last.message


def test_with_a_trigger_its_interval_says_how_often_the_fixed_part_is_paid() -> None:
    rule = Tidegate(Settings(MOST))
    trace = make("less", 1.5 * HOUR, lambda t: 300.0 if t < HOUR / 2 else 10.0)
    found = run(trace, rule, Model(interval=5.0, task_overhead=0.5), 1, 8)
    assert found.executors[-1][1] > 1
    assert rule.said[-1].measured is not None
    assert rule.said[-1].measured.batch_seconds <= 5.0


def test_rows_that_get_dearer_than_those_that_are_remembered_bring_executors_once() -> None:
    trace = make("less", 4 * HOUR, lambda t: 300.0 if t < HOUR / 2 else 20.0)
    model = Model(interval=0.0, task_overhead=0.2, dearer=10.0, dearer_from=1.5 * HOUR)
    found = run(trace, Tidegate(Settings(MOST)), model, 1, 8)
    at_once = [number for at, number in found.executors if at <= 1.5 * HOUR]
    after = [number for at, number in found.executors if at > 1.5 * HOUR]
    assert at_once[-1] == 1
    # Ten times as dear, they take two of them; and it does not go down again to try.
    assert after == sorted(after)
    assert 3 <= after[-1] <= 6
    assert found.worst_lag < 180


def test_long_batches_whose_time_is_the_drivers_bring_no_executors() -> None:
    """Each has 25 s in which only the driver works, however many executors there are."""
    trace = make("steady", 2 * HOUR, lambda t: 60.0)
    found = run(trace, Tidegate(Settings(MOST)), Model(interval=0.0, overhead=25.0), 1, 1)
    assert found.executors[-1][1] <= 2


def test_input_that_comes_back_after_hours_is_answered_in_one_step() -> None:
    trace = make("back", 2 * HOUR, lambda t: 500.0 if t >= HOUR else 0.0)
    found = run(trace, Tidegate(Settings(MOST)), Model(), 1, 1)
    assert found.executors[1][1] >= enough(500.0, Model(), 0.7)
    assert found.worst_lag < 420


def test_a_batch_that_is_far_longer_than_those_before_keeps_its_executors() -> None:
    """Load has just gone when a heap of rows comes, of which one batch takes them all."""
    rate = {True: 1000.0, False: 100.0}
    trace = make("heap", HOUR, lambda t: rate[t < 2400] + (800_000.0 if 2460 <= t < 2465 else 0.0))
    found = run(trace, Tidegate(Settings(MOST)), Model(most_rows=math.inf), 1, 16)
    assert min(number for _, number in found.executors) == 16


def test_a_run_is_the_same_each_time() -> None:
    trace = make("steady", HOUR, lambda t: 500.0)
    first, second = (run(trace, Tidegate(Settings(MOST)), Model(), 7) for _ in range(2))
    assert first == second


def test_reports_that_are_looked_at_twice_change_nothing() -> None:
    trace = make("step", 2 * HOUR, lambda t: 1000.0 if HOUR / 2 <= t < HOUR else 200.0)
    once, often = (run(trace, Tidegate(Settings(MOST), again=again), Model(), 1, 3) for again in (0, 1))
    assert once == often
    assert once.changes > 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("share", "rows"), [(0.8, 105.0), (0.8, 140.0), (0.5, 165.0)])
def test_a_partition_that_has_most_of_the_rows_does_not_bring_the_maximum(share: float, rows: float, seed: int) -> None:
    """However many executors there are, a batch takes as long as the task that reads it."""
    rule, model = Tidegate(Settings(60)), Model(interval=60.0, hot=share, partitions=64)
    found = run(make("steady", 6 * HOUR, lambda t: rows), rule, model, seed, 3)
    assert Reason.INEFFECTIVE_SCALING in {each.evaluation.step for each in rule.said}
    assert max(number for _, number in found.executors) <= 20


@pytest.mark.parametrize("seed", SEEDS)
def test_executors_that_a_slow_sink_leaves_without_use_are_given_back_while_it_keeps_up(seed: int) -> None:
    rule, model = Tidegate(Settings(MOST)), Model(knee=5, partitions=48, interval=60.0)
    found = run(make("steady", 6 * HOUR, lambda t: 360.0), rule, model, seed, 5)
    assert found.executors[-1][1] <= 9
    assert max(number for _, number in found.executors) <= 12
    assert found.changes <= 14
    assert found.lags[-1][1] < 120


@pytest.mark.parametrize("begin", [1, 2])
def test_who_is_far_behind_with_small_batches_gets_executors_all_the_same(begin: int) -> None:
    """A quarter of each batch is the driver's part with one executor, and nearly all of it with two dozen."""
    trace = make("backlog", HOUR, lambda t: 100.0 + (20_000.0 if t < 30 else 0.0))
    found = run(trace, Tidegate(Settings(MOST)), Model(interval=0.0, overhead=5.0, most_rows=1_500.0), 1, begin)
    assert max(number for at, number in found.executors if at < 300) == MOST
