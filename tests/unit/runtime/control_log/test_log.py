"""One control log, whoever writes it."""

import gc
from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind, encode
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.control_log.log_objects import Base, LostError
from tidegate_spark.control_log.reducer import Verdict
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, keys, message, opened, repository_in
from tidegate_testing.memory_store import Buckets, Call


def test_messages_that_come_together_are_one_segment() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message(payload={"a": 1}), message(payload={"a": 2})])
    log.append([message(payload={"a": 3})])
    assert keys(buckets, "segments") == ["000000000001.json", "000000000003.json"]
    assert log.last == 3
    assert opened(buckets).state_at(2).config == {"a": 2}


def test_a_message_that_is_offered_again_is_there_once() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message(id="x"), message(id="x")])
    log.append([message(id="x"), message(id="y")])
    assert [entry.id for entry in opened(buckets).entries(0, 2)] == ["x", "y"]
    assert log.last == 2
    assert log.find("y") == 2


def test_who_was_late_goes_on_behind_what_somebody_else_wrote() -> None:
    buckets = Buckets()
    one, other = opened(buckets), opened(buckets)
    one.append([message(id="a")])
    other.append([message(id="a"), message(id="b")])
    one.append([message(id="c")])
    assert [entry.id for entry in opened(buckets).entries(0, 3)] == ["a", "b", "c"]


def test_a_message_is_in_force_if_it_had_not_expired_when_it_was_decided() -> None:
    buckets, clock = Buckets(), Clock(100.0)
    log = opened(buckets, clock)
    log.append([message(payload={"a": 1}, expires=110.0)])
    position = log.settle()
    assert log.state_at(position).config == {"a": 1}
    clock.now = 120.0
    assert log.settle() == position == 2


def test_a_message_that_expired_before_is_void_for_ever() -> None:
    buckets, clock = Buckets(), Clock(100.0)
    log = opened(buckets, clock)
    log.append([message(payload={"a": 1}, expires=110.0), message(payload={"b": 1})])
    clock.now = 111.0
    assert log.settle() == 3
    clock.now = 100.0
    assert opened(buckets, clock).settle() == 3
    assert opened(buckets, clock).state_at(3).config == {"b": 1}
    assert log.verdict(1) is Verdict.EXPIRED


def test_two_processes_decide_once() -> None:
    buckets, early, late = Buckets(), Clock(100.0), Clock(120.0)
    one = opened(buckets, early)
    one.append([message(payload={"a": 1}, expires=110.0)])
    other = opened(buckets, late)
    assert one.settle() == 2
    assert other.settle() == 2
    assert other.state_at(2).config == {"a": 1}


def test_a_base_saves_the_reading_of_what_is_before_it() -> None:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(5):
        log.append([message(payload={"a": number})])
    log.write_base()
    log.append([message(payload={"b": 1})])
    read: list[str] = []
    repository = repository_in(
        buckets, lambda call: read.append(call.key) if call.verb == "get" and call.done else None
    )
    again = ControlLog(repository, Clock())
    again.load()
    assert again.state_at(6).config == {"a": 4, "b": 1}
    assert read == [f"{PREFIX}/control/bases/000000000005.json", f"{PREFIX}/control/segments/000000000006.json"]
    assert again.find("no such") is None


def test_an_id_is_known_behind_a_base() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message(id="x")])
    log.write_base()
    again = opened(buckets)
    again.append([message(id="x")])
    assert again.last == 1


def test_ids_are_forgotten_after_a_week() -> None:
    buckets, clock = Buckets(), Clock(1000.0)
    log = opened(buckets, clock)
    log.append([message(id="x")])
    clock.now += 7 * 86400 + 1
    log.append([message(id="y")])
    log.write_base()
    again = opened(buckets, clock)
    assert (again.find("x"), again.find("y")) == (None, 2)


def test_what_a_replay_needs_is_kept_and_the_rest_goes() -> None:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(1, 10):
        log.append([message(payload={"a": number})])
        if number % 3 == 0:
            log.write_base()
    assert log.remove_before(oldest=7) == 6
    assert keys(buckets, "bases") == ["000000000006.json", "000000000009.json"]
    assert keys(buckets, "segments") == [f"{number:012d}.json" for number in (7, 8, 9)]
    again = opened(buckets)
    assert [again.state_at(position).config["a"] for position in (6, 7, 8, 9)] == [6, 7, 8, 9]
    with pytest.raises(LostError):
        again.state_at(5)


def test_nothing_goes_while_there_is_one_base_or_an_old_batch_needs_it() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message()])
    log.write_base()
    assert log.remove_before(oldest=1) == 0
    log.append([message()])
    log.write_base()
    assert log.remove_before(oldest=0) == 0
    assert len(keys(buckets, "segments")) == 2


