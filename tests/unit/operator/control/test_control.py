"""What plans about ControlMessages do to a cluster, and how the reconciler goes on. The API server is a dictionary."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from tidegate.agent.client import Unanswered
from tidegate.api.control_message import ControlMessage, MessagePhase, channel_message_name, decode_message
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.process_state import TimedReport
from tidegate.control.act import ControlActionExecutor
from tidegate.control.index import ControlIndex
from tidegate.control.reconcile import NO_APP, ControlReconciler
from tidegate.control.rules.waiting import NOT_TAKEN_PAUSE
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.failures import Failure, Forbidden, Invalid, Unavailable
from tidegate.kube.paths import item
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.control_protocol import (
    AskedMessage,
    ControlOrders,
    ControlReport,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.control_observations import APP, SENT, agent, ended, message, report
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import NOW, UID, running_driver

ORDERS = ("shop", "orders")


class Agent:
    """Takes messages, unless it is told not to."""

    def __init__(self) -> None:
        self.orders: list[ControlOrders] = []
        self.refusal = ""

    async def order_control(self, key: Key, pod: object, orders: ControlOrders) -> Unanswered | None:
        if self.refusal:
            return Unanswered(self.refusal)
        self.orders.append(orders)
        return None

    @property
    def given(self) -> list[list[str]]:
        return [[order.id for order in orders.messages] for orders in self.orders]


class World:
    """A cluster with messages to one application, and an operator that looks at them."""

    def __init__(self, *messages: ControlMessage) -> None:
        self.api, self.index, self.agent, self.metrics = ApiServer(), Index(), Agent(), OperatorMetrics()
        self.hurried: list[Key] = []
        self.now = NOW
        nothing: Any = self.api
        events = EventPublisher(nothing)
        agents: Any = self.agent
        poller: Any = type("Poller", (), {"hurry": staticmethod(self.hurried.append)})
        actor = ControlActionExecutor(nothing, agents, self.index, events, self.metrics)
        self.reconciler = ControlReconciler(
            self.index,
            actor,
            poller,
            self.metrics.control,
            InvalidResourceReporter(nothing, events),
            clock=lambda: self.now,
            steady=lambda: self.now,
        )
        for each in messages:
            self.api.keep(path(each), each)
            self.index.of(ControlIndex).put(each)

    def runs(self, *reports: MessageReport) -> None:
        driver = running_driver(APP)
        self.index.put_app(APP)
        self.index.put_pod(driver)
        self.index.reports[ORDERS] = TimedReport(agent(*reports), self.now, driver.uid, driver.restarts)

    def asks(self, *asked: AskedMessage, messages: tuple[MessageReport, ...] = ()) -> None:
        """Have the driver tell of a broker's messages."""
        driver = running_driver(APP)
        self.index.put_app(APP)
        self.index.put_pod(driver)
        report = AgentReport("orders", UID, 1, DriverState.RUNNING, ready=True)
        report = dataclasses.replace(report, control=ControlReport(asked=asked, messages=messages))
        self.index.reports[ORDERS] = TimedReport(report, self.now, driver.uid, driver.restarts)

    async def check(self, key: Key = ORDERS) -> float | None:
        return await self.reconciler.reconcile(key)

    def stored(self, of: ControlMessage) -> ControlMessage:
        return decode_message(msgspec.json.encode(self.api.objects[path(of)]))

    def events(self) -> list[dict[str, Any]]:
        return [o for place, o in self.api.objects.items() if "/events/" in place]

    def series(self) -> dict[str, float]:
        lines = generate_latest(self.metrics.registry).decode().splitlines()
        found = (
            line.rpartition(" ") for line in lines if line.startswith("tidegate_control_") and "bucket" not in line
        )
        return {name.replace('app="orders",namespace="shop"', "orders"): float(value) for name, _, value in found}


def path(of: ControlMessage) -> str:
    return item("ControlMessage", *of.key)


FIRST, SECOND = message("first", sent=SENT - 2), message("second", sent=SENT - 1)


async def test_messages_are_given_in_order_once_their_resources_say_so() -> None:
    world = World(FIRST, SECOND)
    world.runs()
    await world.check()
    assert world.agent.given == [["uid-first", "uid-second"]]
    assert world.stored(FIRST).status.offered_time is not None
    assert world.hurried == [ORDERS]
    await world.check()
    assert len(world.agent.given) == 1


