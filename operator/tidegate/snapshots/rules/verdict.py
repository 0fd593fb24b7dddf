"""A rule's verdict about a snapshot, and the facts that several rules ask for. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.api.snapshot_identity import snapshot_id
from tidegate.api.stream_snapshot import SnapshotExport, SnapshotPhase, StreamSnapshot, is_at_deletion, owner_uid
from tidegate.api.streaming_app import Phase
from tidegate.engine.rules.health import Health
from tidegate.pods.records.record import PodRecord, seconds_since_notified
from tidegate.snapshots.actions import DeleteSnapshotPod, ForgetRefusal, SnapshotAction
from tidegate.snapshots.observation import SnapshotObservation
from tidegate_spark.contract.protocol import DriverState
from tidegate_spark.contract.reasons import AnyReason, Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotReport, SnapshotState

ORDER_PAUSE = 5.0
"""Seconds between two orders to an agent whose report does not show the first: the next report is on its way."""
NOT_TAKEN_PAUSE = 15.0
"""Seconds between two orders to an agent that did not take the first."""
OLDEST_REPORT = 60.0
"""Seconds that an agent's report may have been on its way, and more."""
_AT_REST = frozenset({Phase.SUSPENDED, Phase.COMPLETED, Phase.FAILED})


@dataclass(frozen=True, slots=True)
class Verification:
    """What the condition Verified says; ``ended`` is set when the work is done."""

    status: str
    reason: AnyReason
    message: str
    ended: SnapshotReport | None = None


@dataclass(frozen=True, slots=True)
class Exporting:
    """What the condition Exported says, and the record of the export; None takes the record away."""

    status: str
    reason: AnyReason
    message: str
    export: SnapshotExport | None


@dataclass(frozen=True, slots=True)
class SnapshotVerdict:
    """The result of the first rule that applies."""

    phase: SnapshotPhase
    health: Health
    reason: AnyReason
    """One word, CamelCase; the conditions' and the event's reason."""
    message: str
    """For a person: what is, and what to do if something must be done."""
    report: SnapshotReport | None = None
    """What is known of the work, for the status."""
    verification: Verification | None = None
    """What is said of its being read back, if anything is."""
    exporting: Exporting | None = None
    """What is said of its export, if anything is."""
    before: tuple[SnapshotAction, ...] = ()
    """Carried out before the status is written."""
    after: tuple[SnapshotAction, ...] = ()
    """Carried out after the status was written: what is ordered is on record."""
    begins: bool = False
    """Something is ordered for the first time: the status records what, and of whom."""
    silent: bool = False
    """Write no status: the resource is about to go."""
    wake_after: float | None = None


def refers_to_its_app(o: SnapshotObservation) -> bool:
    """Return whether the application is there, and is the one that was recorded if one was."""
    recorded = owner_uid(o.snapshot)
    return o.app is not None and recorded in ("", o.app.metadata.uid)


def agent_takes_orders(o: SnapshotObservation) -> bool:
    """Return whether a driver of this application runs and its agent answers."""
    driver = o.driver
    if driver is None or driver.terminating or o.agent is None or not refers_to_its_app(o):
        return False
    return o.agent.state is DriverState.RUNNING


def is_at_rest(o: SnapshotObservation) -> bool:
    """Return whether the application does not run and is not on its way to."""
    if o.app is None or agent_takes_orders(o):
        return False
    if is_at_deletion(o.snapshot):
        return o.app.metadata.deletion_timestamp is not None and o.driver is None
    stalled = o.app.status.condition(Health.STALLED.value)
    # One that runs can be stalled by what became of its last upgrade, and its agent not be heard for a while.
    stuck = stalled is not None and stalled.status == "True" and o.app.status.phase is not Phase.RUNNING
    return o.app.status.phase in _AT_REST or stuck


def agents_report(o: SnapshotObservation) -> SnapshotReport | None:
    """Return what the agent reports of this snapshot, None if nothing."""
    return find_report(o.agent.snapshots, o.snapshot) if o.agent is not None and refers_to_its_app(o) else None


def report_of_damage(o: SnapshotObservation, now: float) -> SnapshotReport | None:
    """Return what the driver says of a complete snapshot that lacks files, None if it says no such thing.

    A check of the driver's that is older than the last verification does not count; it will report again.
    """
    report, verified = agents_report(o), o.snapshot.status.verification
    if report is None or (report.state, report.reason) != (SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED):
        return None
    if verified is not None and verified.completion_time.timestamp() + OLDEST_REPORT > now - report.seconds:
        return None
    return report


def find_report(reports: tuple[SnapshotReport, ...], snapshot: StreamSnapshot) -> SnapshotReport | None:
    """Return the report of this snapshot, None if it is not among them."""
    wanted = snapshot_id(snapshot.metadata)
    return next((report for report in reports if report.id == wanted), None)


def reason_of(report: SnapshotReport, usual: Reason) -> Reason:
    """Return why an order is as a report says; ``usual`` where it gives no reason for a state that is known here."""
    return report.reason or (Reason.UNKNOWN if report.state is SnapshotState.UNKNOWN else usual)


def ordered_seconds_ago(o: SnapshotObservation, now: float) -> float:
    """Return how long ago the order was given to the driver process that runs now; infinity if it was not."""
    return seconds_since_notified(o.driver, o.memory.ordered_to, o.memory.ordered_at, now)


def put_away(o: SnapshotObservation, pod: PodRecord | None) -> tuple[SnapshotAction, ...]:
    """Return what removes the snapshot's pod, if it is there, and forgets that it was refused."""
    removed = () if pod is None or pod.terminating else (DeleteSnapshotPod(pod),)
    return (*forget_refusal(o), *removed)


def forget_refusal(o: SnapshotObservation) -> tuple[SnapshotAction, ...]:
    """Return what forgets that the API server refused the snapshot's pod, if it did."""
    return () if o.memory.refusal is None else (ForgetRefusal(),)
