"""What this process learned of applications and could learn again: answers, refusals, pauses. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_spark.contract.snapshot_protocol import SnapshotReport


@dataclass(frozen=True, slots=True)
class PodProgress:
    """What a process in a snapshot pod told while it was at work."""

    process: str
    """Uid of the pod and number of its restarts."""
    report: SnapshotReport
