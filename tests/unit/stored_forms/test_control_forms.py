"""What the control stream is stored as: its log, what came of messages, the inbox. Golden copies; stores in memory."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate_spark.contract.control_protocol import MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.envelope import entry_of
from tidegate_spark.control.channels.pending_replies import Ended, OpenMessage, PendingReplies
from tidegate_spark.control.channels.pending_replies import Page as ChannelPage
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.channels.transports import inbox
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.ack_store import AckStore
from tidegate_spark.control.messages.ack_store import Page as AccountPage
from tidegate_spark.control_log.dedup_window import Known, Writer
from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind, Segment
from tidegate_spark.control_log.log_objects import Base, LogObjects
from tidegate_spark.control_log.reducer import Model, State, Verdict
from tidegate_spark.control_writer.events import event_of
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.order_faults import trouble_of
from tidegate_testing.control_log import repository_in
from tidegate_testing.memory_store import Buckets
from tidegate_testing.stored_forms import LATER, Form, assert_read, assert_written, each, each_written, stored

NOW = 1767225600.25
MESSAGE = Entry(
    14,
    id="shop%23desk#limits-3",
    type="reload-config",
    payload='{"limits":{"de":30}}',
    time=NOW,
    expires=1767229190.5,
    source="shop#desk",
    origin="storage:0123456789abcdef",
    offset=88,
)
ENTRIES = (
    MESSAGE,
    Entry(15, Kind.ACCEPTED, time=NOW, of=14),
    Entry(16, Kind.VOID, time=NOW, of=13),
    Entry(
        17,
        Kind.REJECTED,
        id="control/0@90",
        type="tax",
        time=NOW,
        source="control/0",
        reason="UnknownType",
        message="No handler.",
        origin="control/0",
        offset=90,
    ),
    Entry(18, Kind.CONSUMED, time=NOW, origin="control/0", offset=95),
    Entry(19, Kind.ROLLED_BACK, time=NOW, of=11, lineage=2),
)
SEGMENT = Segment(1, ENTRIES)
MODEL = Model("s3://models/fraud/8.onnx", "8f" * 32, 12)
BASE = Base(
    version=1,
    state=State(
        position=19,
        config={"limits": {"de": 30}, "rates": [1, 2.5]},
        models={"fraud": MODEL},
        models_before={"fraud": (Model("s3://models/fraud/7.onnx", "7a" * 32, 9),)},
        last={"reload-config": MESSAGE, "tax": ENTRIES[3]},
        last_before={"reload-config": (Entry(10, id="a#1", type="reload-config"), ENTRIES[5])},
        paused=True,
        log_level="WARN",
        messages=6,
        lineage=2,
        consumed={"control/0": 95},
    ),
    known=(Known("shop%23desk#limits-3", 14, NOW, channel=True), Known("resource-uid", 9, NOW - 60)),
    writers=(Writer("storage:0123456789abcdef", 89, 14, NOW),),
)

ACKNOWLEDGED = QueryAcknowledgement(
    41, applied=3, ran=5, errors=("exec-1/7: KeyError",), more_errors=9, missing=("exec-2/8: it ended",)
)
ACCOUNTS = AccountPage(
    (
        Account(
            257,
            done=True,
            failed=True,
            reason="LevelUnknown",
            message="There is no level LOUD.",
            queries={"main": ACKNOWLEDGED, "dedupe": QueryAcknowledgement(7, 1, 1)},
            results={"snapshot": "nightly-1", "uri": "s3://here/apps/orders/exports/dump-1"},
            verdict=Verdict.IN_FORCE,
        ),
        Account(300, verdict=Verdict.EXPIRED),
    )
)

OPEN = Entry(
    20,
    id="desk#snap-1",
    type="snapshot",
    payload='{"label":"before"}',
    time=NOW,
    expires=NOW + 60,
    source="desk",
    origin="control/1",
    offset=4,
    # A message has neither; whatever stands in an entry is kept.
    of=11,
    lineage=2,
)
REFUSED = Entry(
    21,
    Kind.REJECTED,
    id="desk#tax-1",
    type="tax",
    time=NOW,
    source="desk",
    reason="UnknownType",
    message="No handler.",
    origin="control/1",
    offset=5,
)
REPORT = MessageReport(
    "desk#tax-1",
    MessageState.FAILED,
    21,
    "UnknownType",
    "No handler.",
    {"main": ACKNOWLEDGED},
    {"snapshot": "nightly-1"},
)
CHANNEL = ChannelPage(
    upto=22,
    open=(OpenMessage(OPEN, replace(ACCOUNTS.accounts[0], sequence=20)),),
    unsent=(Ended(REFUSED, REPORT),),
    received=2,
    ended={"Failed": 1},
)

EVENT_NAME = "20260101T000000.250Z-0123456789abcdef-000000000088-0001.json"
EVENT = replace(MESSAGE, sequence=0, time=0.0, expires=NOW + 3600)
REPLY = {
    "id": "tax-1",
    "source": "desk",
    "type": "tax",
    "sequence": 21,
    "state": "Failed",
    "reason": "UnknownType",
    "message": "No handler.",
    "queries": {
        "main": {
            "batch": 41,
            "applied": 3,
            "ran": 5,
            "errors": ["exec-1/7: KeyError"],
            "moreErrors": 9,
            "missing": ["exec-2/8: it ended"],
        }
    },
    "results": {"snapshot": "nightly-1"},
    "origin": "control/1",
    "offset": 5,
}


def with_object(name: str, body: bytes) -> SnapshotRepository:
    """Return the library of an application that has one object."""
    repository = repository_in(Buckets())
    repository.store.put(repository.key(name), body)
    return repository


def written(write: Callable[[SnapshotRepository], object], name: str) -> bytes:
    """Return what is written as one object of an application that has nothing."""
    repository = repository_in(Buckets())
    write(repository)
    found = repository.store.get(repository.key(name))
    assert found is not None, name
    return found[0]


# --- the log ---

SEGMENT_FILE, BASE_FILE = "control/segments/000000000014.json", "control/bases/000000000019.json"


def segment_in(body: bytes) -> Segment:
    return Segment(1, LogObjects(with_object(SEGMENT_FILE, body)).segment(14))


def put_segment(segment: Segment) -> bytes:
    return written(lambda repository: LogObjects(repository).put_segment(segment.entries), SEGMENT_FILE)


def base_in(body: bytes) -> Base:
    return LogObjects(with_object(BASE_FILE, body)).base(19)


def put_base(base: Base) -> bytes:
    return written(lambda repository: LogObjects(repository).put_base(base), BASE_FILE)


# --- what came of messages ---

ACKS_FILE, CHANNEL_FILE = "control/acks/000000000257.json", "control/channel.json"


def accounts_in(body: bytes) -> AccountPage:
    store, repository = AckStore(), with_object(ACKS_FILE, body)
    return AccountPage(tuple(store.get(repository, account.sequence) for account in ACCOUNTS.accounts))


def put_accounts(page: AccountPage) -> bytes:
    store = AckStore()
    for account in page.accounts:
        store.put(account)
    return written(store.save, ACKS_FILE)


def channel_in(body: bytes) -> ChannelPage:
    replies = PendingReplies()
    replies.load(with_object(CHANNEL_FILE, body), 0)
    opened = tuple(OpenMessage(entry, replies.accounts[entry.sequence]) for entry in replies.open)
    return ChannelPage(replies.upto, opened, replies.ready, replies.received, replies.ended)


def put_channel(page: ChannelPage) -> bytes:
    replies = PendingReplies()
    replies.note([*(each.entry for each in page.open), *(each.entry for each in page.unsent)], page.upto)
    replies.end([each.report for each in page.unsent], answered=True)
    replies.accounts.update((each.entry.sequence, each.account) for each in page.open)
    return written(replies.save, CHANNEL_FILE)


FORMS = [
    Form("control-segment", SEGMENT, segment_in, put_segment),
    Form("control-base", BASE, base_in, put_base),
    Form("control-acknowledgements", ACCOUNTS, accounts_in, put_accounts),
    Form("control-channel", CHANNEL, channel_in, put_channel),
]


@each(FORMS)
def test_what_is_stored_is_read(form: Form) -> None:
    form.assert_read()


@each_written(FORMS)
def test_what_is_stored_is_what_is_written(form: Form) -> None:
    form.assert_written()


@each(FORMS)
def test_a_field_of_a_later_version_changes_nothing(form: Form) -> None:
    form.assert_read_with_more()


@each_written(FORMS)
def test_what_is_stored_tells_of_every_field(form: Form) -> None:
    form.assert_reported()


def test_there_is_an_entry_of_each_kind() -> None:
    assert {entry.kind for entry in SEGMENT.entries} == set(Kind)


def test_an_entry_of_a_kind_that_is_not_known_here_makes_its_segment_unreadable() -> None:
    with pytest.raises(ControlLogError, match="cannot be read as a segment of a control log"):
        segment_in(stored("control-segment").replace(b'"consumed"', b'"merged"'))


def test_what_has_the_number_of_a_later_version_is_refused_whatever_else_is_in_it() -> None:
    for read, name in ((segment_in, "control-segment"), (base_in, "control-base")):
        with pytest.raises(ControlLogError, match=r"its format is 2.*use a newer Tidegate") as raised:
            read(stored(name).replace(b'"version":1', b'"version":2'))
        assert trouble_of(raised.value, Storage("s3://here/apps"), "", runs=True).reason is Reason.NEWER_FORMAT


@pytest.mark.parametrize(("read", "file"), [(accounts_in, ACKS_FILE), (channel_in, CHANNEL_FILE)])
def test_accounts_that_a_newer_tidegate_wrote_are_not_taken_for_none(
    read: Callable[[bytes], object], file: str
) -> None:
    with pytest.raises(
        ControlLogError, match=rf"{file} cannot be read.*its format is 2.*use a newer Tidegate"
    ) as raised:
        read(b'{"version": 2}')
    assert trouble_of(raised.value, Storage("s3://here/apps"), "", runs=True).reason is Reason.NEWER_FORMAT


def test_an_account_that_can_not_be_read_is_as_if_there_were_none() -> None:
    body = stored("control-acknowledgements").replace(b'"in force"', b'"in doubt"')
    assert accounts_in(body) == AccountPage((Account(257), Account(300)))


# --- events ---


def entries_in(body: bytes) -> list[Entry]:
    return [entry_of(received) for received in inbox.messages_in(EVENT_NAME, body)]


def test_a_batch_of_the_inbox_is_read_and_written_as_it_is_stored() -> None:
    assert_read("control-inbox", entries_in(stored("control-inbox")), [EVENT])
    event = event_of("shop#desk", "limits-3", "reload-config", {"limits": {"de": 30}}, expires=3600, now=NOW)
    assert_written("control-inbox", inbox.body_of([event]))
    name = inbox.BatchName(inbox.moment_of(NOW), "0123456789abcdef", 88, 1)
    assert (str(name), inbox.batch_of(EVENT_NAME)) == (EVENT_NAME, name)


def test_an_attribute_that_a_later_version_adds_to_an_event_changes_nothing() -> None:
    (event,) = json.loads(stored("control-inbox"))
    assert entries_in(json.dumps([{**event, LATER: [1]}]).encode()) == [EVENT]


def test_replies_are_read_and_written_as_they_are_stored() -> None:
    assert_read("control-replies", inbox.reply_in(stored("control-replies"), "desk", "tax-1"), REPLY)
    reply = reply_of(Ended(REFUSED, REPORT), "shop", "orders")
    assert (reply.key, reply.origin, reply.offset) == ("tax-1", "control/1", 5)
    assert_written("control-replies", inbox.with_replies(None, [reply.body]))
    assert_written("control-replies", inbox.with_replies(stored("control-replies"), [reply.body]))
    assert inbox.reply_name(MESSAGE.origin, MESSAGE.offset) == "control/replies/0123456789abcdef/0000000000.json"


def test_what_a_later_version_adds_to_a_reply_is_read_and_kept_beside_others() -> None:
    (event,) = json.loads(stored("control-replies"))
    more = {**event, "id": "20", LATER: [1], "data": {**REPLY, "id": "snap-1", LATER: [1]}}
    body = inbox.with_replies(json.dumps([more]).encode(), [json.dumps(event).encode()])
    assert json.loads(body) == [more, event]
    assert inbox.reply_in(body, "desk", "snap-1") == {**REPLY, "id": "snap-1", LATER: [1]}
