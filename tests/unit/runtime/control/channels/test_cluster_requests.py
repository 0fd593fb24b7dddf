"""What the operator is told of a broker's messages, and that they end with what it says, in whatever process."""

import json
from dataclasses import dataclass, field

import pytest

from tidegate_spark.contract.control_protocol import (
    MOST_ASKED,
    AskedMessage,
    ControlOrders,
    ControlReport,
    MessageEnd,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.json_form import from_json, to_json
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_spark.control.channels.cluster_requests import asked_id
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.process.redaction import Secrets, clean_report
from tidegate_testing.control_log import Clock, repository_in
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.memory_store import Buckets


def asking(name: str, kind: str = "snapshot", payload: str = "null") -> Entry:
    return Entry(0, id=f"/test#{name}", type=kind, payload=payload, source="/test", origin="rabbitmq:control")


@dataclass
class Office:
    buckets: Buckets = field(default_factory=Buckets)
    clock: Clock = field(default_factory=Clock)
    operations: FakeOperations = field(default_factory=FakeOperations)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.service = MessageService(
            lambda: repository_in(self.buckets), self.operations, Declared(), self.clock, answers=True
        )

    def take_in(self, *drafts: Entry) -> None:
        self.service.check()
        self.service.take_in(drafts)
        self.service.check()

    @property
    def asked(self) -> tuple[AskedMessage, ...]:
        asked = self.service.report().asked
        assert asked is not None
        return asked

    def end(self, *ends: MessageEnd) -> None:
        self.service.give(ControlOrders(ended=ends))
        self.service.check()


def test_before_a_process_has_looked_it_does_not_say_that_nothing_is_asked() -> None:
    office = Office()
    assert office.service.report().asked is None
    office.service.check()
    assert office.asked == ()


def test_the_operator_is_told_of_it_from_the_log_on_until_it_says_what_came_of_it() -> None:
    office = Office(operations=FakeOperations(undone=True))
    office.take_in(asking("1", "dump-state", '{"format":"CSV"}'), asking("2", "ping"))
    (asked,) = office.asked
    assert (asked.type, json.loads(asked.payload)) == ("dump-state", {"format": "CSV"})
    assert (asked.origin, asked.source, asked.event) == ("rabbitmq:control", "/test", "1")
    assert (asked.report.state, asked.report.sequence) == (MessageState.LOGGED, 1)
    office.operations.undone = False
    office.service.check()
    assert office.asked[0].report.state is MessageState.DONE
    assert office.asked[0].report.id == asked.report.id
    office.restart()
    office.service.check()
    assert office.asked[0].report.id == asked.report.id
    office.end(MessageEnd(asked.report.id, MessageState.DONE, results={"uri": "s3://b/m"}))
    assert office.asked == ()
    reported = {each.report.id: each.report for each in office.service.answers()}
    assert reported["/test#1"].results == {"uri": "s3://b/m"}


def test_an_end_of_another_message_changes_nothing() -> None:
    office = Office()
    office.take_in(asking("1"))
    office.end(MessageEnd("0" * 32, MessageState.DONE))
    assert len(office.asked) == 1


def test_so_many_are_taken_at_a_time_and_more_when_those_are_done() -> None:
    office = Office()
    office.take_in(*(asking(str(number)) for number in range(MOST_ASKED + 1)))
    assert len(office.asked) == MOST_ASKED
    (rejected,) = [each.report for each in office.service.answers()]
    assert (rejected.id, rejected.reason) == (f"/test#{MOST_ASKED}", "TooManyOpen")
    office.end(MessageEnd(office.asked[0].report.id, MessageState.DONE))
    office.take_in(asking("again"))
    assert len(office.asked) == MOST_ASKED


def test_what_comes_again_is_told_of_once() -> None:
    office = Office()
    for _ in range(2):
        office.take_in(asking("1"))
    assert [asked.report.id for asked in office.asked] == [asked_id(Entry(1, id="/test#1"))]


@pytest.mark.parametrize("asked", [None, (), (AskedMessage(MessageReport("a", MessageState.DONE, 1), "snapshot"),)])
def test_what_is_asked_can_be_told(asked: tuple[AskedMessage, ...] | None) -> None:
    report = ControlReport(asked=asked)
    assert from_json(ControlReport, to_json(report)) == report


def test_nothing_that_is_told_has_a_secret_in_it() -> None:
    reported = MessageReport("a", MessageState.FAILED, 1, message="The password is swordfish1.")
    control = ControlReport(asked=(AskedMessage(reported, "snapshot"),))
    report = AgentReport("orders", "u", 1, DriverState.RUNNING, ready=True, control=control)
    (asked,) = clean_report(report, Secrets(["swordfish1"])).control.asked or ()
    assert "swordfish1" not in asked.report.message
