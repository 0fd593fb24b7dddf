"""Whatever is offered is logged once, and what came of it is said, also by a process that comes later."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from tidegate_spark.contract.control_protocol import (
    ControlOrder,
    ControlOrders,
    MessageReport,
    MessageState,
    QueryAcknowledgement,
)
from tidegate_spark.contract.json_form import to_json
from tidegate_spark.control.messages.handlers import Declared, Handler, Message
from tidegate_spark.control.service import message_service as desk
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import ControlLogError, Entry, Kind
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, keys, opened, repository_in
from tidegate_testing.fake_operations import FakeOperations, at_work, await_work
from tidegate_testing.memory_store import Buckets, Call
from tidegate_testing.waiting import wait_for


@dataclass
class Office:
    """An application with a desk; ``restart`` has another process take over."""

    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    operations: FakeOperations = field(default_factory=FakeOperations)
    declared: Declared = field(default_factory=Declared)
    message_seconds: float = 60.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        seconds = self.message_seconds
        self.service = MessageService(
            lambda: repository_in(self.buckets), self.operations, self.declared, self.clock, message_seconds=seconds
        )
        self.service.check()

    def offer(self, *orders: ControlOrder, forget: tuple[str, ...] = ()) -> None:
        self.service.give(ControlOrders(orders, forget))
        self.service.check()

    def commit(self, query: str, batch: int, position: int | None = None) -> None:
        self.service.committed(query, batch, self.service.position() if position is None else position)
        self.service.check()

    def said(self, name: str) -> MessageReport:
        return next(report for report in self.service.report().messages if report.id == name)


def config(name: str, payload: str = '{"a": 1}', expires: float = 0.0) -> ControlOrder:
    return ControlOrder(name, "reload-config", payload, expires=expires)


def test_a_message_is_logged_and_waits_for_a_query_that_asks() -> None:
    office = Office()
    office.offer(config("x"))
    said = office.said("x")
    assert (said.state, said.sequence, said.reason) == (MessageState.LOGGED, 1, "NoQueryListens")
    assert office.service.report().last == 1


def test_a_message_is_done_when_each_query_that_asks_has_committed_a_batch_with_it() -> None:
    office = Office(operations=FakeOperations({"one", "other"}))
    office.offer(config("x"))
    assert office.said("x").state is MessageState.LOGGED
    office.commit("one", 7)
    assert office.said("x").state is MessageState.IN_FORCE
    office.commit("other", 3)
    said = office.said("x")
    assert said.state is MessageState.DONE
    assert said.queries == {"one": QueryAcknowledgement(7, 1, 1), "other": QueryAcknowledgement(3, 1, 1)}
    assert office.service.report().positions == {"one": 1, "other": 1}


def test_the_batch_that_is_named_is_the_first_one_with_the_message() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.commit("one", 1)
    office.offer(config("x"))
    for batch in (2, 3, 4):
        office.commit("one", batch)
    assert office.said("x").queries["one"].batch == 2


def test_workers_are_counted_by_batch_and_their_errors_are_told() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"))
    position = office.service.position()
    for worker in ("1/10", "1/11", "2/10"):
        office.service.workers.asks("one", 5, worker)
    office.service.workers.applied("one", 5, "1/10", {})
    office.service.workers.applied("one", 5, "1/11", {position: "ValueError: no"})
    office.commit("one", 5, position)
    said = office.said("x")
    silent = "2/10: it ended before it had taken the message in; its task was done by another worker"
    assert said.queries["one"] == QueryAcknowledgement(5, 1, 3, ("1/11: ValueError: no",), missing=(silent,))
    assert (said.state, said.reason) == (MessageState.FAILED, "HandlerFailed")


def test_what_workers_told_is_said_though_their_query_was_started_again_meanwhile() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"))
    position = office.service.position()
    office.service.workers.applied("one", 1, "a/1", {1: "ValueError: no such table"})
    office.service.committed("one", 1, position)
    office.operations.batches["one", 1] = 1
    office.service.begins("one", position)
    office.service.check()
    assert office.said("x").state is MessageState.FAILED
    assert office.said("x").queries["one"].errors == ("a/1: ValueError: no such table",)
    office.offer(config("y"))
    office.commit("one", 2)
    assert office.said("y").queries["one"] == QueryAcknowledgement(2, 1, 1)


def test_another_process_says_the_same() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"), ControlOrder("y", "no-such-type"))
    office.commit("one", 5)
    before = office.service.report().messages
    office.restart()
    office.offer(config("x"), ControlOrder("y", "no-such-type"))
    assert office.service.report().messages == before
    assert len(keys(office.buckets, "segments")) == 1


def test_a_batch_that_was_committed_before_it_was_noted_is_found_again() -> None:
    office = Office(operations=FakeOperations({"one"}, batches={("one", 1): 8}))
    office.offer(config("x"))
    office.restart()
    office.service.begins("one", 1)
    office.offer(config("x"))
    assert office.said("x").queries == {"one": QueryAcknowledgement(8, 1, 1)}


def test_nothing_is_logged_before_the_program_has_said_what_it_understands() -> None:
    office = Office(operations=FakeOperations(open=False))
    office.offer(ControlOrder("x", "threshold"))
    assert office.service.report().messages == ()
    office.declared.types["threshold"] = None
    office.operations.open = True
    office.service.check()
    assert office.said("x").state is MessageState.LOGGED


def test_a_message_that_means_nothing_is_rejected_and_that_stays() -> None:
    office = Office()
    office.offer(ControlOrder("x", "threshold"), config("y", "[1]"), config("z", "no JSON"))
    reasons = {name: (office.said(name).state, office.said(name).reason) for name in "xyz"}
    assert reasons == {
        "x": (MessageState.REJECTED, "UnknownType"),
        "y": (MessageState.REJECTED, "InvalidPayload"),
        "z": (MessageState.REJECTED, "InvalidPayload"),
    }
    office.declared.types["threshold"] = None
    office.restart()
    office.offer(ControlOrder("x", "threshold"))
    assert office.said("x").state is MessageState.REJECTED


def test_a_message_that_expires_before_a_batch_is_planned_is_never_in_force() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x", expires=office.clock.now + 5))
    assert office.said("x").state is MessageState.LOGGED
    office.clock.now += 6
    office.commit("one", 1)
    assert (office.said("x").state, office.service.state_at(2).config) == (MessageState.EXPIRED, {})


def test_a_message_expires_though_no_batch_is_planned() -> None:
    office = Office()
    office.offer(config("x", expires=office.clock.now + 5))
    office.clock.now += 5
    office.service.check()
    assert office.said("x").state is MessageState.LOGGED
    office.clock.now += 1
    office.service.check()
    assert office.said("x").state is MessageState.EXPIRED
    assert office.service.state_at(office.service.position()).config == {}


def test_one_that_was_handed_out_in_time_is_in_force_for_all_queries() -> None:
    office = Office(operations=FakeOperations({"one", "other"}))
    office.offer(config("x", expires=office.clock.now + 5))
    office.commit("one", 1)
    office.clock.now += 60
    office.commit("other", 1)
    assert office.said("x").state is MessageState.DONE


@pytest.mark.parametrize(("seconds", "state"), [(5, MessageState.DONE), (60, MessageState.EXPIRED)])
def test_a_built_in_message_that_comes_into_force_with_a_batch_expires_as_others_do(
    seconds: int, state: MessageState
) -> None:
    """Its driver looks at it at once, during a long batch."""
    office = Office(operations=FakeOperations({"one"}, with_batches=frozenset({"snapshot"})))
    office.offer(ControlOrder("x", "snapshot", expires=office.clock.now + 10))
    office.service.check()
    office.clock.now += seconds
    office.service.check()
    office.commit("one", 1)
    office.service.check()
    assert (office.said("x").state, office.operations.carried) == (state, ["snapshot"] * (state is MessageState.DONE))


def test_what_is_forgotten_is_reported_no_more() -> None:
    office = Office()
    office.offer(config("x"), config("y"))
    office.offer(forget=("x",))
    assert [report.id for report in office.service.report().messages] == ["y"]


def test_a_built_in_message_of_the_drivers_is_carried_out_once() -> None:
    office = Office()
    office.offer(ControlOrder("x", "set-log-level", '{"level": "DEBUG"}'))
    assert office.said("x").state is MessageState.DONE
    office.restart()
    office.offer(ControlOrder("x", "set-log-level", '{"level": "DEBUG"}'))
    assert office.operations.carried == ["set-log-level"]
    assert office.operations.begun.log_level == "DEBUG"


def test_what_was_not_done_is_done_by_the_next_process_without_being_offered() -> None:
    office = Office(operations=FakeOperations(undone=True))
    office.offer(ControlOrder("x", "resume"))
    assert office.said("x").state is MessageState.LOGGED
    office.operations.undone = False
    office.restart()
    assert office.operations.carried[-1] == "resume"
    office.offer(ControlOrder("x", "resume"))
    assert office.said("x").state is MessageState.DONE


def test_a_pause_outlives_the_process() -> None:
    office = Office()
    office.offer(ControlOrder("x", "pause"))
    assert office.service.paused
    office.operations.paused = False
    office.restart()
    assert office.operations.paused
    office.offer(ControlOrder("y", "resume"))
    assert not office.operations.paused
    assert not office.service.report().paused


def test_a_handler_of_the_driver_is_called_once_before_the_position_is_handed_out() -> None:
    called: list[Message] = []
    office = Office(operations=FakeOperations({"one"}))
    office.declared.on_driver["tell"] = Handler(called.append)
    office.declared.types["tell"] = None
    office.offer(ControlOrder("x", "tell", '{"a": 1}'))
    assert called == []
    office.commit("one", 1)
    assert [message.payload for message in called] == [{"a": 1}]
    assert office.said("x").state is MessageState.DONE
    office.restart()
    office.service.position()
    assert len(called) == 1


def test_a_handler_of_the_driver_that_raises_is_told_of_or_fails_the_query() -> None:
    def fails(message: Message) -> None:
        raise ValueError("no")

    office = Office(operations=FakeOperations({"one"}))
    office.declared.types["tell"] = None
    office.declared.on_driver["tell"] = Handler(fails)
    office.offer(ControlOrder("x", "tell"))
    office.commit("one", 1)
    assert (office.said("x").state, office.said("x").message) == (MessageState.FAILED, "ValueError: no")
    office.declared.on_driver["tell"] = Handler(fails, "fail")
    office.offer(ControlOrder("y", "tell"))
    with pytest.raises(ControlLogError, match="ValueError: no"):
        office.service.position()


@pytest.mark.parametrize("raises", ["report", "fail"])
def test_a_handler_of_the_driver_that_is_to_end_the_process_has_failed_and_whoever_asks_is_answered(
    raises: str,
) -> None:
    """As one does that calls a command's main function. A thread that answers would end, and the query wait for it."""

    def leave(message: Message) -> None:
        raise SystemExit(2)

    office = Office(operations=FakeOperations({"one"}))
    office.declared.types["tell"] = None
    office.declared.on_driver["tell"] = Handler(leave, raises)
    office.offer(ControlOrder("x", "tell"))
    if raises == "fail":
        with pytest.raises(ControlLogError, match="SystemExit: 2"):
            office.service.position()
        return
    office.commit("one", 1)
    assert (office.said("x").state, office.said("x").message) == (MessageState.FAILED, "SystemExit: 2")


