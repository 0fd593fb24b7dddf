"""The contract about control messages: what is sent, and what is reported. Standard library only, no I/O.

A message is offered to a running driver's agent until its report has the message's id. Only the driver writes the
control log, and it takes each id once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.json_form import OpenEnum

CONTROL_COMMAND = "/v1/control"
"""POST, bearer token, body :class:`ControlOrders`: 202 means that each will be in the log, in this order."""

LARGEST_PAYLOAD = 64 * 1024
"""Bytes of one message's payload, as JSON text in UTF-8."""
DEEPEST_PAYLOAD = 64
"""Levels of lists and objects in it."""

LARGEST_CONTROL_ORDERS = 512 * 1024
"""Bytes of one body."""

MOST_ASKED = 8
"""Messages from a channel in which the cluster has a part, open at a time: what is more is rejected."""

LONGEST_ASKED = 8 * 1024
"""Bytes of the payload of one of them."""

MOST_ERRORS = 8
"""Errors of workers that one report of a query names; the rest are counted."""

LONGEST_ERROR = 512
"""Characters of one error."""

CHANNEL_CREDENTIALS_DIRECTORY = "/var/run/tidegate/control-credentials"
"""Where the Secret of a broker's channel is mounted in the driver (optional: its files may appear later)."""

LINE_VARIABLE, LINE_FILE = "TIDEGATE_CONTROL_LINE", "control-line.json"
"""Names, to the processes beside the driver, the file in its work directory that says where it answers them."""

PING, RELOAD_CONFIG, RELOAD_MODEL, CLEAR_CACHES = "ping", "reload-config", "reload-model", "clear-caches"
PAUSE, RESUME, SET_LOG_LEVEL = "pause", "resume", "set-log-level"
SNAPSHOT, DUMP_STATE = "snapshot", "dump-state"

BUILT_IN_TYPES = (
    PING,
    RELOAD_CONFIG,
    RELOAD_MODEL,
    CLEAR_CACHES,
    PAUSE,
    RESUME,
    SET_LOG_LEVEL,
    SNAPSHOT,
    DUMP_STATE,
)
"""What every application understands; any other type is the application's own, and needs a handler there."""
CLUSTER_TYPES = frozenset({SNAPSHOT, DUMP_STATE})
"""Messages that have a snapshot taken, of which the operator makes a StreamSnapshot."""


@dataclass(frozen=True)
class ControlOrder:
    """One message, to be appended to the application's control log."""

    id: str
    """Unique for ever: the resource's uid. The log takes an id once, however often it is offered."""
    type: str
    payload: str = "null"
    """JSON text."""
    created: float = 0.0
    """When it was sent, seconds since the epoch."""
    expires: float = 0.0
    """Not in force in a batch that is planned after this, seconds since the epoch; 0: never expires."""
    source: str = ""
    """Who sent it, for people: ``namespace/name`` of the resource."""


class MessageState(OpenEnum):
    """How far one message is."""

    LOGGED = "Logged"
    """In the log, and not yet in force in any batch."""
    IN_FORCE = "InForce"
    """In force in some query's batch; not every query that listens, or not what it started, is done."""
    DONE = "Done"
    """In force, and acknowledged by every query that listens; what it asked for has been done."""
    FAILED = "Failed"
    """In force, and a handler or what it asked for failed; the queries' errors or the message say how."""
    REJECTED = "Rejected"
    """Never in force: unknown type, wrong schema, too large."""
    EXPIRED = "Expired"
    """Never in force: its time had passed when its batch was planned."""
    ROLLED_BACK = "RolledBack"
    """Its batch was rolled back by a rollback, and it is not in force in the new lineage."""
    UNKNOWN = "Unknown"
    """Any state of a newer runtime that is not known here."""


@dataclass(frozen=True)
class QueryAcknowledgement:
    """What one query says of one message."""

    batch: int
    """In which it took effect."""
    applied: int = 0
    ran: int = 0
    """Python workers that applied it, of those that ran a task of that batch; 1 of 1 where the driver alone applies."""
    errors: tuple[str, ...] = ()
    """At most :data:`MOST_ERRORS`, each at most :data:`LONGEST_ERROR` long."""
    more_errors: int = 0
    missing: tuple[str, ...] = ()
    """Workers that neither applied it nor failed, and why, bounded likewise: of a batch that was committed no other
    than such whose task another worker did in their place."""


@dataclass(frozen=True)
class MessageReport:
    """What became of one message."""

    id: str
    state: MessageState
    sequence: int = 0
    reason: str = ""
    """CamelCase, for a condition."""
    message: str = ""
    """For a person."""
    queries: dict[str, QueryAcknowledgement] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    """What it made, such as ``snapshot`` -> id, ``uri`` -> where a dump is."""


