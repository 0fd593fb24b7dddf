"""Publishes an event on a resource that the API server does not let be changed, not even its conditions. Does I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import KIND, Metadata
from tidegate.engine import write_messages
from tidegate.engine.events import EventPublisher
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.pauses import hour_of
from tidegate.kube.failures import Failure, Forbidden, Invalid, Unavailable
from tidegate_spark.contract.reasons import Reason


def why_refused(answer: Failure, about: Metadata, kind: str = KIND) -> str:
    """Return what is said of a write that somebody refuses; empty if the API server only cannot answer now."""
    # A webhook that fails is an internal error of the server; a storage that fails is none, and is back by itself.
    refused = isinstance(answer, Invalid | Forbidden) or (isinstance(answer, Unavailable) and answer.internal_error)
    return write_messages.write_refused(kind, about.name, answer.message) if refused else ""


async def report_refused_write(
    events: EventPublisher, answer: Failure, about: Metadata, now: float, kind: str = KIND
) -> str:
    """Publish an event about a write that is refused, once an hour for as long as it lasts, and return its message.

    Args:
        events: where it is published.
        answer: to the write.
        about: the resource that was to be written.
        now: seconds since the epoch.
        kind: of the resource.
    """
    message = why_refused(answer, about, kind)
    if message:
        event = PublishEvent(Reason.WRITE_REFUSED, message, True, f"write/{hour_of(now)}", any_message=True)
        await events.publish(about, event, now, kind)
    return message
