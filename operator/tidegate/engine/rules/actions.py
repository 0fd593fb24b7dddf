"""The actions on a resource of any kind, as values. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.reasons import AnyReason


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Keep the resource until what belongs to it is gone."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the resource go."""


@dataclass(frozen=True, slots=True)
class EnsureAccess:
    """Have the application's ServiceAccount, Role and RoleBinding; they go with it, by their owner."""


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """Publish a Kubernetes Event; ``occasion`` makes its name, so that the same thing is published once."""

    reason: AnyReason
    message: str
    warning: bool
    occasion: str
    any_message: bool = False
    """It is the same event whatever its message, in which somebody else's text changes."""