def test_however_many_bases_a_batch_of_long_ago_keeps_few_are_in_memory() -> None:
    log = opened(Buckets())
    before = sum(isinstance(each, Base) for each in gc.get_objects())
    for number in range(1, 31):
        log.append([message(payload={"a": number})])
        log.write_base()
        assert log.remove_before(oldest=1) == (1 if number > 1 else 0)
    assert sum(isinstance(each, Base) for each in gc.get_objects()) - before <= 3
    assert [log.state_at(position).config["a"] for position in (1, 7, 30)] == [1, 7, 30]


def test_what_a_query_of_long_ago_keeps_is_not_read_to_find_out_that_it_stays() -> None:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(1, 21):
        log.append([message(payload={"a": number})])
        if number % 4 == 0:
            log.write_base()
    assert log.remove_before(oldest=5) == 4
    calls: list[Call] = []
    again = ControlLog(repository_in(buckets, lambda call: None if call.done else calls.append(call)), Clock())
    again.load()
    again.remove_before(oldest=5)
    assert [call.key for call in calls if call.verb == "get" and "/segments/" in call.key] == [
        f"{PREFIX}/control/segments/{21:012d}.json"
    ]
    assert [again.state_at(position).config["a"] for position in (5, 20)] == [5, 20]
    # When it is not waited for any more.
    assert again.remove_before(oldest=17) == 16
    assert keys(buckets, "segments") == [f"{number:012d}.json" for number in range(17, 21)]


def test_nothing_goes_while_a_batch_needs_what_a_rollback_put_back_before_what_was_removed() -> None:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(1, 13):
        log.append([message(payload={"a": number})])
        if number % 3 == 0:
            log.write_base()
    kept = log.state_at(2)
    assert log.remove_before(oldest=9) == 9
    log = opened(buckets)
    begin = log.roll_back(kept, (), 2)
    for number in range(20, 23):
        log.append([message(payload={"a": number})])
        log.write_base()
    before = keys(buckets, "bases"), keys(buckets, "segments")
    assert log.remove_before(oldest=2) == 0
    assert (keys(buckets, "bases"), keys(buckets, "segments")) == before
    again = opened(buckets)
    assert [again.state_at(position).config["a"] for position in (2, begin, begin + 3)] == [2, 2, 22]
    # When the lineage has no batch of before it any more.
    assert log.remove_before(oldest=begin + 1) == begin + 1


def test_after_a_rollback_a_base_of_the_other_branch_is_not_used() -> None:
    buckets = Buckets()
    log = opened(buckets)
    for number in range(1, 4):
        log.append([message(payload={"a": number})])
    log.write_base()
    log.append([Entry(0, Kind.ROLLED_BACK, of=1, lineage=2)])
    assert log.state_at(log.settle()).config == {"a": 1}
    assert opened(buckets).state_at(4).config == {"a": 1}
    assert opened(buckets).state_at(3).config == {"a": 3}
    assert log.verdict(2) is Verdict.ROLLED_BACK


def test_a_rollback_that_is_done_again_is_done_once() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message()])
    for again in (log, opened(buckets)):
        again.append([Entry(0, Kind.ROLLED_BACK, of=0, lineage=2)])
    assert opened(buckets).last == 2


def test_what_was_taken_before_a_rollback_is_known_behind_it() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([message(id="x")])
    log.append([message(id="y")])
    log.roll_back(log.state_at(1), (), 2)
    later = opened(buckets)
    later.append([message(id="x"), message(id="y"), message(id="z")])
    assert (later.find("x"), later.find("y"), later.find("z")) == (1, 2, 4)


def test_a_base_is_worth_its_write_after_many_entries_or_some_time() -> None:
    clock = Clock(0.0)
    log = opened(Buckets(), clock)
    assert not log.wants_base(3600)
    log.append([message() for _ in range(255)])
    assert not log.wants_base(3600)
    clock.now = 3600.0
    assert log.wants_base(3600)
    log.write_base()
    assert not log.wants_base(3600)
    log.append([message() for _ in range(256)])
    assert log.wants_base(3600)


@pytest.mark.parametrize(
    "body", [b"{}", b"no JSON", b'{"version": 2, "entries": []}', b'{"version": 1, "entries": []}']
)
def test_what_is_no_segment_is_named(body: bytes) -> None:
    buckets = Buckets()
    buckets.write(BUCKET, f"{PREFIX}/control/segments/000000000001.json", body)
    with pytest.raises(ControlLogError, match=r"segments/000000000001\.json"):
        opened(buckets)


@pytest.mark.parametrize("directory", ["segments", "bases"])
def test_what_a_newer_tidegate_wrote_is_not_taken_for_damage(directory: str) -> None:
    buckets = Buckets()
    key = f"{PREFIX}/control/{directory}/000000000001.json"
    buckets.write(BUCKET, key, b'{"version": 2, "entries": "of another kind", "state": []}')
    with pytest.raises(ControlLogError, match=r"000000000001\.json .*: its format is 2.*use a newer Tidegate"):
        opened(buckets)


