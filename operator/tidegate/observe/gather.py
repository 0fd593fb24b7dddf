"""observe: one application's Observation out of the index. Writes nothing."""

from __future__ import annotations

from tidegate.observe.index import Index, KnownApp
from tidegate.observe.observation import Observation, TimedReport
from tidegate.observe.pods import PodRecord
from tidegate.resources.names import driver_pod_name, purge_pod_name
from tidegate.resources.platform import Platform
from tidegate.workqueue import Key
from tidegate_spark.protocol import ROLE_DRIVER, ROLE_EXECUTOR, ROLE_PURGE

REPORT_AGE = 120.0
"""Seconds for which an agent's answer counts: four times the longest interval between questions."""


def observe(index: Index, key: Key, platform: Platform, now: float) -> Observation | None:
    """Return everything a decision about an application may know, or None if it is gone or unreadable.

    Args:
        index: the picture of the cluster.
        key: namespace and name.
        platform: what the installation decides.
        now: seconds since the epoch; old answers of agents are left out.
    """
    known = index.app(key)
    if not isinstance(known, KnownApp):
        return None
    pods = index.pods(key)
    driver = _named(pods, driver_pod_name(key[1]), ROLE_DRIVER)
    return Observation(
        app=known.app,
        spec_hash=known.spec_hash,
        platform=platform,
        driver=driver,
        executors=tuple(pod for pod in pods if pod.role == ROLE_EXECUTOR),
        purge=_named(pods, purge_pod_name(key[1]), ROLE_PURGE),
        agent=_valid_report(index.reports.get(key), known, driver, now),
        access_ready=key[0] in index.namespaces_with_access,
        rival=index.rival(known.app),
        memory=index.memory(key),
    )


def _named(pods: list[PodRecord], name: str, role: str) -> PodRecord | None:
    return next((pod for pod in pods if pod.name == name and pod.role == role), None)


def _valid_report(
    report: TimedReport | None, known: KnownApp, driver: PodRecord | None, now: float
) -> TimedReport | None:
    if report is None or driver is None or now - report.taken_at > REPORT_AGE:
        return None
    told = report.report
    fits = (
        report.driver_uid == driver.uid
        and report.restarts == driver.restarts
        and told.epoch == driver.epoch
        and told.uid == known.app.metadata.uid
    )
    return report if fits else None