async def test_what_the_driver_tells_is_written_counted_and_then_forgotten_by_it() -> None:
    world = World(FIRST)
    world.runs()
    await world.check()
    world.runs(report(FIRST, MessageState.LOGGED, 12))
    await world.check()
    assert (world.stored(FIRST).status.phase, world.stored(FIRST).status.sequence) == (MessagePhase.PUBLISHED, 12)
    world.runs(report(FIRST, MessageState.DONE, 12, (4, 4)))
    await world.check()
    assert (world.stored(FIRST).status.phase, world.stored(FIRST).status.acks) == (MessagePhase.APPLIED, "4/4")
    assert world.agent.orders[-1] == ControlOrders((), ("uid-first",))
    series = world.series()
    assert series['tidegate_control_messages{orders,phase="Applied"}'] == 1.0
    assert series["tidegate_control_published_total{orders}"] == 1.0
    assert series["tidegate_control_applied_total{orders}"] == 1.0
    assert series["tidegate_control_apply_seconds_sum{orders}"] == 7.0


async def test_failures_are_counted_by_reasons_of_ours_and_the_series_go_with_the_last_message() -> None:
    world = World(FIRST, SECOND)
    own = report(SECOND, MessageState.FAILED, 2, reason="AnyWordOfATenant")
    world.runs(report(FIRST, MessageState.REJECTED, 1), own)
    await world.check()
    failed = {name: value for name, value in world.series().items() if "failed" in name}
    assert failed == {
        'tidegate_control_failed_total{orders,reason="Rejected"}': 1.0,
        'tidegate_control_failed_total{orders,reason="Other"}': 1.0,
    }
    for each in (FIRST, SECOND):
        world.index.of(ControlIndex).remove(each.key, each.metadata.uid)
    world.runs()
    await world.check()
    assert world.series() == {}


@pytest.mark.parametrize("reason", [Reason.SPARK_REFUSED, Reason.SNAPSHOT_DELETED, Reason.MESSAGE_TIMED_OUT])
async def test_a_failure_for_a_reason_of_ours_is_counted_by_that_reason(reason: Reason) -> None:
    world = World(FIRST)
    world.runs(report(FIRST, MessageState.FAILED, 1, reason=reason.value))
    await world.check()
    assert world.series()[f'tidegate_control_failed_total{{orders,reason="{reason.value}"}}'] == 1.0


async def test_a_message_that_is_deleted_is_forgotten_by_the_driver_too() -> None:
    world = World()
    world.runs(report(FIRST, MessageState.LOGGED))
    await world.check()
    assert world.agent.orders == [ControlOrders((), ("uid-first",))]
    world.runs()
    await world.check()
    assert world.index.of(ControlIndex).memories == {}


async def test_nothing_is_given_if_the_status_can_not_be_written() -> None:
    world = World(FIRST, SECOND)
    world.runs()

    async def unavailable(path: str, change: dict[str, Any], kind: type[Any]) -> Any:
        return Unavailable("no answer")

    world.api.merge_patch = unavailable  # type: ignore[method-assign]
    with pytest.raises(RetryLaterError, match="no answer"):
        await world.check()
    assert world.agent.given == []


async def test_a_write_that_meets_another_version_is_decided_anew() -> None:
    world = World(FIRST)
    world.runs()
    changed = json.loads(msgspec.json.encode(FIRST))
    changed["metadata"]["resourceVersion"] = "77"
    world.api.objects[path(FIRST)] = changed
    assert (await world.check(), world.agent.given) == (0.0, [])
    await world.check()
    assert world.agent.given == [["uid-first"]]


async def test_a_message_that_went_meanwhile_is_not_given() -> None:
    world = World(FIRST, SECOND)
    world.runs()
    del world.api.objects[path(FIRST)]
    await world.check()
    await world.check()
    assert world.agent.given == [["uid-second"]]


async def test_an_agent_that_does_not_take_them_is_named_and_asked_again_later() -> None:
    world = World(FIRST)
    world.runs()
    world.agent.refusal = "HTTP 404"
    assert await world.check() == 0.0
    await world.check()
    stalled = world.stored(FIRST).status.condition("Stalled")
    assert stalled is not None
    assert (stalled.reason, "HTTP 404" in stalled.message) == ("OrderRefused", True)
    world.agent.refusal, world.now = "", NOW + NOT_TAKEN_PAUSE
    world.runs()
    await world.check()
    assert world.agent.given == [["uid-first"]]


