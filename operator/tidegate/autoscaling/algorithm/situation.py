"""The present state of an application, as far as the number of executors depends on it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from tidegate.autoscaling.algorithm.measured import Measured

SHORT_SECONDS = 60.0
"""For how long executors have to be missing before that is the reason why nothing can be measured."""


class Obstacle(Enum):
    """Why nothing is to be decided."""

    SUSPENDED = auto()
    NO_REPORT = auto()
    """No driver answers."""
    NOT_READY = auto()
    """The queries do not run yet."""
    PAUSED = auto()
    CONTINUOUS = auto()
    """A query has a continuous trigger, of which there are no measurements."""
    REAL_TIME = auto()
    """A query is in real-time mode: its batches last as long as the trigger says, which looks like work without end."""
    REPARTITIONING = auto()
    UPGRADING = auto()


@dataclass(frozen=True, slots=True)
class Quota:
    """How many executors the namespace has room for, those that there are included, and which quota says so.

    It has ``used`` of ``hard`` of a ``resource``, of which an executor asks for ``asked``: as Kubernetes writes them.
    """

    most: int
    """Says nothing if that is ``unsure``."""
    name: str = ""
    resource: str = ""
    used: str = ""
    hard: str = ""
    asked: str = ""
    unstated: str = ""
    """The field of the spec that would state the resource, if nothing does; else empty."""
    unsure: bool = False
    """For how many there is room is not known: what they get of a resource that they do not state, others decide."""
    hint: str = ""
    """What the driver has been given of it, which does not state it either; empty if nothing."""
    there: int | None = None
    """How many have a pod; None: nobody counted."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Fewer executors than are wanted, ``since`` seconds since the epoch."""

    running: int
    leaving: int
    """Beside those: they end their tasks, and others come in their place."""
    since: float


@dataclass(frozen=True, slots=True)
class Situation:
    """What is now."""

    now: float
    """Seconds since the epoch."""
    steady: float
    """Seconds of the monotonic clock: it measures how long something has been so, since nobody sets it."""
    wanted: int
    """Executors that the driver was asked for."""
    cores: int
    """Tasks that one executor runs at a time."""
    version: str
    asked: int = 0
    """Executors that the spec asks for, with which an Active autoscaler begins; 0: with those that are wanted."""
    measured: Measured | None = None
    obstacle: Obstacle | None = None
    upgrade_phase: str = ""
    """Of the upgrade that is the obstacle."""
    excluded_until: float = 0.0
    quota: Quota | None = None
    shortage: Shortage | None = None
    same_for: float = 0.0
    """Seconds for which there have been as many executors, and queries, as now."""

    @property
    def lasting_shortage(self) -> Shortage | None:
        """What is missing for longer than executors take to come."""
        short = self.shortage
        return short if short is not None and self.now - short.since >= SHORT_SECONDS else None
