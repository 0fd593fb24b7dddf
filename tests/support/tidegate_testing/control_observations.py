"""Observations of ControlMessages that tests of decisions need, built from a few words. Pure."""

import dataclasses
import datetime
from typing import Any

import msgspec

from tidegate.api.control_message import (
    ControlMessage,
    ControlMessageSpec,
    ControlMessageStatus,
    MessagePhase,
    compact_payload,
)
from tidegate.api.streaming_app import LocalReference, Metadata, Phase
from tidegate.control.actions import ControlPlan, GiveMessages, PublishMessageEvent, WriteMessageStatus
from tidegate.control.observation import ControlObservation
from tidegate.control.rules.plan import decide_control
from tidegate_spark.contract.control_protocol import ControlReport, MessageReport, MessageState, QueryAcknowledgement
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_testing.observations import NOW, UID, app_with, launched, running_driver

TIME = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
APP = launched(app_with(), phase=Phase.RUNNING)
SUSPENDED = launched(app_with({"suspend": True}), phase=Phase.SUSPENDED)
ANOTHER = launched(app_with(uid="u-2"), phase=Phase.RUNNING)
"""One of the same name that was made later."""
SENT = NOW - 5
"""When messages were sent, unless told otherwise."""


def message(
    name: str = "faster",
    status: ControlMessageStatus | None = None,
    *,
    kind: str = "reload-config",
    payload: Any = None,
    ttl: int = 0,
    sent: float = SENT,
    **metadata: Any,
) -> ControlMessage:
    """Return a message to the application ``orders``; its uid follows from its name."""
    known: dict[str, Any] = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "generation": 1,
        "resource_version": "20",
        "creation_timestamp": datetime.datetime.fromtimestamp(int(sent), datetime.UTC),
    }
    return ControlMessage(
        metadata=Metadata(**{**known, **metadata}),
        spec=ControlMessageSpec(
            app_ref=LocalReference(name="orders"),
            type=kind,
            payload=compact_payload(msgspec.Raw(msgspec.json.encode(payload))),
            expiration_seconds=ttl,
        ),
        status=status or ControlMessageStatus(),
    )


def offered(**fields: Any) -> ControlMessageStatus:
    """Return the status of a message that a driver was given."""
    known: dict[str, Any] = {"phase": MessagePhase.PENDING, "order": "20", "app_uid": UID, "offered_time": TIME}
    return ControlMessageStatus(**{**known, **fields})


def ended(phase: MessagePhase = MessagePhase.APPLIED, at: float = NOW) -> ControlMessageStatus:
    """Return the status of a message of which nothing more comes."""
    return offered(phase=phase, completion_time=datetime.datetime.fromtimestamp(at, datetime.UTC))


def report(
    of: ControlMessage, state: MessageState, sequence: int = 1, acks: tuple[int, int] | None = None, **fields: Any
) -> MessageReport:
    """Return what a driver tells of a message; with ``acks``, that query ``main`` has it in batch 7."""
    queries = {"main": QueryAcknowledgement(7, *acks)} if acks is not None else {}
    return MessageReport(of.metadata.uid, state, sequence, **{"queries": queries, **fields})


def agent(*reports: MessageReport, state: DriverState = DriverState.RUNNING, **fields: Any) -> AgentReport:
    """Return a driver's report."""
    control = ControlReport(last=len(reports), messages=reports, paused=fields.pop("paused", False))
    return AgentReport("orders", fields.pop("uid", UID), 1, state, ready=True, control=control)


def observe(*messages: ControlMessage, **fields: Any) -> ControlObservation:
    """Return an observation of messages, with nothing around them."""
    return ControlObservation(**{"namespace": "shop", "app_name": "orders", "messages": messages, **fields})


def observe_running(*messages: ControlMessage, reports: tuple[MessageReport, ...] = (), **fields: Any) -> Any:
    """Return an observation in which the application runs, and its agent tells these reports."""
    known: dict[str, Any] = {"app": APP, "driver": running_driver(APP), "agent": agent(*reports)}
    return observe(*messages, **{**known, **fields})


def given(plan: ControlPlan) -> list[str]:
    """Return the names of the messages that a plan gives to the driver, in order."""
    return [
        order.source.partition("/")[2]
        for action in plan.actions
        if isinstance(action, GiveMessages)
        for order in action.orders.messages
    ]


def forgotten(plan: ControlPlan) -> list[str]:
    """Return the ids that a plan lets the driver forget."""
    return [name for action in plan.actions if isinstance(action, GiveMessages) for name in action.orders.forget]


def statuses(plan: ControlPlan) -> dict[str, ControlMessageStatus]:
    """Return the statuses that a plan writes, by the messages' names."""
    return {a.message.metadata.name: a.status for a in plan.actions if isinstance(a, WriteMessageStatus)}


def said(o: ControlObservation, now: float = NOW, name: str = "faster") -> tuple[str | None, str, str, str]:
    """Return phase, the condition that is true, its reason and message, as the plan for an observation writes them."""
    status = statuses(decide_control(o, now))[name]
    (true,) = [c for c in status.conditions if c.status == "True" and c.type != "Applied"]
    return status.phase, true.type, true.reason, true.message


def reported(plan: ControlPlan) -> list[tuple[str, str, bool]]:
    """Return the events of a plan: of which message, for what reason, and whether as a warning."""
    return [
        (a.message.metadata.name, a.event.reason, a.event.warning)
        for a in plan.actions
        if isinstance(a, PublishMessageEvent)
    ]


def after(o: ControlObservation, now: float = NOW) -> ControlObservation:
    """Return the observation after its own plan's writes were carried out, and nothing else."""
    written = statuses(decide_control(o, now))
    messages = tuple(msgspec.structs.replace(m, status=written.get(m.metadata.name, m.status)) for m in o.messages)
    return dataclasses.replace(o, messages=messages)
