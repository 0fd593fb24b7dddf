"""A rule's verdict: phase and health with reason and message, and actions. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.streaming_app import Phase
from tidegate.app.actions import Action
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.reasons import AnyReason


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the first rule that applies."""

    phase: Phase
    health: Health
    reason: AnyReason
    """One word, CamelCase; the conditions' and the event's reason."""
    message: str
    """For a person: what is, and what to do if something must be done."""
    before: tuple[Action, ...] = ()
    """Carried out before the status is written."""
    after: tuple[Action, ...] = ()
    """Carried out after the status was written."""
    launch: int = 0
    """The epoch that is launched; 0 if none is."""
    unplanned: bool = False
    """The launch, now or after a pause, follows from a loss and not from somebody's wish."""
    adopt: tuple[int, int] = (0, 0)
    """Epoch and lineage that the storage knows and the status does not; zeros if there is nothing to adopt."""
    adopt_opening: bool = False
    """What the status says of that lineage's beginning is not what it began with."""
    silent: bool = False
    """Write no status: the resource is about to go."""
    warning: bool = False
    """Its event is a warning; a verdict of something stalled always is."""
    wake_after: float | None = None
