"""Builds the observation of the messages to one application from the index. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.api.control_message import ControlMessage
from tidegate.api.stream_snapshot import StreamSnapshot
from tidegate.cache.index import Index
from tidegate.cache.kinds.open_resources import OpenCount
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.reports import find_pod, valid_report
from tidegate.control.builders.message_snapshot import message_snapshot_name
from tidegate.control.index import ControlIndex
from tidegate.control.observation import ControlObservation
from tidegate.engine.resource_key import Key
from tidegate.pods.records.names import driver_pod_name
from tidegate_spark.contract.control_protocol import CLUSTER_TYPES
from tidegate_spark.contract.protocol import ROLE_DRIVER

FindSnapshot = Callable[[Key], StreamSnapshot | None]


def observe_control(
    index: Index,
    app_key: Key,
    now: float,
    clock_skew: float = 0.0,
    find_snapshot: FindSnapshot = lambda key: None,
) -> ControlObservation:
    """Return everything a decision about the messages to an application may know.

    Args:
        index: the picture of the cluster.
        app_key: namespace and name of the application, which need not be there.
        now: seconds of the monotonic clock; old answers of agents are left out.
        clock_skew: seconds by which our clock is ahead of the API server's.
        find_snapshot: returns the StreamSnapshot of a key, None if there is none.
    """
    known = index.app(app_key)
    driver = find_pod(index.pods(app_key), driver_pod_name(app_key[1]), ROLE_DRIVER)
    readable = known if isinstance(known, KnownApp) else None
    report = valid_report(index.reports.get(app_key), readable, driver, now) if readable else None
    messages = index.of(ControlIndex).in_order(app_key)
    return ControlObservation(
        namespace=app_key[0],
        app_name=app_key[1],
        messages=messages,
        app=readable.app if readable else None,
        app_unreadable=isinstance(known, UnreadableApp),
        without_app=index.of(ControlIndex).waiting.without_app(app_key[0]) if known is None else OpenCount(),
        driver=driver,
        agent=report.report if report else None,
        snapshots=_snapshots(find_snapshot, messages),
        clock_skew=clock_skew,
        memory=index.of(ControlIndex).memory(app_key),
    )


def _snapshots(find_snapshot: FindSnapshot, messages: Iterable[ControlMessage]) -> dict[str, StreamSnapshot]:
    asking = (message for message in messages if message.spec.type in CLUSTER_TYPES and not message.is_final)
    found = ((it.metadata.uid, find_snapshot((it.key[0], message_snapshot_name(it)))) for it in asking)
    return {uid: snapshot for uid, snapshot in found if snapshot is not None}
