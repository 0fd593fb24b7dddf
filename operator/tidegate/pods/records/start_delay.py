"""Why a pod's containers do not start, by the events about the pod. No I/O.

Volumes, sandbox and node come before any container, so only events show them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import msgspec

from tidegate.api import foreign_text
from tidegate_spark.contract.secret_shapes import without_shapes

LONGEST_TEXT = 400
"""Characters of an event that are repeated: whoever may create events can write a book into one."""


class Obstacle(Enum):
    """What kind of thing is in the way."""

    REFERENCE = "reference"
    """A ConfigMap, Secret or claim that the pod refers to, or a key of one, does not exist."""
    VOLUME = "volume"
    """A volume is not attached or mounted."""
    SANDBOX = "sandbox"
    """The node cannot make the pod's sandbox: its network, or the runtime."""
    PULLING = "pulling"
    """Nothing: an image is being pulled."""
    UNNAMED = "unnamed"
    """No event names anything; ``text`` is the newest warning, if there is one."""
    UNREAD = "unread"
    """The events could not be read; ``text`` says why."""


@dataclass(frozen=True, slots=True)
class StartDelay:
    """What keeps a pod's containers from beginning."""

    obstacle: Obstacle
    text: str = ""
    """What the one who met it wrote, as one line."""
    name: str = ""
    """Of the object that does not exist, with its kind, where that is said."""


class _Involved(msgspec.Struct):
    uid: str = ""


class _Series(msgspec.Struct):
    lastObservedTime: datetime.datetime | None = None  # noqa: N815 - these are the API's names


class PodEvent(msgspec.Struct):
    """The fields of an event that are read; the JSON decoder's target."""

    type: str = ""
    reason: str = ""
    message: str = ""
    involvedObject: _Involved = msgspec.field(default_factory=_Involved)  # noqa: N815
    firstTimestamp: datetime.datetime | None = None  # noqa: N815
    lastTimestamp: datetime.datetime | None = None  # noqa: N815
    eventTime: datetime.datetime | None = None  # noqa: N815
    series: _Series | None = None


class PodEvents(msgspec.Struct):
    """A list of events."""

    items: list[PodEvent] = []


_VOLUMES = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_SANDBOX = "FailedCreatePodSandBox"
_SCHEDULING = "FailedScheduling"
"""The pod's own condition says the same for as long as it holds."""
_PULLING = "Pulling"
_PROGRESS = frozenset({_PULLING, "Pulled", "Created", "Started"})
"""Volumes and sandbox are there by then: what failed before has passed."""


def delay_of(events: Iterable[PodEvent]) -> StartDelay:
    """Return what the newest event that matters says, for a pod that has a node and no container that runs.

    Args:
        events: all that are known about the pod, in any order.
    """
    newest_first = sorted(events, key=lambda event: (time_of(event), event.reason in _PROGRESS), reverse=True)
    vague: StartDelay | None = None
    for event in newest_first:
        if event.reason in _PROGRESS:
            pulling = event.reason == _PULLING and vague is None
            return StartDelay(Obstacle.PULLING, _line(event.message)) if pulling else vague or _NOTHING
        named = _named(event)
        if named is not None:
            return named
        if event.type == "Warning" and event.reason != _SCHEDULING:
            vague = _vaguer(vague, event)
    return vague or _NOTHING


def time_of(event: PodEvent) -> float:
    """Return when an event was seen last, in seconds since the epoch, 0 if it does not say."""
    last = event.series.lastObservedTime if event.series is not None else None
    times = (last, event.lastTimestamp, event.eventTime, event.firstTimestamp)
    return max((time.timestamp() for time in times if time is not None), default=0.0)


def missing_claim(scheduler: str) -> StartDelay | None:
    """Return which volume claim the scheduler misses, by what it says of a pod; None if it lacks something else."""
    missing = foreign_text.missing_object(scheduler)
    return StartDelay(Obstacle.REFERENCE, _line(scheduler), missing) if missing else None


_NOTHING = StartDelay(Obstacle.UNNAMED)


def _named(event: PodEvent) -> StartDelay | None:
    if event.reason == _SANDBOX:
        return StartDelay(Obstacle.SANDBOX, _line(foreign_text.without_ids(event.message)))
    if event.reason not in _VOLUMES or _is_summary(event):
        return None
    missing = foreign_text.missing_object(event.message)
    return StartDelay(Obstacle.REFERENCE if missing else Obstacle.VOLUME, _line(event.message), missing)


def _is_summary(event: PodEvent) -> bool:
    """Return whether an event only lists volumes: each has one of its own that says what is wrong with it."""
    return event.reason in _VOLUMES and foreign_text.only_lists_volumes(event.message)


def _vaguer(known: StartDelay | None, event: PodEvent) -> StartDelay:
    """Return the newest that lists volumes, or else the newest of all."""
    if known is not None and (known.obstacle is Obstacle.VOLUME or not _is_summary(event)):
        return known
    return StartDelay(Obstacle.VOLUME if _is_summary(event) else Obstacle.UNNAMED, _line(event.message))


def _line(text: str) -> str:
    one = " ".join(without_shapes(text[: 4 * LONGEST_TEXT]).split())
    return one if len(one) <= LONGEST_TEXT else f"{one[: LONGEST_TEXT - 1]}…"
