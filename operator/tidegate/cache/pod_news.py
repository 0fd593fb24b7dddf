"""What a later version of a known pod changes: its owner, and whether anything is new. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ROLE_EXPORT, ROLE_SNAPSHOT


def as_first_seen(pod: PodRecord, known: PodRecord | None) -> PodRecord:
    """Return a later version of a known pod as the application's whose it was when it was seen first.

    Who may change pods can take its owner off, or give it another; the process in it goes on as what it was.
    """
    if known is None or known.uid != pod.uid or _whose(known) == _whose(pod):
        return pod
    return dataclasses.replace(
        pod,
        app=known.app,
        role=known.role,
        epoch=known.epoch,
        app_uid=known.app_uid,
        owner_uid=known.owner_uid,
        executor_slots=known.executor_slots,
    )


def _whose(pod: PodRecord) -> tuple[str, str, str]:
    return pod.app, pod.role, pod.owner_uid


def is_only_placed(known: PodRecord, pod: PodRecord) -> bool:
    """Return whether nothing is new about a pod but its node."""
    same = dataclasses.replace(known, resource_version=pod.resource_version, node=pod.node)
    return dataclasses.replace(same, silent_since=pod.silent_since) == pod


def is_kept(pod: PodRecord) -> bool:
    """Return whether a pod that a watch leaves out is kept until it was looked for: nobody had asked for its end."""
    return not pod.terminating and pod.role not in (ROLE_SNAPSHOT, ROLE_EXPORT)
