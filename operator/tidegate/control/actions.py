"""The actions on ControlMessages, as a closed union of values, carried out as :mod:`tidegate.app.actions`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.api.control_message import ControlMessage, ControlMessageStatus
from tidegate.engine.rules.actions import PublishEvent
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.control_protocol import ControlOrders


@dataclass(frozen=True, slots=True)
class WriteMessageStatus:
    """Write a message's status."""

    message: ControlMessage
    status: ControlMessageStatus
    is_progress: bool = False
    """Only messages and numbers have changed."""


@dataclass(frozen=True, slots=True)
class GiveMessages:
    """Give messages to the agent of a running driver; each of them says so in its status already."""

    pod: PodRecord
    orders: ControlOrders


@dataclass(frozen=True, slots=True)
class DeleteMessage:
    """Delete the resource of a message that ended a while ago."""

    message: ControlMessage


@dataclass(frozen=True, slots=True)
class MakeSnapshot:
    """Make the StreamSnapshot of what a message had taken."""

    message: ControlMessage
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MakeMessage:
    """Make the ControlMessage that stands for a message from a channel."""

    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PublishMessageEvent:
    """Publish an event about a message."""

    message: ControlMessage
    event: PublishEvent


ControlAction: TypeAlias = (
    WriteMessageStatus | GiveMessages | MakeSnapshot | MakeMessage | DeleteMessage | PublishMessageEvent
)


@dataclass(frozen=True, slots=True)
class ControlPlan:
    """What to do now about all messages to one application, why, and when to check again."""

    message: str
    """For the log."""
    actions: tuple[ControlAction, ...] = ()
    wake_after: float | None = None
    """Seconds; None: nothing happens by the passing of time."""
