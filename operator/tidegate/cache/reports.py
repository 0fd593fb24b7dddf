"""Which of an application's pods is its driver, and whether its agent's last report still counts. No I/O."""

from __future__ import annotations

from tidegate.cache.known_apps import KnownApp
from tidegate.cache.process_state import TimedReport
from tidegate.pods.records.record import PodRecord

REPORT_AGE = 120.0
"""Seconds for which an agent's answer counts: four times the longest interval between questions."""


def find_pod(pods: list[PodRecord], name: str, role: str) -> PodRecord | None:
    """Return the pod of this name and role, None if it is not there."""
    return next((pod for pod in pods if pod.name == name and pod.role == role), None)


def valid_report(
    report: TimedReport | None, known: KnownApp, driver: PodRecord | None, now: float
) -> TimedReport | None:
    """Return a report if it is fresh, and of the process that runs now, else None.

    Args:
        report: the newest there is.
        known: the application.
        driver: its driver pod.
        now: seconds of the monotonic clock.
    """
    if report is None or driver is None or now - report.taken_at > REPORT_AGE:
        return None
    reported = report.report
    fits = (
        report.driver_uid == driver.uid
        and report.restarts == driver.restarts
        and reported.epoch == driver.epoch
        and reported.uid == known.app.metadata.uid
    )
    return report if fits else None
