"""Decides by ``app.json`` which launches may run, and in which lineage. Pure; standard library only.

The storage is the truth about epoch and lineage, because a status can be lost, restored from a backup or edited. A
launch runs in the claim's lineage, or opens a later one for a recorded reason that it names, which the claim then
keeps.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate_spark.contract.protocol import (
    EXPECTS_NOTHING,
    EXPECTS_STATE,
    FIRST_LINEAGE,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    OPENS_REPARTITIONED,
    DriverConfig,
    StartFrom,
    to_json,
)

CLAIMED_SPARK = "sparkVersion"
"""Field of ``app.json``: the Spark that the last driver had."""
_OPENS = frozenset({OPENS_FROM_SNAPSHOT, OPENS_REPARTITIONED, OPENS_EMPTY})
_MOST_EARLIER = 32
"""Uids that are kept of those that a place belonged to."""


@dataclass(frozen=True)
class Opening:
    """Why there is a lineage, from before its first file."""

    lineage: int
    """The lineage that this is about; an earlier runtime opens another one and leaves this as it is."""
    what: str
    """One of the protocol's words."""
    startFrom: StartFrom | None = None  # noqa: N815 - as it is stored
    """What it starts with, if that is a snapshot."""


@dataclass(frozen=True)
class Claim:
    """``app.json``: the application whose storage it is."""

    uid: str
    namespace: str
    app: str
    epoch: int
    lineage: int
    sparkVersion: str = ""  # noqa: N815 - as it is stored
    """:data:`CLAIMED_SPARK`."""
    opening: Opening | None = None
    """Of the lineage, if it is not the first one, which starts with nothing."""
    earlier: tuple[str, ...] = ()
    """Uids of applications that the place was taken over from, the oldest first."""
    passed: int = 0
    """The latest lineage that a person has passed over: batches there say nothing of where the application is."""

    @property
    def opened(self) -> Opening | None:
        """Why there is the lineage that the claim names, None if that is not known."""
        return self.opening if self.opening is not None and self.opening.lineage == self.lineage else None


@dataclass(frozen=True)
class Known:
    """What the storage knows and a launch does not."""

    epoch: int
    lineage: int
    otherwise: bool = False
    """The lineage did not start from what the launch names."""
    found: bool = True
    """A claim or a fence says so; else the place is empty, and this is where an application begins."""
    adopted_from: str = ""
    """Uid that the place was taken over from just now."""


def known_beside(claim: Claim, config: DriverConfig, is_there: Callable[[int], bool]) -> Known | None:
    """Return what the storage knows that keeps a launch from running, None if it may run.

    Args:
        claim: of the same application.
        config: the launch's.
        is_there: whether there is a lineage that somebody ran in, or began to fill for that.
    """
    known = Known(claim.epoch, claim.lineage)
    if claim.epoch > config.epoch or config.lineage < claim.lineage:
        return known
    if config.lineage == claim.lineage:
        return dataclasses.replace(known, otherwise=True) if _began_otherwise(claim.opened, config) else None
    if claim.epoch == config.epoch:
        return known  # an epoch belongs to one launch, which was in the other lineage
    if opens(claim, config) and 0 < config.follows_epoch < claim.epoch:
        return known  # whoever decided this goes by an older status, which does not know of that launch
    if config.opening == OPENS_NOTHING and not is_there(config.lineage):
        return known
    return None


def expected_beside(claim: Claim, config: DriverConfig) -> tuple[str, ...]:
    """Return prefixes of keys below ``lineages/``, of which one has to exist; none if the claim itself is enough.

    Args:
        claim: of the same application.
        config: the launch's.
    """
    lineage = claim.lineage
    if config.expects == EXPECTS_STATE:
        return (f"{config.lineage or lineage}/",)
    if config.expects == EXPECTS_NOTHING or claim.opened is not None:
        return ()  # a claim with an opening has what the lineage is to be filled with
    if config.lineage > FIRST_LINEAGE:
        return (f"{lineage}/", f"{lineage}.")
    # A first lineage may be half filled; only its mark shows that it is whole.
    return (f"{lineage}.json",) if lineage == FIRST_LINEAGE else (f"{lineage}/", f"{lineage}.")


def opens(claim: Claim | None, config: DriverConfig) -> bool:
    """Return whether a launch is the first one in a lineage that it has a reason to open."""
    return config.opening in _OPENS and (claim is None or claim.lineage != config.lineage)


def as_claimed(content: Mapping[str, Any], claim: Claim | None, config: DriverConfig, spark: str) -> dict[str, Any]:
    """Return ``app.json`` as a launch that may run writes it.

    Args:
        content: what stands there; what a later version added is kept.
        claim: the same, read; None if there is none.
        config: the launch's.
        spark: version, empty if it is not known.
    """
    now: dict[str, Any] = {**content, **_owner(config), "epoch": config.epoch, "lineage": config.lineage}
    if spark:
        now[CLAIMED_SPARK] = spark
    if opens(claim, config):
        began = {"startFrom": json.loads(to_json(config.start_from))} if config.start_from is not None else {}
        now["opening"] = {"lineage": config.lineage, "what": config.opening, **began}
    return now


def as_taken_over(content: Mapping[str, Any], claim: Claim, config: DriverConfig) -> dict[str, Any] | None:
    """Return ``app.json`` of another application as one that adopts its place writes it, None if that may not.

    Who has had the place and lost it does not take it back: two that adopt, each in a cluster of its own, would take
    turns. Epoch and lineage stay, so that the launch after this one goes on where the earlier application ended.
    """
    if not config.adopt or config.uid in claim.earlier or claim.namespace != config.namespace:
        return None
    return {**content, **_owner(config), "earlier": [*claim.earlier, claim.uid][-_MOST_EARLIER:]}


def as_found(epoch: int, lineage: int, uid: str, config: DriverConfig) -> dict[str, Any]:
    """Return a new ``app.json`` for a place that has lost its own, by what its fence says."""
    earlier = [uid] if uid != config.uid else []
    return {**_owner(config), "epoch": epoch, "lineage": lineage, "earlier": earlier}


def _owner(config: DriverConfig) -> dict[str, Any]:
    return {"uid": config.uid, "namespace": config.namespace, "app": config.app}


def _began_otherwise(opened: Opening | None, config: DriverConfig) -> bool:
    if opened is None or config.opening not in _OPENS:
        return False  # no reason was named, or none was recorded: then only the mark counts
    if opened.what != config.opening:
        return True
    if config.opening != OPENS_FROM_SNAPSHOT or opened.startFrom is None or config.start_from is None:
        return False
    return opened.startFrom.snapshot != config.start_from.snapshot
