"""A rule's verdict about one message, and the facts that several rules ask for. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.api.control_message import ControlMessage, MessagePhase
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.control.observation import ControlObservation
from tidegate.engine.rules.health import Health
from tidegate.pods.records.record import seconds_since_notified
from tidegate_spark.contract.control_protocol import MessageReport
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import AnyReason


@dataclass(frozen=True, slots=True)
class Seen:
    """One message, and everything around it."""

    message: ControlMessage
    o: ControlObservation
    at: float
    """What the time is by the API server's clock, by which messages are created and expire; seconds since 1970."""
    report: MessageReport | None = None
    """What the driver reports of it."""
    snapshot: StreamSnapshot | None = None
    """The StreamSnapshot of what it had taken."""
    before: OpenCount = OpenCount()
    """The messages to the same application that come earlier, and of which something is still to come."""
    added: OpenCount = OpenCount()
    """Those of them that were not accepted before."""

    @property
    def was_offered(self) -> bool:
        """Whether a driver may have taken it."""
        return self.message.status.offered_time is not None or self.message.is_from_channel

    @property
    def waiting_phase(self) -> MessagePhase:
        """Published once it is known to be in the log, Pending before."""
        published = self.message.status.phase is MessagePhase.PUBLISHED
        return MessagePhase.PUBLISHED if published else MessagePhase.PENDING


@dataclass(frozen=True, slots=True)
class MessageVerdict:
    """The result of the first rule that applies."""

    phase: MessagePhase
    health: Health
    reason: AnyReason
    """One word, CamelCase; the conditions' and the event's reason."""
    message: str
    """For a person: what is, and what to do if something must be done."""
    sends: bool = False
    """It is to be given to the driver, when its turn comes."""
    retires: bool = False
    """Its resource is to go."""
    silent: bool = False
    """Write no status: nothing changes it any more."""
    wake_after: float | None = None
    makes: Mapping[str, Any] | None = None
    """The StreamSnapshot that is to be made of what the driver took."""
    results: Mapping[str, str] = field(default_factory=dict)
    """What it made, beside what the driver reports."""


def refers_to_its_app(s: Seen) -> bool:
    """Return whether the application is there, and is the one that was recorded if one was."""
    recorded = s.message.app_uid
    return s.o.app is not None and recorded in ("", s.o.app.metadata.uid)


def takes_messages(o: ControlObservation) -> bool:
    """Return whether a driver of this application runs and its agent answers."""
    if o.driver is None or o.driver.terminating or o.agent is None or o.app is None:
        return False
    return o.agent.state is DriverState.RUNNING


def ordered_seconds_ago(o: ControlObservation, now: float) -> float:
    """Return how long ago the message was sent to the driver process that runs now; infinity if it was not."""
    return seconds_since_notified(o.driver, o.memory.ordered_to, o.memory.ordered_at, now)
