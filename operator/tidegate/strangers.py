"""Pods with our labels that are none of ours, and those that nothing can be made of: they are told of, and left out."""

from __future__ import annotations

from typing import Any

import structlog

from tidegate.observe.pods import Pod, PodRecord, build_record
from tidegate.observe.versions import Departed

log = structlog.get_logger()


def record_of(pod: Pod) -> PodRecord | None:
    """Return a pod's record; None of one that nothing can be made of: it must not keep the others out."""
    try:
        return build_record(pod)
    except Exception:
        log.exception(
            "pod left out, because it cannot be read", pod=pod.metadata.name, namespace=pod.metadata.namespace
        )
        return None


def last_record_of(pod: Pod) -> PodRecord:
    """Return the record of a pod that is gone; of one that nothing can be made of, who it was."""
    return record_of(pod) or build_record(Pod(_names_alone(pod)))


def _names_alone(pod: Pod) -> Any:
    meta = pod.metadata
    return type(meta)(meta.name, meta.namespace, meta.uid, meta.resourceVersion)


class Strangers:
    """Tells once of each pod that has our labels and no owner that makes it ours.

    It counts as nobody's, and is never deleted by us. Where its name is in the way of a pod of ours, the application
    says so (PodNameTaken).
    """

    def __init__(self) -> None:
        """Start with none."""
        self._told = Departed()

    def note(self, pod: PodRecord) -> None:
        """Log a pod if it is a stranger that was not told of."""
        if pod.role or pod.uid in self._told:
            return
        self._told.note(pod.uid)
        log.warning("pod left out: its labels are Tidegate's, its owner is not", pod=pod.name, namespace=pod.namespace)
