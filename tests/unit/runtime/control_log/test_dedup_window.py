"""Each message is taken once: by its id, and by its place in a topic, whatever came between."""

import pytest

from tidegate_spark.control_log import dedup_window as memories
from tidegate_spark.control_log.dedup_window import Known, Taken, Writer
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.reducer import reduce_entries
from tidegate_testing.control_log import message, opened
from tidegate_testing.memory_store import Buckets

PART = "kafka:control/0"


def record(offset: int, name: str = "") -> Entry:
    return Entry(0, id=name or f"/test#{offset}", type="ping", origin=PART, offset=offset)


def read_up_to(offset: int) -> Entry:
    return Entry(0, Kind.CONSUMED, origin=PART, offset=offset)


def test_what_was_read_of_a_topic_is_known_by_its_place() -> None:
    log = opened(Buckets())
    log.append([record(0), record(1), read_up_to(2)])
    assert (log.last, log.consumed) == (2, {PART: 2})
    log.append([record(1, "/test#other"), record(2)])
    assert (log.last, log.consumed) == (3, {PART: 3})


def test_that_only_known_messages_were_read_is_written_down() -> None:
    log = opened(Buckets())
    log.append([record(0, "/test#a"), record(1, "/test#a"), read_up_to(2)])
    assert [entry.kind for entry in log.entries(0, log.last)] == [Kind.MESSAGE, Kind.CONSUMED]
    log.append([read_up_to(2)])
    assert log.last == 2


def test_who_comes_late_takes_nothing_back() -> None:
    log = opened(Buckets())
    log.append([record(9)])
    log.append([record(3, "/test#late"), read_up_to(4)])
    assert (log.last, log.consumed) == (1, {PART: 10})


def test_another_process_reads_on_from_there_also_behind_a_base() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([record(0), record(1)])
    log.write_base()
    log.append([record(2)])
    assert opened(buckets).consumed == {PART: 3}


def test_a_position_is_in_what_is_in_force_so_that_a_fork_reads_on_there() -> None:
    log = opened(Buckets())
    log.append([record(0), record(1)])
    assert (log.state_at(1).consumed, log.state_at(2).consumed) == ({PART: 1}, {PART: 2})
    fork = opened(Buckets())
    fork.start_from(log.state_at(1), log.entries(1, 2))
    assert fork.consumed == {PART: 2}


def test_a_rollback_takes_messages_back_and_not_that_they_were_read() -> None:
    buckets = Buckets()
    log = opened(buckets)
    log.append([record(0)])
    pinned = log.state_at(1)
    log.append([record(1), message(id="uid")])
    log.roll_back(pinned, (), 2)
    for found in (log, opened(buckets)):
        assert (found.consumed, found.find("/test#0"), found.find("uid")) == ({PART: 2}, 1, 3)
        assert found.state_at(found.last).consumed == {PART: 2}
        assert found.state_at(found.last).messages == 1


def test_markers_are_in_force_for_nobody() -> None:
    log = opened(Buckets())
    log.append([read_up_to(7)])
    assert log.state_at(1).messages == 0
    assert reduce_entries(log.state_at(0), log.entries(0, 1)) == log.state_at(1)


def test_messages_from_a_broker_displace_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_KNOWN", 2)
    known = [Known("uid", 1, 0.0), *(Known(f"/test#{number}", number, 0.0, True) for number in range(2, 6))]
    assert [it.id for it in Taken(known).remembered(0.0)] == ["uid", "/test#4", "/test#5"]


def test_what_is_offered_still_is_remembered_however_old_it_is_and_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memories, "MOST_KNOWN", 2)
    known = [Known("old", 1, 0.0), *(Known(f"m{number}", number, 9.0) for number in range(2, 6))]
    assert [it.id for it in Taken(known).remembered(5.0, {"old", "never there"})] == ["old", "m4", "m5"]


# --- writers into the storage's inbox ---

WRITER = "storage:0123456789abcdef"


def written(number: int, name: str = "", writer: str = WRITER) -> Entry:
    return Entry(0, id=name or f"/test#{writer}-{number}", type="ping", origin=writer, offset=number)


def test_what_a_writer_sent_is_known_by_its_number_when_its_id_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_KNOWN", 1)
    buckets = Buckets()
    log = opened(buckets)
    log.append([written(0), written(1)])
    log.write_base()
    again = opened(buckets)
    assert again.find(written(0).id) is None
    again.append([written(0), written(1), written(2)])
    assert (again.last, again.consumed) == (3, {WRITER: 3})


def test_that_only_known_messages_of_a_writer_came_is_written_down() -> None:
    log = opened(Buckets())
    log.append([written(0, "/test#a"), written(1, "/test#a"), Entry(0, Kind.CONSUMED, origin=WRITER, offset=2)])
    assert ([entry.kind for entry in log.entries(0, 2)], log.consumed) == ([Kind.MESSAGE, Kind.CONSUMED], {WRITER: 2})


def test_no_other_application_has_the_writers_of_a_snapshots() -> None:
    log = opened(Buckets())
    log.append([written(0), record(0)])
    assert log.state_at(2).consumed == {PART: 1}
    fork = opened(Buckets())
    fork.start_from(log.state_at(2), ())
    assert fork.consumed == {PART: 1}


def test_a_rollback_takes_nothing_back_of_how_far_a_writer_was_read() -> None:
    buckets = Buckets()
    log = opened(buckets)
    pinned = log.state_at(0)
    log.append([written(0), written(1)])
    log.roll_back(pinned, (), 2)
    for found in (log, opened(buckets)):
        assert (found.consumed, found.state_at(found.last).consumed) == ({WRITER: 2}, {})


def test_the_newest_writers_are_remembered_and_no_longer_than_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_WRITERS", 2)
    writers = [Writer(f"storage:{number}", 1, number, 1000.0 * number) for number in range(1, 5)]
    assert [it.sequence for it in Taken(writers=reversed(writers)).writers(5000.0)] == [3, 4]
    assert [it.sequence for it in Taken(writers=writers).writers(3500.0 + memories.KNOWN_SECONDS)] == [4]