async def test_what_ended_long_ago_is_removed() -> None:
    old = message(status=ended(at=NOW - 86400))
    world = World(old)
    await world.check()
    assert path(old) not in world.api.objects
    assert await world.check() is None


async def test_a_deletion_that_a_policy_refuses_is_an_event_and_holds_up_nothing_else() -> None:
    kept, old = (message(name, status=ended(at=NOW - 86400)) for name in ("kept", "old"))
    of, taken = dump()
    world = World(old, kept, of)
    world.api.undeletable[path(kept)] = Forbidden("denied by a policy")
    world.asks(ASKED, messages=(taken,))
    assert await world.check() == 0.0
    assert f"{SNAPSHOTS}/dump-uiddump" in world.api.objects
    assert f"{MESSAGES}/{NAME}" in world.api.objects
    refused = [it["involvedObject"]["name"] for it in world.events() if it["reason"] == "WriteRefused"]
    assert refused == ["kept"]
    # Of many that a webhook holds up for seconds each, one is tried.
    assert path(old) in world.api.objects
    world.now += PAUSE
    world.asks(ASKED, messages=(taken,))
    await world.check()
    assert path(old) not in world.api.objects
    world.api.undeletable.clear()
    await world.check()
    assert path(kept) in world.api.objects
    world.now += PAUSE
    await world.check()
    assert path(kept) not in world.api.objects
    await world.check()
    assert world.index.of(ControlIndex).memory(ORDERS).not_deleted == {}


async def test_a_deletion_that_a_policy_refuses_is_tried_again_after_a_pause() -> None:
    old = message("old", status=ended(at=NOW - 86400))
    world = World(old)
    world.api.undeletable[path(old)] = Forbidden("denied by a policy")
    assert [await world.check() for _ in range(3)] == [0.0, PAUSE, PAUSE]


async def test_a_deletion_that_nobody_answers_is_tried_again_with_growing_pauses() -> None:
    old = message("old", status=ended(at=NOW - 86400))
    world = World(old)
    world.api.undeletable[path(old)] = Unavailable("no answer")
    with pytest.raises(RetryLaterError, match="no answer"):
        await world.check()


async def test_a_message_that_can_not_be_read_says_so_and_the_others_go_on() -> None:
    world = World(FIRST)
    odd = message("odd", resource_version="21")
    world.api.keep(path(odd), odd)
    world.index.of(ControlIndex).put(UnreadableResource(odd.metadata, "spec.type: missing"))
    world.runs()
    await world.check(("shop", NO_APP))
    stalled = world.stored(odd).status.condition("Stalled")
    assert stalled is not None
    assert (stalled.reason, "spec.type" in stalled.message) == ("InvalidSpec", True)
    await world.check()
    assert world.agent.given == [["uid-first"]]


ASKED = AskedMessage(MessageReport("0123456789abcdef" * 2, MessageState.LOGGED, 12), "snapshot", origin="kafka:c/0")
NAME = channel_message_name("orders", UID, ASKED.report.id)
MESSAGES = "/apis/tidegate.dev/v1alpha1/namespaces/shop/controlmessages"
SNAPSHOTS = "/apis/tidegate.dev/v1alpha1/namespaces/shop/streamsnapshots"


async def test_a_brokers_message_gets_its_resource_at_once_and_is_given_to_nobody() -> None:
    world = World()
    world.asks(ASKED)
    assert await world.check() == 0.0
    await world.check()
    (made,) = world.index.of(ControlIndex).in_order(ORDERS)
    assert (made.metadata.name, made.status.phase, made.status.sequence) == (NAME, MessagePhase.PUBLISHED, 12)
    assert world.agent.orders == []


async def test_one_that_was_made_before_and_that_the_watch_has_not_told_of_is_read() -> None:
    world, again = World(), World()
    for each in (world, again):
        each.asks(ASKED)
        again.api.objects = world.api.objects
        await each.check()
    assert [each.metadata.name for each in again.index.of(ControlIndex).in_order(ORDERS)] == [NAME]


