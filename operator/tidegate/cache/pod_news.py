"""Compares a later version of a known pod with what is known of it: its owner, and whether anything is new. No I/O."""

from __future__ import annotations

import dataclasses

from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ROLE_DRIVER, ROLE_EXPORT, ROLE_SNAPSHOT


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
    placed = dataclasses.replace(
        known, resource_version=pod.resource_version, node=pod.node, silent_since=pod.silent_since
    )
    return placed == pod


def is_kept(pod: PodRecord, known: PodRecord) -> bool:
    """Return whether a pod that a watch leaves out, given as it was seen last, is kept until it was looked for.

    One whose end nobody had asked for; and a driver that may still run, because it writes until its process has ended.
    The kubelet reports that end before the pod goes, and what has no node goes at once. So one that goes without it was
    deleted by force, or has lost its labels.
    """
    if known.role in (ROLE_SNAPSHOT, ROLE_EXPORT):
        return False
    if not (pod.terminating or known.terminating):
        return True
    return known.role == ROLE_DRIVER and bool(pod.node) and not (pod.finished or known.finished)
