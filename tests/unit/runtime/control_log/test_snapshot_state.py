"""A snapshot keeps what is in force at its batches, and whoever starts from it goes on from there."""

import json
from collections.abc import Callable

import pytest

from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.control.service.reports import messages_between
from tidegate_spark.control_log.entries import ControlLogError
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.reducer import Verdict
from tidegate_spark.control_log.snapshot_state import Kept, kept_at, start_from
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, Clock, message, opened, repository_in
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene


def offsets(position: int) -> str:
    return f'v1\n{{}}\n{{"data": 1}}\n{{"tidegate-control": {position}}}'


def app_with(messages: int) -> Buckets:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(1, messages + 1):
        log.append([message(payload={"a": number})])
    return buckets


def kept(buckets: Buckets, **positions: int) -> Kept:
    found = kept_at(repository_in(buckets), {name: offsets(position) for name, position in positions.items()})
    assert found is not None
    return found


def other(buckets: Buckets) -> SnapshotRepository:
    return SnapshotRepository(MemoryStore(buckets, BUCKET), "apps/fork", lambda seconds: None)


def cut_after(number: int) -> Callable[[Call], None]:
    """Return what ends a process after so many requests, of which the answer to the last one is lost."""
    left = iter(range(number))

    def watch(call: Call) -> None:
        if next(left, None) is None:
            raise ConnectionError

    return watch


def test_nothing_is_kept_and_nothing_read_for_an_application_that_takes_no_part() -> None:
    calls: list[Call] = []
    assert kept_at(repository_in(Buckets(), calls.append), {"main": "v1\n{}\n7"}) is None
    assert calls == []


def test_what_is_kept_is_what_is_in_force_at_each_querys_batch() -> None:
    found = kept(app_with(9), one=5, other=7)
    assert found.positions == {"one": 5, "other": 7}
    assert found.state.config == {"a": 5}
    assert [entry.sequence for entry in found.entries] == [6, 7]
    assert from_json(Kept, to_json(found)) == found


def forgetful(upto: int) -> Buckets:
    """Return an application whose log goes back to a base only."""
    buckets = app_with(9)
    log = opened(buckets)
    log.write_base()
    log.append([message(payload={"a": 10})])
    log.write_base()
    assert log.remove_before(upto) == 9
    return buckets


def test_a_query_that_the_log_does_not_wait_for_keeps_no_other_one_out_of_a_snapshot() -> None:
    buckets = forgetful(9)
    texts = {"renamed": offsets(2), "gone": offsets(0), "one": offsets(9), "other": offsets(10)}
    found = kept_at(repository_in(buckets), texts, {"renamed": 0.0, "gone": 0.0}.__getitem__)
    assert found is not None
    assert (found.positions, found.state.config) == ({"one": 9, "other": 10}, {"a": 9})
    assert [entry.sequence for entry in found.entries] == [10]


def test_a_snapshot_of_a_batch_that_spark_has_left_behind_fails() -> None:
    """Its copy took so long; the next attempt takes a newer batch."""
    with pytest.raises(ControlLogError):
        kept_at(repository_in(forgetful(9)), {"slow": offsets(2), "other": offsets(10)}, {"slow": -1.0}.__getitem__)


def test_a_query_that_was_rolled_back_to_before_what_was_removed_has_a_day_to_run() -> None:
    buckets = app_with(2)
    state = opened(buckets).state_at(2)
    log = opened(buckets)
    for number in range(3, 10):
        log.append([message(payload={"a": number})])
        log.write_base()
    assert log.remove_before(8) == 8
    log = opened(buckets)
    now = log.roll_back(state, (), 2)
    texts = {"late": offsets(2), "one": offsets(now)}
    with pytest.raises(ControlLogError):
        kept_at(repository_in(buckets), texts, lambda query: 80_000.0)
    found = kept_at(repository_in(buckets), texts, lambda query: 90_000.0)
    assert found is not None
    assert found.positions == {"one": now}


def test_a_query_of_long_ago_is_given_all_messages_or_none() -> None:
    buckets = forgetful(9)
    for position in (0, 2):
        with pytest.raises(LostError, match="under another name"):
            messages_between(opened(buckets), position, 10)
    assert [entry.sequence for entry in messages_between(opened(buckets), 9, 10)] == [10]


def test_a_fork_goes_on_where_the_snapshot_was() -> None:
    buckets = app_with(9)
    found = kept(buckets, one=5, other=7)
    for _ in range(2):
        start_from(other(buckets), found, 1, own=False)
    log = ControlLog(other(buckets), Clock())
    log.load()
    assert [log.state_at(position).config["a"] for position in (5, 7)] == [5, 7]
    log.append([message(payload={"b": 1})])
    assert log.last == 8
    assert log.state_at(8).config == {"a": 7, "b": 1}


def test_a_fork_of_a_paused_application_is_not_paused() -> None:
    buckets = Buckets()
    opened(buckets).append([message("pause")])
    found = kept(buckets, one=1)
    start_from(other(buckets), found, 1, own=False)
    assert found.state.paused
    assert b'"paused":false' in buckets.content[BUCKET]["apps/fork/control/bases/000000000001.json"].body


