"""What the installation, not the application, decides about pods. No I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """Settings of the installed operator.

    Attributes:
        operator_image: holds the runtime that the init container copies into drivers and executors, and in which
            purge pods run.
        operator_image_pull_policy: when nodes pull that image for them.
        runtime_log_format: form of the runtime's own log lines in the applications' pods; text or json.
        key_id: tells the operator's key from others, and nothing of it.
    """

    operator_image: str
    operator_image_pull_policy: str = "IfNotPresent"
    runtime_log_format: str = "text"
    key_id: str = ""
