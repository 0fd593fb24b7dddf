"""All that one decision about an application's ControlMessages may use, as one frozen value. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.api.control_message import ControlMessage
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.api.streaming_app import StreamingApp
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.cache.process_state import NotCreated
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import AgentReport


@dataclass(frozen=True, slots=True)
class ControlMemory:
    """What this process remembers of an application's messages. All of it may be lost: they are given once more."""

    ordered_at: float = 0.0
    ordered_to: str = ""
    """Uid of the driver pod and number of its restarts: another process gets the messages again."""
    ordered: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    reported: frozenset[str] = frozenset()
    """Ids in the last orders: of what is to be published, of what need not be reported any more, and of messages from
    a channel that have ended."""
    not_taken: str = ""
    """Why the agent did not take the last orders; empty if it did."""
    progress_written_at: float = 0.0
    refused: Mapping[str, str] = field(default_factory=dict)
    """Uid of a message -> why the API server refuses the StreamSnapshot of what it had taken; id of one from a channel
    -> why it refuses its resource."""
    not_created: Mapping[str, NotCreated] = field(default_factory=dict)
    """The same names -> what could not be created until now."""
    not_deleted: Mapping[str, float] = field(default_factory=dict)
    """Uid of a message that has ended -> when the API server last refused to delete it."""


@dataclass(frozen=True, slots=True)
class ControlObservation:
    """The messages to one application and everything around them; taken at one moment, changed by nobody."""

    namespace: str
    app_name: str
    messages: tuple[ControlMessage, ...] = ()
    """In the order in which they are to take effect."""
    app: StreamingApp | None = None
    """The application of that name, whichever it is."""
    app_unreadable: bool = False
    """There is one, and it cannot be read."""
    without_app: OpenCount = OpenCount()
    """If there is none: accepted messages of the namespace to applications that are not there, whatever their names."""
    driver: PodRecord | None = None
    agent: AgentReport | None = None
    """The newest answer of the driver process that runs now; None if there is none, or it is old."""
    snapshots: Mapping[str, StreamSnapshot] = field(default_factory=dict)
    """Uid of a message -> the StreamSnapshot of what it had taken."""
    clock_skew: float = 0.0
    """Seconds by which our clock is ahead of the API server's, as far as that is known."""
    memory: ControlMemory = ControlMemory()
