"""What is still to be said of a broker's messages is kept in one object, and each is counted once."""

from dataclasses import replace

import pytest

from tidegate_spark.contract.control_protocol import MessageEnd, MessageReport, MessageState
from tidegate_spark.control.channels import pending_replies as books
from tidegate_spark.control.channels.cluster_requests import asked_id
from tidegate_spark.control.channels.pending_replies import PendingReplies
from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind
from tidegate_testing.control_log import BUCKET, PREFIX, repository_in
from tidegate_testing.memory_store import Buckets

KEY = f"{PREFIX}/control/channel.json"


def entry(sequence: int, kind: Kind = Kind.MESSAGE, origin: str = "kafka:control/0", asks: str = "ping") -> Entry:
    return Entry(sequence, kind, id=f"/test#{sequence}", type=asks, payload='"long"', origin=origin, offset=sequence)


def report(sequence: int, state: MessageState = MessageState.DONE) -> MessageReport:
    return MessageReport(f"/test#{sequence}", state, sequence)


def loaded(buckets: Buckets) -> PendingReplies:
    found = PendingReplies()
    found.load(repository_in(buckets), 0)
    return found


def test_messages_of_a_broker_are_noted_once_and_others_are_not() -> None:
    store = loaded(Buckets())
    entries = [entry(1), entry(2, origin=""), entry(3, Kind.CONSUMED), entry(4, Kind.REJECTED)]
    for _ in range(2):
        store.note(entries, 4)
    assert ([it.sequence for it in store.open], store.received, store.upto) == ([1, 4], 2, 4)
    assert all(it.payload == "null" for it in store.open)


def test_one_that_has_ended_is_counted_and_is_to_be_told_once_that_is_written_down() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1), entry(2)], 2)
    store.end([report(1), report(2, MessageState.IN_FORCE)], answered=True)
    assert not store.ready
    store.save(repository_in(buckets))
    assert [it.report for it in store.ready] == [report(1)]
    assert (store.ended, [it.sequence for it in store.open]) == ({"Done": 1}, [2])


def test_another_process_goes_on_with_it() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1), entry(2)], 2)
    store.accounts[2] = replace(store.accounts[2], done=True)
    store.end([report(1)], answered=True)
    store.save(repository_in(buckets))
    again = loaded(buckets)
    assert (again.ready, again.open, again.accounts, again.upto) == (store.ready, store.open, store.accounts, 2)
    assert (again.received, again.ended) == (2, {"Done": 1})


def test_what_was_told_is_not_told_again() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1)], 1)
    store.end([report(1)], answered=True)
    store.save(repository_in(buckets))
    store.reported([1])
    store.save(repository_in(buckets))
    assert (store.ready, loaded(buckets).ready) == ((), ())


def test_without_a_place_for_replies_nothing_is_to_be_told() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1)], 1)
    store.end([report(1)], answered=False)
    store.save(repository_in(buckets))
    assert (store.ready, store.ended) == ((), {"Done": 1})


def test_where_nothing_came_from_a_broker_nothing_is_written() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1, origin="")], 1)
    store.save(repository_in(buckets), whole=True)
    assert buckets.keys(BUCKET, KEY) == []


def test_what_came_with_a_snapshot_is_none_of_this_applications() -> None:
    buckets = Buckets()
    replies = PendingReplies()
    replies.load(repository_in(buckets), 7, begin=True)
    assert loaded(buckets).upto == 7
    replies.note([entry(7), entry(8)], 8)
    assert [it.sequence for it in replies.open] == [8]


def test_a_place_in_the_log_alone_is_written_when_the_log_forgets() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1)], 1)
    store.save(repository_in(buckets))
    store.note([entry(2, origin="")], 2)
    store.save(repository_in(buckets))
    assert loaded(buckets).upto == 1
    store.save(repository_in(buckets), whole=True)
    assert loaded(buckets).upto == 2


def test_two_processes_do_not_write_over_each_other() -> None:
    buckets = Buckets()
    one, other = loaded(buckets), loaded(buckets)
    for store in (one, other):
        store.note([entry(1)], 1)
    one.end([report(1)], answered=True)
    one.save(repository_in(buckets))
    with pytest.raises(ControlLogError, match="written by another process"):
        other.save(repository_in(buckets))
    other.end([report(it.sequence) for it in other.open], answered=True)
    other.save(repository_in(buckets))
    assert (other.received, other.ended) == (1, {"Done": 1})


def test_too_many_are_released_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "MOST_OPEN", 2)
    monkeypatch.setattr(books, "MOST_UNSENT", 1)
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(number) for number in range(1, 6)], 5)
    store.end([report(it.sequence, MessageState.LOGGED) for it in store.open], answered=True)
    store.save(repository_in(buckets))
    assert [it.sequence for it in store.open] == [4, 5]
    assert [it.entry.sequence for it in store.ready] == [3]


def test_what_the_cluster_has_a_part_in_is_told_of_with_its_payload_and_not_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(books, "MOST_OPEN", 0)
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1, asks="dump-state"), entry(2)], 2)
    store.end([report(1), report(2, MessageState.LOGGED)], answered=True)
    store.save(repository_in(buckets))
    assert [it.entry.sequence for it in store.ready] == [2]
    (asked,) = store.asked or ()
    assert (asked.type, asked.payload, asked.event, asked.report.state) == (
        "dump-state",
        '"long"',
        "1",
        MessageState.DONE,
    )


def test_it_ends_when_the_operator_says_so_in_whatever_process() -> None:
    buckets = Buckets()
    store = loaded(buckets)
    store.note([entry(1, asks="snapshot")], 1)
    done = replace(report(1), results={"snapshot": "control-a"})
    store.end([done], answered=True)
    store.save(repository_in(buckets))
    again = loaded(buckets)
    again.end([done], answered=True)
    again.save(repository_in(buckets))
    assert (again.ready, again.asked) == ((), store.asked)
    name = asked_id(again.open[0])
    again.cluster.learn([MessageEnd(name, MessageState.FAILED, "SnapshotFailed", "No.", {"streamSnapshot": "a"})])
    again.end([done], answered=True)
    again.save(repository_in(buckets))
    reported = again.ready[0].report
    assert (reported.id, reported.state, reported.reason) == ("/test#1", MessageState.FAILED, "SnapshotFailed")
    assert reported.results == {"snapshot": "control-a", "streamSnapshot": "a"}
    assert (again.asked, again.ended) == ((), {"Failed": 1})