def test_of_a_handler_that_quotes_a_megabyte_the_beginning_is_kept_without_a_password() -> None:
    """All messages of a page are written together, each time one of them changes."""

    def fail(message: Message) -> None:
        raise ValueError("postgres://shop:sesame-open@db/orders " + "x" * 1_000_000)

    office = Office()
    office.declared.on_driver["table"] = Handler(fail)
    office.declared.types["table"] = None
    office.offer(*(ControlOrder(f"m{number}", "table") for number in range(20)))
    office.service.position()
    office.service.check()
    stored = office.buckets.content[BUCKET][f"{PREFIX}/control/acks/000000000001.json"].body
    assert len(stored) < 256 * 1024
    assert b"ValueError: postgres://" in stored
    assert b"sesame-open" not in stored


def test_what_a_rollback_rolled_back_is_said() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"))
    office.commit("one", 1)
    office.offer(config("y", '{"a": 2}'), ControlOrder("z", "set-log-level", '{"level": "WARN"}'))
    opened(office.buckets, office.clock).append([Entry(0, Kind.ROLLED_BACK, of=1, lineage=2)])
    office.restart()
    office.offer(config("x"), config("y", '{"a": 2}'), ControlOrder("z", "set-log-level", '{"level": "WARN"}'))
    assert [office.said(name).state for name in "xyz"] == [
        MessageState.DONE,
        MessageState.ROLLED_BACK,
        MessageState.DONE,
    ]
    assert office.service.state_at(office.service.position()).config == {"a": 1}


