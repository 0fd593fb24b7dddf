"""The result of a message, from the application's reply. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.control_protocol import MessageState


@dataclass(frozen=True)
class Outcome:
    """What came of one message; nothing more comes of it."""

    id: str
    state: str
    """``Done``, ``Failed``, ``Rejected``, ``Expired`` or ``RolledBack``."""
    sequence: int = 0
    """Its number in the application's control log."""
    reason: str = ""
    message: str = ""
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Query -> batch in which it came into force, how many workers applied it of those that ran, errors."""
    results: Mapping[str, str] = field(default_factory=dict)
    """What it made, such as ``snapshot`` -> id."""

    @property
    def applied(self) -> bool:
        """Whether it came into force, and all that it asked for was done."""
        return self.state == MessageState.DONE.value


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    """Return what a reply's data says."""
    return Outcome(
        str(data.get("id", "")),
        str(data.get("state", "")),
        int(data.get("sequence", 0)),
        str(data.get("reason", "")),
        str(data.get("message", "")),
        dict(data.get("queries") or {}),
        dict(data.get("results") or {}),
    )
