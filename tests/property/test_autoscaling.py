"""Whatever the figures are, the autoscaler keeps its promises. Random figures, bounds and times; pure."""

import dataclasses
import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.autoscaling.algorithm.evaluate import Evaluation, evaluate, need
from tidegate.autoscaling.algorithm.large_batches import LargeBatches, remember
from tidegate.autoscaling.algorithm.measured import Measured
from tidegate.autoscaling.algorithm.messages import explain
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.settings import Mode, Settings
from tidegate.autoscaling.algorithm.situation import Obstacle, Quota, Situation
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import NOW, measured, situation
from tidegate_testing.examples import gate_share

RATES = st.floats(0.0, 1e7, allow_nan=False, allow_infinity=False)


@st.composite
def asked(draw: st.DrawFn) -> Settings:
    fewest = draw(st.integers(1, 20))
    return Settings(
        most=draw(st.integers(fewest, 60)),
        fewest=fewest,
        mode=draw(st.sampled_from([Mode.ADVISE, Mode.ACTIVE])),
        utilization=draw(st.floats(0.1, 0.95)),
        catch_up=draw(st.floats(1.0, 1e5)),
        stabilization=draw(st.floats(1.0, 600.0)),
        down_interval=draw(st.floats(1.0, 3600.0)),
        down_share=draw(st.floats(0.01, 1.0)),
    )


@st.composite
def measures(draw: st.DrawFn) -> Measured:
    arriving = draw(RATES)
    return measured(
        arriving,
        arriving_lately=draw(RATES),
        processed=draw(RATES),
        rate=draw(RATES),
        executors=draw(st.integers(1, 60)),
        saturated=draw(st.booleans()),
        backlog=draw(RATES),
        utilization=draw(st.floats(0.0, 1.0)),
        busy=draw(st.floats(0.0, 1.0)),
        back_to_back=draw(st.booleans()),
        rows_per_batch=draw(RATES),
        shares=draw(st.sampled_from([(), (1.0,), (0.5, 0.5), (0.9, 0.1)])),
        idle_executors=draw(st.integers(-1, 5)),
        source_partitions=draw(st.integers(-1, 64)),
        state_partitions=draw(st.integers(0, 64)),
    )


@st.composite
def moments(draw: st.DrawFn) -> tuple[float, Measured | None, Obstacle | None, float, int]:
    """Seconds since the moment before, figures, why it does not run, an excluded period, the quota's room."""
    return (
        draw(st.floats(0.0, 1200.0)),
        draw(st.none() | measures()),
        draw(st.sampled_from([None, None, None, Obstacle.SUSPENDED])),
        draw(st.sampled_from([0.0, 0.0, 300.0])),
        draw(st.integers(-1, 60)),
    )


def lives(wanted: int, asks: Settings, story: list[tuple[float, Measured | None, Obstacle | None, float, int]]):  # type: ignore[no-untyped-def]
    """Yield each situation with its evaluation, and the past before it."""
    past, at = Past(), 0.0
    for seconds, seen, why_not, excluded, room in story:
        at += seconds
        now = situation(
            seen,
            at,
            wanted=past.target or wanted,
            obstacle=why_not,
            excluded_until=NOW + at + excluded if excluded else 0.0,
            quota=Quota(room, "q") if room >= 0 else None,
        )
        found = evaluate(asks, now, past)
        yield now, found, past
        past = found.past


@given(st.integers(1, 60), asked(), st.lists(moments(), max_size=12))
@settings(deadline=None)
def test_what_is_recommended_lies_within_the_bounds_and_what_is_done_was_recommended(
    wanted: int, asks: Settings, story: list[tuple[float, Measured | None, Obstacle | None, float, int]]
) -> None:
    now: Situation
    found: Evaluation
    for now, found, before in lives(wanted, asks, story):
        if found.recommended != found.current:
            assert asks.fewest <= found.recommended <= asks.most
        if asks.mode is Mode.ADVISE:
            assert (found.past.target, found.past.scaled_at) == (0, 0.0)
        else:
            moved = found.past.target != (before.target or now.wanted)
            assert moved == found.due
            assert found.past.target == (found.recommended if found.due else found.current)
        if found.due and found.step is not Reason.OUT_OF_BOUNDS:
            assert now.obstacle is None
            assert now.excluded_until <= now.now
            assert found.recommended != found.current
        assert explain(asks, now, found)


@given(st.integers(1, 60), asked(), st.lists(moments(), max_size=12))
@settings(deadline=None)
def test_between_a_change_and_a_step_down_lies_the_interval_unless_somebody_set_other_bounds(
    wanted: int, asks: Settings, story: list[tuple[float, Measured | None, Obstacle | None, float, int]]
) -> None:
    for now, found, before in lives(wanted, asks, story):
        if found.due and found.step is Reason.SCALE_DOWN and asks.mode is Mode.ACTIVE:
            assert now.now - before.scaled_at >= asks.down_interval - 1e-3
            least = min(math.ceil(found.current * (1 - asks.down_share) - 1e-6), found.current - 1)
            assert found.recommended >= least