def test_many_messages_leave_a_base_and_few_segments() -> None:
    office = Office(operations=FakeOperations({"one"}))
    for number in range(300):
        office.offer(config(f"m{number}"), forget=(f"m{number - 1}",))
    assert len(keys(office.buckets, "bases")) == 2
    assert len(keys(office.buckets, "segments")) < 150


def send_by_broker(office: Office, number: int) -> None:
    """Log so many messages that the log forgets its oldest ones."""
    for each in range(number):
        office.service.take_in([Entry(0, id=f"b{each}", type="ping", origin="rabbitmq:control")])
        if each % 60 == 0:
            office.service.check()


def test_no_query_waits_while_the_whole_lineage_is_listed() -> None:
    """Its state may have a hundred thousand objects, and a burst of messages writes a base every second."""
    positions: list[int] = []

    class Listing(FakeOperations):
        def oldest(self, repository: SnapshotRepository) -> int | None:
            asks = threading.Thread(target=lambda: positions.append(office.service.position()), daemon=True)
            asks.start()
            asks.join(10)
            return super().oldest(repository)

    office = Office(operations=Listing())
    office.offer(*(config(f"m{number}") for number in range(300)))
    assert keys(office.buckets, "bases") != []
    assert positions == [300]


def test_what_came_of_a_message_is_said_as_long_as_somebody_asks_though_the_log_has_forgotten_it() -> None:
    office = Office(operations=FakeOperations({"one"}))
    offered = (ControlOrder("meaningless", "no-such-type"), config("late", expires=900.0), config("x"))
    office.offer(*offered)
    office.commit("one", 1)
    said = office.service.report().messages
    assert [each.state for each in said] == [MessageState.REJECTED, MessageState.EXPIRED, MessageState.DONE]
    send_by_broker(office, 400)
    assert "000000000001.json" not in keys(office.buckets, "segments")
    assert office.service.report().messages == said
    office.restart()
    office.offer(*offered)
    assert office.service.report().messages == said