@dataclass(frozen=True)
class AskedMessage:
    """A message from a channel that needs the operator: reported until a :class:`MessageEnd` says it is done."""

    report: MessageReport
    """Its id is 32 hexadecimal digits, which no other message of the application has."""
    type: str
    payload: str = "null"
    """JSON text, at most :data:`LONGEST_ASKED` bytes."""
    origin: str = ""
    """The part of a topic, or the queue, that it came from."""
    source: str = ""
    event: str = ""
    """Source and id that its sender gave it."""


@dataclass(frozen=True)
class MessageEnd:
    """What came of the cluster's part of a message from a channel, and so of the message."""

    id: str
    """That of its report."""
    state: MessageState
    reason: str = ""
    message: str = ""
    results: dict[str, str] = field(default_factory=dict)
    """Beside what the driver knows of."""


@dataclass(frozen=True)
class ControlOrders:
    """The unfinished messages of one application, oldest first, and those whose end has been written down."""

    messages: tuple[ControlOrder, ...] = ()
    forget: tuple[str, ...] = ()
    """Ids that need not be reported any more."""
    ended: tuple[MessageEnd, ...] = ()
    """Of messages from a channel."""


@dataclass(frozen=True)
class KafkaSettings:
    """A topic from which control messages are read, too."""

    bootstrap_servers: str
    topic: str
    reply_topic: str = ""
    """Where replies go; empty: nowhere."""
    from_latest: bool = False
    """Start with what comes after the first look at the topic, instead of with what is in it."""
    options: dict[str, str] = field(default_factory=dict)
    """Settings of Kafka's clients, such as ``security.protocol``."""


@dataclass(frozen=True)
class RabbitSettings:
    """A queue from which control messages are taken, too."""

    uri: str
    """``amqp://host:port/vhost`` or ``amqps://…``, without user and password."""
    queue: str
    reply_queue: str = ""
    """Where replies go; empty: nowhere."""


@dataclass(frozen=True)
class InboxSettings:
    """The inbox in the application's own storage, which is read, too."""

    poll_seconds: float = 1.0
    """Between two looks at it."""
    keep_replies_seconds: float = 86400.0
    """For how long replies are kept; 0: there are none."""


@dataclass(frozen=True)
class ChannelSettings:
    """A channel beside ControlMessages: one of the three."""

    kafka: KafkaSettings | None = None
    rabbitmq: RabbitSettings | None = None
    credentials_secret: str = ""
    """Name of the Secret that is mounted at :data:`CHANNEL_CREDENTIALS_DIRECTORY`, for messages only."""
    storage: InboxSettings | None = None
    types: tuple[str, ...] = ()
    """What may be sent through it; empty: every type."""


@dataclass(frozen=True)
class ModelSettings:
    """What ``reload-model`` may name."""

    allowed_prefixes: tuple[str, ...] | None = None
    """Each ``s3://bucket/…/`` or ``file:///…/``, with a slash at its end; None: the application's own storage."""
    size_limit: int = 2 << 30
    """Bytes of one model."""


@dataclass(frozen=True)
class ControlSettings:
    """How control messages are carried out, whatever way they come."""

    models: ModelSettings = field(default_factory=ModelSettings)
    message_timeout_seconds: float = 60.0
    """What one message may take of a driver, or of a worker's handler."""


@dataclass(frozen=True)
class ChannelReport:
    """How it is with a channel, and what came from it since the application began."""

    kind: str
    """``Kafka``, ``RabbitMQ`` or ``Storage``."""
    connected: bool = False
    reason: str = ""
    """CamelCase, for a condition: why it is not connected, or what else is wrong; empty if nothing is."""
    message: str = ""
    """For a person."""
    since: float = 0.0
    """Since when it is so, seconds since the epoch."""
    received: int = 0
    """Messages in the log, rejected ones among them."""
    ended: dict[str, int] = field(default_factory=dict)
    """:class:`MessageState` -> how many of them ended so."""
    waiting: int = -1
    """Messages in the broker, or the inbox, that are not read yet; -1: nobody knows, or nobody is asked."""


@dataclass(frozen=True)
class ControlReport:
    """The control stream of one application, as its driver sees it."""

    last: int = 0
    """Sequence of the newest message in the log."""
    positions: dict[str, int] = field(default_factory=dict)
    """Query -> sequence up to which messages are in force in its newest committed batch."""
    paused: bool = False
    messages: tuple[MessageReport, ...] = ()
    """Of the ids offered and not yet forgotten, oldest first."""
    channel: ChannelReport | None = None
    """None: there is none but ControlMessages."""
    asked: tuple[AskedMessage, ...] | None = None
    """Messages from channels in which the cluster has a part, oldest first; None: it is not known yet."""


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether a decoded object is nested deeper than so many levels; it is walked without recursion."""
    level: list[Any] = [value] if isinstance(value, (Mapping, list)) else []
    for _ in range(levels):
        if not level:
            return False
        level = [part for each in level for part in _parts(each)]
    return bool(level)


def _parts(value: Any) -> list[Any]:
    within = value.values() if isinstance(value, Mapping) else value
    return [part for part in within if isinstance(part, (Mapping, list))]