def test_what_the_original_was_told_between_its_queries_batches_is_not_done_by_a_fork() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message(payload={"a": 1})])
    log.append([message("pause"), message("dump-state", {}), message(payload={"a": 2})])
    found = kept(buckets, one=1, other=4)
    for _ in range(2):
        start_from(other(buckets), found, 1, own=False)
    fork = ControlLog(other(buckets), Clock())
    fork.load()
    assert (fork.last, fork.state_at(4).paused, fork.state_at(4).config) == (4, False, {"a": 2})
    assert [fork.verdict(number) for number in (2, 3, 4)] == [Verdict.REJECTED, Verdict.REJECTED, Verdict.IN_FORCE]


@pytest.mark.parametrize("positions", [{"one": 6}, {"one": 6, "other": 3}, {"one": 6, "other": 0}])
def test_a_fork_of_an_application_that_was_rolled_back_can_be_rolled_back_itself(positions: dict[str, int]) -> None:
    """Its lineages are counted from one again: that to which the original was taken back is none of the fork's."""
    original = app_with(4)
    start_from(repository_in(original), kept(original, one=2, other=3), 5, own=True)
    opened(original).append([message(payload={"a": 6})])
    forked = Buckets()
    for _ in range(2):
        start_from(repository_in(forked), kept(original, **positions), 1, own=False)
    log = opened(forked)
    assert log.state_at(log.settle()).config == {"a": 6}
    # A query that has had no batch since the rollback hears of what is in force, and not of what was taken back.
    payloads = [entry.payload for entry in messages_between(log, min(positions.values()), 6)]
    assert '{"a": 4}' not in payloads
    before = kept(forked, one=6)
    log.append([message(payload={"a": 7})])
    start_from(repository_in(forked), before, 2, own=True)
    again = opened(forked)
    assert again.verdict(7) is Verdict.ROLLED_BACK
    assert again.state_at(again.settle()).config == {"a": 6}


def test_a_log_of_its_own_is_not_mixed_with_another_ones() -> None:
    buckets = app_with(9)
    found, mine = kept(buckets, one=5), app_with(3)
    with pytest.raises(ControlLogError, match="has messages of its own, up to 3"):
        start_from(repository_in(mine), found, 1, own=False)


def test_a_rollback_rolls_back_what_came_after_and_numbers_go_on() -> None:
    buckets = app_with(9)
    found = kept(buckets, one=5, other=7)
    for _ in range(2):
        start_from(repository_in(buckets), found, 2, own=True)
    log = opened(buckets)
    assert log.last == 10
    assert [log.state_at(position).config["a"] for position in (5, 7, 10)] == [5, 7, 7]
    assert [log.verdict(number) for number in (7, 8, 9)] == [
        Verdict.IN_FORCE,
        Verdict.ROLLED_BACK,
        Verdict.ROLLED_BACK,
    ]


def test_a_rollback_to_before_the_oldest_that_the_log_has_works_too() -> None:
    buckets = app_with(4)
    found = kept(buckets, one=2, other=3)
    log = opened(buckets)
    for number in range(10, 13):
        log.write_base()
        log.append([message(payload={"a": number})])
    assert log.remove_before(log.last) > 3
    start_from(repository_in(buckets), found, 2, own=True)
    again = opened(buckets)
    assert [again.state_at(position).config["a"] for position in (2, 3, again.last)] == [2, 3, 3]
    again.append([message(payload={"b": 1})])
    assert again.state_at(again.settle()).config == {"a": 3, "b": 1}


def test_a_rollback_that_is_cut_anywhere_is_completed_by_the_next_one() -> None:
    for number in range(40):
        buckets = app_with(9)
        found = kept(buckets, one=5, other=7)
        try:
            start_from(repository_in(buckets, cut_after(number)), found, 2, own=True)
        except ConnectionError:
            start_from(repository_in(buckets), found, 2, own=True)
            log = opened(buckets)
            assert log.state_at(log.settle()).config == {"a": 7}
            assert log.last == 10
        else:
            break
    assert number > 5


def test_a_snapshots_manifest_has_it() -> None:
    scene = Scene()
    scene.batches(2)
    assert scene.take("a").control is None
    log = ControlLog(scene.repository(), Clock())
    log.append([message(payload={"a": 1})])
    scene.buckets.write("here", f"{scene.root()}/offsets/1", offsets(1).encode())
    made = scene.take("b")
    assert made.control is not None
    assert (made.control.positions, made.control.state.config) == ({"main": 1}, {"a": 1})
    assert json.loads(scene.content("snapshots/b/manifest.json"))["control"]["state"]["position"] == 1


def test_a_snapshot_is_taken_though_the_log_does_not_go_back_to_a_query_of_long_ago() -> None:
    scene = Scene()
    for query in ("main", "renamed"):
        scene.batches(2, query=query)
    log = ControlLog(scene.repository(), Clock())
    for number in range(1, 4):
        log.append([message(payload={"a": number})])
        log.write_base()
    assert log.remove_before(2) == 2
    for query, position in (("main", 3), ("renamed", 1)):
        scene.buckets.write("here", f"{scene.root(query)}/offsets/1", offsets(position).encode())
    made = scene.take("a")
    assert made.control is not None
    assert (made.control.positions, sorted(made.queries)) == ({"main": 3}, ["main", "renamed"])
