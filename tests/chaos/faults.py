"""Which faults happen, in which order, and when the application is rescaled meanwhile: all from one seed. Pure."""

import enum
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

RESTARTS_IN_PLACE = 3
"""So many restarts of one driver pod the plan allows: the kubelet waits 10 s, 20 s, 40 s … before each further one."""


class Kind(enum.StrEnum):
    """The classes of faults."""

    DRIVER_JVM = "driver-jvm"
    DRIVER_PYTHON = "driver-python"
    DRIVER_POD = "driver-pod"
    EXECUTOR_PROCESS = "executor-process"
    EXECUTOR_POD = "executor-pod"
    REPARTITION_POD = "repartition-pod"
    OPERATOR = "operator"
    API_SERVER = "api-server"
    ETCD = "etcd"
    S3 = "s3"
    KAFKA = "kafka"


RESTARTING = frozenset({Kind.DRIVER_JVM, Kind.DRIVER_PYTHON, Kind.S3, Kind.KAFKA})
"""What restarts the driver in its pod, or may."""
OUTAGES = frozenset({Kind.S3, Kind.KAFKA})
"""What stays away for a while."""
BETWEEN_BATCHES = frozenset({Kind.REPARTITION_POD})
"""What is there only while no batch runs."""


class Rescale(enum.StrEnum):
    """What is changed in the application's spec, as a part of the load."""

    EXECUTORS = "executors"
    PARTITIONS = "partitions"
    """Of the state, which is repartitioned."""


@dataclass(frozen=True)
class Change:
    """One change of the spec."""

    what: Rescale
    pick: float
    """0 to 1: to which of the numbers that it can be changed to."""

    def of(self, numbers: Sequence[int]) -> int:
        """Return the number that is picked from these."""
        return numbers[int(self.pick * len(numbers))]


@dataclass(frozen=True)
class Fault:
    """One fault of the plan."""

    number: int
    kind: Kind
    inside: bool
    """Timed to fall into a running batch; otherwise at any moment."""
    moment: float
    """0 to 1: how far into the batch, or how long to wait before it (times the runner's longest pause)."""
    orderly: bool
    """A server is asked to end instead of killed, a pod gets its grace period; processes are always killed."""
    change: Change | None = None
    """Just before it, so that it may fall into what comes of that."""

    def __str__(self) -> str:
        """Return it for a person."""
        how = "ended in order" if self.orderly else "killed"
        before = f", {self.change.what} changed before it" if self.change is not None else ""
        return f"{self.number:3} {self.kind} {how}{', inside a batch' if self.inside else ''}{before}"


def plan(count: int, seed: int, kinds: Sequence[Kind] = tuple(Kind)) -> list[Fault]:
    """Return ``count`` faults in random order, every kind and timing as often as any other, give or take one.

    Before a third of them there is another number of partitions of the state, before a third another one of executors.

    Raises:
        ValueError: there are no kinds to choose from.
    """
    if not kinds:
        raise ValueError("no kind of fault to choose from")
    dice = random.Random(seed)
    deck: list[tuple[Kind, bool]] = []
    while len(deck) < count:
        deal = [
            (kind, inside) for kind in kinds for inside in (True, False) if not (inside and kind in BETWEEN_BATCHES)
        ]
        dice.shuffle(deal)
        deck += deal
    ordered = list(_spare_back_off(deck[:count]))
    faults = [
        Fault(number, kind, inside, moment=dice.random(), orderly=kind not in _ALWAYS_KILLED and dice.random() < 0.5)
        for number, (kind, inside) in enumerate(ordered, 1)
    ]
    changes = _changes(count, dice)
    return [replace(fault, change=change) for fault, change in zip(faults, changes, strict=True)]


def _changes(count: int, dice: random.Random) -> list[Change | None]:
    deck: list[Rescale | None] = []
    while len(deck) < count:
        deal = [Rescale.EXECUTORS, Rescale.PARTITIONS, None]
        dice.shuffle(deal)
        deck += deal
    return [Change(what, dice.random()) if what is not None else None for what in deck[:count]]


_ALWAYS_KILLED = frozenset({Kind.DRIVER_JVM, Kind.DRIVER_PYTHON, Kind.EXECUTOR_PROCESS, Kind.OPERATOR})


def _spare_back_off(deck: Sequence[tuple[Kind, bool]]) -> Iterator[tuple[Kind, bool]]:
    """Yield the deck with a later driver-pod brought forward wherever a pod would be restarted too often."""
    waiting, restarts = list(deck), 0
    while waiting:
        pick = 0
        if waiting[0][0] in RESTARTING and restarts >= RESTARTS_IN_PLACE:
            pick = next((n for n, (kind, _) in enumerate(waiting) if kind == Kind.DRIVER_POD), 0)
        kind, inside = waiting.pop(pick)
        restarts = 0 if kind == Kind.DRIVER_POD else restarts + (kind in RESTARTING)
        yield kind, inside