def test_a_query_that_is_new_acknowledges_what_the_log_has_forgotten() -> None:
    office = Office()
    office.offer(config("x"), ControlOrder("meaningless", "no-such-type"))
    send_by_broker(office, 400)
    assert "000000000001.json" not in keys(office.buckets, "segments")
    office.operations.queries.add("one")
    office.operations.batches = {("one", number): 0 for number in (1, 2)}
    office.commit("one", 0)
    assert (office.said("x").state, office.said("x").queries["one"].batch) == (MessageState.DONE, 0)
    assert office.said("meaningless").state is MessageState.REJECTED


def test_a_handler_of_the_driver_is_called_though_a_base_was_written_before_the_next_batch() -> None:
    office = Office(operations=FakeOperations({"one"}, oldest_position=1))
    called: list[int] = []
    office.declared.on_driver["tell"] = Handler(lambda message: called.append(message.sequence))
    office.declared.types["tell"] = None
    office.offer(config("x"), ControlOrder("called", "tell"))
    office.commit("one", 1)
    office.offer(ControlOrder("t", "tell"))
    send_by_broker(office, 400)
    assert called == [2]
    office.restart()
    office.service.begins("one", 2)
    for batch in (2, 3):
        office.commit("one", batch)
    assert called == [2, 3]


