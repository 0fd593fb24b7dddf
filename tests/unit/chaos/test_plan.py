"""The order of faults comes from the seed alone, has every class and timing, and spares the kubelet's back-off."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.faults import (
    BETWEEN_BATCHES,
    REPLACING,
    RESTARTING,
    RESTARTS_IN_PLACE,
    Change,
    Fault,
    Kind,
    Rescale,
    plan,
)


def test_the_same_seed_makes_the_same_faults_and_another_one_others() -> None:
    assert plan(50, 7) == plan(50, 7)
    assert plan(50, 7) != plan(50, 8)


@given(st.integers(0, 10_000), st.integers(2 * len(Kind) - 1, 80))
def test_every_kind_comes_inside_a_batch_if_it_can_and_at_any_moment(seed: int, count: int) -> None:
    faults = plan(count, seed)
    assert [fault.number for fault in faults] == list(range(1, count + 1))
    found = Counter((fault.kind, fault.inside) for fault in faults)
    possible = {(kind, inside) for kind in Kind for inside in (True, False)}
    assert set(found) == possible - {(kind, True) for kind in BETWEEN_BATCHES}
    assert max(found.values()) - min(found.values()) <= 1


@given(st.integers(0, 10_000))
def test_a_driver_pod_is_replaced_before_its_restarts_become_slow_while_there_is_one_left_to_replace(seed: int) -> None:
    faults = plan(50, seed)
    restarts = 0
    for fault in faults:
        if fault.kind in REPLACING:
            restarts = 0
        restarts += fault.kind in RESTARTING
        left = any(later.kind in REPLACING for later in faults[fault.number :])
        assert restarts <= RESTARTS_IN_PLACE or not left


def test_processes_are_always_killed_and_everything_else_comes_in_two_ways() -> None:
    faults = plan(400, 1)
    processes = {Kind.DRIVER_JVM, Kind.DRIVER_PYTHON, Kind.EXECUTOR_PROCESS, Kind.OPERATOR}
    assert {fault.kind for fault in faults if fault.orderly} == set(Kind) - processes
    assert {fault.kind for fault in faults if not fault.orderly} == set(Kind)


def test_the_two_ways_of_a_kind_read_differently() -> None:
    for kind in Kind:
        assert len({str(Fault(1, kind, False, 0.0, orderly)) for orderly in (True, False)}) == 2


def test_a_run_can_be_narrowed_to_some_kinds() -> None:
    assert {fault.kind for fault in plan(9, 3, [Kind.ETCD, Kind.S3])} == {Kind.ETCD, Kind.S3}


def test_no_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind"):
        plan(3, 1, [])


@given(st.integers(0, 10_000), st.integers(1, 80))
def test_executors_and_partitions_are_changed_before_a_third_of_the_faults_each(seed: int, count: int) -> None:
    found = Counter(fault.change.what if fault.change is not None else None for fault in plan(count, seed))
    assert all(abs(found[what] - count / 3) < 1 for what in (Rescale.EXECUTORS, Rescale.PARTITIONS, None))


@pytest.mark.parametrize(("pick", "number"), [(0.0, 3), (0.34, 5), (0.99, 8)])
def test_any_of_the_numbers_may_be_picked(pick: float, number: int) -> None:
    assert Change(Rescale.PARTITIONS, pick).of([3, 5, 8]) == number
