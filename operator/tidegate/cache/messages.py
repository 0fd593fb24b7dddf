"""Messages: what is not known yet, and names of observed fields. No I/O."""

from __future__ import annotations

CONTROL_MESSAGES_UNLISTED = "control messages are not listed yet"
PODS_UNLISTED = "pods are not listed yet"
APPLICATIONS_UNLISTED = "applications are not listed yet"
SNAPSHOTS_UNLISTED = "snapshots are not listed yet"
CPU_LIMIT_FIELDS = "spec.driver.resources.limits.cpu and spec.executor.resources.limits.cpu"