def test_what_a_broker_asks_of_the_driver_is_done_by_the_next_process_though_a_base_was_written() -> None:
    office = Office(operations=FakeOperations({"one"}, oldest_position=1, undone=True))
    office.service.take_in([Entry(0, id="s", type="snapshot", origin="rabbitmq:control")])
    office.commit("one", 1)
    send_by_broker(office, 400)
    assert keys(office.buckets, "bases") != []
    office.operations.undone = False
    office.operations.carried.clear()
    office.restart()
    office.service.check()
    assert office.operations.carried.count("snapshot") == 1


def test_replies_of_before_are_kept_and_given_to_nobody_when_there_is_no_place_for_them_any_more() -> None:
    """Whose reply topic refuses them takes it out of the spec, and is not to be told for ever that they are refused."""

    def process(*, answers: bool) -> MessageService:
        service = MessageService(
            lambda: repository_in(office.buckets), office.operations, office.declared, answers=answers
        )
        service.check()
        return service

    office = Office()
    first = process(answers=True)
    first.take_in([Entry(0, id="/test#1", type="pause", origin="kafka:control/0", offset=0)])
    first.check()
    assert [it.report.state for it in first.answers()] == [MessageState.DONE]
    assert process(answers=False).answers() == ()
    assert process(answers=True).answers() == first.answers()


def test_a_message_that_is_open_for_weeks_is_logged_once() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("old"), config("new", '{"a": 2}'))
    for number in range(4):
        office.clock.now += 4 * 86400
        office.offer(config(f"m{number}", "{}"))
    office.restart()
    office.offer(config("old"), config("new", '{"a": 2}'))
    assert [office.said(name).sequence for name in ("old", "new")] == [1, 2]
    assert office.service.report().last == 6
    assert len(keys(office.buckets, "bases")) == 2


def test_a_message_that_was_open_when_its_application_was_suspended_for_weeks_is_logged_once() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"))
    office.clock.now += 8 * 86400
    office.restart()
    send_by_broker(office, 130)  # before the operator has come
    assert keys(office.buckets, "bases") != []
    office.offer(config("x"))
    assert office.said("x").sequence == 1


def test_what_is_said_of_many_messages_fits_into_one_report() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(*(config(f"m{number:03}") for number in range(256)))
    position = office.service.position()
    for worker in range(20):
        office.service.workers.asks("one", 5, f"w{worker}")
        errors = dict.fromkeys(range(1, position + 1), "é" * 1000)
        office.service.workers.applied("one", 5, f"w{worker}", errors)
    office.commit("one", 5, position)
    assert len(to_json(office.service.report())) < 512 * 1024
    first, last = office.said("m000").queries["one"], office.said("m255").queries["one"]
    assert (len(first.errors), first.more_errors) == (8, 12)
    assert (last.errors, last.more_errors) == ((), 20)


def test_what_is_said_of_many_messages_by_many_queries_fits_into_one_report() -> None:
    """Else the agent counts as silent, and nobody can tell the driver any more that it may forget them."""
    names = [f"orders_of_region_{number:03}" for number in range(100)]
    office = Office(operations=FakeOperations({*names, "slow"}))
    office.offer(*(config(f"m{number:03}") for number in range(256)))
    position = office.service.position()
    for name in names:
        office.service.committed(name, 123_456, position)
    office.service.check()
    assert len(to_json(office.service.report())) < 768 * 1024
    assert [office.said(name).state for name in ("m000", "m255")] == [MessageState.IN_FORCE] * 2
    assert office.said("m000").queries.keys() == set(names)
    assert not office.said("m255").queries
    office.commit("slow", 1, position)
    assert {report.state for report in office.service.report().messages} == {MessageState.DONE}


def requests_of(office: Office, messages: int) -> int:
    """Return how many requests it takes until so many messages are acknowledged."""
    asked: list[Call] = []
    service = MessageService(
        lambda: repository_in(office.buckets, asked.append), office.operations, office.declared, office.clock
    )
    service.check()
    asked.clear()
    service.give(ControlOrders(tuple(config(f"n{number}") for number in range(messages))))
    service.check()
    service.committed("one", 1, service.position())
    service.check()
    assert {report.state for report in service.report().messages} == {MessageState.DONE}
    return sum(not call.done for call in asked)


