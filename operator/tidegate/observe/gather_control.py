"""observe: the messages to one application out of the index. Writes nothing."""

from __future__ import annotations

from tidegate.observe.control_observation import ControlObservation
from tidegate.observe.gather import find_pod, valid_report
from tidegate.observe.index import Index, KnownApp, UnreadableApp
from tidegate.resources.names import driver_pod_name
from tidegate.workqueue import Key
from tidegate_spark.protocol import ROLE_DRIVER


def observe_control(index: Index, app_key: Key, now: float, clock_skew: float = 0.0) -> ControlObservation:
    """Return everything a decision about the messages to an application may know.

    Args:
        index: the picture of the cluster.
        app_key: namespace and name of the application, which need not be there.
        now: seconds of the monotonic clock; old answers of agents are left out.
        clock_skew: seconds by which our clock is ahead of the API server's.
    """
    known = index.app(app_key)
    driver = find_pod(index.pods(app_key), driver_pod_name(app_key[1]), ROLE_DRIVER)
    readable = known if isinstance(known, KnownApp) else None
    report = valid_report(index.reports.get(app_key), readable, driver, now) if readable else None
    return ControlObservation(
        namespace=app_key[0],
        app_name=app_key[1],
        messages=index.control.in_order(app_key),
        app=readable.app if readable else None,
        app_unreadable=isinstance(known, UnreadableApp),
        driver=driver,
        agent=report.report if report else None,
        clock_skew=clock_skew,
        memory=index.control.memory(app_key),
    )
