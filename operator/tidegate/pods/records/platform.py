"""What the installation and the namespace, not the application, determine about pods. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.pods.records.floors import NO_FLOORS, Floors


@dataclass(frozen=True)
class Platform:
    """Settings of the installed operator, and what it learned of the namespace of the pods.

    Attributes:
        operator_image: holds the runtime that the init container copies into drivers and executors, and in which
            purge pods run.
        operator_image_pull_policy: when nodes pull that image for them.
        runtime_log_format: form of the runtime's own log lines in the applications' pods; text or json.
        key_id: tells the operator's key from others, and nothing of it.
        floors: what LimitRanges of the namespace demand.
    """

    operator_image: str
    operator_image_pull_policy: str = "IfNotPresent"
    runtime_log_format: str = "text"
    key_id: str = ""
    floors: Floors = NO_FLOORS