async def test_its_driver_is_told_that_the_api_server_refuses_its_resource() -> None:
    world = World()
    world.api.refusing[MESSAGES] = Invalid("spec.payload: no")
    world.asks(ASKED)
    assert await world.check() == 0.0
    await world.check()
    (end,) = world.agent.orders[-1].ended
    assert (end.id, end.state, end.reason) == (ASKED.report.id, MessageState.FAILED, "MessageRefused")


async def test_why_a_resource_is_refused_is_remembered_until_its_message_has_ended() -> None:
    """Senders of messages can cause any number of refusals, each as long as what it quotes."""
    dump = message("dump", kind="dump-state", uid="0f8fad5b")
    world = World(FIRST, dump)
    world.api.refusing |= {MESSAGES: Invalid("spec.payload: no"), SNAPSHOTS: Invalid("spec.export.cores: 0")}
    taken = {"snapshot": "control-0f8fad5b"}
    world.asks(ASKED, messages=(dataclasses.replace(report(dump, MessageState.DONE, 2), results=taken),))
    for _ in range(3):
        await world.check()
    assert world.stored(dump).status.phase is MessagePhase.FAILED
    assert world.index.of(ControlIndex).memory(ORDERS).refused.keys() == {ASKED.report.id}
    world.asks()
    await world.check()
    assert world.index.of(ControlIndex).memory(ORDERS).refused == {}


async def test_its_driver_is_told_that_somebody_elses_message_has_its_name() -> None:
    other = message(NAME)
    world = World()
    world.api.keep(path(other), other)
    world.asks(ASKED)
    await world.check()
    await world.check()
    (end,) = world.agent.orders[-1].ended
    assert "there is another ControlMessage" in end.message


PAUSE = 30.0
"""Seconds between two attempts to create what the API server does not let be created."""
QUOTA = Forbidden("exceeded quota: shop")
WEBHOOK = Unavailable("failed calling webhook: no answer", internal_error=True)


def dump(name: str = "dump") -> tuple[ControlMessage, MessageReport]:
    """Return a message, and the report that its snapshot is taken."""
    of = message(name, kind="dump-state", uid=f"uid-{name}", resource_version="20")
    taken = {"snapshot": f"control-uid-{name}"}
    return of, dataclasses.replace(report(of, MessageState.DONE, 2), results=taken)


async def test_what_a_quota_refuses_waits() -> None:
    world = World()
    world.api.refusing[MESSAGES] = QUOTA
    world.asks(ASKED)
    assert [await world.check() for _ in range(3)] == [0.0, PAUSE, PAUSE]
    assert world.agent.orders == []
    world.api.refusing.clear()
    await world.check()
    assert world.index.of(ControlIndex).in_order(ORDERS) == ()
    world.now += PAUSE
    world.asks(ASKED)
    await world.check()
    assert [it.metadata.name for it in world.index.of(ControlIndex).in_order(ORDERS)] == [NAME]
    assert world.index.of(ControlIndex).memory(ORDERS).not_created == {}


async def test_a_message_from_a_channel_that_a_quota_refuses_is_an_event_of_its_application_once_an_hour() -> None:
    world = World()
    world.api.refusing[MESSAGES] = QUOTA
    for _ in range(4):
        world.asks(ASKED)
        await world.check()
        world.now += PAUSE
    (event,) = world.events()
    assert (event["reason"], event["involvedObject"]["kind"], event["type"]) == (
        "MessageRefused",
        "StreamingApp",
        "Warning",
    )
    assert event["message"] == (
        f"The API server refuses ControlMessage {NAME} for a message from a channel: exceeded quota: shop. "
        "Correct what it names; Tidegate retries."
    )
    world.now += 3600
    world.asks(ASKED)
    await world.check()
    assert len(world.events()) == 2


async def test_a_message_from_a_channel_that_was_not_created_once_is_no_event() -> None:
    world = World()
    world.api.refusing[MESSAGES] = WEBHOOK
    world.asks(ASKED)
    await world.check()
    assert world.events() == []
    world.now += PAUSE
    world.asks(ASKED)
    await world.check()
    (event,) = world.events()
    assert "could not create" in event["message"]
    assert "failed calling webhook" in event["message"]