def test_what_was_asked_for_before_a_decision_does_not_hide_it() -> None:
    log = opened(Buckets())
    log.append([message(payload={"a": 1}, expires=2000.0)])
    assert log.state_at(1).config == {}
    log.append([message(payload={"b": 1})])
    position = log.settle()
    assert [log.state_at(position).config for _ in range(2)] == [{"a": 1, "b": 1}] * 2
    log.append([message(payload={"c": 1})])
    assert log.state_at(log.settle()).config == {"a": 1, "b": 1, "c": 1}
    assert log.state_at(2).config == {"b": 1}


def test_what_was_asked_for_before_a_rollback_is_rolled_back() -> None:
    log = opened(Buckets())
    log.append([message(payload={"a": 1})])
    pinned = log.state_at(log.settle())
    log.append([message(payload={"a": 2})])
    assert log.state_at(log.settle()).config == {"a": 2}
    assert log.state_at(log.roll_back(pinned, (), 2)).config == {"a": 1}


def test_a_base_that_names_many_messages_is_written_less_often() -> None:
    log = opened(Buckets())
    log.append([message() for _ in range(8 * 300)])
    assert log.wants_base(3600.0)
    log.write_base()
    log.append([message() for _ in range(290)])
    assert not log.wants_base(3600.0)
    log.append([message() for _ in range(100)])
    assert log.wants_base(3600.0)


def test_what_this_process_removed_is_not_looked_for() -> None:
    asked: list[Call] = []
    log = ControlLog(repository_in(Buckets(), asked.append), Clock())
    log.load()
    for number in range(3):
        log.append([message(payload={"n": number})])
        log.write_base()
    assert log.remove_before(3) == 2
    asked.clear()
    with pytest.raises(LostError):
        log.entries(0, 2)
    assert asked == []


# --- a driver that was frozen while others wrote, and removed what it had not read ---


def after_a_removal(
    buckets: Buckets, watch: Callable[[Call], None] = lambda call: None
) -> tuple[ControlLog, ControlLog]:
    """Return a log that was read before its next places were written and removed, and that of who did so."""
    first = opened(buckets)
    first.append([message(id="a")])
    frozen = ControlLog(repository_in(buckets, watch), Clock())
    frozen.load()
    for number in range(3):
        first.append([message(payload={"a": number})])
        first.write_base()
    assert first.remove_before(first.last) == 3
    assert keys(buckets, "segments") == ["000000000004.json"]
    return frozen, first


def test_what_is_put_in_a_place_that_was_removed_is_put_again_where_it_is_read() -> None:
    buckets = Buckets()
    frozen, first = after_a_removal(buckets)
    frozen.append([message(id="late", payload={"b": 1})])
    assert keys(buckets, "segments") == ["000000000002.json", "000000000004.json", "000000000005.json"]
    assert opened(buckets).find("late") == 5
    assert opened(buckets).state_at(5).config == {"a": 2, "b": 1}
    assert frozen.last == 5
    first.read_on()
    assert first.find("late") == 5


def test_what_another_frozen_driver_put_in_such_a_place_does_not_count_as_logged() -> None:
    buckets = Buckets()

    def die(call: Call) -> None:
        if call.verb == "put_if" and call.done:
            raise ConnectionError("killed before it looked")

    one, _ = after_a_removal(buckets, die)
    other, _ = after_a_removal(Buckets())
    other.use(repository_in(buckets))
    with pytest.raises(ConnectionError):
        one.append([message(id="late")])
    other.append([message(id="late")])
    assert opened(buckets).find("late") == 5


def test_a_position_is_not_handed_out_behind_what_was_put_in_such_a_place() -> None:
    buckets = Buckets()
    frozen, _ = after_a_removal(buckets)
    repository_in(buckets).store.put(
        f"{PREFIX}/control/segments/000000000002.json", encode([replace(message(), sequence=2)])
    )
    frozen.read_on()
    assert frozen.settle() == 4
    assert frozen.state_at(4).config == {"a": 2}


def test_a_base_of_somebody_else_behind_what_was_just_put_makes_nothing_twice() -> None:
    buckets = Buckets()
    other = opened(buckets)

    def go_on(call: Call) -> None:
        if call.verb == "put_if" and call.done:
            other.read_on()
            other.write_base()

    log = ControlLog(repository_in(buckets, go_on), Clock())
    log.load()
    log.append([message(id="a")])
    assert keys(buckets, "bases") == keys(buckets, "segments") == ["000000000001.json"]
    assert log.find("a") == 1


def test_messages_that_come_together_cost_one_put_and_one_listing() -> None:
    calls: list[str] = []
    log = ControlLog(repository_in(Buckets(), lambda call: calls.append(call.verb) if call.done else None), Clock())
    log.load()
    calls.clear()
    log.append([message(), message()])
    log.settle()
    log.append([])
    assert calls == ["put_if", "list"]
