"""Pods with our labels that are not ours: logged once, and left out. No I/O but the log."""

from __future__ import annotations

import structlog

from tidegate.cache.kinds.versions import Departed
from tidegate.pods.records.record import PodRecord

log = structlog.get_logger()


class UnownedPods:
    """Logs once each pod that has our labels and no owner that makes it ours.

    It counts as nobody's, and is never deleted by us. Where its name is in the way of a pod of ours, the application
    says so (PodNameTaken).
    """

    def __init__(self) -> None:
        """Start with none."""
        self._reported = Departed()

    def note(self, pod: PodRecord) -> None:
        """Log a pod if it has no owner of ours and was not logged before."""
        if pod.role or pod.uid in self._reported:
            return
        self._reported.note(pod.uid)
        log.warning("pod left out: its labels are Tidegate's, its owner is not", pod=pod.name, namespace=pod.namespace)