async def test_nothing_is_published_in_a_namespace_that_is_being_deleted() -> None:
    world = World()
    world.api.refusing[MESSAGES] = Forbidden("namespace shop is being terminated", namespace_terminating=True)
    world.asks(ASKED)
    assert [await world.check() for _ in range(2)] == [0.0, PAUSE]
    assert world.events() == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [(QUOTA, ("Stalled", "SnapshotRefused")), (WEBHOOK, ("Reconciling", "SnapshotTaken"))],
    ids=["quota", "a webhook fails once"],
)
async def test_a_message_says_why_its_snapshot_is_not_created_and_goes_on_when_it_is(
    answer: Failure, said: tuple[str, str]
) -> None:
    of, taken = dump()
    world = World(of)
    world.api.refusing[SNAPSHOTS] = answer
    world.runs(taken)
    assert await world.check() == 0.0
    assert await world.check() == PAUSE
    status = world.stored(of).status
    (true,) = [it for it in status.conditions if it.status == "True"]
    assert (status.phase, (true.type, true.reason)) == (MessagePhase.PUBLISHED, said)
    assert answer.message in true.message
    world.api.refusing.clear()
    world.now += PAUSE
    world.runs(taken)
    await world.check()
    assert [place for place in world.api.objects if place.startswith(SNAPSHOTS)] == [f"{SNAPSHOTS}/dump-uiddump"]
    await world.check()
    ready = world.stored(of).status.condition("Ready")
    assert ready is not None
    assert ready.reason == "SnapshotTaken"


async def test_a_webhook_that_fails_for_longer_than_once_stalls_the_message() -> None:
    of, taken = dump()
    world = World(of)
    world.api.refusing[SNAPSHOTS] = WEBHOOK
    for _ in range(3):
        world.runs(taken)
        await world.check()
        world.now += PAUSE
    stalled = world.stored(of).status.condition("Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.reason) == ("True", "SnapshotRefused")


async def test_a_snapshot_that_is_not_created_holds_up_nothing_else() -> None:
    of, taken = dump()
    another, taken_too = dump("another")
    old = message("old", status=ended(at=NOW - 86400))
    world = World(of, another, old, FIRST)
    world.api.refusing[f"{SNAPSHOTS}/dump-uiddump"] = QUOTA
    world.asks(ASKED, messages=(taken, taken_too, report(FIRST, MessageState.LOGGED, 1)))
    await world.check()
    assert f"{SNAPSHOTS}/another-uidanoth" in world.api.objects
    assert f"{MESSAGES}/{NAME}" in world.api.objects
    assert path(old) not in world.api.objects
    assert world.stored(FIRST).status.phase is MessagePhase.PUBLISHED
    world.asks(ASKED, messages=(taken, taken_too, report(FIRST, MessageState.DONE, 1)))
    await world.check()
    assert world.stored(FIRST).status.phase is MessagePhase.APPLIED


async def test_what_could_not_be_created_is_remembered_until_its_message_is_gone() -> None:
    of, taken = dump()
    world = World(of)
    world.api.refusing |= {MESSAGES: QUOTA, SNAPSHOTS: QUOTA}
    world.asks(ASKED, messages=(taken,))
    await world.check()
    assert world.index.of(ControlIndex).memory(ORDERS).not_created.keys() == {ASKED.report.id, "uid-dump"}
    world.index.of(ControlIndex).remove(of.key, of.metadata.uid)
    world.asks()
    await world.check()
    assert world.index.of(ControlIndex).memory(ORDERS).not_created == {}


async def test_what_is_refused_for_what_it_says_after_a_webhook_failed_ends() -> None:
    of, taken = dump()
    world = World(of)
    world.api.refusing[SNAPSHOTS] = WEBHOOK
    world.runs(taken)
    await world.check()
    world.api.refusing[SNAPSHOTS] = Invalid("spec.export.cores: 0")
    world.now += PAUSE
    world.runs(taken)
    for _ in range(2):
        await world.check()
    assert world.stored(of).status.phase is MessagePhase.FAILED
    assert world.index.of(ControlIndex).memory(ORDERS).not_created == {}


async def test_a_message_whose_status_nobody_may_write_says_so_in_an_event() -> None:
    world = World(FIRST)
    world.runs()
    world.api.unchangeable[path(FIRST)] = Forbidden("denied by a policy")
    with pytest.raises(RetryLaterError, match="denied by a policy"):
        await world.check()
    assert [(o["reason"], "denied by a policy" in o["message"]) for o in world.events()] == [("WriteRefused", True)]