def test_many_messages_at_once_take_few_requests() -> None:
    assert requests_of(Office(operations=FakeOperations({"one"})), 200) == requests_of(
        Office(operations=FakeOperations({"one"})), 1
    )
    assert requests_of(Office(operations=FakeOperations({"one"})), 1000) < 40


def test_a_message_that_the_driver_has_behind_it_is_not_looked_at_again() -> None:
    office = Office(operations=FakeOperations({"one"}, undone=True))
    office.offer(config("x"), ControlOrder("y", "resume"), config("z"))
    assert office.operations.carried == ["resume"]
    office.operations.undone = False
    office.offer(config("a"))
    office.offer(ControlOrder("b", "resume"), forget=("x", "y", "z"))
    assert office.operations.carried == ["resume", "resume", "resume"]


def test_what_another_process_knew_of_other_messages_is_kept() -> None:
    office = Office(operations=FakeOperations({"one"}))
    office.offer(config("x"))
    old = office.service
    office.restart()
    office.offer(config("x"), config("y"))
    office.commit("one", 5, 1)
    office.operations.queries.add("other")
    old.committed("other", 3, 1)
    old.check()
    office.commit("one", 6, 2)
    office.restart()
    office.offer(config("x"), config("y"))
    reported = {name: office.said(name).queries for name in "xy"}
    assert reported["x"]["one"] == QueryAcknowledgement(5, 1, 1)
    assert reported["y"]["one"] == QueryAcknowledgement(6, 1, 1)


@pytest.mark.parametrize("order", [ControlOrder("", "ping"), ControlOrder("x", "")])
def test_what_has_no_id_or_type_is_refused(order: ControlOrder) -> None:
    with pytest.raises(ValueError, match="needs an id and a type"):
        Office().service.give(ControlOrders((order,)))


@pytest.mark.parametrize("of_broker", [False, True])
def test_no_query_waits_while_a_message_is_looked_at(of_broker: bool) -> None:
    office, planned = Office(operations=FakeOperations({"one"})), []
    office.offer(config("x"))

    def check(entry: Entry) -> Entry:
        planned.append(office.service.position())
        return entry

    office.operations.checks["reload-config"] = check
    if of_broker:
        office.service.take_in([of_rabbit("y")])
    else:
        office.offer(config("y"))
    assert planned == [1]


@dataclass
class Hanging:
    """Looks at messages, of which the look at some never ends until it is released."""

    ids: set[str]
    looked_at: list[str] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)

    def __call__(self, entry: Entry) -> Entry:
        self.looked_at.append(entry.id)
        if entry.id in self.ids:
            self.free.wait()
        return entry


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging({"stuck"})
    yield made
    made.free.set()


def of_rabbit(name: str, kind: str = "reload-config") -> Entry:
    return Entry(0, id=name, type=kind, payload="{}", origin="rabbitmq:control")


def ends(office: Office) -> dict[str, tuple[str, str]]:
    """Return id -> kind and reason of each message in the log, in its order."""
    found = office.service._opened().entries(0, office.service._opened().last)
    return {entry.id: (entry.kind.value, entry.reason) for entry in found}


