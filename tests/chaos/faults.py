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
    STATUS = "status"
    """What the application's status holds is removed."""
    OLDER_STATUS = "older-status"
    """The status of some time ago is put back, as by a backup tool."""
    LABELS = "labels"
    """Those of the driver's pod are removed."""
    CATALOG = "catalog"
    """The list of snapshots in the application's storage is removed, or an older one put back."""
    RESOURCE = "resource"
    """The application's resource is deleted and applied again, with another uid."""
    EVICTION = "eviction"
    """A pod of the application is evicted."""
    QUOTA = "quota"
    """Pods are forbidden in the namespace while the driver's is deleted."""


RESTARTING = frozenset({Kind.DRIVER_JVM, Kind.DRIVER_PYTHON, Kind.S3, Kind.KAFKA})
"""What restarts the driver in its pod, or may."""
REPLACING = frozenset({Kind.DRIVER_POD, Kind.RESOURCE, Kind.QUOTA})
"""What always comes to another driver pod."""
OUTAGES = frozenset({Kind.S3, Kind.KAFKA, Kind.CATALOG, Kind.QUOTA})
"""What stays away for a while, or is in force for one."""
FORGETTING = frozenset({Kind.STATUS, Kind.OLDER_STATUS, Kind.RESOURCE})
"""What takes the record of an upgrade under way."""
HARMLESS = frozenset({Kind.CATALOG})
"""What batches go on during; nobody but snapshots and upgrades needs it."""
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
    """A server is asked to end instead of killed, a pod gets its grace period; processes are always killed.

    What somebody does to an object comes alone then, and otherwise with something worse."""
    change: Change | None = None
    """Just before it, so that it may fall into what comes of that."""

    def __str__(self) -> str:
        """Return it for a person."""
        how = _HOW.get(self.kind, ("killed", "ended in order"))[self.orderly]
        before = f", {self.change.what} changed before it" if self.change is not None else ""
        return f"{self.number:3} {self.kind} {how}{', inside a batch' if self.inside else ''}{before}"


_HOW = {
    Kind.STATUS: ("removed, the driver's pod killed with it", "removed"),
    Kind.OLDER_STATUS: ("put back, the driver's pod killed with it", "put back"),
    Kind.LABELS: ("removed, the operator's leader killed with them", "removed, then put back wrong"),
    Kind.CATALOG: ("removed, then restored", "put back as it was earlier"),
    Kind.RESOURCE: ("deleted by force, its finalizers removed, and applied again", "deleted and applied again"),
    Kind.EVICTION: ("with nearly no grace", "with grace"),
    Kind.QUOTA: ("forbids pods, the driver's killed with it", "forbids pods, the driver's ended in order with it"),
}
"""What is done in each kind that neither kills nor ends something alone: the worse way, the orderly way."""


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
    """Yield the deck with a later driver pod brought forward wherever a pod would be restarted too often."""
    waiting, restarts = list(deck), 0
    while waiting:
        pick = 0
        if waiting[0][0] in RESTARTING and restarts >= RESTARTS_IN_PLACE:
            pick = next((n for n, (kind, _) in enumerate(waiting) if kind in REPLACING), 0)
        kind, inside = waiting.pop(pick)
        restarts = 0 if kind in REPLACING else restarts + (kind in RESTARTING)
        yield kind, inside