@given(st.integers(1, 200), st.integers(1, 100), st.floats(0.0, 1.5))
@settings(deadline=None)
def test_however_small_a_step_down_may_be_it_ends_near_the_need(wanted: int, percent: int, share: float) -> None:
    asks = Settings(most=200, down_share=percent / 100, down_interval=60.0)
    needed, past, steps = share * wanted, Past(), list[tuple[int, int]]()
    for check in range(200 * 8):
        executors = past.target or wanted
        # With more of them batches are shorter, or they would be of no use.
        busy = min(1.0, 0.5 * wanted / executors)
        seen = measured(70.0 * needed, executors=executors, busy=busy, utilization=busy)
        now = situation(seen, 10.0 * check, wanted=executors)
        found = evaluate(asks, now, past)
        past = found.past
        if found.due and found.recommended < found.current:
            steps.append((found.current, found.recommended))
    # Within the tolerance of both: what is kept beyond the need, and what is not worth a step.
    assert needed <= past.target * 1.1 + 1e-6 or past.target == 200
    assert past.target * 0.9 <= max(1.0, math.ceil(needed * 1.1))
    assert all(before - after <= max(1.0, percent / 100 * before + 1e-6) for before, after in steps)


@given(measures(), st.floats(1.0, 10.0), asked())
def test_more_input_is_never_less_need(seen: Measured, times: float, asks: Settings) -> None:
    few, many = need(asks, seen, Past()), need(asks, dataclasses.replace(seen, arriving=seen.arriving * times), Past())
    assert few is None or (many is not None and many >= few * (1 - 1e-9)) or seen.rate <= 0


@given(measures(), measures(), measures(), asked())
def test_what_is_remembered_of_large_batches_is_never_a_reason_for_more(
    first: Measured, second: Measured, now: Measured, asks: Settings
) -> None:
    large = remember(remember(LargeBatches(), first), second)
    assert remember(large, second) == large
    with_it, without = need(asks, now, Past(large=large)), need(asks, now, Past())
    assert (with_it is None) == (without is None)
    assert with_it is None or without is None or with_it <= without * (1 + 1e-9)


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=60), st.floats(0.1, 100.0), st.floats(1e-4, 1.0))
def test_whatever_batches_come_the_rate_of_the_largest_is_kept_but_for_a_fifth(
    rows: list[float], fixed: float, per_row: float
) -> None:
    large = LargeBatches()
    for each in rows:
        seen = measured(1.0, rate=each / (fixed + per_row * each), rows_per_batch=each, shares=(1.0,))
        large = remember(large, seen)
    assert large.rate >= 0.8 * max(rows) / (fixed + per_row * max(rows)) * (1 - 1e-9)


def back_to_back(arriving: float, executors: int, fixed: float, per_row: float) -> Measured:
    """Return figures of a query that runs one batch after the other, and whose driver takes half a second of each."""
    work = arriving * per_row
    behind = work > 0.95 * executors
    # As long as it takes until as many rows arrive as are in a batch; or longer each time, without an end.
    seconds = (fixed / executors + 0.5) / (1 - work / executors) if not behind else 200.0
    rows = arriving * seconds if not behind else (seconds - 0.5) * executors / per_row
    return measured(
        arriving,
        rate=rows / (fixed + per_row * rows),
        executors=executors,
        processed=rows / seconds,
        saturated=behind,
        utilization=min(1.0, (fixed + per_row * rows) / (executors * seconds)),
        busy=1.0,
        back_to_back=True,
        rows_per_batch=rows,
        shares=(1.0,),
        batch_seconds=seconds,
        backlog=0.0 if behind else rows,
    )


@given(
    st.integers(1, 20),
    st.lists(st.floats(0.1, 1000.0), min_size=2, max_size=3),
    st.floats(0.0, 20.0),
    st.floats(1e-4, 0.02),
)
@settings(deadline=None, max_examples=gate_share(40))
def test_batches_with_a_fixed_part_come_to_rest_after_each_change_of_the_load(
    wanted: int, loads: list[float], fixed: float, per_row: float
) -> None:
    asks, past, executors, check = Settings(most=60), Past(), wanted, 0
    for arriving in loads:
        directions, late = list[bool](), 0
        for step in range(300):
            check += 1
            seen = back_to_back(arriving, executors, fixed, per_row)
            found = evaluate(asks, situation(seen, 30.0 * check, wanted=executors), past)
            past = found.past
            if found.due:
                directions.append(found.recommended > executors)
                late += step > 230
            executors = past.target
        # It goes there, and a step back where what it learned of large batches was a little too much.
        assert sum(one != other for one, other in pairwise(directions)) <= 1
        assert late == 0
        assert executors * 1.1 >= min(60.0, arriving * per_row)


@given(st.integers(1, 60), st.floats(0.0, 5000.0), st.floats(1.0, 1000.0), asked(), st.integers(-1, 64))
@settings(deadline=None, max_examples=gate_share(60))
def test_under_a_steady_load_it_comes_to_rest_in_few_changes_of_one_direction(
    wanted: int, arriving: float, rate: float, asks: Settings, partitions: int
) -> None:
    """Figures follow from the load, as those of an application that uses its executors well."""
    asks = dataclasses.replace(asks, mode=Mode.ACTIVE)
    past, executors, changes = Past(), wanted, list[int]()
    for check in range(4000):
        used = arriving / (rate * executors)
        seen = measured(
            arriving,
            rate=rate if arriving else 0.0,
            executors=executors,
            processed=min(arriving, rate * executors),
            saturated=used > 1,
            utilization=min(1.0, used),
            busy=min(1.0, used),
            source_partitions=partitions,
        )
        found = evaluate(asks, situation(seen, 30.0 * check, wanted=executors), past)
        past = found.past
        if found.due and found.step is not Reason.OUT_OF_BOUNDS:
            changes.append(found.recommended - executors)
        executors = past.target
    assert len({change > 0 for change in changes}) <= 1
    assert not changes or changes[0] < 0 or len(changes) <= 3
    quiet = evaluate(asks, situation(seen, 30.0 * 4000, wanted=executors), past)
    assert not quiet.due
