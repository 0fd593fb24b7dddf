"""Reports the channel messages that need the operator, until it has carried them out. No I/O of its own.

Such a message ends when people have what it asks for: a StreamSnapshot, or the files of a dump.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidegate_spark.contract.control_protocol import (
    CLUSTER_TYPES,
    AskedMessage,
    MessageEnd,
    MessageReport,
    MessageState,
)
from tidegate_spark.control.channels.envelope import event_id
from tidegate_spark.control.messages.accounts import within_bounds
from tidegate_spark.control_log.entries import Entry, Kind

OPEN_STATES = frozenset({MessageState.LOGGED, MessageState.IN_FORCE})


def involves_cluster(entry: Entry) -> bool:
    """Return whether the cluster has a part in a message; pure."""
    return bool(entry.origin) and entry.kind is Kind.MESSAGE and entry.type in CLUSTER_TYPES


def asked_id(entry: Entry) -> str:
    """Return by which id operator and driver know a message: an event's own may come again when it is forgotten."""
    return hashlib.sha256(f"{entry.sequence} {entry.id}".encode()).hexdigest()[:32]


class ClusterRequests:
    """One driver's. Thread safe. It may be lost: the operator sends again what the driver still reports."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._lock = threading.Lock()
        self._ends: dict[str, MessageEnd] = {}

    def learn(self, ends: Iterable[MessageEnd]) -> None:
        """Take note of what the operator says."""
        with self._lock:
            self._ends.update((end.id, end) for end in ends)

    def completed(self, entry: Entry, report: MessageReport) -> MessageReport:
        """Return what is to be said of a message from a channel, of which the driver knows what is in ``report``."""
        if not involves_cluster(entry):
            return report
        with self._lock:
            end = self._ends.get(asked_id(entry))
        if end is None:
            return report if report.state in OPEN_STATES else replace(report, state=MessageState.IN_FORCE)
        results = {**report.results, **end.results}
        return replace(report, state=end.state, reason=end.reason, message=end.message, results=results)

    def asked(self, entries: Iterable[Entry], reports: Mapping[int, MessageReport]) -> tuple[AskedMessage, ...]:
        """Return the reports for the operator, and forget what it said of others.

        Args:
            entries: messages from a channel whose end is not written down.
            reports: what the driver knows of each, by sequence.
        """
        known = [entry for entry in entries if involves_cluster(entry) and entry.sequence in reports]
        bounded = within_bounds([reports[entry.sequence] for entry in known])
        reported = tuple(map(_asked, known, bounded))
        names = {each.report.id for each in reported}
        with self._lock:
            self._ends = {name: end for name, end in self._ends.items() if name in names}
        return reported


def _asked(entry: Entry, report: MessageReport) -> AskedMessage:
    known = replace(report, id=asked_id(entry))
    return AskedMessage(known, entry.type, entry.payload, entry.origin, entry.source, event_id(entry))