def test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_ones_come(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    office = Office(operations=FakeOperations({"one"}, checks={"reload-config": hanging}), message_seconds=0.05)
    office.offer(ControlOrder("before", "ping"), config("stuck"), config("after"), ControlOrder("last", "ping"))
    assert ends(office) == {
        "before": ("message", ""),
        "stuck": ("rejected", "MessageTimedOut"),
        "after": ("message", ""),
        "last": ("message", ""),
    }
    said = office.said("stuck")
    assert (said.state, said.reason) == (MessageState.REJECTED, "MessageTimedOut")
    assert "took longer than 0.05 s (spec.control.messageTimeoutSeconds)" in said.message
    assert "the check of message stuck (reload-config) took longer" in caplog.text


@pytest.mark.parametrize("origin", ["rabbitmq:control", "kafka:control/0", "storage:writer"])
def test_so_is_one_of_a_channel(hanging: Hanging, origin: str) -> None:
    office = Office(operations=FakeOperations({"one"}, checks={"reload-config": hanging}), message_seconds=0.05)
    numbered = not origin.startswith("rabbitmq")
    names = {"before": "ping", "stuck": "reload-config", "after": "reload-config"}
    office.service.take_in(
        [
            replace(of_rabbit(name, kind), origin=origin, offset=offset if numbered else -1)
            for offset, (name, kind) in enumerate(names.items())
        ]
    )
    assert ends(office) == {
        "before": ("message", ""),
        "stuck": ("rejected", "MessageTimedOut"),
        "after": ("message", ""),
    }
    assert office.service.consumed() == ({origin: len(names)} if numbered else {})


def test_a_check_that_ends_after_its_message_was_rejected_changes_nothing(hanging: Hanging) -> None:
    """Nor does it in a process that comes later, which knows the message as rejected and does not look at it again."""
    office = Office(operations=FakeOperations({"one"}, checks={"reload-config": hanging}), message_seconds=0.05)
    orders = (config("stuck", '{"a": 2}'), config("after", '{"b": 3}'))
    office.offer(*orders)
    said = office.said("stuck")
    assert at_work() == 1
    hanging.free.set()
    await_work()

    for batch in (7, 8):
        office.offer(*orders)
        office.commit("one", batch)
        assert list(ends(office).items()) == [("stuck", ("rejected", "MessageTimedOut")), ("after", ("message", ""))]
        assert office.said("stuck") == said
        assert office.service.state_at(office.service.position()).config == {"b": 3}
        office.restart()
    assert hanging.looked_at == ["stuck", "after"]


def test_everything_else_goes_on_while_a_message_hangs_and_none_comes_before_it(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "POLL_SECONDS", 0.01)
    office = Office(operations=FakeOperations({"one"}, checks={"reload-config": hanging}))
    office.offer(ControlOrder("before", "ping"), config("stuck"), ControlOrder("after", "ping"))
    assert list(ends(office)) == ["before"]
    office.commit("one", 7)
    assert office.said("before").state is MessageState.DONE
    assert office.service.check()
    hanging.free.set()
    wait_for(
        "the rest of the log",
        lambda: [office.service.check()] and list(ends(office)) == ["before", "stuck", "after"],
        timeout=60,
    )
    assert hanging.looked_at == ["stuck"]


def test_a_look_that_fails_is_repeated_and_what_it_said_is_in_the_rejection(caplog: pytest.LogCaptureFixture) -> None:
    def check(entry: Entry) -> Entry:
        raise ConnectionError("no answer from the bucket")

    office = Office(operations=FakeOperations({"one"}, checks={"reload-config": check}), message_seconds=0.05)
    office.offer(config("x"))
    assert office.said("x").reason == "MessageTimedOut"
    assert office.said("x").message.endswith("ConnectionError: no answer from the bucket.")
    assert "no answer from the bucket" in caplog.text


def test_a_handler_of_the_driver_that_hangs_has_failed_in_its_time_and_the_next_one_is_called(
    hanging: Hanging,
) -> None:
    called = []

    def stuck(message: Message) -> None:
        hanging.free.wait()

    on_driver = {"stuck": Handler(stuck), "fine": Handler(lambda message: called.append(message.type))}
    declared = Declared(types={"stuck": None, "fine": None}, on_driver=on_driver)
    office = Office(operations=FakeOperations({"one"}), declared=declared, message_seconds=0.05)
    office.offer(ControlOrder("a", "stuck"), ControlOrder("b", "fine"))
    office.commit("one", 3)
    said = {name: (office.said(name).state, office.said(name).reason) for name in "ab"}
    assert said == {"a": (MessageState.FAILED, "MessageTimedOut"), "b": (MessageState.DONE, "")}
    assert called == ["fine"]
    assert "the handler for stuck (message 1) took longer than 0.05 s" in office.said("a").message


def test_a_handler_of_the_driver_that_ends_after_it_was_given_up_changes_nothing(hanging: Hanging) -> None:
    """Its message has failed, in later processes too, and it is not called again."""
    called = []

    def stuck(message: Message) -> str:
        called.append(message.id)
        hanging.free.wait()
        return "late"

    declared = Declared(types={"stuck": None}, on_driver={"stuck": Handler(stuck)})
    office = Office(operations=FakeOperations({"one"}), declared=declared, message_seconds=0.05)
    office.offer(ControlOrder("a", "stuck"))
    office.commit("one", 3)
    said = office.said("a")
    hanging.free.set()
    await_work()
    for batch in (4, 5):
        office.commit("one", batch)
        assert office.said("a") == said
        office.restart()
        office.offer(ControlOrder("a", "stuck"))
    assert (said.state, said.reason) == (MessageState.FAILED, "MessageTimedOut")
    assert called == ["a"]


def test_a_snapshot_that_takes_long_keeps_no_message_behind_it() -> None:
    office = Office(operations=FakeOperations({"one"}, undone=True))
    office.offer(ControlOrder("a", "snapshot"), config("b"))
    office.commit("one", 3)
    assert {name: office.said(name).state for name in "ab"} == {"a": MessageState.IN_FORCE, "b": MessageState.DONE}


def test_one_whose_exceptions_fail_the_query_fails_it_in_its_time(hanging: Hanging) -> None:
    def stuck(message: Message) -> None:
        hanging.free.wait()

    declared = Declared(types={"stuck": None}, on_driver={"stuck": Handler(stuck, "fail")})
    office = Office(operations=FakeOperations({"one"}), declared=declared, message_seconds=0.05)
    office.offer(ControlOrder("a", "stuck"))
    with pytest.raises(ControlLogError, match=r"took longer than 0\.05 s"):
        office.service.position()


def test_types_that_an_application_was_sent_are_counted_also_among_messages_that_come_together() -> None:
    office = Office(declared=Declared(any_type=True))
    office.offer(*(ControlOrder(f"m{number}", f"type-{number}") for number in range(300)))
    office.offer(ControlOrder("again", "type-3"))
    states = [office.said(f"m{number}").state for number in (255, 256, 299)]
    assert states == [MessageState.LOGGED, MessageState.REJECTED, MessageState.REJECTED]
    assert office.said("again").state is MessageState.LOGGED


def test_types_that_wait_to_be_decided_are_counted_too() -> None:
    office = Office(declared=Declared(any_type=True))
    soon = office.clock() + 600
    for number in range(300):
        office.offer(ControlOrder(f"m{number}", f"type-{number}", expires=soon))
    states = [office.said(f"m{number}").state for number in (255, 256, 299)]
    assert states == [MessageState.LOGGED, MessageState.REJECTED, MessageState.REJECTED]


def test_settings_stop_growing_however_many_messages_add_to_them_and_go_on_changing() -> None:
    office = Office()
    for number in range(0, 20, 4):
        office.offer(
            *(config(f"m{each}", f'{{"name-{each}": "{"x" * 60_000}"}}') for each in range(number, number + 4))
        )
    office.offer(config("other", '{"name-3": "y"}'), config("then", f'{{"last": "{"x" * 50_000}"}}'))
    states = [office.said(name).state for name in ("m16", "m17", "m19", "other", "then")]
    logged, refused = MessageState.LOGGED, MessageState.REJECTED
    assert states == [logged, refused, refused, logged, logged]


@pytest.mark.parametrize("name", ["segments/000000000001", "bases/000000000001", "acks/000000000001", "channel"])
def test_of_what_a_newer_tidegate_wrote_the_driver_is_told_and_nothing_is_written_over_it(name: str) -> None:
    office = Office()
    office.offer(config("x"))
    key = f"{PREFIX}/control/{name}.json"
    office.buckets.write(BUCKET, key, b'{"version": 2}')
    reported: list[str] = []
    later = MessageService(lambda: repository_in(office.buckets), office.operations, office.declared, office.clock)
    later.on_newer = reported.append
    later.start()
    later.give(ControlOrders((config("x"),)))
    wait_for("the driver is told", lambda: reported, 10.0, 0.02)
    later.stop()
    assert f"{key} cannot be read" in reported[0]
    assert "its format is 2, and this Tidegate knows 1: use a newer Tidegate." in reported[0]
    stored = office.buckets.read(BUCKET, key)
    assert stored is not None
    assert stored.body == b'{"version": 2}'
