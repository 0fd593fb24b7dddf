"""The settings of the autoscaler, in seconds and shares. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TOLERANCE = 0.1
"""Share by which the need may differ from what there is before anything is done: measurements are never exact."""
ROUNDING = 1e-6
"""By so much a number that is whole by its meaning may differ from that."""
PERIOD = 10.0
"""Seconds between two looks at an application."""
UNSEEN = 3 * PERIOD
"""Seconds without a look up to which nothing is forgotten: an operator with much to do looks late, and always a bit."""


class Mode(StrEnum):
    """What is done about the number of executors."""

    OFF = "Off"
    ADVISE = "Advise"
    ACTIVE = "Active"


@dataclass(frozen=True, slots=True)
class ExcludedPeriod:
    """From each time of a schedule on, for so many seconds, nothing is changed. No time zone: UTC."""

    schedule: str
    seconds: float
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it; the defaults are those of the CRD."""

    most: int
    fewest: int = 1
    mode: Mode = Mode.ACTIVE
    utilization: float = 0.7
    """Share of the executors' time that the load is to take, without what is to be caught up with."""
    catch_up: float = 600.0
    """Seconds in which a backlog is to be worked off."""
    window: float = 60.0
    """Seconds over which is measured."""
    stabilization: float = 15.0
    """Seconds for which more have to be needed before there are more."""
    down_interval: float = 600.0
    """Seconds for which fewer have to be enough before there are fewer, and since the last change."""
    down_share: float = 0.5
    """Share of the executors that one step down may take."""
    excluded: tuple[ExcludedPeriod, ...] = ()
